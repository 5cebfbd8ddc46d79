"""Charts are looked for within an allowance of work: no clock decides which is found, and too much of it is told."""

from __future__ import annotations

import pickle

import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.fibre import Fibre, chart_maker, fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.toml import load
from equifinal.problem.prior import Prior
from tests.support.clocks import hurry

UNIT = Prior("uniform", lower=0.0, upper=1.0)
QUINTICS = ["a^5 + a*b + b", "b^5 - a*b + a"]


@pytest.mark.parametrize("example", ["si", "hiv", "influenza", "oral"])
def test_no_clock_decides_on_a_fibre(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load(example_path(example))
    expected = fibre_of(problem)
    hurry(monkeypatch.setattr, 1e6)
    found = fibre_of(problem)
    assert (found.identity(), repr(found)) == (expected.identity(), repr(expected))
    assert repr(pickle.loads(pickle.dumps(found))) == repr(expected)


def test_too_large_a_chart_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    priors = {"a": UNIT, "b": UNIT}
    assert Fibre(QUINTICS, priors).chart.degree == 25
    for module in (chart_maker, fibre):
        monkeypatch.setattr(module, "WORK", 1000.0)
    with pytest.raises(IdentifiabilityError, match="too large a computation"):
        Fibre(QUINTICS, priors)
