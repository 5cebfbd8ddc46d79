"""How well a proposal fits, by the weights of its own draws; and the gate that it has to pass."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers.proposals import mixture as mixtures
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.pareto import k_hat

Array = NDArray[np.float64]

INFLATION, FEW = 0.13, 5  # of the scale of fitted components; less in so few dimensions, in which a fit is better
FLATTENED = 0.5  # power of the posterior that the wide part of a proposal describes;
WIDE_SHARE, WIDE_DF = 0.1, 4.0  # its share, and degrees of freedom
PRIOR_SHARE = 0.02  # of one that is as wide as the prior
K_LIMIT, ACCEPTANCE_LIMIT = 0.5, 0.65
HIGH_ACCEPTANCE, LOOSE_K_LIMIT = 0.7, 0.7
SETTLED_ACCEPTANCE_LIMIT = 0.5  # where populations have been all around

FAR_TOO_LOW, MISSED_MASS = 30.0, 5e-4  # a proposal may be so many times too low for so much of the posterior

# Weights beside their mean that are too high. Runs that happen to see a tail are begun again, and those that happen not
# to are kept, so that these are too low there by about 0.06/sqrt(n): half an error of a tail of 1%, or less
HIGH, HIGH_GROWS = 12.0, 0.06
HEAVIER, HEAVIER_UNSETTLED = 2 / 3, 1 / 3  # of that are too high where the tail of weights is heavy
STAY, LEAST_STAY = 4.0, 50.0  # longer stays than so many times what one expects, and so many iterations, are too long


class Quality(NamedTuple):
    """The Pareto shape of the weights' tail, the acceptance of an independence sampler, and the mean weight's log."""

    k_hat: float
    acceptance: float
    level: float = 0.0

    @property
    def in_words(self) -> str:
        return f"k-hat {self.k_hat:.2f}, acceptance {self.acceptance:.0%}"


NONE = Quality(math.inf, 0.0)


def misses_tails(shape: float, highest: float, number: int, *, times: float = 1.0, settled: bool = True) -> bool:
    """Whether what draws of a proposal have not seen yet is a noticeable part of the posterior.

    Beyond the largest of so many weights, which is so much higher than their mean, about as much is to be expected as
    it has itself, and more with a heavier tail. That matters if it is not small beside the error of a tail of 1%.
    A proposal that was fitted to draws of its own, and not to where populations ``settled``, is too low where it has
    never been, and draws of it go there so rarely that many runs see no more than the beginning of a heavy tail.
    """
    limit = times * max(HIGH, HIGH_GROWS * math.sqrt(number))
    if shape >= LOOSE_K_LIMIT:
        limit *= HEAVIER if settled else HEAVIER_UNSETTLED
    return highest >= limit


def judged(log_weights: Array) -> Quality:
    """Measure a proposal whose draws have these log weights."""
    if not np.isfinite(log_weights).any():
        return NONE
    log_weights = np.where(np.isnan(log_weights), -np.inf, log_weights)
    weights = np.sort(np.exp(log_weights - log_weights.max()))
    n = len(weights)
    # E min(1, w'/w) with w' from the proposal and w from the posterior: sums of min(w_i, w_j) over all pairs
    smaller = float(np.sum(weights * (2 * (n - np.arange(n)) - 1)))
    level = float(log_weights.max() + math.log(weights.mean()))
    return Quality(k_hat(log_weights), smaller / (n * float(weights.sum())), level)


def refusal(quality: Quality, *, settled: bool = False) -> str:
    """Why fresh draws of a proposal alone are not good enough; empty if they are.

    A proposal that was fitted to draws of its own has to fit better than one fitted to where populations settled, for
    it may miss tails that its weights do not show.
    """
    # Metropolis can live with heavier tails than importance sampling, if it is seldom in them
    if quality.k_hat >= (LOOSE_K_LIMIT if quality.acceptance >= HIGH_ACCEPTANCE and not settled else K_LIMIT):
        return f"no proposal was found that fits the posterior's tails (k-hat {quality.k_hat:.2f})"
    if quality.acceptance < (SETTLED_ACCEPTANCE_LIMIT if settled else ACCEPTANCE_LIMIT):
        return f"no proposal was found that fits the posterior (acceptance {quality.acceptance:.0%})"
    return ""


def longest_stay(iterations: int, acceptance: float) -> float:
    """How long a chain may stand still, at the most, if it is accepted about as often everywhere."""
    return max(LEAST_STAY, STAY * math.log(max(iterations, 2)) / max(acceptance, 1e-6))


def is_noticed(stay: float, iterations: int, effective: float) -> bool:
    """Whether a stay, of one lane among many, is more than about half the error of a tail of 1%, as a share of a run.

    Many lanes are often in places where only the shortest steps are accepted. One stay is as much of the posterior as
    it is of all iterations: it does no harm as long as that is small beside the error of so many effective draws.
    """
    return stay > HIGH_GROWS / math.sqrt(max(effective, 1.0)) * iterations


def defended(mixture: Mixture, wide: Mixture, prior: Mixture, share: float = WIDE_SHARE) -> Mixture:
    """A little wider, with a share of a wide mixture, and with the prior, so that nothing is out of reach.

    A mixture fitted to draws of the posterior is thin where these are few. One that was fitted to the posterior to the
    power `FLATTENED` reaches twice as far along every ridge, so that far out the weight of a draw falls. And what both
    were fitted to cannot tell what it misses. Draws of the prior do: a shelf of the posterior with a hundredth of its
    mass, but a tenth of the prior's, has dozens of them in a run.
    """
    wider = 1 + INFLATION * math.sqrt(min(1.0, mixture.dimension / FEW))
    whole = mixture._replace(factor=wider * mixture.factor)
    long = wide._replace(df=np.full(len(wide.df), WIDE_DF))
    return whole.joined(long, share / (1 - PRIOR_SHARE)).joined(prior, PRIOR_SHARE)


def flattened_around(mixture: Mixture) -> Mixture:
    """The posterior to the power `FLATTENED`, were it normal with the moments of a mixture."""
    centre = mixture.share @ mixture.centre
    apart = mixture.centre - centre
    within = np.einsum("k,kij,klj->il", mixture.share, mixture.factor, mixture.factor)
    covariance = within + (apart * mixture.share[:, None]).T @ apart
    return mixtures.single(centre, covariance / FLATTENED, WIDE_DF)
