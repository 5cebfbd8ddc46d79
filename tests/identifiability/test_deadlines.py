"""Nothing outlasts a time limit, and what was known when it passed is not lost."""

from __future__ import annotations

import os
import select
import signal
from dataclasses import replace
from math import inf
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.toml import load
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.child import Ended, in_child
from equifinal.language.expression import to_text
from equifinal.language.model import Model
from tests.support.analysed import said
from tests.support.random_models import heavy_model

LARGE = """x0' = a1*(x1 - x0) - ka*n*x0/u
x1' = a2*(x0 - x1)
x2' = b1*(x3 - x2) - kc*n*x2/u
x3' = b2*(x2 - x3)
u = ka*kc + ka*x0 + kc*x2
y = s*w*x0"""


def forever(tell: Any) -> None:
    tell("before")
    tell("last")
    while True:
        pass


def test_what_was_told_before_the_limit_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, (reading, writing) = os.fork, os.pipe()

    def fork_and_wait() -> int:  # until all is told, so that the limit passes later on any machine
        child = fork()
        if child:
            os.read(reading, 1)
        return child

    def work(tell: Any) -> None:
        forever(lambda value: tell(value) or (value == "last" and os.write(writing, b".")))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", fork_and_wait)
        assert in_child(work, 0.2) == ("last", False)
    os.close(reading)
    os.close(writing)
    assert in_child(lambda _: "answer", 600) == ("answer", True)
    assert in_child(lambda tell: tell("x" * 10**6), inf) == (None, True)


def test_errors_come_through_and_ends_are_noticed() -> None:
    with pytest.raises(ZeroDivisionError):
        in_child(lambda _: 1 / 0, 600)
    with pytest.raises(Ended):
        in_child(lambda _: os._exit(1), 600)


def test_ctrl_c_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    children = []
    fork, wait = os.fork, select.select

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGALRM)
        return wait(*arguments)

    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    monkeypatch.setattr(select, "select", interrupted)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_child(forever, inf)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)


def outlasted(seed: int, limit: float) -> float:
    """Seconds of computing beyond the limit, here and in the child; waiting for a busy machine does not count."""

    def computed() -> float:
        return sum(use.ru_utime + use.ru_stime for use in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))

    model, began = heavy_model(seed), computed()
    try:
        found = analyse(model, time_limit=limit)
    except IdentifiabilityError as error:
        assert "did not finish within" in str(error) or "divides by zero" in str(error) or "zero in the" in str(error)
    else:
        assert set(found.parameters) == set(model.parameters)
    return computed() - began - limit


@pytest.mark.parametrize(("seed", "limit"), [(0, 1.0), *((seed, 0.1) for seed in range(1, 10))])
def test_limits_hold(seed: int, limit: float) -> None:
    assert outlasted(seed, limit) < 1


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(50))
def test_limits_hold_for_many_models(tens: int) -> None:
    late = {seed: outlasted(seed, (0.1, 1.0)[seed % 2]) for seed in range(100 + 10 * tens, 110 + 10 * tens)}
    assert max(late.values()) < 1


def test_what_is_known_locally_is_listed_and_marked() -> None:
    model = Model.parse(LARGE, ["y"])
    found = analyse(model, time_limit=inf, effort=0.02)
    assert (found.scope, found.complete, found.unfinished) == ("local", False, "too large")
    assert "ka/kc" in map(to_text, found.combinations)
    assert len(found.combinations) == len(found.parameters) - found.fibre_dimension
    text = said(found)
    assert "Combinations that ideal data determine at least locally (there may be more)" in text


def test_combinations_that_may_be_enough_are_tried() -> None:
    problem = load(example_path("si"))
    found = analyse([e.model for e in problem.experiments])
    part = replace(found, scope="local", complete=False)
    assert fibre_of(problem, analysis=part).identity() == fibre_of(problem, analysis=found).identity()
    too_few = replace(part, combinations=part.combinations[:-1])
    with pytest.raises(IdentifiabilityError, match="did not find all identifiable combinations"):
        fibre_of(problem, analysis=too_few)
