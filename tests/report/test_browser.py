"""The report in a real browser: quiet, self-contained, whole, and never wider than its window."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.report.compare_page import comparison_page
from equifinal.results.diagnostics import concerns, summarise
from equifinal.studies import fit as fitting
from equifinal.studies.comparison import Comparison
from tests.support.chromium import needs_chromium, visit
from tests.support.runs import meaning, page, run

pytestmark = needs_chromium
WIDTHS = (400, 1000, 1600)


def comparison() -> str:
    runs = {"collapsed": run("si"), "random-walk": run("si", "random-walk")}
    fits = {
        name: fitting.Fit(data, summarise(data), concerns(data), Path("r.nc"), meaning("si"))
        for name, data in runs.items()
    }
    return comparison_page(Comparison(meaning("si").problem, fits, {"geometric": "it <b>refused</b>"}))


PAGES = {
    "si": lambda: page("si"),
    "awkward": lambda: page("awkward"),
    "comparison": comparison,
}


@pytest.mark.parametrize(("name", "dark"), [*((name, False) for name in PAGES), ("si", True)])
def test_a_page(name: str, dark: bool, tmp_path: Path) -> None:
    found = visit(PAGES[name](), WIDTHS, tmp_path, dark=dark)
    assert found.console == []
    assert found.requests == []
    assert [s.width for s in found.seen] == list(WIDTHS)
    for seen in found.seen:
        assert seen.needs <= seen.width, seen.wide
        assert seen.wide == []
        assert seen.scripts == 0
        assert seen.repeated == []
        assert all(label and width > 100 and height > 30 for label, width, height in seen.figures)
        assert ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)") == seen.background
    if name == "comparison":
        assert found.seen[0].titles == ["Cost", "Diagnostics", "Posteriors", "Pairs", "Terms"]
        assert "it <b>refused</b>" in found.seen[0].text
        assert len(found.seen[0].figures) == 8  # bars, five posteriors, two pair plots
    else:
        assert found.seen[0].titles == [
            "Contents", "Fit", "Model", "What can be known", "Data and priors", "What the data said", "Posterior",
            "Predictions", "Pairs", "Sampler and diagnostics", "Reproduce", "Terms",
        ]  # fmt: skip
        assert len(found.seen[0].figures) >= 15
        for seen in found.seen:  # the fit is as wide as the page
            label, width, _ = seen.figures[0]
            assert label.startswith("Fit of")
            room = min(seen.width - 40, 960)
            assert width > 0.85 * room or name == "awkward"  # of many outputs, there are several side by side


def test_the_browser_would_notice(tmp_path: Path) -> None:
    """A page with every fault that the test above looks for."""
    text = (
        "<body style='margin:0'><div style='width:900px'>x</div><img src='http://127.0.0.1:9/x.png'>"
        "<p id='a'></p><p id='a'></p><script>console.error('bad')</script>"
    )
    found = visit(text, (400,), tmp_path)
    assert any("bad" in line for line in found.console)
    assert found.requests == ["http://127.0.0.1:9/x.png"]
    assert found.seen[0].needs == 900
    assert found.seen[0].wide
    assert found.seen[0].repeated == ["a"]
