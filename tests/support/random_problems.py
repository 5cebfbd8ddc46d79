"""Whole problem files at random: models, priors, noise, data with gaps and limits, doses; many right, some not."""

from __future__ import annotations

from random import Random

from tests.support.random_models import random_model

PRIORS = (
    'prior = "lognormal", meanlog = 0, sdlog = {scale}',
    'prior = "uniform", lower = 0, upper = {scale}',
    'prior = "uniform", lower = 0.01, upper = 5, coordinate = "log"',
    'prior = "normal", mean = 1, sd = {scale}, lower = 0',
    'prior = "halfnormal", sd = {scale}',
    'prior = "gamma", shape = 2, rate = {scale}',
    'prior = "student-t", df = 3, location = 1, scale = {scale}, lower = 0, upper = 50',
)
WRONG = 'prior = "uniform", lower = {scale}, upper = 0'
NOISES = (
    'family = "normal", sd = {scale}',
    'family = "lognormal", sdlog = 0.3',
    'family = "normal", sd = "sigma"',
    'family = "student-t", scale = 0.5, df = 4',
    'family = "laplace", scale = {scale}, relative = 0.1',
    'family = "poisson"',
    'family = "negative-binomial", overdispersion = 0.5',
)
COUNTS = ("poisson", "binomial")
ODD = ("", "nan", "<0.5", "1e300", "-1", "0", "inf", "oops")


def random_problem(seed: int) -> tuple[str, str]:
    """A problem file, and the CSV file ``data.csv`` that it names; about a third have something wrong."""
    rng = Random(seed)
    slip = 0.15 if rng.random() < 0.35 else 0.0  # how often something is wrong
    model = random_model(rng.randrange(10**6))

    def scale() -> str:
        return rng.choice(["1e-3", "1e6", "0", "-1"] if rng.random() < slip else ["0.5", "1", "3"])

    def prior() -> str:
        return (WRONG if rng.random() < slip else rng.choice(PRIORS)).format(scale=scale())

    noises = {output: rng.choice(NOISES).format(scale=scale()) for output in model.outputs}
    names = [*model.parameters, *(["sigma"] if any("sigma" in noise for noise in noises.values()) else [])]
    if names and rng.random() < slip:
        names.pop()
    text = ["[model]", 'equations = """', model.to_text(), '"""', f"outputs = {list(model.outputs)!r}"]
    text += ["[parameters]", *(f"{name} = {{ {prior()} }}" for name in names)]
    text += ["[noise]", *(f"{output} = {{ {noise} }}" for output, noise in noises.items())]
    text += ["[data]", 'file = "data.csv"']
    if rng.random() < 0.3:
        wrong = rng.random() < slip
        text += ["[[dose]]", f'state = "{"nowhere" if wrong else rng.choice(model.states)}"']
        text += [f"time = {rng.choice([0, 1, 2.5])}", f"amount = {rng.choice(['1', '0', '1e4'])}"]
    return "\n".join([*text, ""]), _data(rng, noises, slip)


def _data(rng: Random, noises: dict[str, str], slip: float) -> str:
    """Rows in the order of time, some twice; cells may be empty or limits."""
    rows, time = [",".join(["time", *noises])], 0.0
    for _ in range(rng.randint(1, 12)):
        time += rng.choice([0.0, 0.5, 1.0])
        cells = []
        for noise in noises.values():
            value = rng.lognormvariate(0, 1)
            usual = f"{value:.0f}" if any(word in noise for word in COUNTS) else f"{value:.3g}"
            cells.append(rng.choice(ODD) if rng.random() < slip else "" if rng.random() < 0.1 else usual)
        rows.append(",".join([f"{time:g}", *cells]))
    return "\n".join([*rows, ""])
