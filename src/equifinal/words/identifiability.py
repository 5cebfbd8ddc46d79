"""An identifiability analysis in words: its freedoms, its advice, and a page on all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equifinal.identifiability.advice import Advice
from equifinal.identifiability.freedoms import AnyOrder, Exchange, Freedom, JointMotion, Scaling, SeveralValues, Shift
from equifinal.identifiability.verdicts import GLOBALLY, NOTHING, NUMBERS, OUT_OF_TIME
from equifinal.language.expression import number_text, to_text

if TYPE_CHECKING:
    from equifinal.identifiability.verdicts import Identifiability

UNSEEN = "nothing observable changes"
COMBINATIONS = "Combinations that ideal data determine"
LABELS = {"globally": "yes", "locally": "up to alternatives", "not": "no", "unknown": "not known"}
ASSUMPTIONS = {
    "rich inputs": "the inputs, doses and switches are rich enough",
    "seen moments": "moments at which something happens are seen in the outputs",
    "positive bases": "all factors under roots, powers and logarithms are positive",
    "late start": "nothing is special about the start, at which a function of the model has no derivative",
    "some rest": "nothing is special about the steady state from which the model starts",
    "roots": "nothing is special about roots of parameters",
}


def listed(words: Sequence[str]) -> str:
    """Join words: ``a``, ``a and b``, ``a, b and c``."""
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def freedom_sentences(freedoms: Sequence[Freedom]) -> list[str]:
    """What can be changed without any output changing, a sentence for each freedom."""
    further = "further " if any(isinstance(f, (Scaling, Shift)) for f in freedoms) else ""
    return [_freedom(freedom, further) for freedom in freedoms]


def _freedom(freedom: Freedom, further: str) -> str:
    match freedom:
        case Scaling(weights, symbol):
            return f"{_scaling(weights, symbol)}: {UNSEEN}"
        case Shift(weights, symbol):
            return f"{_shift(weights, symbol)}: {UNSEEN}"
        case JointMotion(names, dimension):
            along = f"a {further}curve" if dimension == 1 else f"{dimension} {further}independent directions"
            return f"{listed(names)} can move together along {along}: {UNSEEN}"
        case Exchange((first, second), adjusting):
            others = "others adjusted where needed" if adjusting is None else ""
            if adjusting:
                others = f"if {listed(adjusting)} {'change' if len(adjusting) > 1 else 'changes'} accordingly"
            return f"{first} and {second} may be exchanged{f', {others}' if others else ''}: {UNSEEN}"
        case AnyOrder(blocks):
            shown = [block[0] if len(block) == 1 else f"({', '.join(block)})" for block in blocks]
            return f"{listed(shown)} may be exchanged in any order: {UNSEEN}"
        case SeveralValues(names, points):
            have = "has several values that give" if len(names) == 1 else "have several values each that give"
            counted = f" (in up to {points} parameter sets)" if points > 1 else ""
            return f"{listed(names)} {have} the same output{counted}"
    raise TypeError(f"no words for {freedom!r}")


def advice_sentence(advice: Advice) -> str:
    """What to know or to measure, and what that would achieve."""
    what = listed(advice.names)
    adding = f"Knowing {what}" if advice.kind == "know" else f"Measuring {what} as well"
    result = "identifiable" if advice.leads_to == GLOBALLY else "identifiable up to finitely many alternatives"
    return f"{adding} would make {advice.target or 'everything'} {result}."


def identifiability_json(result: Identifiability) -> dict[str, Any]:
    """The data of an analysis with its sentences, for machines that show them to people."""
    return result.to_json() | {
        "freedoms": freedom_sentences(result.freedoms),
        "freedom_records": [freedom.to_json() for freedom in result.freedoms],
        "advice": [advice.to_json() | {"text": advice_sentence(advice)} for advice in result.advice],
    }


def _power(symbol: str, weight: int) -> str:
    return symbol if abs(weight) == 1 else f"{symbol}^{abs(weight)}"


def _scaling(weights: Mapping[str, int], symbol: str) -> str:
    if len(weights) == 1:
        return f"{next(iter(weights))} can have any value"
    by_factor: dict[tuple[bool, str], list[str]] = {}
    for name, weight in weights.items():
        by_factor.setdefault((weight < 0, _power(symbol, weight)), []).append(name)
    parts = [
        f"{'divide' if down else 'multiply'} {listed(names)} by {factor}"
        for (down, factor), names in sorted(by_factor.items(), key=lambda item: item[0])
    ]
    return listed(parts)


def _shift(weights: Mapping[str, int], symbol: str) -> str:
    parts = []
    for name, weight in weights.items():
        amount = symbol if abs(weight) == 1 else f"{abs(weight)}*{symbol}"
        parts.append(f"add {amount} to {name}" if weight > 0 else f"subtract {amount} from {name}")
    return listed(parts)


def identifiability_page(name: str, result: Identifiability) -> Any:
    """Lay out an analysis for a terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    colours = {"globally": "green", "locally": "yellow", "not": "red", "unknown": "yellow"}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("", "identifiable?"):
        table.add_column(title)
    for rows in (result.parameters, result.quantities):
        for item, word in rows.items():
            verdict = _verdict(word, result.alternatives.get(item, 0))
            table.add_row(item, Text(verdict, style=colours[word]))
        if rows is result.parameters and result.quantities:
            table.add_row("", "")
    parts: list[Any] = [
        Text.assemble(
            (f"What can be known{': ' if name else ''}{name}", "bold"),
            ("   (from ideal data: no noise, all times)", "dim"),
        ),
        Text(),
        table,
        Text(),
        Text(headline(result)),
    ]
    for title, lines in _sections(result):
        parts += [Text(), Text(title, style="bold"), *(Padding(Text(line), (0, 0, 0, 2)) for line in lines)]
    return Group(*parts, Text(), Text(sureness(result), style="dim"), Text())


