r"""The collapsed sampler: nearly independent draws of the combinations c, with theta drawn afresh along each fibre.

The posterior of h(c) is l(c) p_C(c) |dc/dh|, of low dimension and identifiable, and `estimator` gives p_C nearly
without noise. So a law q can be fitted to it:

1. modes, from prior draws by screening and Levenberg-Marquardt (`modes`), if need be from `tempered` particles too;
2. a Student t law at each; rounds of importance sampling, after each of which a mixture of t laws is fitted to all
   draws so far; a wide component is added, and q is frozen (`proposal`).

Then every chain is an independence Metropolis sampler. Its proposals c' ~ q with new points U' are accepted with

    min(1, w'/w),    w = l(c) hat p_C(c; U) |dc/dh| / q(h),

and theta is chosen from U at every iteration. Noise parameters that the model does not have are no part of c: they are
integrated out for each trajectory, without any solve, and drawn afresh as well (`scatter`); U has their points too, and
l(c) is an estimate. This is the pseudo-marginal sampler with another proposal, so it is exact for any q and any number
of points. As proposals do not depend on where the chain is, they are made and solved in large batches.
They are also draws of an importance sampler, so that the mean of w is the marginal likelihood Z.

Before sampling, q has to pass a gate: the Pareto shape k-hat of the weights below 0.5 and an acceptance above 0.65. If
it does not even with what `walkers` have found, but is still accepted now and then, every fourth iteration is a
Metropolis step of a local walk in h with new points: a chain that stands where w is large gets away from there. If q is
worse than that, `prepare` says so, and another sampler is the better choice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, SamplingError
from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.collapsed import plan as proposal
from equifinal.samplers.collapsed.batches import COUNTS, Block, State, drawn_from, run_batch
from equifinal.samplers.collapsed.plan import Plan
from equifinal.samplers.marginal.noise_integral import Scatter
from equifinal.samplers.marginal.target import Estimates, Target, Tool
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal

__all__ = ["COUNTS", "WARMUP", "Settings", "State", "examine", "init", "prepare", "run_block"]

Array = NDArray[np.float64]

WARMUP = 64  # iterations: chains begin where importance sampling has been already
POINTS = (16, 32, 64, 128, 256, 512, 1024)  # numbers of points on a fibre that are tried


@dataclass(frozen=True)
class Settings(pseudo_marginal.Settings):
    """Options of the collapsed sampler: those of `pseudo_marginal.Settings` on points.

    Attributes
    ----------
    aux
        Points on a fibre for each proposal; left out, as few as make hat p_C nearly free of noise.
    """

    sampler: ClassVar[str] = "collapsed"
    aux: Any = None

    def __post_init__(self) -> None:
        if self.aux is not None:
            super().__post_init__()
        else:
            replace(self, aux=POINTS[0])
        if self.partition == "by c":
            raise DataError("the collapsed sampler has one partition for all c: take 'volume', 'qr' or names")


def prepare(
    posterior: Posterior,
    settings: Settings,
    fibre: Fibre,
    seed: int,
    report: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Find the posterior from prior draws, and a proposal for it."""
    numbers = POINTS if settings.aux is None else (settings.aux,)
    tools = [partial(_tool, fibre, settings, number) for number in numbers]
    began = time.perf_counter()
    plan = proposal.prepare(posterior, fibre, tools, np.random.default_rng([seed, 7]), report)
    return plan._replace(seconds=time.perf_counter() - began)


def _tool(fibre: Fibre, settings: Settings, number: int) -> Tool:
    return pseudo_marginal.estimator(fibre, replace(settings, aux=int(number)))


