"""Draws of the prior, which do not come from any proposal, and so can tell what one misses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers.marginal.target import CountedTarget
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.quality import FAR_TOO_LOW, MISSED_MASS

Array = NDArray[np.float64]

PIECE = 2000  # draws that are made together
LEAST, MOST = 30_000, 400_000  # for populations: more than the least only where the prior is near to the posterior:
WORTH, EACH = 3000, 0.002  # until all are worth so many draws of the posterior, if one is worth at least so much
LOOK_EVERY = 10_000  # draws
CHECKED = 4000  # for a check of a proposal,
LEAST_TOLD = 0.1  # if these are worth so many draws of the posterior: else they are all but never where it is
MOST_FAILURES = 1000  # solves that fail take longest: then that is enough


class Draws(NamedTuple):
    """Points x (n, q) with log p(x) and log l(x), both finite; of so many draws that were made."""

    x: Array
    log_prior: Array
    log_likelihood: Array
    made: int

    @property
    def worth(self) -> float:
        """How many draws of the posterior they are worth."""
        return effective(self.log_likelihood)

    def halves(self) -> list[Draws]:
        """Every second one of them, and the others."""
        x, log_prior, log_likelihood, made = self
        return [Draws(x[j::2], log_prior[j::2], log_likelihood[j::2], made // 2) for j in range(2)]


def effective(log_weight: Array) -> float:
    """The effective number of weighted draws.

    In plain sums: how a product of vectors is rounded depends on the threads of a matrix library.
    """
    weights = np.exp(log_weight - log_weight.max(initial=-np.inf))
    return float(np.sum(weights) ** 2 / np.sum(weights * weights)) if len(weights) else 0.0


def for_populations(counted: CountedTarget, report: Callable[[int], None], wanted: int) -> Draws:
    """Draw as many as are worth while, and go on to the least number for so many finite ones as are wanted."""
    pieces, found, made, failures = [], 0, 0, 0
    while True:
        report(made)
        piece, failed = _piece(counted, PIECE)
        pieces.append(piece)
        found, made, failures = found + len(piece.x), made + PIECE, failures + failed
        if failures > MOST_FAILURES and (found >= wanted or made >= LEAST):
            return joined(pieces)
        if made >= LEAST and (made >= MOST or made % LOOK_EVERY == 0):
            drawn = joined(pieces)
            if made >= MOST or not EACH * made < drawn.worth < WORTH:
                return drawn


def see_more(counted: CountedTarget, mixture: Mixture, level: float, report: Callable[[int], None]) -> bool:
    """Whether more than next to nothing of the posterior is where a mixture is far too low, log Z being about level.

    The mean of l / Z over draws of the prior, wherever they are, is one.
    """
    missed, failures, made = 0.0, 0, 0
    while made < CHECKED and failures <= MOST_FAILURES:
        report(made)
        piece, failed = _piece(counted, PIECE // 2)
        log_ratio = piece.log_prior + piece.log_likelihood - counted.log_density(mixture, piece.x) - level
        missed += float(np.sum(np.exp(piece.log_likelihood[log_ratio > math.log(FAR_TOO_LOW)] - level)))
        if missed > MISSED_MASS * CHECKED:
            return True
        failures, made = failures + failed, made + piece.made
    return False


def joined(pieces: Sequence[Draws]) -> Draws:
    x, log_prior, log_likelihood = (np.concatenate(parts) for parts in list(zip(*pieces, strict=True))[:3])
    return Draws(x, log_prior, log_likelihood, sum(piece.made for piece in pieces))


def _piece(counted: CountedTarget, number: int) -> tuple[Draws, int]:
    """So many draws, and how many solves failed. These are not booked: they cut off nothing of the posterior."""
    posterior, before = counted.target.posterior, counted.failures
    x = counted.coordinates.at(posterior.to_coordinates(posterior.sample_prior(counted.rng, number)))
    x = x[np.isfinite(x).all(axis=1)]
    log_prior, log_likelihood = counted.log_prior_and_likelihood(x)
    failed, counted.failures = counted.failures - before, before
    fine = np.isfinite(log_prior) & np.isfinite(log_likelihood)
    return Draws(x[fine], log_prior[fine], log_likelihood[fine], number), failed
