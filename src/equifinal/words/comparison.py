"""Several samplers side by side, for ``equifinal compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equifinal.words.fit import fit_json

if TYPE_CHECKING:
    from equifinal.studies.comparison import Comparison


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The data of a comparison, each fit with its warnings as sentences."""
    document = comparison.to_json()
    for name, fit in comparison.fits.items():
        document["samplers"][name] |= fit_json(fit)
    return document


def comparison_lines(comparison: Comparison) -> list[str]:
    """A line for each sampler: what its effective draws cost, or why it could not run."""
    lines = []
    for name, efficiency in comparison.efficiencies.items():
        doubt = "" if efficiency.trusted else "; the chains disagree, so these numbers mean nothing"
        lines.append(
            f"{name}: at least {efficiency.ess:,.0f} effective draws, {efficiency.per_solve:.2g} per ODE solve, "
            f"{efficiency.per_second:,.0f} per second; R-hat {efficiency.rhat:.3f}{doubt}"
        )
    return [*lines, *(f"{name} could not run: {reason}" for name, reason in comparison.refused.items())]
