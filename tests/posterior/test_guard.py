"""Fibres that are too large are found by solving, and not used."""

from __future__ import annotations

import json

import pytest

import equifinal
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.posterior.guard import largest_difference
from equifinal.posterior.study import Study


@pytest.mark.parametrize("name", ["si", "hiv", "oral"])
def test_true_fibres_pass(name: str) -> None:
    study = Study(equifinal.load(example_path(name)))
    assert largest_difference(study.posterior, study.fibre) == 0.0


@pytest.mark.parametrize("combinations", [["beta/rho", "beta*I0"], ["beta*I0*rho", "gamma", "rho"], ["beta"]])
def test_fibres_that_are_too_large_do_not(combinations: list[str]) -> None:
    problem = equifinal.load(example_path("si"))
    fibre = Fibre(combinations, {name: problem.priors[name] for name in problem.parameters})
    assert largest_difference(Study(problem).posterior, fibre) > 0.01


def test_branches_with_other_outputs_do_not() -> None:
    """ka and ke may change places only together with V."""
    problem = equifinal.load(example_path("oral"))
    fibre = Fibre(["ka*ke", "ke + ka", "V"], {name: problem.priors[name] for name in problem.parameters})
    assert largest_difference(Study(problem).posterior, fibre) > 0.01


@pytest.mark.parametrize("sampler", ["auto", "geometric", "pseudo-marginal"])
def test_a_run_goes_on_with_the_parameters_and_says_so(sampler: str) -> None:
    problem = equifinal.load(example_path("si"))
    fibre = Fibre(["beta/rho", "beta*I0"], {name: problem.priors[name] for name in problem.parameters})
    with pytest.warns(UserWarning, match="ARE NOT USED"):
        data = equifinal.sample(problem, sampler=sampler, fibre=fibre, chains=1, warmup=10, draws=10, progress=False)
    assert "ARE NOT USED" in json.loads(data.attrs["notes"])[0]
