"""What large problems cost: memory, size of the results, and CPU time before, during and after sampling.

    python benchmarks/load.py [NAME ...]

Every problem is made up here, written to a temporary folder, and fitted in a process of its own, report included, as
``equifinal fit`` does it. Time is CPU time of all threads; *after* is all that follows the last draw: collecting
results, writing them, interpreting them, and the page. Each fit is made twice, and the second measured, so that nothing
is compiled in it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

GROWTH = '''
[model]
equations = """
x' = r*x*(1 - x/K)
y = s*x
x(0) = {initial}
"""
outputs = ["y"]
{constants}
[quantities]
doubling = "0.6931/r"
[parameters]
r = {{ prior = "lognormal", meanlog = 0, sdlog = 1 }}
K = {{ prior = "lognormal", meanlog = 4, sdlog = 1 }}
s = {{ prior = "lognormal", meanlog = 0, sdlog = 1 }}
x0 = {{ prior = "lognormal", meanlog = 0, sdlog = 1 }}
[noise]
y = {{ family = "normal", sd = 5 }}
'''


def growth(times: np.ndarray, dilution: float, rng: np.random.Generator) -> list[str]:
    """Lines of a CSV file: logistic growth in closed form, with noise."""
    r, capacity, s, x0 = 0.7, 80.0, 1.5, 2.0 * dilution
    x = capacity / (1 + (capacity / x0 - 1) * np.exp(-r * times))
    seen = s * x + rng.normal(0, 5, times.size)
    return [f"{t:.6g},{y:.5g}" for t, y in zip(times, seen, strict=True)]


def one_experiment(folder: Path, size: int) -> None:
    lines = growth(np.linspace(0, 15, size), 1.0, np.random.default_rng(1))
    (folder / "data.csv").write_text("\n".join(["time,y", *lines, ""]))
    text = GROWTH.format(initial="x0", constants="") + '[data]\nfile = "data.csv"\n'
    (folder / "problem.toml").write_text(text)


def experiments(folder: Path, number: int) -> None:
    """Cultures that begin with different dilutions of the same sample, 20 observations each."""
    rng = np.random.default_rng(2)
    parts = [GROWTH.format(initial="dilution*x0", constants="[constants]\ndilution = 1")]
    for i in range(number):
        dilution = round(float(rng.uniform(0.2, 5)), 3)
        (folder / f"{i}.csv").write_text("\n".join(["time,y", *growth(np.linspace(0, 15, 20), dilution, rng), ""]))
        parts.append(f'[[experiment]]\nname = "culture {i}"\nconstants = {{ dilution = {dilution} }}')
        parts.append(f'data = {{ file = "{i}.csv" }}\n')
    (folder / "problem.toml").write_text("\n".join(parts))


def states(folder: Path, number: int) -> None:
    """A pulse through a row of compartments, seen at three of them; each is a density of Erlang's law."""
    from scipy.stats import gamma

    seen = [number // 4, number // 2, number]
    flow = ["x1' = -k*x1", "x1(0) = D"]
    for i in range(2, number + 1):
        flow += [f"x{i}' = k*(x{i - 1} - x{i})", f"x{i}(0) = 0"]
    flow += [f"y{i} = s*x{i}" for i in seen]
    rng, times = np.random.default_rng(3), np.linspace(0, 1.6 * number / 10, 60)
    columns = [30 * gamma(i, scale=1 / 10).pdf(times) + rng.normal(0, 0.1, times.size) for i in seen]
    rows = [",".join(f"{v:.5g}" for v in row) for row in zip(times, *columns, strict=True)]
    names = [f"y{i}" for i in seen]
    (folder / "data.csv").write_text("\n".join([",".join(["time", *names]), *rows, ""]))
    prior = '{ prior = "lognormal", meanlog = 1, sdlog = 1 }'
    noise = "\n".join(f'{name} = {{ family = "normal", sd = 0.1 }}' for name in names)
    (folder / "problem.toml").write_text(
        '[model]\nequations = """\n' + "\n".join(flow) + f'\n"""\noutputs = {json.dumps(names)}\n'
        f'[parameters]\nk = {prior}\nD = {prior}\ns = {prior}\n[noise]\n{noise}\n[data]\nfile = "data.csv"\n'
    )


CASES: dict[str, tuple[Callable[[Path], None], dict[str, int]]] = {
    "100,000 observations, 4 x 1,000 draws": (lambda f: one_experiment(f, 100_000), {"draws": 1000}),
    "200 experiments": (lambda f: experiments(f, 200), {}),
    "500 experiments": (lambda f: experiments(f, 500), {}),
    "4 x 500,000 draws": (lambda f: one_experiment(f, 30), {"draws": 500_000}),
    "64 chains": (lambda f: one_experiment(f, 30), {"chains": 64}),
    "200 states": (lambda f: states(f, 200), {}),
}


def fit_here(folder: Path, settings: dict[str, int]) -> None:
    """Fit in this process, and print what it took."""
    from functools import partial

    from equifinal.formats.load import load
    from equifinal.report.fit import with_report
    from equifinal.studies import fit as whole
    from equifinal.studies import sample as sampling

    marks = {}
    run = sampling.run

    def marked(*args: object, **kwargs: object) -> object:
        marks["before"] = _cpu()
        made = run(*args, **kwargs)  # type: ignore[arg-type]
        marks["sampled"], marks["sampled_rss"] = _cpu(), _peak()
        return made

    sampling.run = marked  # type: ignore[assignment]
    problem = load(folder / "problem.toml")
    done = whole.fit(
        problem,
        settings,
        folder=folder / "run",
        overwrite=True,
        progress=False,
        finish=partial(with_report, progress=False),
    )
    chains, kept = done.data.posterior.sizes["chain"], done.data.posterior.sizes["draw"]
    print(
        json.dumps(
            {
                "draws": f"{chains} x {kept}",
                "before": marks["before"],
                "sampling": marks["sampled"] - marks["before"],
                "after": _cpu() - marks["sampled"],
                "peak": _peak(),
                "peak_sampling": marks["sampled_rss"],
                "results": done.path.stat().st_size / 1e6,
                "report": 0 if done.report is None else done.report.stat().st_size / 1e6,
                "sound": not any(concern.serious for concern in done.concerns),
            }
        )
    )


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system  # the analysis has its own process


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(wanted: list[str]) -> None:
    columns = ("draws", "before s", "sampling s", "after s", "peak GB", "results MB", "report MB", "sound")
    print("| problem | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, (make, settings) in CASES.items():
        if wanted and not any(word in name for word in wanted):
            continue
        with tempfile.TemporaryDirectory() as place:
            make(Path(place))
            for _ in range(1 if "--once" in sys.argv else 2):
                command = [sys.executable, __file__, "--fit", place, json.dumps(settings)]
                made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(made.stdout.splitlines()[-1])
        numbers = [f"{found[key]:.1f}" for key in ("before", "sampling", "after")]
        sizes = [f"{found['peak']:.2f}", f"{found['results']:.0f}", f"{found['report']:.1f}"]
        row = [name, found["draws"], *numbers, *sizes, "yes" if found["sound"] else "no"]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit_here(Path(sys.argv[2]), json.loads(sys.argv[3]))
    else:
        main([word for word in sys.argv[1:] if not word.startswith("--")])
