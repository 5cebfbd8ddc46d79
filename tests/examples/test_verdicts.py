"""What can be known from the bundled problems, as their pages say."""

from __future__ import annotations

from math import inf

import pytest

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT
from equifinal.language.expression import to_text

# what is identifiable globally, and what locally; everything else is not
VERDICTS = {
    "theophylline": ("tlag clearance", "ka ke half_life"),
    "doses": ("ka ke V F half_life clearance", ""),
    "treatment": ("beta delta c eta R0 R0_treated", ""),
    "mrna": ("t0 production", "beta delta"),
    "seasonal": ("beta a gamma xi rho S0 I0 R0 immune_years", ""),
    "signalling": ("on decay", ""),
}
COMBINATIONS = {
    "theophylline": {"tlag", "ka*ke", "ke + ka", "V*ke/F"},
    "treatment": {"lambda*N", "beta", "delta", "c", "eta"},
    "mrna": {"t0", "delta*beta", "beta + delta", "k*m0"},
}
QUICK = ("theophylline", "doses", "treatment", "mrna", "signalling")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in VERDICTS]
)
def test_what_can_be_known(name: str) -> None:
    problem = load(example_path(name))
    found = analyse([e.model for e in problem.experiments], time_limit=inf)
    globally, locally = (set(words.split()) for words in VERDICTS[name])
    verdicts = {**found.parameters, **found.quantities}
    assert found.complete
    assert {n for n, verdict in verdicts.items() if verdict == GLOBALLY} == globally
    assert {n for n, verdict in verdicts.items() if verdict == LOCALLY} == locally
    assert all(verdict in (GLOBALLY, LOCALLY, NOT) for verdict in verdicts.values())
    if name in COMBINATIONS:
        assert {to_text(c) for c in found.combinations} == COMBINATIONS[name]
