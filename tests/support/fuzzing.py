"""A campaign of fuzzed models and hostile parameter vectors.

    python -m tests.support.fuzzing [--models 100000] [--first SEED]

Every seed is a model text, read or refused; some of those that are read are written and read again, solved at points
that no one would choose, and analysed; some seeds are whole problem files too. What must not happen is an exception
other than ours, a solution called good that is not finite, a crash, or a case that does not end. Cases run in
processes that the system ends after some seconds of CPU time each, in compiled code as well.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from equifinal import ode
from equifinal.errors import EquifinalError
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.load import load
from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model
from equifinal.language.trees import from_tree, to_tree
from equifinal.posterior.posterior import Posterior
from tests.support.fuzzed_models import bent, fuzzed_model, hostile_points
from tests.support.random_problems import random_problem

LIMIT = 20.0  # CPU seconds for a case
LANES = 120
WRITTEN, SOLVED, ANALYSED, WHOLE = 5, 6, 150, 20  # every so many seeds
FEW_STEPS = 1000
TIMES = ([0.0], [1.0, 10.0], [*range(11)], [1e-9, 1e6], [0.5, math.inf], [])
CHUNK = 500  # seeds of a process


class Wrong(AssertionError):
    """What must not happen, and no exception told."""


def attempt(seed: int, folder: Path) -> Counter[str]:
    """Everything that is done with a seed: how often each thing came to pass."""
    found: Counter[str] = Counter(models=1)
    fuzzed = fuzzed_model(seed)
    try:
        model = Model.parse(fuzzed.text, fuzzed.outputs, **fuzzed.options)
    except EquifinalError as error:
        told(error)
        found["refused"] += 1
    else:
        if seed % WRITTEN == 0:
            written(model, fuzzed.options)
            found["written"] += 1
        if seed % SOLVED == 0:
            found += solved(model, seed)
        if seed % ANALYSED == 0:
            found += analysed(model)
    if seed % WHOLE == 0:
        found += whole(seed, folder)
    return found


def told(error: EquifinalError) -> None:
    """Errors are sentences that can be printed."""
    text = str(error)
    if "bug in equifinal" in text:
        raise Wrong(text)
    if not 10 < len(text) < 1500 or any(not c.isprintable() and c not in "\n\t" for c in text):
        raise Wrong(f"an error that is no sentence: {text[:200]!r}")


def written(model: Model, options: dict[str, Any]) -> None:
    """The text of a model is read again, and what is stored of it is the same to the last node."""
    again = Model.parse(model.to_text(), model.outputs, **options)
    if again.states != model.states or set(again.parameters) != set(model.parameters):
        raise Wrong("the text of the model, read again, is another model")
    for part in (*model.equations.values(), *model.initial.values(), *model.definitions.values()):
        if from_tree(json.loads(json.dumps(to_tree(part)))) != part:
            raise Wrong(f"{part} is stored as something else")


def solved(model: Model, seed: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    try:
        system = ode.compile_system(model, model.parameters)
    except EquifinalError as error:
        told(error)
        return Counter(not_compiled=1)
    inputs = None
    if model.inputs:
        values = hostile_points(rng, 2, len(model.inputs))
        values[~np.isfinite(values)] = 1.0
        inputs = ode.Inputs(np.array([0.0, 2.0]), values, np.zeros_like(values))
    times = TIMES[rng.integers(len(TIMES))]
    points = hostile_points(rng, LANES, len(system.arguments))
    points[:, len(model.parameters) :] = [float(value) for value in model.constants.values()]
    slow, steep = seed % (20 * SOLVED) == 0, seed % (4 * SOLVED) == 0
    lanes, most = (points[:10], 50_000) if slow else (points, FEW_STEPS)
    try:
        made = ode.simulate(system, lanes, times, inputs=inputs, sensitivities=steep, max_steps=most, threads=1)
    except EquifinalError as error:  # no steady state can be looked for
        told(error)
        return Counter(not_solved=1)
    good = made.status == ode.Status.ok
    for values in made[:4]:
        if values is not None and not np.isfinite(values[good]).all():
            raise Wrong(f"a solution that is not finite is called good: {lanes[good].tolist()}")
    counts = Counter({"vectors": len(good)})
    counts.update(ode.Status(int(status)).name for status in made.status)
    return counts


def analysed(model: Model) -> Counter[str]:
    try:
        analyse(model, time_limit=0.3, effort=0.05)
    except EquifinalError as error:
        told(error)
    return Counter(analysed=1)


def whole(seed: int, folder: Path) -> Counter[str]:
    """A problem file, in half of the cases bent, stored and read again, and judged at points that are hostile."""
    rng = Random(seed)
    text, data = random_problem(seed)
    if rng.random() < 0.5:
        text, data = (bent(rng, text), data) if rng.random() < 0.7 else (text, bent(rng, data))
    (folder / "problem.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    (folder / "data.csv").write_bytes(data.encode("utf-8", "surrogatepass"))
    try:
        problem = load(folder / "problem.toml")
        if problem_from_json(problem_to_json(problem)).fingerprint() != problem.fingerprint():
            raise Wrong("a stored problem is read as another one")
        posterior = Posterior(problem)
    except EquifinalError as error:
        told(error)
        return Counter(problems=1, refused_problems=1)
    points = hostile_points(np.random.default_rng(seed), LANES // 2, posterior.dimension)
    with np.errstate(all="ignore"):
        likelihood = posterior.log_likelihood(points)
        made = posterior.evaluate(points)
    for values in (likelihood.values, made.log_likelihood, made.log_prior):
        if np.isnan(values).any() or (values == np.inf).any():
            raise Wrong(f"a density that is not a number: {points.tolist()}")
    return Counter(problems=1, vectors=2 * len(points))


class Found(NamedTuple):
    counts: Counter[str]
    wrong: list[str]


def campaign(first: int, number: int, folder: Path, say: Callable[[str], None] = print) -> Found:
    """All seeds in processes of their own, some hundreds each; what ends such a process is booked on its seed."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    seed, last = first, first + number
    while seed < last:
        made, problems, ended = _chunk(seed, min(last, seed + CHUNK), folder)
        counts += made
        wrong += problems
        seed += made["models"]
        if ended:
            wrong.append(f"seed {seed}: the process ended with {ended}")
            counts["models"] += 1
            seed += 1
        if problems or ended or (seed - first) % (10 * CHUNK) == 0:
            say(f"{seed - first} seeds, {time.process_time():.0f} s: {dict(counts)}")
            for problem in [*problems, *(wrong[-1:] if ended else [])]:
                say(problem)
    return Found(counts, wrong)


