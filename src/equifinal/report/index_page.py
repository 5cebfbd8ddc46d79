"""The page that lists many fits, with a link to the report of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from equifinal.files import replace_file
from equifinal.report.rendering import render
from equifinal.studies.folder import REPORT
from equifinal.studies.many import INDEX, Outcome
from equifinal.words.diagnostics import concern_sentence
from equifinal.words.many import VERDICTS, cpu_text, freedoms_text, headline


def write_index(outcomes: Sequence[Outcome], of: int, folder: Path) -> Path:
    """The page as a file; it is either whole or as it was before."""
    text = index_page(outcomes, of)
    return replace_file(folder / INDEX, lambda target: target.write_text(text, encoding="utf-8"), "the index")


def index_page(outcomes: Sequence[Outcome], of: int) -> str:
    """A row for each problem, as one HTML text; ``of`` so many there will be."""
    return render(
        "index.html",
        headline=headline(outcomes, of),
        rows=[
            {
                "name": outcome.name,
                "source": outcome.source,
                # a folder may have any name; it is never an address of something else
                "link": f"./{quote(outcome.name)}/{REPORT}" if outcome.report else "",
                "state": {"failed": "bad"}.get(outcome.state, outcome.state),
                "verdict": VERDICTS[outcome.state],
                "sampler": outcome.sampler or "-",
                "ess": "-" if math.isnan(outcome.ess) else f"{outcome.ess:,.0f}",
                "cpu": cpu_text(outcome),
                "freedoms": [] if outcome.failure else freedoms_text(outcome),
                "failure": outcome.failure,
                "concerns": [concern_sentence(concern) for concern in outcome.concerns],
            }
            for outcome in outcomes
        ],
    )
