"""The fibre of the SI epidemic, which several tests look at."""

from __future__ import annotations

import pytest

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load


@pytest.fixture(scope="module")
def si() -> Fibre:
    problem = load(example_path("si"))
    return Fibre(["beta*N - gamma", "beta/rho", "rho*I0"], problem.priors, constants={"N": 10_000}, partition=["rho"])
