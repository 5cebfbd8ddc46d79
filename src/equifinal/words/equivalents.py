"""Parameter vectors with the same output, for ``equifinal equivalents``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from equifinal.language.expression import to_text

if TYPE_CHECKING:
    from equifinal.prediction.equivalents import Equivalents

COLUMNS = 7  # vectors side by side; more go below


def equivalents_page(equivalents: Equivalents) -> Any:
    """Lay out equivalent parameters for a terminal: the vectors, what they share, and how little outputs differ."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    fibre, n = equivalents.fibre, len(equivalents.theta)
    parts: list[Any] = [Text(_equivalents_headline(equivalents), style="bold")]
    for first in range(0, n, COLUMNS):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("", overflow="fold")
        block = range(first, min(first + COLUMNS, n))
        for k in block:
            table.add_column("given" if k == 0 else str(k + 1), justify="right", no_wrap=True)
        for name, values, moves in zip(fibre.names, equivalents.theta.T, equivalents.moving, strict=True):
            style = "" if moves or not equivalents.moving.any() else "dim"
            table.add_row(name, *(f"{values[k] + 0.0:.5g}" for k in block), style=style)
        parts += [Text(), table]
    values = fibre.xi(equivalents.theta[:1])[0]
    kept = [
        Text(f"  {to_text(e)} = {value:.6g}")
        for e, value in zip(fibre.combinations.independent, values, strict=True)
        if n > 1 and to_text(e) not in fibre.names
    ]
    if kept:
        parts += [Text(), Text("The same for all of them", style="bold"), *kept]
    parts += [Text(), *(Text(line) for line in _equivalents_notes(equivalents))]
    return Group(*parts)


def _equivalents_headline(equivalents: Equivalents) -> str:
    n, r = len(equivalents.theta), equivalents.fibre.dimension
    unsure = not equivalents.certain or (equivalents.finer and not equivalents.by_hand)
    what = "values of the given combinations" if equivalents.by_hand else "output"
    if not equivalents.agree:
        return "These vectors were expected to give the same output, but in simulations they do not."
    if n == 1 and equivalents.asked == 1:
        return "Only the given parameters were asked for; ask for more vectors to see others with the same output."
    if n == 1:
        known = "No other parameters were found" if r or unsure else "There are no other parameters"
        return f"{known} inside the priors' support with the same {what}."
    if r == 0 or equivalents.finer:
        return f"These {n} parameter vectors give the same output."
    shape = "a curve" if r == 1 else f"a set of dimension {r}"
    return f"These {n} parameter vectors give the same output; all such vectors form {shape}, called a fibre."


def _equivalents_notes(equivalents: Equivalents) -> Iterator[str]:
    if len(equivalents.theta) > 1:
        worst = max(equivalents.differences, key=lambda key: equivalents.differences[key])
        yield (
            f"In simulations their outputs differ by at most {equivalents.largest_difference:.1e} of the largest value "
            f"of {worst[1]} (solver tolerance {equivalents.tolerance:.0e})."
        )
    if not equivalents.certain:
        yield (
            "! The given parameters are a special point, where combinations are dependent or solutions meet: more "
            "parameters than shown may have this output; try nearby values."
        )
    if equivalents.finer and not equivalents.by_hand:
        yield (
            "! The combinations that are known of this model are finer than what data determine: more parameters than "
            "shown have this output."
        )
    for theta, reason in equivalents.unsolved:
        shown = ", ".join(f"{name} = {value:.5g}" for name, value in zip(equivalents.fibre.names, theta, strict=True))
        yield f"! Left out because the solver failed: {shown} ({reason})."
