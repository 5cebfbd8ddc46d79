"""The result of an identifiability analysis in words: freedoms, and the text of a whole report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equifinal.identifiability.freedoms import Freedom
from equifinal.language.expression import number_text, to_text

if TYPE_CHECKING:
    from equifinal.identifiability.analysis import Identifiability
    from equifinal.prediction.equivalents import Equivalents

LABELS = {"globally": "yes", "locally": "up to alternatives", "not": "no"}


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def freedom_words(
    dimension: int,
    continuous: Sequence[Freedom],
    moving: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    swapped: Sequence[str],
    changing: Sequence[str],
    degree: int,
    factor: str,
) -> list[str]:
    """Scalings, shifts, swaps, and what is left of the freedom when these do not account for all of it."""
    sentences = []
    explained = 0
    for freedom in continuous:
        if explained == dimension:
            break
        sentences.append(_scaling(freedom, factor) if freedom.kind == "scaling" else _shift(freedom, factor))
        explained += 1
    if explained < dimension:
        left = dimension - explained
        how_many = "a curve" if left == 1 else f"{left} independent directions"
        more = "further " if explained else ""
        sentences.append(f"{listed(moving)} can move together along {more}{how_many}: nothing observable changes")
    told = {name for pair in pairs for name in pair} | set(changing)
    for first, second in pairs:
        others = [n for n in changing if n not in (first, second)]
        rest = f", if {listed(others)} {'change' if len(others) > 1 else 'changes'} accordingly" if others else ""
        if not changing and degree > 2:
            rest = ", others adjusted where needed"
        sentences.append(f"{first} and {second} may be exchanged{rest}: nothing observable changes")
    left_over = [n for n in swapped if n not in told] if pairs else list(swapped)
    if left_over:
        has = "has several values that give" if len(left_over) == 1 else "have several values each that give"
        points = f" ({degree} parameter sets, counted over the complex numbers)" if degree > 1 else ""
        sentences.append(f"{listed(left_over)} {has} the same output{points}")
    return sentences


def _power(letter: str, weight: int) -> str:
    return letter if abs(weight) == 1 else f"{letter}^{abs(weight)}"


def _scaling(freedom: Freedom, letter: str) -> str:
    if len(freedom.weights) == 1:
        return f"{next(iter(freedom.weights))} can have any value: nothing observable changes"
    by_factor: dict[tuple[bool, str], list[str]] = {}
    for name, weight in freedom.weights.items():
        by_factor.setdefault((weight < 0, _power(letter, weight)), []).append(name)
    parts = [
        f"{'divide' if down else 'multiply'} {listed(names)} by {factor}"
        for (down, factor), names in sorted(by_factor.items(), key=lambda item: item[0])
    ]
    return f"{listed(parts)}: nothing observable changes"


def _shift(freedom: Freedom, letter: str) -> str:
    parts = []
    for name, weight in freedom.weights.items():
        amount = letter if abs(weight) == 1 else f"{abs(weight)}*{letter}"
        parts.append(f"add {amount} to {name}" if weight > 0 else f"subtract {amount} from {name}")
    return f"{listed(parts)}: nothing observable changes"


def identifiability_page(name: str, result: Identifiability) -> Any:
    """The same for a terminal: something to put on a slide."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    colours = {"globally": "green", "locally": "yellow", "not": "red"}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("", "identifiable?"):
        table.add_column(title)
    for rows in (result.parameters, result.quantities):
        for item, word in rows.items():
            verdict = _verdict(word, result.alternatives.get(item, 0), result.scope)
            table.add_row(item, Text(verdict, style=colours[word]))
        if rows is result.parameters and result.quantities:
            table.add_row("", "")
    parts: list[Any] = [
        Text(f"What can be known: {name}", style="bold"),
        Text(),
        table,
        Text(),
        Text(headline(result)),
    ]
    for title, lines in _sections(result):
        parts += [Text(), Text(title, style="bold"), *(Padding(Text(line), (0, 0, 0, 2)) for line in lines)]
    return Group(*parts, Text(), Text(_sureness(result), style="dim"), Text())


def _sections(result: Identifiability) -> Iterator[tuple[str, list[str]]]:
    if result.combinations and (result.fibre_dimension or result.fibre_degree > 1):
        lines = [to_text(c) for c in result.combinations]
        if result.constants:
            lines.append(f"(known: {', '.join(f'{n} = {number_text(v)}' for n, v in result.constants.items())})")
        yield "What ideal data determine" if result.complete else "Among what ideal data determine", lines
    if result.freedoms:
        yield "What no data can show", list(result.freedoms)
    if result.advice:
        yield "What would help", [advice.text for advice in result.advice]


