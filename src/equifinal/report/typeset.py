"""Names and formulas of findings for a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equifinal.language.expression import fractional
from equifinal.problem.problem import Problem
from equifinal.report.mathml import GREEK, block, mathml, name_mathml
from equifinal.results.meaning import COMBINATION, Finding

if TYPE_CHECKING:
    pass

LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def place(experiment: str, name: str) -> str:
    return f"{name} [{experiment}]" if experiment else name


def typeset_finding(finding: Finding) -> Any:
    from markupsafe import Markup

    if finding.kind != COMBINATION:
        return Markup(block(name_mathml(finding.name)))
    return Markup(block(mathml(fractional(finding.expression))))


def finding_label(problem: Problem, finding: Finding) -> str:
    """What a name means to its reader: label and unit, where they are given."""
    return "" if finding.kind == COMBINATION else label_of(problem, finding.name)


def label_of(problem: Problem, name: str) -> str:
    """Label and unit of a name, without a label that only repeats how the name is typeset."""
    label = problem.labels.get(name)
    if label is None:
        return ""
    plain = label.label.translate(LOWERED)
    repeated = plain in (name, name.replace("_", ""), GREEK.get(name))
    return ", ".join(text for text in ("" if repeated else label.label, label.unit) if text)


def safe(parts: list[str]) -> list[Any]:
    from markupsafe import Markup

    return [Markup(part) for part in parts]
