"""What ends an analysis early: the user's time limit, or too large a question. Each is told, and neither guesses."""

from __future__ import annotations

from itertools import count
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from equifinal.algebra.arithmetic import budget
from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.formats.toml import load
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.constancy import require_constant_output
from equifinal.identifiability.quantity_advice import advise_on
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from equifinal.words.identifiability import identifiability_text
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
            assert ("The analysis ran out of time." in identifiability_text(found)) == bool(found.unfinished)
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
                assert ("too large for the work allowed" in identifiability_text(found)) == bool(found.unfinished)
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


@pytest.mark.parametrize("wrong", [None, "x", True, float("nan"), 0, -1])
def test_efforts_that_are_none(wrong: Any) -> None:
    with pytest.raises(IdentifiabilityError, match="effort"):
        analyse(SWAP, effort=wrong)
