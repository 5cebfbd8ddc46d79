"""Sections on what the data said: in short, of each parameter, and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN
from equifinal.language.expression import to_text
from equifinal.plots import marginals
from equifinal.prediction.predict import Check
from equifinal.report.mathml import direction_mathml
from equifinal.report.rendering import Figures
from equifinal.report.typeset import finding_label, place, safe, typeset_finding
from equifinal.results import diagnostics
from equifinal.results.meaning import COMBINATION, NOISE, PARAMETER, QUANTITY, Finding, Meaning
from equifinal.words.identifiability import headline
from equifinal.words.meaning import (
    bits_text,
    driven_by,
    rounded,
    sentence,
    shrinkage_text,
    spread,
    value_text,
    verdict_word,
    worst_direction_matters,
)

if TYPE_CHECKING:
    from arviz import InferenceData

MOST_STRIPS = 60


def in_short(
    data: InferenceData,
    meaning: Meaning,
    rows: Mapping[str, diagnostics.Row],
    concerns: list[diagnostics.Concern],
    checks: list[Check],
    verdicts: Any,
) -> dict[str, Any]:
    parameters = meaning.of_kind(PARAMETER, NOISE)
    well = [typeset_finding(f) for f in parameters if f.verdict == GLOBALLY and not (f.weak or f.bounded)]
    bounded = [typeset_finding(f) for f in parameters if f.verdict == GLOBALLY and f.bounded]
    several = [typeset_finding(f) for f in parameters if f.verdict == LOCALLY]
    weak = [typeset_finding(f) for f in parameters if f.weak and f.verdict == GLOBALLY]
    free = [typeset_finding(f) for f in parameters if f.verdict == NOT]
    hidden = sorted({name for (_, name), verdict in verdicts.items() if verdict is False})
    values = [r for r in rows.values() if r["ess_bulk"] == r["ess_bulk"]]
    return {
        "headline": _headline(meaning),
        "determined": [
            {"math": typeset_finding(f), "estimate": value_text(f), "weak": f.weak}
            for f in meaning.of_kind(COMBINATION)
        ],
        "well": well,
        "several": several,
        "weak": weak,
        "bounded": bounded,
        "free": free,
        "quantities_free": [typeset_finding(f) for f in meaning.of_kind(QUANTITY) if f.verdict == NOT],
        "hidden": hidden,
        "coverage": [f"{place(c.experiment, c.output)} {c.inside_90:.0%}" for c in checks],
        "least_ess": min((min(r["ess_bulk"], r["ess_tail"]) for r in values), default=float("nan")),
        "rhat": max((r["rhat"] for r in values if r["rhat"] == r["rhat"]), default=float("nan")),
        "state": "bad" if any(c.serious for c in concerns) else "mixed" if concerns else "good",
        "sampler": data.attrs["sampler"],
        "drawn": f"{data.posterior.sizes['chain']} × {data.posterior.sizes['draw']:,}",
    }


def _headline(meaning: Meaning) -> str:
    parameters, combinations = meaning.of_kind(PARAMETER), len(meaning.of_kind(COMBINATION))
    counts = {word: sum(f.verdict == word for f in parameters) for word in (GLOBALLY, LOCALLY, NOT, UNKNOWN)}
    if not counts[NOT]:
        return headline(meaning.identifiability)
    if counts[UNKNOWN] or (counts[LOCALLY] and meaning.identifiability.scope != "global"):
        open_question = f"; of {counts[UNKNOWN]} it is not known" if counts[UNKNOWN] else ""
        return f"{counts[NOT]} of the {len(parameters)} parameters cannot be identified{open_question}."
    start = f"{counts[GLOBALLY] or 'None'} of the {len(parameters)} parameters can be identified"
    start += f", {counts[LOCALLY]} only up to alternatives" if counts[LOCALLY] else ""
    combined = f"{combinations} combination{'s' * (combinations != 1)} of them"
    if not combinations:
        return f"{start}."
    return f"{start}; so can {combined}." if counts[GLOBALLY] else f"{start}, but {combined} can."


def _tone_of(finding: Finding) -> str:
    if finding.verdict == NOT:
        return "free"
    return "weak" if finding.weak or finding.bounded or finding.verdict == LOCALLY else "known"


def said(meaning: Meaning, figures: Figures) -> dict[str, Any]:
    groups = []
    titles = {
        COMBINATION: "Combinations that the data determine",
        PARAMETER: "Parameters",
        NOISE: "Parameters of the noise",
        QUANTITY: "Quantities of interest",
    }
    drawn = 0
    for kind, title in titles.items():
        entries = []
        for finding in meaning.of_kind(kind):
            drawn += 1
            picture = None
            if drawn <= MOST_STRIPS:
                picture = figures(
                    f"Prior and posterior of {finding.name}",
                    lambda f=finding: marginals.plot_marginal(f, meaning.problem),  # type: ignore[misc]
                )
            entries.append(_entry(meaning, finding) | {"picture": picture})
        if entries:
            groups.append({"title": title, "entries": entries})
    return {"groups": groups, "weakest": _weakest(meaning)}


def _weakest(meaning: Meaning) -> dict[str, Any] | None:
    """The direction that data determine least, typeset; None where it does not matter or was told already."""
    worst = meaning.weakest
    if worst is None or not worst_direction_matters(worst) or meaning.fibre is None:
        return None
    known = {to_text(c): c for c in meaning.fibre.combinations.independent}
    math = direction_mathml({known[text]: weight for text, weight in worst.weights.items()}, worst.logarithmic)
    return {"math": safe([math])[0], "shrinkage": shrinkage_text(worst.shrinkage)}


def _doubt(finding: Finding) -> str:
    if finding.verdict != GLOBALLY or finding.kind == NOISE:
        return ""
    return ", barely informed" if finding.weak else ", only bounded" if finding.bounded else ""


def _entry(meaning: Meaning, finding: Finding) -> dict[str, Any]:
    words = sentence(meaning, finding).removeprefix(f"{finding.name}: ").removeprefix("not identifiable. ")
    return {
        "name": finding.name,
        "math": typeset_finding(finding),
        "label": finding_label(meaning.problem, finding),
        "verdict": verdict_word(finding),
        "tone": _tone_of(finding),
        "sentence": words[:1].upper() + words[1:],
        "shrinkage": shrinkage_text(finding.shrinkage),
        "bits": bits_text(finding.information.bits),
        "doubt": _doubt(finding),
        "driven": driven_by(finding),
    }


def table(meaning: Meaning, rows: Mapping[str, diagnostics.Row]) -> list[dict[str, Any]]:
    table_rows = []
    for finding in meaning.findings:
        row = rows.get(finding.name)
        quantiles = [finding.quantile(q) for q in (0.05, 0.5, 0.95)]
        table_rows.append(
            {
                "math": typeset_finding(finding),
                "label": finding_label(meaning.problem, finding),
                "mean": rounded(finding.mean, finding.sd),
                "sd": spread(finding.sd) if finding.sd > 0 else "0",
                "quantiles": [rounded(q, finding.sd, finding.mean) for q in quantiles],
                "verdict": verdict_word(finding),
                "tone": _tone_of(finding),
                "bits": bits_text(finding.information.bits).removesuffix(" bits") or "-",
                "shrinkage": shrinkage_text(finding.shrinkage) or "-",
                "driven": driven_by(finding),
                "ess": "" if row is None or row["ess_bulk"] != row["ess_bulk"] else f"{row['ess_bulk']:,.0f}",
            }
        )
    return table_rows
