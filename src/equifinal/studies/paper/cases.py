"""The two case studies as the paper states them, the tuning it states, and the numbers it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, did_you_mean
from equifinal.samplers.geometric.settings import PAPER as GEOMETRIC
from equifinal.samplers.pseudo_marginal.settings import PAPER as PSEUDO_MARGINAL
from equifinal.studies.paper import hiv_reference, si_reference
from equifinal.studies.paper.marginal import Marginal

Array = NDArray[np.float64]
Published = tuple[float, float, float, float, float]

METHODS = {
    "random walk": "random-walk",
    "geometric": "geometric",
    "pseudo-marginal": "pseudo-marginal",
    "collapsed": "collapsed",
}
PUBLISHED_COLUMNS = ("ess", "ess_per_second", "iact", "mcse_over_sd", "rhat")
ITERATIONS, BURN_IN = 100_000, 1_000


@dataclass(frozen=True)
class CaseStudy:
    """A case study.

    Attributes
    ----------
    names, truth
        Parameters, in the example's order, and their true values.
    combinations
        What the data determine besides single parameters, as functions of rows of parameters.
    literal
        Options of each sampler as the paper states them. It says nothing of the proposal for c, so that the
        pseudo-marginal sampler learns it in the burn-in; the collapsed sampler is ours, and is not in it.
    plane
        Two parameters that the fibre is projected on.
    shown
        An identifiable quantity, a non-identifiable one and a combination, for figures.
    published
        For each method of the paper, the acceptance in percent and the rows of its table.
    """

    name: str
    names: tuple[str, ...]
    truth: Array
    combinations: Mapping[str, Callable[[Array], Array]]
    literal: Mapping[str, Mapping[str, Any]]
    plane: tuple[str, str]
    shown: tuple[str, str, str]
    marginal: Callable[[str, bool], Marginal]
    fibre_curve: Callable[[], tuple[Array, Array]]
    reference: str
    published: Mapping[str, tuple[float, Mapping[str, Published]]]

    def column(self, name: str, theta: Array) -> Array:
        """A parameter or combination from draws (..., parameters)."""
        if name in self.names:
            return theta[..., self.names.index(name)]
        return self.combinations[name](theta.reshape(-1, theta.shape[-1])).reshape(theta.shape[:-1])

    @property
    def quantities(self) -> tuple[str, ...]:
        return (*self.names, *self.combinations)


def case_study(name: str) -> CaseStudy:
    made = {"si": _si, "hiv": _hiv}
    if name not in made:
        raise DataError(f"there is no case study '{name}'{did_you_mean(name, made)} (case studies: {', '.join(made)})")
    return made[name]()


def _si() -> CaseStudy:
    def combination(column: int) -> Callable[[Array], Array]:
        return lambda theta: si_reference.si_combinations(theta)[:, column]

    def marginal(name: str, quick: bool) -> Marginal:
        known = si_reference.si_parameter if name in si_reference.NAMES else si_reference.si_combination
        return known(name)

    def fibre_curve() -> tuple[Array, Array]:
        c = np.array([[si_reference.si_combination(name).mean for name in si_reference.COMBINATIONS]])
        low, high = si_reference.si_interval(c)
        rho = np.linspace(low[0], high[0], 200)
        return c[0, 2] / rho, rho

    return CaseStudy(
        name="si",
        names=si_reference.NAMES,
        truth=si_reference.TRUTH,
        combinations={name: combination(k) for k, name in enumerate(si_reference.COMBINATIONS)},
        literal={
            "random walk": {"covariance": 0.05},
            "geometric": GEOMETRIC,
            "pseudo-marginal": PSEUDO_MARGINAL | {"partition": ["rho"]},
            "collapsed": {},
        },
        plane=("I0", "rho"),
        shown=("beta/rho", "gamma", "beta*N - gamma"),
        marginal=marginal,
        fibre_curve=fibre_curve,
        reference="quadrature",
        published={
            "random walk": (
                27.93,
                {
                    "beta": (66.68, 0.67, 1499.77, 12.25, 1.13),
                    "rho": (76.26, 0.76, 1311.25, 11.45, 1.11),
                    "gamma": (64.30, 0.64, 1555.09, 12.47, 1.14),
                    "I0": (65.94, 0.66, 1516.51, 12.31, 1.13),
                },
            ),
            "geometric": (
                53.67,
                {
                    "beta": (592.70, 4.94, 168.72, 4.11, 1.04),
                    "rho": (633.23, 5.28, 157.92, 3.97, 1.03),
                    "gamma": (624.01, 5.20, 160.25, 4.00, 1.03),
                    "I0": (288.23, 2.40, 346.95, 5.89, 1.05),
                },
            ),
            "pseudo-marginal": (
                32.75,
                {
                    "beta": (5587.33, 27.94, 17.90, 1.34, 1.01),
                    "rho": (5725.01, 28.63, 17.47, 1.32, 1.00),
                    "gamma": (5696.37, 28.48, 17.56, 1.33, 1.00),
                    "I0": (4561.61, 22.81, 21.92, 1.48, 1.01),
                },
            ),
        },
    )


def _hiv() -> CaseStudy:
    def combination(name: str) -> Callable[[Array], Array]:
        return lambda theta: hiv_reference.combination(name, theta)

    def marginal(name: str, quick: bool) -> Marginal:
        return hiv_reference.marginal(name, 4_000 if quick else 20_000)

    def fibre_curve() -> tuple[Array, Array]:
        m = np.exp(hiv_reference.TRUTH[4:])
        low, high = hiv_reference.interval(m)
        supply = np.geomspace(low[0], high[0], 200)
        return supply, m[0] / supply

    return CaseStudy(
        name="hiv",
        names=hiv_reference.NAMES,
        truth=np.array([2.4e-5, 0.01, 0.5, 3.0, 10.0, 1000.0]),
        combinations={name: combination(name) for name in ("lambda*N", "lambda*N/c")},
        literal={
            "random walk": {"covariance": 0.01},
            "geometric": GEOMETRIC,
            # rank-revealing QR leaves beta free, which is no chart
            "pseudo-marginal": PSEUDO_MARGINAL | {"partition": ["lambda"]},
            "collapsed": {},
        },
        plane=("lambda", "N"),
        shown=("beta", "lambda", "lambda*N/c"),
        marginal=marginal,
        fibre_curve=fibre_curve,
        reference="importance sampling",
        published={
            "random walk": (
                18.22,
                {
                    "beta": (511.18, 5.11, 195.63, 4.42, 1.04),
                    "rho": (413.92, 4.14, 241.59, 4.92, 1.05),
                    "delta": (424.15, 4.24, 235.76, 4.86, 1.05),
                    "c": (313.87, 3.14, 318.60, 5.64, 1.06),
                    "lambda": (82.42, 0.82, 1213.31, 11.01, 1.10),
                    "N": (85.19, 0.85, 1173.90, 10.84, 1.10),
                },
            ),
            "geometric": (
                30.92,
                {
                    "beta": (783.63, 6.53, 127.61, 3.57, 1.03),
                    "rho": (590.65, 4.92, 169.30, 4.11, 1.04),
                    "delta": (580.52, 4.84, 172.26, 4.15, 1.04),
                    "c": (573.21, 4.78, 174.46, 4.18, 1.04),
                    "lambda": (602.21, 5.02, 166.05, 4.08, 1.03),
                    "N": (741.89, 6.18, 134.79, 3.67, 1.03),
                },
            ),
            "pseudo-marginal": (
                49.43,
                {
                    "beta": (608.52, 3.04, 164.33, 4.05, 1.03),
                    "rho": (609.19, 3.05, 164.16, 4.05, 1.03),
                    "delta": (617.36, 3.09, 161.98, 4.02, 1.03),
                    "c": (612.36, 3.06, 163.30, 4.04, 1.03),
                    "lambda": (3381.88, 16.91, 29.57, 1.72, 1.01),
                    "N": (4075.35, 20.38, 24.54, 1.57, 1.01),
                },
            ),
        },
    )
