"""Several samplers side by side: what they disagree about, and those that cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equifinal.errors import IdentifiabilityError, SamplingError
from equifinal.results.diagnostics import concerns, summarise
from equifinal.studies import comparison
from equifinal.studies.comparison import Comparison, compare
from equifinal.studies.fit import Fit
from equifinal.words.comparison import comparison_json
from tests.support.runs import problem_named, run


def fitted(serious: bool = False, **means: float) -> Fit:
    data = run("decay")
    rows = {name: row | {"mean": means.get(name, row["mean"])} for name, row in summarise(data).items()}
    return Fit(data, rows, [c for c in concerns(data) if c.serious] if serious else [], Path("x/results.nc"))


def compared(**fits: Fit) -> Comparison:
    return Comparison(problem_named("decay"), fits, {})


def test_disagreements_are_in_standard_errors() -> None:
    first = fitted()
    k = first.summary["k"]
    error = k["sd"] * k["mcse_over_sd"]
    apart = compared(a=first, b=fitted(k=k["mean"] + 3 * error), c=fitted(k=k["mean"] - error))
    found = apart.disagreements()
    assert found["k"] == pytest.approx(4 / 2**0.5)  # the two that are farthest apart, and both have an error
    assert {value for name, value in found.items() if name != "k"} == {0.0}
    assert apart.usable == ("a", "b", "c")
    document = json.loads(json.dumps(comparison_json(apart)))
    assert document["disagreements"]["k"] == pytest.approx(found["k"])
    assert document["samplers"]["b"]["draws"] == 400
    assert repr(apart) == "<Comparison of a, b, c on decay>"
    assert all(f"{name}: at least" in str(apart) for name in "abc")


def test_one_run_disagrees_with_nothing() -> None:
    assert compared(a=fitted()).disagreements() == {}


def test_what_cannot_run_is_told_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(study: Any, settings: dict[str, Any], **options: Any) -> Fit:
        if settings["sampler"] == "geometric":
            raise IdentifiabilityError("there is no fibre")
        if settings["draws"] == 7:
            raise SamplingError("no start")
        return fitted()

    monkeypatch.setattr(comparison.fitting, "fit", fit)
    found = compare(problem_named("decay"), ["geometric", "random-walk"], folder=tmp_path)
    assert (list(found.fits), found.refused) == (["random-walk"], {"geometric": "there is no fibre"})
    assert "geometric could not run: there is no fibre" in str(found)
    with pytest.raises(
        SamplingError, match="no sampler could run: geometric: there is no fibre; random-walk: no start"
    ):
        compare(problem_named("decay"), ["geometric", "random-walk"], {"draws": 7}, folder=tmp_path)