def identifiability_text(result: Identifiability) -> str:
    """A page of plain text: a table, the combinations, the freedoms, the advice, and how sure it all is."""
    width = max([9, *(len(n) for n in (*result.parameters, *result.quantities))])
    lines = [f"{'':{width}}  identifiable", f"{'-' * width}  {'-' * 24}"]
    for title, rows in (("", result.parameters), ("quantities of interest", result.quantities)):
        if title and rows:
            lines += ["", f"{title}:"]
        for name, word in rows.items():
            lines.append(f"{name:{width}}  {_verdict(word, result.alternatives.get(name, 0), result.scope)}")
    lines += ["", headline(result)]
    for title, section in _sections(result):
        lines += ["", f"{title}:", *(f"  {line}" for line in section)]
    lines += ["", _sureness(result)]
    return "\n".join(lines)


def _verdict(word: str, count: int, scope: str) -> str:
    if word == "locally":
        return f"one of {count} values" if count else "at least locally (global question open)"
    return LABELS[word]


def headline(result: Identifiability) -> str:
    """The whole analysis in one sentence."""
    r, degree = result.fibre_dimension, result.fibre_degree
    if r == 0 and degree == 1:
        return "Everything is identifiable: no two parameter sets give the same output."
    if r == 0 and degree == 0:
        return "Every parameter is identifiable at least locally; the global question was not settled in time."
    if r == 0:
        return f"{degree} parameter sets (counted over the complex numbers) give the same output."
    freedoms = "one continuous freedom" if r == 1 else f"{r} continuous freedoms"
    branches = f", in {degree} branches" if degree > 1 else ""
    return f"Equivalent parameters form a set of dimension {r}: {freedoms}{branches}."


def _sureness(result: Identifiability) -> str:
    method = result.certificate.get("method", "")
    moved = result.certificate.get("moved_along_fibre")
    check = ", checked by moving along the fibre" if moved else ""
    scope = "" if result.scope == "global" else " The global question was not settled."
    return (
        f"Found in {result.seconds:.2g} s by {method}{check}; probability of error below "
        f"{max(result.error_probability, 1e-30):.0e}.{scope}"
    )


COLUMNS = 7  # vectors side by side; more go below


def equivalents_page(found: Equivalents) -> Any:
    """Parameter vectors with the same output for a terminal: a table, what stays, and by how little outputs differ."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    fibre, n = found.fibre, len(found.theta)
    parts: list[Any] = [Text(_equivalents_headline(found), style="bold")]
    for first in range(0, n, COLUMNS):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("", overflow="fold")
        block = range(first, min(first + COLUMNS, n))
        for k in block:
            table.add_column("given" if k == 0 else str(k + 1), justify="right", no_wrap=True)
        for name, values, moves in zip(fibre.names, found.theta.T, found.moving, strict=True):
            style = "" if moves or not found.moving.any() else "dim"
            table.add_row(name, *(f"{values[k] + 0.0:.5g}" for k in block), style=style)
        parts += [Text(), table]
    values = fibre.xi(found.theta[:1])[0]
    kept = [
        Text(f"  {to_text(e)} = {value:.6g}")
        for e, value in zip(fibre.combinations.independent, values, strict=True)
        if n > 1 and to_text(e) not in fibre.names
    ]
    if kept:
        parts += [Text(), Text("The same in all of them", style="bold"), *kept]
    parts += [Text(), *(Text(line) for line in _equivalents_notes(found))]
    return Group(*parts)


def _equivalents_headline(found: Equivalents) -> str:
    n, r = len(found.theta), found.fibre.dimension
    what = "values of the given combinations" if found.by_hand else "output"
    if not found.agree:
        return "These were expected to give the same output, but simulated they do not."
    if n == 1 and found.asked == 1:
        return "The given parameters; ask for more (-n 6) to see others with the same output."
    if n == 1:
        known = "No other parameters were found" if r or not found.certain else "There are no other parameters"
        return f"{known} inside the priors' support with the same {what}."
    if r == 0:
        return f"{n} parameter vectors give the same output."
    shape = "a curve" if r == 1 else f"a set of dimension {r}"
    return f"{n} of the parameter vectors with the same output; all of them form {shape}."


def _equivalents_notes(found: Equivalents) -> Iterator[str]:
    if len(found.theta) > 1:
        worst = max(found.differences, key=lambda key: found.differences[key])
        yield (
            f"Simulated, their outputs differ by at most {found.largest_difference:.1e} of the largest value "
            f"of {worst[1]} (solver tolerance {found.tolerance:.0e})."
        )
    if not found.certain:
        yield (
            "! The given parameters are a special point: combinations are dependent there, or solutions meet. There "
            "may be more parameters with this output than shown; try values nearby."
        )
    for theta, reason in found.unsolved:
        shown = ", ".join(f"{name} = {value:.5g}" for name, value in zip(found.fibre.names, theta, strict=True))
        yield f"! Left out, because the solver failed: {shown} ({reason})."
