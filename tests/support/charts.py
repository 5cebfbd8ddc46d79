"""What every chart must satisfy, whatever the model."""

from __future__ import annotations

import numpy as np

from equifinal import ode
from equifinal.fibre import Fibre
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from equifinal.problem.prior import Prior

LOWER, UPPER = 0.1, 2.0
SI_TRUTH = np.array([2.5e-4, 0.25, 0.6, 40.0])


def box(**bounds: tuple[float, float]) -> dict[str, Prior]:
    return {name: Prior("uniform", lower=low, upper=high) for name, (low, high) in bounds.items()}


def fibre_of(result: Identifiability, **options) -> Fibre:
    return Fibre.of(result, {n: Prior("uniform", lower=LOWER, upper=UPPER) for n in result.parameters}, **options)


def relative_error(fibre: Fibre, theta: np.ndarray, c: np.ndarray) -> np.ndarray:
    """|xi - c| at complex points (n, k, d), relative to the terms that xi consists of: (n, k)."""
    values, jacobian = fibre.combinations.complex_system(theta.astype(complex))
    scale = np.abs(c)[:, None, :] + np.abs(jacobian * theta[:, :, None, :]).sum(axis=-1)
    with np.errstate(all="ignore"):
        error = np.abs(values - c[:, None, :]) / scale
    return np.where(scale > 0, error, 0.0).max(axis=-1, initial=0.0)


def check_chart(fibre: Fibre, points: int = 1000, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    theta, other = rng.uniform(LOWER, UPPER, (2, points, len(fibre.names)))
    c = fibre.xi(theta)
    free = fibre.chart.free

    # the chart returns the point it came from
    own = fibre.roots(theta[:, free], c)
    assert (own.status == 0).mean() > 0.998  # near poles and folds a root may be uncertain, and then it is said
    away = np.where(np.isnan(own.theta), np.inf, np.abs(own.theta - theta[:, None])).max(axis=2).min(axis=1)
    assert away.max() < 1e-6

    # every root satisfies xi = c, has the theta_I asked for, and lies in the support
    there = fibre.roots(other[:, free], c)
    assert (there.status == 0).mean() > 0.998
    for roots, asked in ((own, theta), (there, other)):
        real = np.arange(roots.theta.shape[1]) < roots.found[:, None]
        assert np.isnan(roots.theta[~real]).all()
        found, row = roots.theta[real], np.nonzero(real)[0]
        assert (relative_error(fibre, found[:, None], c[row]) < 1e-9).all()
        assert (found[:, free] == asked[row][:, free]).all()
        assert fibre.contains(found).all()
        slopes = fibre.geometry(found).jacobian[:, :, fibre.chart.dependent]
        np.testing.assert_allclose(roots.log_det[real], np.linalg.slogdet(slopes)[1], rtol=1e-8, atol=1e-8)

    # there are as many complex roots as the algebra says, and the real ones among them are those returned
    everything = fibre.chart.complex_roots(other[:, free], c)
    assert everything.shape[1] == fibre.chart.degree
    assert (relative_error(fibre, everything, c) < 1e-6).all()
    real = np.abs(everything.imag).max(axis=2) < 1e-9 * np.abs(everything).max(axis=2)
    inside = ((everything.real > LOWER) & (everything.real < UPPER)).all(axis=2)
    assert ((real & inside).sum(axis=1) == there.found).mean() > 0.998  # rounding decides at borders and folds


def check_outputs(model: Model, fibre: Fibre, seed: int = 2) -> None:
    """Simulated, equivalent parameters have the same outputs; where signs are all that may change, allow them to."""
    if fibre.dimension == 0:
        fibre = Fibre(fibre.functions, {n: Prior("uniform", lower=-9, upper=9) for n in fibre.names})
    rng = np.random.default_rng(seed)
    system = ode.compile_system(model, fibre.names)
    times = np.linspace(0.0, 0.7, 8)
    inputs = None
    if model.inputs:
        breaks = np.array([0.0, 0.3])
        inputs = ode.Inputs(breaks, rng.uniform(0.5, 1.5, (2, len(model.inputs))), np.zeros((2, len(model.inputs))))
    compared = 0
    for theta in rng.uniform(0.4, 1.4, (12, len(fibre.names))):
        same = fibre.equivalents(theta, 4)
        arguments = np.column_stack([same, np.tile([float(v) for v in model.constants.values()], (len(same), 1))])
        found = ode.simulate(system, arguments, times, inputs=inputs, rtol=1e-9, atol=1e-12)
        fine = found.status == 0
        if len(same) > 1 and fine[0] and fine.sum() > 1:
            outputs = found.outputs[fine]
            size = np.abs(outputs[0]).max(axis=0) + 1e-12
            assert (np.abs(outputs - outputs[0]).max(axis=(0, 1)) < 1e-6 * size).all()
            compared += 1
            if compared == 4:
                return
    assert compared > 0
