"""Pages of the command line in notebooks, and as plain text: what `showing.Shown` asks for."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

WIDTH = 120
FRAME = '<pre style="white-space: pre; overflow-x: auto; line-height: 1.35; font-size: .9em">{code}</pre>'


def html(shown: object) -> str:
    """The page of an object as HTML."""
    return _recorded(shown).export_html(inline_styles=True, code_format=FRAME)


def text(shown: object) -> str:
    """The same as plain text."""
    lines = _recorded(shown).export_text().splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _recorded(shown: object) -> Any:
    from rich.console import Console

    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
    console.print(_page(shown), highlight=False)
    return console


def _page(shown: Any) -> Any:
    for kind in type(shown).__mro__:
        if kind.__name__ in PAGES:
            return PAGES[kind.__name__](shown)
    raise TypeError(f"no page for {type(shown).__name__}")


def _identifiability(shown: Any) -> Any:
    from equifinal.words.identifiability import identifiability_page

    return identifiability_page("", shown)


def _problem(shown: Any) -> Any:
    from rich.text import Text

    from equifinal.words.problem import problem_words

    return Text(problem_words(shown))


def _meaning(shown: Any) -> Any:
    from equifinal.words.fit import summary_page

    return summary_page(shown, {}, WIDTH)


def _fit(shown: Any) -> Any:
    from rich.console import Group
    from rich.text import Text

    from equifinal.words.conformity import discord_sentences
    from equifinal.words.diagnostics import concern_sentence
    from equifinal.words.fit import FULL, summary_page, summary_table

    page = summary_table(shown, FULL) if shown.meaning is None else summary_page(shown.meaning, shown.summary, WIDTH)
    warnings = [*map(concern_sentence, shown.concerns), *discord_sentences(shown.discords)]
    return Group(page, *(Text(f"! {line}") for line in warnings))


def _calibration(shown: Any) -> Any:
    from equifinal.words.calibration import calibration_page

    return calibration_page(shown)


def _equivalents(shown: Any) -> Any:
    from equifinal.words.equivalents import equivalents_page

    return equivalents_page(shown)


def _comparison(shown: Any) -> Any:
    from rich.text import Text

    from equifinal.words.comparison import comparison_lines

    return Text("\n".join(comparison_lines(shown)))


def _summary(shown: Any) -> Any:
    from equifinal.words.fit import FULL, rows_table

    return rows_table(shown, FULL, "")


def _predictions(shown: Any) -> Any:
    from equifinal.words.predictions import bands_table

    return bands_table(shown.bands)


def _prediction_table(shown: Any) -> Any:
    from rich.text import Text

    return Text("\n".join(shown.words()))


PAGES: dict[str, Callable[[Any], Any]] = {
    "Identifiability": _identifiability,
    "Problem": _problem,
    "Meaning": _meaning,
    "Fit": _fit,
    "Calibration": _calibration,
    "Equivalents": _equivalents,
    "Comparison": _comparison,
    "Summary": _summary,
    "Predictions": _predictions,
    "PredictionTable": _prediction_table,
}