def init(
    posterior: Posterior, plan: Plan, settings: Settings, fibre: Fibre, rngs: Sequence[np.random.Generator]
) -> State:
    """Chains at draws of the importance sampler."""
    target = Target(posterior, fibre, _tool(fibre, settings, plan.number), plan.scatter)
    chains = len(rngs)

    def each(value: Any) -> NDArray[Any]:
        return np.repeat(np.asarray(value)[None], chains, axis=0)

    keys = np.array([rng.integers(2**63) for rng in rngs], np.uint64)
    starts = [_start(target, plan, rng) for rng in rngs]
    roots = [pseudo_marginal.on_branch(fibre, s.found, s.chosen)[0] for _, s in starts]
    state = State(
        position=np.empty((chains, len(fibre.names))),
        log_prior=np.empty(chains),
        log_likelihood=np.empty(chains),
        h=np.concatenate([at for at, _ in starts]),
        log_ratio=np.array([s.log_target[0] for _, s in starts]),
        theta=np.stack([s.found.theta[0] for _, s in starts]),
        log_weight=np.stack(roots),
        scatter=np.stack([s.scattered.values[0] for _, s in starts]),
        scatter_log_weight=np.stack([s.scattered.log_weight[0] for _, s in starts]),
        scatter_log_likelihood=np.stack([s.scattered.log_likelihood[0] for _, s in starts]),
        key=keys,
        number=np.full(chains, plan.number),
        **{name: each(value) for name, value in plan.mixture._asdict().items()},
        unfolded=each(target.coordinates.replaced),
        held=each(np.isin(fibre.names, plan.scatter.parameters)),
        scatter_start=each(plan.scatter.start),
        scatter_scale=each(plan.scatter.scale),
        local=each(plan.local),
        mean=np.repeat(plan.moments.mean, chains, axis=0),
        covariance=np.repeat(plan.moments.covariance, chains, axis=0),
        proposals=np.zeros(chains),
        log_sum=np.full(chains, -np.inf),
        log_squares=np.full(chains, -np.inf),
        stood=np.zeros((chains, 2), np.int64),
        k_hat=np.full(chains, plan.quality.k_hat),
    )
    middle = np.full((chains, 1, len(plan.scatter.groups)), 0.5)
    here = drawn_from(target, state.points(), np.zeros((chains, 1), np.int64), middle[..., 0], middle)
    return state._replace(
        position=here.position[:, 0], log_prior=here.log_prior[:, 0], log_likelihood=here.log_likelihood[:, 0]
    )


def _start(target: Target, plan: Plan, rng: np.random.Generator) -> tuple[Array, Estimates]:
    for _ in range(100):
        x = plan.start[rng.choice(len(plan.start), p=plan.weights)][None]
        found = target.estimate(x, target.numbers(rng, 1), plan.moments)
        if np.isfinite(found.log_target[0]):
            return x, found._replace(log_target=found.log_target - target.coordinates.log_density(plan.mixture, x))
    raise SamplingError("no start: hardly any draw around the modes has a finite posterior density")


def run_block(
    posterior: Posterior, state: State, settings: Settings, iteration: int, count: int, fibre: Fibre
) -> tuple[State, Block]:
    """Iterations from ``iteration`` on. Their random numbers come in batches, each from its own number and the key."""
    blocks = []
    held = tuple(name for name, there in zip(fibre.names, state.held[0], strict=True) if there)
    scatter = Scatter(posterior, held, state.scatter_start[0], state.scatter_scale[0], state.scatter.shape[1])
    target = Target(posterior, fibre, _tool(fibre, settings, state.number[0]), scatter)
    length = state.batch_length
    while count:
        first = iteration % length
        here = min(count, length - first)
        state, block = run_batch(target, state, iteration // length, first, first + here)
        blocks.append(block)
        iteration, count = iteration + here, count - here
    return state, Block(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))


# --- afterwards ---


def examine(state: State, theta: Array, chunk: Any, settings: Settings, fibre: Fibre) -> dict[str, float]:
    """The marginal likelihood with its standard error, and what `pseudo_marginal.examine` says of the estimates."""
    number = state.proposals.sum()
    log_mean = float(np.logaddexp.reduce(state.log_sum)) - math.log(number)
    log_mean_square = float(np.logaddexp.reduce(state.log_squares)) - math.log(number)
    relative = math.sqrt(max(0.0, math.expm1(log_mean_square - 2 * log_mean)) / number)
    fixed = replace(settings, aux=int(state.number[0]))
    noise = pseudo_marginal.examine(state, theta, chunk, fixed, fibre)
    return noise | {
        "log_evidence": log_mean,
        "log_evidence_error": relative,
        "k_hat": float(state.k_hat[0]),
        "longest_stay": float(state.stood[:, 1].max()),
    }