def _chunk(first: int, last: int, folder: Path) -> tuple[Counter[str], list[str], str]:
    """What the seeds of a process came to, and how it ended, if not well."""
    record = folder / "record.txt"
    record.write_text("")
    child = os.fork()
    if not child:
        try:
            _work(first, last, folder, record)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    counts: Counter[str] = Counter()
    wrong = []
    for line in record.read_text().splitlines():
        made, _, problem = line.partition("\t")
        counts += Counter({name: int(n) for name, _, n in (part.partition("=") for part in made.split())})
        wrong += [problem] if problem else []
    return counts, wrong, "" if code == 0 else signal.Signals(-code).name if code < 0 else f"exit {code}"


def _work(first: int, last: int, folder: Path, record: Path) -> None:
    os.environ["EQUIFINAL_CACHE_DIR"] = "none"  # no absolute path: nothing is kept
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with record.open("a", encoding="utf-8", errors="backslashreplace") as file:
        for seed in range(first, last):
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            problem = ""
            try:
                made = attempt(seed, folder)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                problem = f"seed {seed}: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
                made = Counter(models=1, wrong=1)
            signal.setitimer(signal.ITIMER_PROF, 0)  # what is written is done
            file.write(
                " ".join(f"{name}={n}" for name, n in made.items()) + "\t" + problem[:400].replace("\n", " ") + "\n"
            )
            file.flush()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    ode.compile_system(Model.parse("x' = -x", ["x"]), ("x_0",))  # loads what all processes share
    with tempfile.TemporaryDirectory() as place:
        found = campaign(asked.first, asked.models, Path(place), lambda text: print(text, flush=True))
    print(f"wrong: {len(found.wrong)}; {dict(found.counts)}")


if __name__ == "__main__":
    main()
