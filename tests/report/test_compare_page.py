"""What a page says of several samplers together, and what a fit does whose page cannot be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.report import page
from equifinal.report.compare_page import FAR, _verdict
from equifinal.report.fit import with_report
from equifinal.results.diagnostics import Concern, summarise
from equifinal.studies.comparison import Comparison
from equifinal.studies.fit import Fit
from tests.support.runs import meaning, problem_named, run

USELESS = Concern("never moved", ("k",), serious=True)


def fitted(far: float = 0.0, *concerns: Concern) -> Fit:
    rows = dict(summarise(run("decay")))
    rows["k"] = rows["k"] | {"mean": rows["k"]["mean"] + far * rows["k"]["sd"] * rows["k"]["mcse_over_sd"]}
    return Fit(run("decay"), rows, list(concerns), Path("x/results.nc"), meaning("decay"))


AGREE = "agree within their Monte Carlo errors; what differs is the cost."
DISAGREE = "disagree by more than chance explains."


@pytest.mark.parametrize(
    ("far", "useless", "verdict"),
    [
        ((0, 1), (), f"The samplers {AGREE}"),
        ((0, 100), (), f"The samplers {DISAGREE}"),
        ((0, 1, 100), (2,), f"Of the runs that can be used (s0, s1), all {AGREE}"),
        ((0, 100, 0), (2,), f"The runs that can be used (s0, s1) {DISAGREE}"),
        ((0, 100), (0,), "Only one of these runs can be used, so nothing can be said of agreement"),
        ((0, 100), (0, 1), "None of these runs can be used"),
    ],
)
def test_verdicts(far: tuple[float, ...], useless: tuple[int, ...], verdict: str) -> None:
    fits = {f"s{k}": fitted(x, *([USELESS] if k in useless else [])) for k, x in enumerate(far)}
    comparison = Comparison(problem_named("decay"), fits, {})
    assert _verdict(comparison, any(x > FAR for x in comparison.disagreements().values())).startswith(verdict)


def test_a_report_that_cannot_be_written_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DataError("the disk is full")

    monkeypatch.setattr(page, "write_report", refuse)
    done = fitted()
    with pytest.warns(UserWarning, match="no report was written: the disk is full"):
        assert with_report(done, progress=False) is done
    without = replace(done, meaning=None)
    assert with_report(without) is without
