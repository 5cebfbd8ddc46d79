"""Harder targets, each against a long run of independent code (`references.json`).

Three quantiles of each parameter, |z| < 6.5 with the effective sizes of both sides: 66 parameters, 198 comparisons.
As the errors of a reference come from 32 replicates, scores are a little wider than normal; where those errors
dominate (t with 31 degrees of freedom) a false alarm comes once in 17,000 runs of this file, else far more seldom.
"""

from __future__ import annotations

import json

import arviz
import numpy as np
import pytest

from equifinal.studies.sample import sample
from tests.support.stored_reference import stored, z_scores
from tests.support.targets import TARGETS

# of these no chain of 10,000 iterations says enough yet, which R-hat shows
UNSOLVED = ("goodwin_unanalysed",)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TARGETS if name not in UNSOLVED])
@pytest.mark.usefixtures("shared_data")
def test_agrees_with_an_independent_run(name: str) -> None:
    problem = TARGETS[name]()
    data = sample(problem, sampler="auto", seed=3, progress=False)
    draws = {key: data.posterior[key].values for key in problem.parameters}
    scores = z_scores(draws, stored(name, problem))
    assert max(float(arviz.rhat(x)) for x in draws.values()) < 1.01, json.loads(data.attrs["notes"])
    assert max(np.abs(z).max() for z in scores.values()) < 6.5, scores
