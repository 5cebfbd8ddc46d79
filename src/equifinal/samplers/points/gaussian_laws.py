"""Gaussian laws of theta_I given c, each with a share of the prior that bounds its weights."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.problem.prior import from_theta, to_theta
from equifinal.samplers.coordinates.of_combinations import CombinationCoordinates, combination_coordinates
from equifinal.samplers.points.law import Drawn, FreeLaw, Moments, PriorLaw

Array = NDArray[np.float64]

WIDE = 0.2  # the share of the prior


class GaussianLaw(FreeLaw, ABC):
    """Gaussian in the sampling coordinates of theta_I, with a share of the prior."""

    def __init__(self, fibre: Fibre):
        super().__init__(fibre)
        self.wide: PriorLaw = PriorLaw(fibre)
        self.width: int = fibre.dimension + 1
        self.coordinates: CombinationCoordinates = combination_coordinates(fibre)

    @abstractmethod
    def _shape(self, c: Array, moments: Moments) -> tuple[Array, Array]:
        """Centre (n, r), and Cholesky factor (n, r, r) of the covariance: functions of c and of what was learned."""

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        from scipy.special import ndtri

        centre, factor = self._shape(c, moments)
        normals = ndtri(uniforms[..., 1:])
        u = np.repeat(centre[:, None, :], uniforms.shape[1], axis=1)
        r = u.shape[2]
        for j in range(r):  # entry by entry: the order of sums must not depend on how many c there are
            for k in range(j + 1):
                u[..., j] += factor[:, None, j, k] * normals[..., k]
        narrow = to_theta(u.reshape(-1, r), self.table)[0].reshape(u.shape)
        wide = self.wide.draw(c, uniforms[..., 1:], moments).free
        free = np.where(uniforms[..., :1] < WIDE, wide, narrow)
        return Drawn(free, self._mixture(c, free, centre, factor))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        return self._mixture(c, free, *self._shape(c, moments))

    def _mixture(self, c: Array, free: Array, centre: Array, factor: Array) -> Array:
        n, number, r = free.shape
        with np.errstate(invalid="ignore", divide="ignore"):
            u = from_theta(np.ascontiguousarray(free).reshape(-1, r), self.table)
            log_slope = to_theta(u, self.table)[1].reshape(n, number)
            rest = u.reshape(free.shape) - centre[:, None, :]
            log_narrow = np.full((n, number), math.log(1 - WIDE) - 0.5 * r * math.log(2 * math.pi)) - log_slope
            for j in range(r):  # forward substitution
                for k in range(j):
                    rest[..., j] -= factor[:, None, j, k] * rest[..., k]
                rest[..., j] /= factor[:, None, j, j]
                log_narrow -= 0.5 * rest[..., j] ** 2 + np.log(factor[:, None, j, j])
        log_narrow = np.where(np.isnan(log_narrow), -np.inf, log_narrow)
        return np.logaddexp(log_narrow, math.log(WIDE) + self.log_prior(free))


class LearnedLaw(GaussianLaw):
    """The regression of u_I on h(c) that warm-up has seen, with the scatter around it."""

    inflation: float = 1.5

    def _shape(self, c: Array, moments: Moments) -> tuple[Array, Array]:
        q, at = self.fibre.rank, self.fibre.rank + self.fibre.chart.free
        h = self.coordinates.forward(c)
        covariance = moments.covariance
        spread = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 1e-300))
        scaled = covariance / (spread[:, :, None] * spread[:, None, :])
        inner = scaled[:, :q, :q] + 1e-6 * np.eye(q)
        cross = scaled[:, at][:, :, :q]
        slope = np.linalg.solve(inner, np.swapaxes(cross, 1, 2))  # (n, q, r)
        with np.errstate(invalid="ignore"):
            z = (h - moments.mean[:, :q]) / spread[:, :q]
        z = np.where(np.isfinite(z), np.clip(z, -10.0, 10.0), 0.0)  # no faith in regressions far away
        centre = moments.mean[:, at] + spread[:, at] * np.sum(z[:, :, None] * slope, axis=1)
        left = scaled[:, at][:, :, at] - np.sum(cross[:, :, :, None] * slope[:, None, :, :], axis=2)
        left = 0.5 * (left + np.swapaxes(left, 1, 2))
        return centre, self.inflation * spread[:, at, None] * _factor(left)


class LocalLaw(GaussianLaw):
    """Gaussian law around an anchor projected on M_c, with covariance e1 (G + kappa)^-1 + e2.

    The anchor is the mean of u in warm-up; G = D_I^T D_I, with D_I the derivative of h(xi) by u_I, all in units of the
    prior's spread, at the projected anchor.
    """

    e1: float = 1.0
    e2: float = 0.25
    kappa: float = 1.0
    steps = 20

    def _shape(self, c: Array, moments: Moments) -> tuple[Array, Array]:
        fibre, at = self.fibre, self.fibre.chart.free
        spread = fibre.spread_in_coordinates / 1.349
        u = moments.mean[:, fibre.rank :].copy()
        good = u.copy()
        for _ in range(self.steps):  # Gauss-Newton, the shortest way in units of the spread
            found = fibre.geometry_in_coordinates(u)
            fine = found.status == 0
            good[fine] = u[fine]
            jacobian = found.jacobian[fine] * spread
            gram = np.sum(jacobian[:, :, None, :] * jacobian[:, None, :, :], axis=3)
            missing = c[fine] - found.values[fine]
            size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
            scaled = gram / (size[:, :, None] * size[:, None, :]) + 1e-12 * np.eye(fibre.rank)
            along = np.linalg.solve(scaled, (missing / size)[..., None])[..., 0] / size
            move = np.sum(along[:, :, None] * jacobian, axis=1)
            length = np.sqrt(np.sum(move**2, axis=1, keepdims=True))
            with np.errstate(invalid="ignore"):
                move *= np.minimum(1.0, 2.0 / np.maximum(length, 1e-300))
            u[fine] += np.where(np.isfinite(move), move, 0.0) * spread
        found = fibre.geometry_in_coordinates(good)
        inner = self.coordinates.jacobian(found.values, found.jacobian)[:, :, at] * spread[at]
        with np.errstate(invalid="ignore", over="ignore"):
            metric = np.sum(inner[:, :, :, None] * inner[:, :, None, :], axis=1)
        r = len(at)
        metric = np.where(np.isfinite(metric).all(axis=(1, 2))[:, None, None], metric, np.eye(r))
        covariance = self.e1 * np.linalg.inv(metric + self.kappa * np.eye(r)) + self.e2 * np.eye(r)
        return good[:, at], spread[at][:, None] * np.linalg.cholesky(covariance)


def _factor(covariance: Array) -> Array:
    """Cholesky factors of correlation-like matrices that may be singular."""
    r = covariance.shape[1]
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-4)
    sound = np.sum(vectors[:, :, None, :] * values[:, None, None, :] * vectors[:, None, :, :], axis=3)
    return np.linalg.cholesky(sound + 1e-12 * np.eye(r))
