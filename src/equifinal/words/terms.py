"""Technical terms in a few words each, for footnotes and tooltips; ``docs/glossary.md`` says more."""

from __future__ import annotations

from collections.abc import Iterable

TERMS = {
    "fibre": "all parameter vectors that give the same output",
    "combination": "a function of the parameters that ideal data determine",
    "shrinkage": "the part of the prior's spread that the data removed, on the prior's own scale",
    "bits": "information gained from the data (1 bit: half of what the prior allowed is excluded)",
    "ESS bulk": "effective number of independent draws",
    "ESS tail": "the same for the 5% and 95% quantiles",
    "ESS/s": "effective draws per second",
    "IACT": "draws per independent draw",
    "MCSE/SD": "Monte Carlo error of the mean, relative to the sd",
    "R-hat": "disagreement of the chains (1 is ideal, at most 1.01 is good)",
    "k-hat": "heaviness of the tails of the importance weights (below 0.5 is good)",
    "driven by": "what decides the posterior (a percentage: the prior's share, which no such data can reduce)",
}


def footnote(titles: Iterable[str]) -> str:
    """Explain those of the titles that are technical terms."""
    return "; ".join(f"{title}: {TERMS[title]}" for title in titles if title in TERMS)
