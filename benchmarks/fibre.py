"""How fast charts are: points a second on one core, what a point costs beside a prior evaluation, and with weights.

Run with ``uv run python benchmarks/fibre.py``.
"""

from __future__ import annotations

import numpy as np
from timing import best_seconds

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load
from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model
from equifinal.problem.prior import Prior

POINTS = 200_000


def cases() -> list[tuple[str, Fibre]]:
    found = []
    for name in ("si", "hiv"):
        problem = load(example_path(name))
        found.append((name, Fibre.of(analyse(problem.model), problem.priors)))
    hiv = """
    T' = lam - rho*T - beta*T*V
    U' = beta*T*V - delta*U
    V' = N*delta*U - c*V
    """
    slivers = """
    S' = -b*S*I
    E' = b*S*I - a*E
    I' = a*E - g*I
    """
    for name, text, output in (("HIV, start unknown", hiv, "V"), ("SEIR, start unknown", slivers, "I")):
        result = analyse(Model.parse(text, [output]))
        found.append((name, Fibre.of(result, {n: Prior("uniform", lower=0.1, upper=2) for n in result.parameters})))
    return found


def roots() -> None:
    rng = np.random.default_rng(0)
    print(f"{'model':<22}{'chart':<12}{'roots':>6}{'inside':>8}{'points/s':>12}{'time / prior':>14}")
    for name, fibre in cases():
        uniforms = rng.random((POINTS, len(fibre.names)))
        theta = np.column_stack([p.quantile(uniforms[:, k]) for k, p in enumerate(fibre.priors.values())])
        c = fibre.xi(theta)
        # many points on the fibre of one c, and one point on each of many
        free = theta[:, fibre.chart.free]
        seconds = best_seconds(lambda c=c, free=free, fibre=fibre: fibre.roots(free, c))
        prior = best_seconds(lambda theta=theta, fibre=fibre: fibre.log_prior(theta))
        inside = fibre.roots(free, c).found.mean()
        print(
            f"{name:<22}{fibre.chart.kind:<12}{fibre.chart.degree:>6}{inside:>8.2f}"
            f"{POINTS / seconds:>12,.0f}{seconds / prior:>14.1f}"
        )


def slowly_weighted(fibre: Fibre, free: np.ndarray, c: np.ndarray) -> np.ndarray:
    n, points, r = free.shape
    found = fibre.roots(free.reshape(n * points, r), np.repeat(c, points, axis=0))
    with np.errstate(invalid="ignore"):
        return fibre.log_prior(found.theta.reshape(-1, len(fibre.names))) - found.log_det.ravel()


def weights() -> None:
    """N points of theta_I for each of n values of c, as an estimate of the density of c needs them."""
    rng = np.random.default_rng(0)
    n, points = 500, 128
    print(f"\n{'weighted roots':<22}{'chart':<12}{'points/s':>12}{'by roots/s':>12}{f'us for {points}':>12}")
    for name, fibre in cases()[:3]:
        columns = [p.quantile(rng.random((n, points))) for p in fibre.priors.values()]
        theta = np.stack(columns, axis=-1)
        free, c = np.ascontiguousarray(theta[..., fibre.chart.free]), fibre.xi(theta[:, 0])
        fast = best_seconds(lambda free=free, c=c, fibre=fibre: fibre.weighted(free, c))
        slow = best_seconds(lambda free=free, c=c, fibre=fibre: slowly_weighted(fibre, free, c))
        print(
            f"{name:<22}{fibre.chart.kind:<12}{n * points / fast:>12,.0f}{n * points / slow:>12,.0f}"
            f"{1e6 * fast / n:>12.1f}"
        )


def main() -> None:
    roots()
    weights()


if __name__ == "__main__":
    main()