def trajectories_page(verdicts: Mapping[str, Mapping[str, str]]) -> Any:
    """Lay out which trajectories the data determine, by experiment and name, for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = {
        "globally": ("identifiable", "green"),
        "locally": ("up to alternatives", "yellow"),
        "not": ("not identifiable", "red"),
        "unknown": ("not found out within the limits", "yellow"),
    }
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("", "trajectory"):
        table.add_column(title)
    for experiment, words in verdicts.items():
        for name, word in words.items():
            verdict, colour = shown[word]
            table.add_row(f"{experiment}: {name}" if experiment else name, Text(verdict, style=colour))
    return Group(Text("What the outputs say about the states", style="bold"), Text(), table, Text())


def _sections(result: Identifiability) -> Iterator[tuple[str, list[str]]]:
    if result.finer:
        if result.functions:
            yield COMBINATIONS, list(result.functions)
        yield "What samplers use", [_finer_sentence(result)]
    elif result.combinations and (result.fibre_dimension or result.fibre_degree > 1):
        lines = [to_text(c) for c in result.combinations]
        if result.constants:
            lines.append(f"(known: {', '.join(f'{n} = {number_text(v)}' for n, v in result.constants.items())})")
        locally = "" if result.scope == "global" else " at least locally"
        yield COMBINATIONS + locally + ("" if result.complete else " (there may be more)"), lines
    if result.freedoms:
        yield "What no data can show", freedom_sentences(result.freedoms)
    if design := design_sentences(result):
        yield "These experiments as they are", design
    if result.advice:
        yield "What would help", [advice_sentence(advice) for advice in result.advice]


def _finer_sentence(result: Identifiability) -> str:
    if not result.is_exact:
        return "each parameter by itself: no combinations of them are known"
    shown = ", ".join(map(to_text, result.combinations))
    return f"{shown}: finer than what data determine, which is right, but less efficient"


def assumption_sentence(result: Identifiability) -> str:
    """What "identifiable" takes for granted; nothing for models to which nothing happens."""
    assumed = [ASSUMPTIONS[code] for code in result.assumptions if code in ASSUMPTIONS]
    if NUMBERS in result.assumptions:
        return (
            "The model has no exact analysis; these verdicts are local, and come from the rank of the sensitivities of "
            "these experiments, in numbers alone."
        )
    if NOTHING in result.assumptions:
        return "No analysis could be made, so that it is not known what data could determine."
    return f"Identifiable means: if {listed(assumed)}." if assumed else ""


def design_sentences(result: Identifiability) -> list[str]:
    """Whether the real inputs, doses and switches determine as much as the analysis says that rich ones can."""
    sentences = [assumption] if (assumption := assumption_sentence(result)) else []
    design = result.design
    if design is None and sentences and result.unfinished == OUT_OF_TIME:
        sentences.append("There was no time to find out how much they determine.")
    if design is None or NUMBERS in result.assumptions:
        return sentences
    where = f"at {design.points} random points of the prior, dense times, to 1e-12"
    if not design.is_clear:
        return [*sentences, f"How much they determine could not be told clearly by their sensitivities ({where})."]
    if design.contradicts:
        return [
            *sentences,
            "CONTRADICTION: these experiments determine more than the analysis says that any can. Their sensitivities "
            f"have rank {design.rank}, not {design.expected} at most ({where}).",
            "One of the two is wrong, so do not rely on what is said here of parameters that cannot be identified. "
            "Samplers do not use the combinations. Please report this model.",
        ]
    if design.enough:
        return [*sentences, f"Their sensitivities have rank {design.rank} ({where}): nothing is lost."]
    lost = listed([*design.unseen, *design.combinations])
    return [
        *sentences,
        f"THEY DETERMINE LESS: their sensitivities have rank {design.rank}, not {design.expected} ({where}).",
        *([f"They do not determine {lost}."] if lost else []),
    ]


def _verdict(word: str, count: int) -> str:
    if word == "locally":
        return f"up to {count} values" if count else "at least locally (globally: not known)"
    return LABELS[word]


def headline(result: Identifiability) -> str:
    """Summarise an analysis in one sentence."""
    r, degree = result.fibre_dimension, result.fibre_degree
    if r == 0 and degree == 1:
        return "Everything is identifiable: no two parameter sets give the same output."
    if set(result.parameters.values()) == {"unknown"}:
        return "It is not known which parameters are identifiable."
    if "unknown" in result.parameters.values():
        return "Of some parameters it is not known whether they are identifiable."
    if r == 0 and degree == 0:
        return "Every parameter is identifiable at least locally; the global question was not settled."
    if r == 0:
        return f"Up to {degree} parameter sets give the same output."
    shape = "a curve" if r == 1 else f"a set of dimension {r}"
    branches = f" with up to {degree} branches" if degree > 1 else ""
    return f"Parameters that give the same output form {shape}{branches}, called a fibre."


def sureness(result: Identifiability, timed: bool = True) -> str:
    """Say how an analysis was made and how sure it is; the time it took can be left out, as it varies."""
    if NOTHING in result.assumptions:
        return f"Nothing was found out, since {result.certificate['reason']}."
    if NUMBERS in result.assumptions:
        return f"Found by {result.certificate['method']}, since {result.certificate['reason']}."
    within = f" in {result.seconds:.2g} s" if timed else ""
    check = ", checked by moving along the fibre" if result.certificate.get("moved_along_fibre") else ""
    return (
        f"Found{within} by {result.certificate.get('method', '')}{check}; probability of error below "
        f"{max(result.error_probability, 1e-30):.0e}.{open_questions(result)}"
    )


def open_questions(result: Identifiability) -> str:
    """Say what remained open, and why, to be put after a sentence."""
    what = "" if result.complete else " Not all combinations were found."
    if result.scope != "global":
        what = " The global question was not settled."
    why = {
        "out of time": " The analysis ran out of time.",
        "too large": " It is too large for the work allowed; more effort may help.",
    }
    return what + why.get(result.unfinished, "")
