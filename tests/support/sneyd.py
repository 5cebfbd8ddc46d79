"""The inositol trisphosphate receptor of Sneyd and Dufour (PNAS 2002), as the PEtab benchmarks have it.

Six states of a receptor whose rates depend on calcium and on IP3; nine recordings of the open probability, at eight
pairs of concentrations. The rates contain k1, k_1, l2, l_2 and k4, k_4, l6, l_6 through three combinations each, so
that the fibre has two dimensions.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from equifinal.language.model import Model
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings
from tests.support.shared_folder import SHARED

FOLDER = SHARED / "petab" / "Sneyd_PNAS2002"
RECEPTOR = """
L1 = k_1*l2/(k1*l_2)
L3 = k_2*l4/(k2*l_4)
L5 = k_4*l6/(k4*l_6)
inactivation = (k1*L1 + l2)*Ca
closing = (k_2 + l_4*Ca)/(1 + Ca/L5)*O
opening = (k2*L3 + l4*Ca)/(L3 + Ca*(1 + L3/L1))*IP3*R
activation = (k4*L5 + l6)*Ca/(L5 + Ca)*O
deactivation = L1*(k_4 + l_6)/(L1 + Ca)*A
R_to_I1 = inactivation/(L1 + Ca*(1 + L1/L3))*R
A_to_I2 = inactivation/(L1 + Ca)*A
shutting = k3*L5/(L5 + Ca)*O

R' = closing - opening - R_to_I1 + (k_1 + l_2)*I1
O' = opening - closing - activation + deactivation - shutting + k_3*S
A' = activation - deactivation - A_to_I2 + (k_1 + l_2)*I2
I1' = R_to_I1 - (k_1 + l_2)*I1
I2' = A_to_I2 - (k_1 + l_2)*I2
S' = shutting - k_3*S
R(0) = 1; O(0) = 0; A(0) = 0; I1(0) = 0; I2(0) = 0; S(0) = 0
open_probability = (0.9*A + 0.1*O)^4
"""
# what the receptor's rates are functions of; analysis alone does not find them in a minute
COMBINATIONS = (
    "k_1 + l_2",
    "l2/l_2",
    "l2*k_1/(l_2*k1)",
    "k_4 + l_6",
    "l6/l_6",
    "l6*k_4/(l_6*k4)",
    *("k2", "k3", "k_2", "k_3", "l4", "l_4"),
)


def table(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    """The rows of one of the benchmark's tables."""
    with (folder / f"{name}_Sneyd_PNAS2002.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def nominal(folder: Path = FOLDER) -> dict[str, float]:
    """The published estimates."""
    return {row["parameterId"]: float(row["nominalValue"]) for row in table("parameters", folder)}


def sneyd_problem(folder: Path = FOLDER, solver: SolverSettings | None = None) -> Problem:
    """The problem with the published data and bounds."""
    model = Model.parse(RECEPTOR, ["open_probability"], constants={"Ca": 1, "IP3": 1})
    noise = Noise("normal", sd="sigma")
    measured = table("measurementData", folder)
    experiments = []
    for condition in table("experimentalCondition", folder):
        name = condition["conditionId"]
        rows = [row for row in measured if row["simulationConditionId"] == name]
        times, values = (np.array([float(row[key]) for row in rows]) for key in ("time", "measurement"))
        at = {key: condition[key] for key in ("Ca", "IP3")}
        seen = Observations("open_probability", times, values, noise)
        experiments.append(Experiment(model.vary(constants=at), (seen,), name=name))
    priors = {
        row["parameterId"]: Prior(
            "loguniform", lower=float(row["lowerBound"]), upper=float(row["upperBound"]), coordinate="log"
        )
        for row in table("parameters", folder)
    }
    return Problem(tuple(experiments), priors, solver or SolverSettings(), name="sneyd")
