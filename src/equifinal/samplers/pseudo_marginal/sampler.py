r"""The pseudo-marginal sampler: Metropolis on the identifiable combinations c, with theta reconstructed.

The likelihood depends on theta only through c = xi(theta), so the posterior of c is l(c) p_C(c). The prior density
p_C has no formula, but `estimator` gives unbiased estimates of it from N points U on the fibre, without an ODE solve.
The state is (c, U). From it propose c' and new points U', and accept with

    alpha = min(1, l(c') hat p_C(c'; U') q(c|c') / (l(c) hat p_C(c; U) q(c'|c))).

Together with a root theta chosen from U by weight, this leaves a law invariant whose marginal in theta is exactly the
posterior, for every N >= 1 (Andrieu and Roberts 2009, Annals of Statistics 37): N changes how the chain mixes, never
where it goes. Three things are needed: U and its estimate stay as they are until a proposal is accepted; every
proposal has new random points; theta is chosen from the U of the state, which may be done anew at every iteration, as
it is free.

The likelihood of a proposal is computed at the root chosen from U'. That is where theta would be, so that the
accepted theta would be right even if the likelihood were not quite constant on the fibre, as with an ODE solver it is
not. Where combinations alone do not tell apart branches of different likelihood, the root's labels say which branch
it is: the proposal is (c', U', branch) with the branch drawn by weight, which cancels against the branch's share in
hat p_C, so that the acceptance above holds with hat p_C over all branches; and theta is chosen among the roots of the
branch.

At most one ODE solve (of each experiment) goes into an iteration. None where hat p_C(c') = 0; and since the uniform
that decides is drawn first, none where even data that fit perfectly would not be accepted. With
``proposal = "gradient"`` that solve has sensitivities, and c' is proposed uphill: see `gradient_proposal`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Posterior
from equifinal.problem.prior import log_prior, to_theta
from equifinal.samplers.adaptation import FACTOR_EVERY, factorised, propose, update_moments
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.points.estimator import Estimate, Estimator, EstimatorByC, log_variance, padded
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals.log_sums import choose
from equifinal.samplers.protocol import (
    Info,
    Init,
    Kept,
    NoPlan,
    RunBlock,
    Start,
    Task,
    concatenated,
    no_plan,
    no_review,
    steps_in_a_block,
)
from equifinal.samplers.pseudo_marginal import gradient as gradient_proposal
from equifinal.samplers.pseudo_marginal.gradient import Aim, aim
from equifinal.samplers.pseudo_marginal.settings import WARMUP, Settings
from equifinal.samplers.searching.climbing import search
from equifinal.samplers.searching.first_covariance import first_covariance
from equifinal.samplers.searching.starts import starting

__all__ = ["COUNTS", "WARMUP", "Plan", "Settings", "State", "examine", "init", "join", "prepare", "review", "run_block"]

Array = NDArray[np.float64]

COUNTS = ("points", "empty_points", "roots", "unresolved_roots", "impossible", "saved_solves")
POINTS_COUNT, EMPTY, ROOTS_COUNT, UNRESOLVED, IMPOSSIBLE, SAVED = range(len(COUNTS))
SAME_BRANCH = 1e-6  # relative difference of labels on one branch, at the most
EARLY = True  # whether solves are spared that cannot be accepted
LOOKED_AT, TRIALS = 10, 200  # draws at which estimates are repeated, so often in all, to see how noisy they are

_made: WeakKeyDictionary[Fibre, dict[Any, Estimator | EstimatorByC]] = WeakKeyDictionary()


def estimator(fibre: Fibre, settings: Settings) -> Estimator | EstimatorByC:
    """Made once for a fibre and settings."""
    # two classes may have one name: a notebook's cell run twice
    known, key = _made.setdefault(fibre, {}), (repr(settings), settings.law if callable(settings.law) else None)
    if key not in known:
        number = settings.aux if fibre.dimension else 1  # without a continuum one point has all the roots
        options: dict[str, Any] = {"points": settings.points, "law": settings.law, "roots": settings.roots}
        if settings.partition == "by c":
            known[key] = EstimatorByC(fibre, number, **options)
        else:
            named = settings.partition != "volume" and fibre.dimension > 0
            chart = fibre.with_partition(settings.partition) if named else fibre
            known[key] = Estimator(chart, number, charts=settings.charts, **options)
    return known[key]


class State(NamedTuple):
    """Where each chain is, and what its warm-up has learned; the first axis of every array is the chain."""

    position: Annotated[Array, "chains d"]
    log_prior: Annotated[Array, "chains"]
    log_likelihood: Annotated[Array, "chains"]
    h: Annotated[Array, "chains q"]  # coordinates of c
    log_estimate: Annotated[Array, "chains"]  # log hat p_C(c) + log |dc/dh|
    theta: Annotated[Array, "chains roots d"]  # the roots of U
    log_weight: Annotated[Array, "chains roots"]  # of the roots, those of other branches without weight
    # proposals of h are log_scale and this Cholesky factor applied to normals; with gradients, at h
    factor: Annotated[Array, "chains q q"]
    slope: Annotated[Array, "chains 0|q"]  # of log l at h in units of factor; nothing for a walk
    log_scale: Annotated[Array, "chains"]
    mean: Annotated[Array, "chains q+d"]  # of (h, u)
    covariance: Annotated[Array, "chains q+d q+d"]

    @property
    def moments(self) -> Moments:
        return Moments(self.mean, self.covariance)

    def with_roots(self, number: int) -> State:
        """With room for so many roots: charts that depend on c may have different numbers of them."""
        return self._replace(theta=padded(self.theta, number), log_weight=padded(self.log_weight, number))


Plan = NoPlan
prepare = no_plan
review = no_review


def join(states: Sequence[State]) -> State:
    """Put chains that ran apart together, with room for the roots of each."""
    number = max(state.log_weight.shape[1] for state in states)
    return concatenated([state.with_roots(number) for state in states])


def begin(task: Task, positions: Array) -> Start:
    """Put chains at the given positions, with a first guess of the proposal from where they are."""
    posterior, settings, fibre = task.posterior, task.settings, task.own_fibre
    found = posterior.evaluate(positions)
    chains, q = len(positions), fibre.rank
    coordinates = combination_coordinates(fibre)
    theta = fibre.to_theta(positions)
    h = coordinates.forward(fibre.xi(theta))
    covariance = first_covariance(posterior, positions, fibre)
    solves, failures = found.solves + len(posterior.likelihoods), found.failures
    likelihood, slope, log_scale = found.log_likelihood, np.empty((chains, 0)), math.log(2.38 / math.sqrt(max(q, 1)))
    factor = np.stack([factorised(s[:q, :q], np.diag(coordinates.spread)) for s in covariance])
    if settings.proposal == "gradient":
        here = aim(posterior, fibre, theta)
        likelihood = np.where(np.isfinite(here.log_likelihood), here.log_likelihood, likelihood)
        slope, factor, log_scale = here.slope, here.factor, 0.0
        solves, failures = solves + here.solves, failures + here.failures
    state = State(
        position=np.array(positions),
        log_prior=found.log_prior,
        log_likelihood=likelihood,
        h=h,
        log_estimate=np.empty(chains),
        theta=np.empty((chains, 0, len(fibre.names))),
        log_weight=np.empty((chains, 0)),
        factor=factor,
        slope=slope,
        log_scale=np.full(chains, log_scale),
        mean=np.concatenate([h, positions], axis=1),
        covariance=covariance,
    )
    state = _surround(state, [np.random.default_rng(0) for _ in positions], settings, fibre)
    return Start(state, solves, failures)


def _surround(state: State, rngs: Sequence[np.random.Generator], settings: Settings, fibre: Fibre) -> State:
    """New points around theta: where a chain starts, and where warm-up has changed the law of the points."""
    tool = estimator(fibre, settings)
    theta = fibre.to_theta(state.position)
    found = tool.around(theta, np.stack([tool.uniforms(rng) for rng in rngs]), state.moments)
    _, log_slope = combination_coordinates(fibre).backward(state.h)
    return state._replace(
        log_estimate=found.log_p + log_slope,
        theta=found.theta,
        log_weight=on_branch(fibre, found, theta),
    )


def on_branch(fibre: Fibre, found: Estimate, theta: Array) -> Array:
    """Log weights of the roots, minus infinity for those with another likelihood than theta (n, d)."""
    if not fibre.combinations.labels:
        return found.log_weight
    n, m, d = found.theta.shape
    labels = fibre.labels(found.theta.reshape(-1, d)).reshape(n, m, -1)
    own = fibre.labels(theta)[:, None, :]
    with np.errstate(invalid="ignore"):
        same = np.all(np.abs(labels - own) <= SAME_BRANCH * (np.abs(labels) + np.abs(own)), axis=2)
    return np.where(same, found.log_weight, -np.inf)


def step(task: Task, state: State, rngs: Sequence[np.random.Generator], iteration: int) -> tuple[State, Info]:
    """Make one Metropolis step of every chain, and theta anew; adapt during warm-up."""
    posterior, fibre, settings, warmup, _ = task
    assert fibre is not None
    if iteration == warmup or (iteration < warmup and iteration % FACTOR_EVERY == 0):
        state = _surround(state, rngs, settings, fibre)
    tool, coordinates = estimator(fibre, settings), combination_coordinates(fibre)
    chains, q = state.h.shape
    normals, uniforms, points = _numbers(rngs, q, tool)
    uphill = settings.proposal == "gradient"
    if uphill:
        h = gradient_proposal.propose(state.h, state.slope, state.factor, state.log_scale, normals)
    else:
        h = propose(state.h, state.factor, state.log_scale, normals)
    c, log_slope = coordinates.backward(h)
    found = tool.estimate(c, points, state.moments)
    theta = found.theta[np.arange(chains), choose(found.log_weight, uniforms[:, 1])]
    log_estimate = found.log_p + log_slope
    possible = np.isfinite(log_estimate)
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = log_estimate - state.log_estimate
        least = state.log_likelihood + np.log(uniforms[:, 0]) - gain
    early = EARLY and iteration >= warmup and not uphill  # with gradients the decision needs the slope there
    there = _evaluate(posterior, fibre, theta, possible, state, least if early else None)
    with np.errstate(invalid="ignore"):
        log_ratio = gain + there.log_likelihood - state.log_likelihood
        if uphill:
            log_ratio += gradient_proposal.log_odds(state.h, h, state, there, state.log_scale)
        acceptance = np.exp(np.minimum(0.0, np.where(np.isnan(log_ratio), -np.inf, log_ratio)))
    accepted = uniforms[:, 0] < acceptance
    if early:
        acceptance = accepted.astype(float)  # what was not solved has no other
    if accepted.any():
        one, many = accepted[:, None], accepted[:, None, None]
        number = max(found.log_weight.shape[1], state.log_weight.shape[1])
        state = state.with_roots(number)
        state = state._replace(
            log_likelihood=np.where(accepted, there.log_likelihood, state.log_likelihood),
            h=np.where(one, h, state.h),
            log_estimate=np.where(accepted, log_estimate, state.log_estimate),
            theta=np.where(many, padded(found.theta, number), state.theta),
            log_weight=np.where(one, padded(on_branch(fibre, found, theta), number), state.log_weight),
            factor=np.where(many, there.factor, state.factor),
            slope=np.where(one, there.slope, state.slope),
        )
    state = _reconstruct(state, uniforms[:, 2], fibre)
    counts = np.zeros((chains, len(COUNTS)), np.int64)
    counts[:, POINTS_COUNT], counts[:, EMPTY] = tool.number, found.empty
    counts[:, ROOTS_COUNT], counts[:, UNRESOLVED] = found.roots, found.unresolved
    counts[:, IMPOSSIBLE] = ~possible
    counts[:, SAVED] = len(posterior.likelihoods) - there.solves
    if iteration < warmup:
        state = _adapt(state, acceptance, settings, iteration)
    return state, Info(acceptance, accepted, there.solves, there.failures, counts)


def _evaluate(
    posterior: Posterior, fibre: Fibre, theta: Array, possible: NDArray[np.bool_], here: State, least: Array | None
) -> Aim:
    """Likelihoods at theta where it is possible, and with gradients the proposals from there; else those of here."""
    none = np.zeros((2, len(theta)), np.int64)
    there = Aim(np.full(len(theta), -np.inf), here.slope.copy(), here.factor.copy(), *none)
    if not possible.any():
        return there
    if here.slope.shape[1]:
        made = aim(posterior, fibre, theta[possible])
    else:
        values, solves, failures = posterior.log_likelihood(theta[possible], None if least is None else least[possible])
        made = Aim(values, here.slope[possible], here.factor[possible], solves, failures)
    for whole, part in zip(there, made, strict=True):
        whole[possible] = part
    return there


def _numbers(rngs: Sequence[np.random.Generator], q: int, tool: Estimator | EstimatorByC) -> tuple[Array, Array, Array]:
    """For the proposal, for decisions, and for new points."""
    normals, uniforms = np.empty((len(rngs), q)), np.empty((len(rngs), 3))
    points = np.empty((len(rngs), tool.number, tool.width))
    for i, rng in enumerate(rngs):  # a generator a chain: the draws do not depend on how chains are grouped
        normals[i], uniforms[i], points[i] = rng.standard_normal(q), rng.random(3), tool.uniforms(rng)
    return normals, uniforms, points


def _reconstruct(state: State, uniforms: Array, fibre: Fibre) -> State:
    theta = state.theta[np.arange(len(uniforms)), choose(state.log_weight, uniforms)]
    position = fibre.to_coordinates(theta)
    there, log_slope = to_theta(position, fibre.table)
    return state._replace(position=position, log_prior=log_prior(there, fibre.table) + log_slope)


def _adapt(state: State, acceptance: Array, settings: Settings, iteration: int) -> State:
    """The covariance of (h, u) so far, with a scale for the target acceptance, as the random walk does it for u."""
    q = state.h.shape[1]
    weight = min(0.5, 4.0 / (iteration + 20.0))  # a mean over the later part: a bad first guess is forgotten
    both = np.concatenate([state.h, state.position], axis=1)
    mean, covariance = update_moments(state.mean, state.covariance, both, weight)
    log_scale = state.log_scale + 2.0 * (iteration + 1.0) ** -0.6 * (acceptance - settings.target)
    factor = state.factor
    walks = settings.proposal == "walk"  # gradients need no covariance
    if walks and q and iteration >= 100 and iteration % FACTOR_EVERY == 0:
        factor = np.stack([factorised(s[:q, :q], old) for s, old in zip(covariance, factor, strict=True)])
    return state._replace(mean=mean, covariance=covariance, log_scale=log_scale, factor=factor)


init: Init = starting(search, begin)
run_block: RunBlock = steps_in_a_block(step)


# --- afterwards ---


def examine(task: Task, plan: NoPlan, state: State, draws: Kept) -> dict[str, float]:
    """Tell how noisy the estimates are at the best draw, and how long a chain stood still.

    That is the longest stretch of draws with one and the same likelihood.
    """
    stood = max((longest_stretch(row) for row in draws.log_likelihood), default=0) if task.own_fibre.rank else 0
    noise = noise_of_estimates(task.own_fibre, estimator(task.own_fibre, task.settings), state.moments, draws)
    # without any combination the likelihood is one number, and says nothing about moves
    return noise | {"longest_stay": float(stood)}


def noise_of_estimates(fibre: Fibre, tool: Estimator | EstimatorByC, moments: Moments, draws: Kept) -> dict[str, float]:
    """Estimate the variance of log hat p_C over some draws, and how often it is zero there."""
    chains, kept = draws.log_likelihood.shape
    some = np.unique(np.linspace(0, chains * kept - 1, LOOKED_AT).astype(np.int64))
    trials = max(1, TRIALS // len(some))
    c = np.repeat(fibre.xi(draws.theta.reshape(chains * kept, -1)[some]), trials, axis=0)
    rng = np.random.default_rng(0)
    points = np.stack([tool.uniforms(rng) for _ in range(len(c))])
    own = Moments(*(np.repeat(part[some // kept], trials, axis=0) for part in moments))
    log_p = tool.estimate(c, points, own).log_p.reshape(len(some), trials)
    return {
        "log_estimate_variance": float(log_variance(log_p).mean()),
        "zero_estimates": float(1 - np.isfinite(log_p).mean()),
    }


def longest_stretch(values: Array) -> int:
    """How many equal values follow on each other, at the most."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]]))
    return int(np.diff(starts).max())
