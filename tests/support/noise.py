"""Noise families beside SciPy's distributions; densities of single observations, from the records of families."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from equifinal.problem.noise import Noise
from equifinal.problem.noise_families import FAMILIES

# arguments, and SciPy's distribution of y around m
CASES = [
    ("normal", {"sd": 2.0}, lambda m: stats.norm(m, 2)),
    ("normal", {"sd": 2.0, "relative": 0.3}, lambda m: stats.norm(m, math.hypot(2, 0.3 * m))),
    ("normal", {"relative": 0.4}, lambda m: stats.norm(m, 0.4 * m)),
    ("student-t", {"df": 4.0, "scale": 2.0}, lambda m: stats.t(4, m, 2)),
    ("student-t", {"df": 4.0, "scale": 2.0, "relative": 0.3}, lambda m: stats.t(4, m, math.hypot(2, 0.3 * m))),
    ("student-t", {"df": 2.5, "relative": 0.4}, lambda m: stats.t(2.5, m, 0.4 * m)),
    ("laplace", {"scale": 2.0}, lambda m: stats.laplace(m, 2)),
    ("laplace", {"scale": 2.0, "relative": 0.3}, lambda m: stats.laplace(m, math.hypot(2, 0.3 * m))),
    ("lognormal", {"sdlog": 0.4}, lambda m: stats.lognorm(0.4, scale=m)),
    ("log2-normal", {"sd": 0.5}, lambda m: stats.lognorm(0.5 * math.log(2), scale=m)),
    ("log10-normal", {"sd": 0.2}, lambda m: stats.lognorm(0.2 * math.log(10), scale=m)),
    ("log-laplace", {"scale": 0.3}, lambda m: stats.loglaplace(1 / 0.3, scale=m)),
    ("log10-laplace", {"scale": 0.1}, lambda m: stats.loglaplace(1 / (0.1 * math.log(10)), scale=m)),
    ("poisson", {}, lambda m: stats.poisson(m)),
    ("negative-binomial", {"overdispersion": 0.35}, lambda m: stats.nbinom(1 / 0.35, 1 / (1 + 0.35 * m))),
]
IDS = [str(Noise(family, **given)) for family, given, _ in CASES]


def arguments(family: str, **given: float) -> tuple[float, float, float]:
    """As the compiled functions take them, without the checks of `Noise`."""
    values = [rule.unit * given.get(rule.name, rule.default or 0.0) for rule in FAMILIES[family].arguments]
    return tuple([*values, 0.0, 0.0, 0.0][:3])  # type: ignore[return-value]


def log_density(family: str, y: float, m: float, side: int = 0, **given: float) -> float:
    record, a = FAMILIES[family], arguments(family, **given)
    if side:
        return record.log_beyond(y, record.of_data(y), side, m, record.of_output(m), a)
    return record.log_density(y, record.of_data(y), m, record.of_output(m), a)


def bound(family: str, y: float, **given: float) -> float:
    record = FAMILIES[family]
    return record.bound(y, record.of_data(y), arguments(family, **given))


def expansion(family: str, y: float, m: float, side: int = 0, **given: float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes by m and the arguments in the family's order, and their information; zeros where it is not defined."""
    record, width = FAMILIES[family], 1 + len(FAMILIES[family].arguments)
    score, information = np.full(4, np.nan), np.full((4, 4), np.nan)
    log_y, log_m, a = record.of_data(y), record.of_output(m), arguments(family, **given)
    if not record.expansion(y, log_y, side, m, log_m, a, 4, score, information):
        return np.zeros(width), np.zeros((width, width))
    units = np.array([1.0, *(rule.unit for rule in record.arguments)])
    return units * score[:width], units[:, None] * units * information[:width, :width]


def slope_and_information(family: str, y: float, m: float, **given: float) -> tuple[float, float]:
    """By m alone, as where all arguments are numbers."""
    record = FAMILIES[family]
    score, information = np.full(1, np.nan), np.full((1, 1), np.nan)
    log_y, log_m, a = record.of_data(y), record.of_output(m), arguments(family, **given)
    if not record.expansion(y, log_y, 0, m, log_m, a, 1, score, information):
        return 0.0, 0.0
    return float(score[0]), float(information[0, 0])
