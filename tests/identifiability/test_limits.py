"""What ends an analysis early: the user's time limit, or too large a question. Each is told, and neither guesses."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from itertools import count
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

import flint
import pytest

from equifinal.algebra.arithmetic import budget
from equifinal.algebra.arithmetic.local_rank import analyse_locally
from equifinal.algebra.elimination.fibre_points import slice_fibre
from equifinal.algebra.elimination.quotient import Points
from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.formats.toml import load
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.constancy import require_constant_output
from equifinal.identifiability.quantity_advice import advise_on
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from tests.support.analysed import said
from tests.support.clocks import hurry

# two exchangeable rates and a scaling
SWAP = Model.parse("x' = -a*x + b*(z - x)\nz' = b*(x - z)\nx(0) = v\nz(0) = 0\ny = s*x", ["y"])


def answer(found: Identifiability) -> dict[str, Any]:
    return {key: value for key, value in found.to_json().items() if key != "seconds"}


def agrees(part: Identifiability, whole: Identifiability) -> bool:
    """Whether what a part says is true: "at least locally" may be less than the whole says, nothing may be more."""
    if part.complete and set(part.combinations) != set(whole.combinations):
        return False
    if part.scope == "global":
        return part.parameters == whole.parameters
    return all((part.parameters[name] == "not") == (word == "not") for name, word in whole.parameters.items())


@pytest.mark.parametrize("example", ["si", "hiv", "influenza", "oral"])
def test_without_a_time_limit_no_clock_matters(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [experiment.model for experiment in load(example_path(example)).experiments]
    expected = answer(analyse(models, time_limit=inf))
    hurry(monkeypatch.setattr, 1e6)
    assert answer(analyse(models, time_limit=inf)) == expected


def test_wherever_time_runs_out_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes whenever somebody looks at the clock."""
    whole = analyse(SWAP, time_limit=inf)
    seen = set()
    limit = 1.0
    while "" not in seen:
        ticks = count()
        monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda ticks=ticks: float(next(ticks))))
        try:
            found = analyse(SWAP, time_limit=limit)
        except IdentifiabilityError as error:
            assert f"did not finish within {limit:g} s" in str(error)
            seen.add("error")
        else:
            assert agrees(found, whole)
            assert found.unfinished in ("", "out of time")
            assert ("The analysis ran out of time." in said(found)) == bool(found.unfinished)
            seen.add(f"{found.scope}, {found.complete}" if found.unfinished else "")
            last = found
        limit = float(int(1.3 * limit) + 1)
    assert answer(last) == answer(whole)
    assert {"error", "local, False", "global, False", "global, True"} <= seen


def test_too_large_a_question_is_said_and_is_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = analyse(SWAP, time_limit=inf)
    seen = set()
    effort = 1e-6
    while "" not in seen:
        answers = []
        for factor in (1.0, 1e6):
            hurry(monkeypatch.setattr, factor)
            try:
                answers.append(answer(found := analyse(SWAP, time_limit=inf, effort=effort)))
            except IdentifiabilityError as error:
                assert "too large even for the local analysis" in str(error)
                answers.append({"unfinished": "error"})
            else:
                assert agrees(found, whole)
                assert ("too large for the work allowed" in said(found)) == bool(found.unfinished)
        assert answers[0] == answers[1]
        seen.add(str(answers[0]["unfinished"]))
        effort *= 2
    assert seen == {"error", "too large", ""}


def test_what_is_missing_depends_on_what_ended_it() -> None:
    large = analyse(SWAP, time_limit=inf, effort=8e-4)
    assert (large.scope, large.unfinished) == ("local", "too large")
    with pytest.raises(IdentifiabilityError, match="allow the analysis more effort"):
        large.expresses("a*b")
    assert Identifiability.from_json(large.to_json()) == large


def test_other_questions_name_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = analyse(SWAP, time_limit=inf)
    ticks = count()
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    with pytest.raises(IdentifiabilityError, match="could not decide within 2 s whether a \\+ b is identifiable"):
        whole.expresses("a + b", time_limit=2)
    with pytest.raises(IdentifiabilityError, match="could not decide within 2 s whether the output is constant"):
        require_constant_output(SWAP, whole.combinations, time_limit=2)
    with pytest.raises(IdentifiabilityError, match=r"did not finish within|more time"):
        advise_on(SWAP, "a", time_limit=2)


def test_whatever_was_told_before_an_interruption_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is ended at its limit leaves what it told last, or nothing."""
    told: list[Any] = []
    monkeypatch.setattr("equifinal.identifiability.analysis.in_child", lambda work, _: (work(told.append), True))
    whole = analyse(SWAP)
    assert [(part.scope, part.complete) for part in told] == [
        ("local", False),
        ("local", False),
        ("global", False),
        ("global", True),
    ]
    for last in told:
        monkeypatch.setattr("equifinal.identifiability.analysis.in_child", lambda *_, last=last: (last, False))
        part = analyse(SWAP)
        assert part.unfinished == "out of time"
        assert agrees(part, whole)
    monkeypatch.setattr("equifinal.identifiability.analysis.in_child", lambda *_: (None, False))
    with pytest.raises(IdentifiabilityError, match="the local analysis did not finish within 60 s"):
        analyse(SWAP)


def test_other_ends_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(how: Any, reason: str) -> None:
        monkeypatch.setattr("equifinal.identifiability.analysis.analyse_locally", how)
        with pytest.raises(IdentifiabilityError, match=reason):
            analyse(SWAP)

    ends(lambda *_: os.kill(os.getpid(), signal.SIGKILL), "ended from outside, perhaps for want of memory")
    ends(lambda *_: 1 / 0, r"because of a bug in equifinal \(ZeroDivisionError: division by zero\)")


def test_special_points_are_outvoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random points may be special, however rarely: a rank too small, or too many points of a fibre."""
    whole = analyse(SWAP)
    special = iter([True])

    def unlucky(*arguments: Any) -> Any:
        local = analyse_locally(*arguments)
        return replace(local, rank=local.rank - 1) if next(special, False) else local

    monkeypatch.setattr("equifinal.identifiability.analysis.analyse_locally", unlucky)
    assert agrees(analyse(SWAP), whole)

    def too_many(*arguments: Any) -> Any:
        found, rng = slice_fibre(*arguments), Random(0)
        points, p = found.points, found.points.prime
        for _ in range(next(surplus)):
            stray = tuple(flint.nmod_poly([rng.randrange(1, p)], p) for _ in points.coordinates)
            points = points.joined(Points(p, flint.nmod_poly([0, 1], p), stray), rng)
        return replace(found, points=points)

    monkeypatch.setattr("equifinal.identifiability.analysis.slice_fibre", too_many)
    surplus = iter([5, 0, 0])
    found = analyse(SWAP)
    assert (found.scope, found.fibre_degree) == ("global", whole.fibre_degree)
    assert agrees(found, whole)
    surplus = count()
    assert analyse(SWAP).scope == "local"


@pytest.mark.parametrize("wrong", [None, "x", True, float("nan"), 0, -1])
def test_efforts_that_are_none(wrong: Any) -> None:
    with pytest.raises(IdentifiabilityError, match="effort"):
        analyse(SWAP, effort=wrong)
