"""A problem that is written as a problem file comes back with the same likelihood."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equifinal.errors import DataError
from equifinal.formats import toml
from equifinal.formats.toml_writing import problem_to_toml
from equifinal.posterior.nominal import at_nominal
from equifinal.problem.data import Observations
from equifinal.problem.noise import Noise
from equifinal.problem.problem import Problem
from tests.support.varied_problems import DECAY, VARIED

IDLE = DECAY + "[noise]\nx = { family = 'normal', sd = 1 }\n[data]\ntime = [1]\nx = [4]\n"


def densities(problem: Problem) -> tuple[float, float]:
    found = at_nominal(problem)
    assert found is not None
    return found.log_likelihood, found.log_prior


@pytest.mark.parametrize("name", VARIED)
def test_the_same_comes_back(name: str) -> None:
    problem = toml.loads(VARIED[name], name="one")
    back = toml.loads(problem_to_toml(problem), name="one")
    assert densities(back) == densities(problem)
    assert [e.name for e in back.experiments] == [e.name for e in problem.experiments]


def test_settings_of_sampling_come_back() -> None:
    text = VARIED["limits"] + "[sampling]\nchains = 2\nsampler = 'collapsed'\noptions = { aux = 30 }\n"
    problem = toml.loads(text)
    assert toml.loads(problem_to_toml(problem)).sampling == problem.sampling != {}


def test_a_parameter_that_nothing_contains_keeps_its_prior() -> None:
    """A problem file refuses one, as a misspelt name; a PEtab problem may have it."""
    with pytest.raises(DataError, match="neither"):
        toml.loads(IDLE)
    problem = toml.loads(IDLE.replace("sd = 1 }\n[data]", "sd = 's' }\n[data]"))
    model = replace(problem.model, parameters=("d", "s"))
    seen = Observations("x", [1.0], [4.0], Noise("normal", sd=1.0))
    idle = replace(problem, experiments=(replace(problem.experiments[0], model=model, observations=(seen,)),))
    back = toml.loads(problem_to_toml(idle))
    assert set(back.parameters) == {"d", "s"}
    assert densities(back) == densities(idle)
