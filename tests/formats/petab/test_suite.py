"""The PEtab test suite, where it is installed: log likelihood, chi squared, simulations and priors of every case.

``uv pip install --no-deps petabtests`` brings the cases, of which nothing is imported; or ``EQUIFINAL_PETAB_SUITE``
names their folder. Early releases have drafts of version 2, which are passed over.
"""

from __future__ import annotations

import csv
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import ModelError
from equifinal.formats.load import load
from equifinal.formats.petab.reading import Read
from equifinal.posterior.nominal import at_nominal
from equifinal.prediction.simulate import simulate


def _cases(version: str) -> list[Path]:
    found = importlib.util.find_spec("petabtests")
    installed = Path(found.origin).parent / "cases" if found is not None and found.origin else Path("nowhere")
    folder = Path(os.environ.get("EQUIFINAL_PETAB_SUITE", installed)) / version / "sbml"
    return [case for case in sorted(folder.glob("0*")) if version == "v1.0.0" or not _is_draft(case)]


def _is_draft(case: Path) -> bool:
    return "problems:" in (case / f"_{case.name}.yaml").read_text()


FIRST, SECOND = _cases("v1.0.0"), _cases("v2.0.0")
# events that states trigger
REFUSED = {"0016": "condition on 'S'", "0023": "events before a steady state"}
pytestmark = pytest.mark.skipif(not FIRST, reason="the PEtab test suite (petabtests) is not installed")


def _agrees(case: Path) -> None:
    import yaml

    path = case / f"_{case.name}.yaml"
    expected = yaml.safe_load((case / f"_{case.name}_solution.yaml").read_text())
    problem = load(path)
    found = at_nominal(problem)
    assert found is not None
    assert found.log_likelihood == pytest.approx(expected["llh"], abs=expected["tol_llh"])
    assert found.chi_squared == pytest.approx(expected["chi2"], abs=expected["tol_chi2"])
    if "log_prior" in expected:
        for name, value in expected["log_prior"].items():
            own = problem.priors[name].log_density(problem.nominal[name])
            assert float(own) == pytest.approx(value, abs=1e-12)
        assert found.log_prior == pytest.approx(sum(expected["log_prior"].values()), abs=1e-9)
    simulated = {}
    for one, trajectory in zip(Read(path).assembled, simulate(problem, dict(problem.nominal)), strict=True):
        for seen in one.seen:
            for row in seen.rows:
                at = int(np.flatnonzero(trajectory.times == row.time)[0])
                simulated[row.row.line] = trajectory.outputs[seen.output][at]
    rows = list(csv.DictReader((case / "_simulations.tsv").read_text().splitlines(), delimiter="\t"))
    for line, row in enumerate(rows, start=2):
        assert simulated[line] == pytest.approx(float(row["simulation"]), abs=expected["tol_simulations"])


@pytest.mark.parametrize("case", FIRST, ids=lambda case: case.name)
def test_version_1(case: Path) -> None:
    _agrees(case)


@pytest.mark.parametrize("case", SECOND, ids=lambda case: case.name)
def test_version_2(case: Path) -> None:
    if case.name in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[case.name]):
            load(case / f"_{case.name}.yaml")
    else:
        _agrees(case)
