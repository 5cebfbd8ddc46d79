"""What results show of themselves when they are printed, and in notebooks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from equifinal.results.conformity import Discord
from equifinal.results.diagnostics import Concern, summarise
from equifinal.showing import Shown
from equifinal.studies.fit import Fit
from equifinal.words.identifiability import trajectories_page
from tests.support.runs import meaning, run


def fitted(concerns: Sequence[Concern], **found: Any) -> Fit:
    data = run("decay")
    return Fit(data, summarise(data), list(concerns), Path("r/results.nc"), **found)


def test_a_fit_shows_what_the_data_said_and_what_is_wrong() -> None:
    table = str(fitted([]))
    assert "ESS bulk" in table
    assert "!" not in table
    stopped = Concern("interrupted", numbers={"draws": 400})
    unsolved = Discord("prior not solved", "", {"draws": 50})
    whole = fitted([stopped], meaning=meaning("decay"), discords=(unsolved,))
    page = str(whole)
    assert page.startswith("What the data said: decay")
    assert len([line for line in page.splitlines() if line.startswith("! ")]) == 2
    assert "<pre" in whole._repr_html_()
    assert repr(whole) == f"<Fit of decay by {run('decay').attrs['sampler']} in r>"


def test_what_has_no_page_says_so() -> None:
    with pytest.raises(TypeError, match="no page for Shown"):
        str(Shown())


def test_trajectories() -> None:
    from rich.console import Console

    console = Console(record=True, width=80, file=io.StringIO())
    console.print(trajectories_page({"": {"S": "not"}, "late": {"I": "globally", "R": "locally", "Z": "unknown"}}))
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    for line in (
        "S not identifiable",
        "late: I identifiable",
        "late: R up to alternatives",
        "late: Z not found out within the limits",
    ):
        assert line in lines
