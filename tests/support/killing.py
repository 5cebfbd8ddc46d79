"""A fit that is killed again and again, through the command line, and must end with the draws of one that was not.

    python -m tests.support.killing [--rounds N] [--first SEED] [--kills N] [SAMPLER ...]

Every fit is a process of its own, forked before anything is compiled or solved, and killed with SIGKILL at a moment
that is named: at a segment of the run, or at the writing of the checkpoint, the results or the report, when the new
file is torn, whole but not in its place, or just in its place. The same command then goes on, and is killed again.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from equifinal.cli import app
from equifinal.results.arviz_lines import import_arviz
from equifinal.results.store import load
from equifinal.samplers.running import under_way
from tests.support.problems import SCALED

SAMPLERS = ("auto", "collapsed", "pseudo-marginal", "geometric", "random-walk")
STAGES = ("torn", "whole", "in place")
CHECKPOINT, RESULTS, REPORT = "checkpoint.npz", "results.nc", "report.html"
SEGMENT = "segment"
IMPORTED = ("scipy.stats", "matplotlib.backends.backend_svg", "equifinal.report.page", "equifinal.studies.fit")


class Moment(NamedTuple):
    """The number-th time that a thing happens, and how far it has come."""

    what: str
    number: int
    stage: str = ""


def moments(rng: random.Random, kills: int) -> Iterator[Moment]:
    """Some while drawing, more in a checkpoint, and at last each stage of results and report."""
    for _ in range(kills - 6):
        if rng.random() < 0.3:
            yield Moment(SEGMENT, rng.randint(1, 8))
        else:
            yield Moment(CHECKPOINT, rng.randint(1, 4), rng.choice(STAGES))
    for what in (RESULTS, REPORT):
        for stage in STAGES:
            yield Moment(what, 1, stage)


def fit(problem: Path, folder: Path, sampler: str, draws: int, at: Moment | None = None) -> int:
    """The exit code of ``equifinal fit`` in a process of its own, that of a signal below zero."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        under_way.SEGMENT_SECONDS, under_way.CHECKPOINT_SECONDS = 0.02, 0.0  # much to be killed in
        if at is not None:
            _arm(at)
        told = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(told, 1)
        os.dup2(told, 2)
        settings = ["--sampler", sampler, "--chains", "2", "--warmup", "300", "--draws", str(draws), "--seed", "3"]
        sys.argv = ["equifinal", "fit", str(problem), *settings, "--out", str(folder), "--quiet"]
        app.main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _arm(at: Moment) -> None:
    """Let the process kill itself at a moment."""
    seen = 0
    advance, replace = under_way.advance, os.replace

    def advancing(*arguments):  # type: ignore[no-untyped-def]
        nonlocal seen
        seen += at.what == SEGMENT
        if seen == at.number:
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(*arguments)

    def replacing(source, target):  # type: ignore[no-untyped-def]
        nonlocal seen
        seen += (now := Path(target).name == at.what)
        if not now or seen != at.number:
            return replace(source, target)
        if at.stage == "torn":
            os.truncate(source, os.path.getsize(source) // 2)
        elif at.stage == "in place":
            replace(source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    under_way.advance, os.replace = advancing, replacing  # type: ignore[assignment]


class Round(NamedTuple):
    kills: int
    missed: int  # moments that the run did not come to
    wrong: list[str]


def killed_again_and_again(sampler: str, place: Path, seed: int, kills: int = 40, draws: int = 3000) -> Round:
    """Kill fits of one folder, let the last of them end, and compare with a fit that was left alone."""
    problem, alone, folder = place / "problem.toml", place / f"{sampler}-alone", place / f"{sampler}-{seed}"
    problem.write_text(SCALED)
    wrong: list[str] = []
    if not alone.exists() and (code := fit(problem, alone, sampler, draws)):
        return Round(0, 0, [f"{sampler}: undisturbed, exit {code}: {alone.with_suffix('.log').read_text()[-300:]}"])
    done = missed = 0
    for at in moments(random.Random(seed), kills):
        code = fit(problem, folder, sampler, draws, at)
        done += code == -signal.SIGKILL
        missed += code == 0
        if code == 0:  # it had ended before: begin anew
            for file in (CHECKPOINT, RESULTS, REPORT):
                with suppress(FileNotFoundError):
                    (folder / file).unlink()
        if code not in (0, -signal.SIGKILL):
            wrong.append(f"{sampler} {at}: exit {code}: {folder.with_suffix('.log').read_text()[-300:]}")
    if code := fit(problem, folder, sampler, draws):
        wrong.append(f"{sampler}: at last exit {code}: {folder.with_suffix('.log').read_text()[-300:]}")
        return Round(done, missed, wrong)
    left = sorted(path.name for path in folder.iterdir())
    if left != [REPORT, RESULTS]:
        wrong.append(f"{sampler}: {left} are left")
    one, other = load(alone), load(folder)
    for group in ("posterior", "sample_stats", "log_likelihood"):
        for name, values in getattr(one, group).data_vars.items():
            if not np.array_equal(values.values, getattr(other, group)[name].values):
                wrong.append(f"{sampler}: {group} {name} differs")
    return Round(done, missed, wrong)


def prepare() -> None:
    """Import what every child would have to import."""
    import_arviz().ess(np.random.default_rng(0).normal(size=(2, 50)), method="mean")  # compiles a function
    for name in IMPORTED:
        importlib.import_module(name)


def main() -> None:
    prepare()
    parser = argparse.ArgumentParser()
    parser.add_argument("samplers", nargs="*", default=SAMPLERS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kills", type=int, default=40)
    asked = parser.parse_args()
    total = 0
    with tempfile.TemporaryDirectory() as place:
        for seed in range(asked.first, asked.first + asked.rounds):
            for sampler in asked.samplers:
                found = killed_again_and_again(sampler, Path(place), seed, asked.kills)
                total += found.kills
                print(f"{sampler}, seed {seed}: {found.kills} kills, {found.missed} missed; wrong: {found.wrong or 0}")
                print(f"{total} kills so far", flush=True)


if __name__ == "__main__":
    main()
