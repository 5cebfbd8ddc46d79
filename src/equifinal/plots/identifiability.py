"""Parameters, what data determine of them, and which depends on which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equifinal.errors import EquifinalError
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN, Identifiability
from equifinal.language.expression import Expression, Name, names, to_text
from equifinal.plots.style import COLOURS, FAINT, INK, MUTED, new_figure, shortened, styled
from equifinal.results.store import identifiability_of, problem_of

if TYPE_CHECKING:
    from arviz import InferenceData

MARKS = {GLOBALLY: ("o", COLOURS[2]), LOCALLY: ("D", COLOURS[1]), NOT: ("X", COLOURS[5]), UNKNOWN: ("s", MUTED)}
LINE = 0.27  # inches a row
LONGEST = 44


def plot_identifiability(data: InferenceData) -> Any:
    """Draw parameters and quantities with their verdicts on the left, joined to what ideal data determine on the right.

    A circle is identifiable, a diamond up to alternatives, a cross not at all. A line joins a parameter with the
    combinations that contain it, a dotted one an identifiable quantity with those that give it.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_identifiability(data)
    """
    return draw_identifiability(identifiability_of(data), problem_of(data).quantities)


def draw_identifiability(analysis: Identifiability, expressions: Mapping[str, Expression]) -> Any:
    """The same from an analysis, and the quantities of interest as functions of the parameters."""

    left = [*analysis.parameters.items()]
    quantities = [*analysis.quantities.items()]
    gap = 0.6 if quantities else 0.0
    height = len(left) + len(quantities) + gap
    rows = {name: float(k) for k, (name, _) in enumerate(left)}
    rows |= {name: len(left) + gap + k for k, (name, _) in enumerate(quantities)}
    total = max(height, float(len(analysis.determined)))
    shift = 0.5 * (total - height)
    rows = {name: y + shift for name, y in rows.items()}
    order = sorted(analysis.determined, key=lambda c: _centre(c, rows, analysis))
    start = 0.5 * (total - len(order))
    places = {to_text(c): start + k for k, c in enumerate(order)}
    with styled():
        figure = new_figure(figsize=(4.8, 0.45 + LINE * max(total, 2.0)), layout="constrained")
        axes = figure.add_subplot()
        for combination in order:
            for name in names(combination):
                if name in analysis.parameters:
                    _line(axes, rows[name], places[to_text(combination)], isinstance(combination, Name))
        for name, verdict in quantities:
            for text in _gives(analysis, expressions.get(name), verdict):
                _line(axes, rows[name], places[text], False, dotted=True)
        for name, verdict in (*left, *quantities):
            mark, colour = MARKS[verdict]
            axes.plot(0, rows[name], mark, color=colour, ms=7, mec="white", mew=0.6, zorder=5)
            axes.text(-0.06, rows[name], shortened(name, 20), ha="right", va="center", color=INK)
        for text, y in places.items():
            axes.plot(1, y, "s", color=MARKS[GLOBALLY][1], ms=6, mec="white", mew=0.6, zorder=5)
            axes.text(1.06, y, shortened(text, LONGEST), ha="left", va="center", color=INK)
        if not order:
            axes.text(1.06, 0.5 * (total - 1), "no combination was found", ha="left", va="center", color=MUTED)
        axes.set(xlim=(-0.75, 2.3), ylim=(total - 0.4, -1.0))
        axes.text(0, -0.85, "asked for", ha="right", va="center", color=MUTED, fontsize=8)
        axes.text(1, -0.85, "determined by ideal data", ha="left", va="center", color=MUTED, fontsize=8)
        axes.axis("off")
    return figure


def _centre(combination: Any, rows: dict[str, float], analysis: Identifiability) -> float:
    """The mean place of its parameters, so that lines cross little."""
    used = [rows[n] for n in names(combination) if n in analysis.parameters]
    return sum(used) / len(used) if used else 0.0


def _gives(analysis: Identifiability, expression: Expression | None, verdict: str) -> list[str]:
    """The combinations that an identifiable quantity is a function of, where a formula is easily found."""
    if verdict != GLOBALLY or expression is None or not analysis.complete:
        return []
    try:
        formula = analysis.expresses(expression).formula
    except EquifinalError:
        return []
    texts = {f"xi{k}": to_text(c) for k, c in enumerate(analysis.combinations, start=1)}
    return [] if formula is None else [texts[n] for n in names(formula) if n in texts]


def _line(axes: Any, start: float, end: float, strong: bool, dotted: bool = False) -> None:
    colour = MARKS[GLOBALLY][1] if strong else MUTED if dotted else FAINT
    axes.plot([0, 1], [start, end], ":" if dotted else "-", color=colour, lw=1.2, zorder=1)
