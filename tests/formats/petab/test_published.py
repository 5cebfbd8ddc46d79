"""Published problems at their nominal values: log likelihoods that others have reported, or of their simulations."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from equifinal.formats.load import load
from equifinal.posterior.nominal import at_nominal
from tests.support.shared_folder import SHARED

FOLDER = SHARED / "petab"
# log likelihoods published with the collection or by its tools, and within what they agree
PUBLISHED = {
    "Boehm_JProteomeRes2014": (-138.221997, 1e-3),
    "Bruno_JExpBot2016": (46.688177, 1e-3),
    "Sneyd_PNAS2002": (319.791778, 1e-3),
    "Crauste_CellSystems2017": (-190.963978, 1e-3),
    "Brannmark_JBC2010": (-141.889, 1e-2),
    "Fujita_SciSignal2010": (53.08, 1e-2),
}
SIMULATED = ("Perelson_Science1996", "Raia_CancerResearch2011", "Schwen_PONE2014", "Elowitz_Nature2000")
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the published problems are not in the shared folder")
QUICK = ("Boehm_JProteomeRes2014", "Crauste_CellSystems2017")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PUBLISHED]
)
def test_log_likelihoods_that_were_published(name: str) -> None:
    found = at_nominal(load(FOLDER / name / f"{name}.yaml"))
    assert found is not None
    value, within = PUBLISHED[name]
    assert found.log_likelihood == pytest.approx(value, abs=within)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_log_likelihoods_of_simulations(name: str) -> None:
    """Their tables of simulations, put in the place of the outputs, give the same log likelihood."""
    from equifinal.formats.petab.reading import Read
    from equifinal.posterior.posterior import Posterior

    path = FOLDER / name / f"{name}.yaml"
    problem = load(path)
    found = at_nominal(problem)
    assert found is not None
    rows = list(csv.DictReader((FOLDER / name / f"simulatedData_{name}.tsv").read_text().splitlines(), delimiter="\t"))
    posterior = Posterior(problem)
    theta = np.array([[problem.nominal[n] for n in posterior.parameters]])
    outputs = [values.copy() for values in posterior.outputs(theta).values]
    read = Read(path)
    for one, likelihood, values in zip(read.assembled, posterior.likelihoods, outputs, strict=True):
        for seen in one.seen:
            column = likelihood.experiment.solved.outputs.index(seen.output)
            for row in seen.rows:
                at = int(np.flatnonzero(likelihood.times == row.time)[0])
                values[0, at, column] = float(rows[row.row.line - 2]["simulation"])
    total = sum(
        likelihood.log_likelihood(values, likelihood.sums(values), theta)[0]
        for likelihood, values in zip(posterior.likelihoods, outputs, strict=True)
    )
    assert found.log_likelihood == pytest.approx(total, abs=1e-3)
