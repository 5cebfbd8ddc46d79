"""A proposal that fits the posterior of the combinations, from prior draws alone; and how to move with it.

Modes first, then rounds of importance sampling around them. A proposal that fits the draws it was fitted to may still
miss a tail, which its weights show only where there are many of them: so thousands of draws more judge it, and others
of the prior, which do not come from it. Where climbers disagree, or where a proposal does not pass, two tempered
populations tell the shape of the posterior. A mixture fitted to them is the proposal then, together with one of where
that is too low; and if fresh draws of it are still refused too often, many lanes move with
it by steps of several lengths as well (`moves`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.language.expression import Name
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.collapsed.settings import POINTS
from equifinal.samplers.collapsed.tools import LITTLE_NOISE, Enough, Tools
from equifinal.samplers.coordinates.bending import Bend
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.marginal.noise_integral import NoiseIntegral, apart, fitted, nothing
from equifinal.samplers.marginal.target import CountedTarget, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals.describing import described
from equifinal.samplers.proposals.log_sums import beside_largest
from equifinal.samplers.proposals.mixture import DF, Mixture
from equifinal.samplers.proposals.moves import FRESH_ONLY, LENGTHS, UNKNOWN
from equifinal.samplers.proposals.pareto import k_hat_of_largest
from equifinal.samplers.proposals.quality import K_LIMIT, NONE, Quality, defended, flattened_around, judged, refusal
from equifinal.samplers.protocol import Partly
from equifinal.samplers.searching.importance import Importance, laplace, prior_law
from equifinal.samplers.searching.modes import Modes, bent, find_modes, unfolded
from equifinal.samplers.searching.populations import Populations
from equifinal.samplers.searching.prior_draws import CHECKED, LEAST_TOLD, see_more

Array = NDArray[np.float64]

TOO_NOISY = 2.0  # variance of log hat p_C that is not usable
DRAWN = 64  # trajectories at which the integrals over noise parameters are tried
JUDGED = 7000  # draws: a tail of a hundredth of the posterior that a proposal misses shows in their weights
FITTED = 5000  # draws of a population to which the last mixture is fitted
KNOWN_SHARE, WIDE_SHARE = 0.05, 0.2  # in it, of modes that climbers found, and of the wide part;
MISSED_SHARE, MISSED_ROUNDS = 0.1, 2  # of what describes where the rest is too low; at most twice
LANES = (61, 59)  # primes, so that draws that are thinned come from all of them: the first that does not divide thin
LEAST_ACCEPTANCE = 0.001  # of fresh draws
DOUBTED = 160_000  # draws of a proposal with a heavy tail of weights that populations have not seen


class Plan(NamedTuple):
    """What the preparation found: a proposal, draws to start from, and what it cost."""

    mixture: Mixture
    quality: Quality
    shares: Annotated[Array, f"{len(LENGTHS)}"]  # of moves of each length
    steps: Annotated[
        Array, f"{len(LENGTHS)}"
    ]  # what shares should be if fresh draws alone turn out not to do; zero if that is not known
    lanes: int  # of a chain, which take turns
    number: int  # of points on a fibre,
    way: int  # and how they are found, of `Tools`
    unfolded: Annotated[NDArray[np.bool_], "q"]  # which combinations are replaced in x,
    bend: Bend  # and how x is bent
    held: Annotated[NDArray[np.bool_], "d"]  # which parameters, of the noise, are integrated out:
    noise_start: Annotated[Array, "held"]  # from here,
    noise_scale: Annotated[Array, "held"]  # with this width
    noise_points: int
    start: Annotated[Array, "populations n m"]  # x, with
    weights: Annotated[Array, "populations n"]  # importance weights
    moments: Moments  # one row
    noise: float  # variance of log hat p_C for draws of the posterior
    modes: int
    arrived: bool  # whether populations, if there were any, did
    final: bool  # whether nothing better is to be looked for
    solves: int
    failures: int

    def noise_integral(self, posterior: Posterior) -> NoiseIntegral:
        """Give the integral over noise parameters."""
        held = tuple(name for name, there in zip(posterior.parameters, self.held, strict=True) if there)
        return NoiseIntegral(posterior, held, self.noise_start, self.noise_scale, self.noise_points)

    @property
    def refusal(self) -> str:
        """Why this proposal is not good enough; empty if it is."""
        if self.noise > TOO_NOISY:
            return f"the prior density of the combinations cannot be estimated well (log variance {self.noise:.1f})"
        if not self.arrived and self.mixture.dimension:
            return "populations of particles did not come from the prior to the posterior with the solves allowed"
        if self.quality.acceptance < LEAST_ACCEPTANCE:
            return f"no proposal was found that fits the posterior (acceptance {self.quality.acceptance:.1%})"
        return ""

    def wants_more(self, state: Any) -> bool:
        """Whether the tail of weights of a proposal that was fitted to its own draws is to be seen by more of them.

        Where that tail is heavy, a run may well have seen nothing of it but the beginning, which looks harmless.
        """
        number = round(state.fresh.sum())
        if self.lanes > 1 or self.steps.any() or self.final or not number:
            return False
        return number < DOUBTED and k_hat_of_largest(state.highest.ravel(), number) >= K_LIMIT

    @property
    def in_words(self) -> str:
        """How chains move."""
        modes = "one mode" if self.modes == 1 else f"{self.modes} modes"
        if self.lanes == 1:
            return f"{modes}, and a proposal that fits ({self.quality.in_words})"
        steps = f"{self.lanes} lanes per chain with steps of all lengths"
        return f"two populations that settled, and {steps} (fresh draws: {self.quality.in_words})"


def lanes_beside(thin: int) -> int:
    """How many lanes a chain of steps has, of which every so many iterations one is kept."""
    return next((lanes for lanes in LANES if thin % lanes), LANES[0])


class Proposal(NamedTuple):
    """A frozen mixture with its quality, and draws (populations, n, q) with weights (populations, n) to start from."""

    mixture: Mixture
    quality: Quality
    start: Array
    weights: Array
    shares: Array = FRESH_ONLY
    steps: Array = UNKNOWN
    arrived: bool = True


def prepare(
    posterior: Posterior,
    fibre: Fibre,
    tools: Tools,
    rng: np.random.Generator,
    report: Callable[[str], None] = lambda text: None,
    thin: int = 1,
) -> Plan:
    """Find the posterior from prior draws, and a proposal for it.

    Parameters
    ----------
    tools
        Make estimators of p_C; that with the fewest points is taken that is good enough.
    thin
        Every how many iterations a draw is kept.
    """
    search = _Search(posterior, fibre, tools, rng, report, thin)
    if search.nothing_else:
        return search.plan(search.by_importance())
    found = search.by_importance() if search.modes.agreed else None
    return search.plan(found if found is not None and found.arrived else search.by_populations())


def prepare_again(
    posterior: Posterior,
    fibre: Fibre,
    tools: Tools,
    rng: np.random.Generator,
    report: Callable[[str], None],
    thin: int = 1,
) -> Plan:
    """Find a proposal by populations, after one by importance sampling turned out to miss tails."""
    search = _Search(posterior, fibre, tools, rng, report, thin)
    return search.plan(search.by_populations())


class _Search:
    """The modes and the target around them; from there, ways to a proposal."""

    def __init__(
        self,
        posterior: Posterior,
        fibre: Fibre,
        tools: Tools,
        rng: np.random.Generator,
        report: Callable[[str], None],
        thin: int = 1,
    ):
        self.posterior, self.fibre, self.tools, self.report, self.thin = posterior, fibre, tools, report, thin
        self.modes = find_modes(posterior, fibre, rng, report)
        self.counted, self.enough = _counted(posterior, fibre, tools, self.modes, rng)
        self.straight = unfolded(posterior, self.counted.coordinates, self.modes)
        if self.counted.target.integral.parameters:
            report(f"{', '.join(self.counted.target.integral.parameters)}: integrated out along each trajectory")

    @property
    def around(self) -> Modes:
        """The modes, in the coordinates of proposals."""
        return bent(self.straight, self.counted.coordinates.bend)

    @property
    def nothing_else(self) -> bool:
        """Whether populations would not help: nothing moves them, or nothing tells where they may go."""
        return not len(self.counted.coordinates.moved) or self.enough.noise > TOO_NOISY

    def by_importance(self) -> Proposal:
        """The proposal to which rounds of importance sampling lead."""
        search = Importance(self.counted, self.around)
        passes = search.improve(self.report)
        start, weights = search.weighted()
        mixture = search.proposal()
        tells = search.worth_of_prior * CHECKED > LEAST_TOLD
        if passes and tells and not self.nothing_else and self._prior_sees_more(mixture, search.quality.level):
            self.report("draws of the prior are where this proposal hardly ever goes")
            passes = False
        return Proposal(mixture, search.quality, start[None], weights[None], arrived=passes)

    def _prior_sees_more(self, mixture: Mixture, level: float) -> bool:
        """Whether draws that do not come from a proposal tell of a part of the posterior that it misses."""

        def told(made: int) -> None:
            self.report(Partly("draws of the prior check it", made / CHECKED))

        return see_more(self.counted, mixture, level, told)

    def by_populations(self) -> Proposal:
        """The proposal that tempered populations tell of; one around the modes, refused, if they do not arrive."""
        populations = Populations.from_prior(self.counted, self.report)
        settled = populations.settle(self.report)
        if settled is None:
            around = self.around
            law, start = laplace(around), around.h[None]
            mixture = defended(law, flattened_around(law), prior_law(self.counted))
            return Proposal(mixture, self._judged(mixture), start, _equal_weights(start), arrived=False)
        draws, prior = settled.draws, prior_law(self.counted)
        mixture = self._described(draws, settled.wide, prior)
        found, missed = self._judged(mixture), []
        for _ in range(MISSED_ROUNDS):
            part = populations.missed_by(mixture, found.level, self.report) if found != NONE else None
            if part is None:
                break
            missed.append(part)
            mixture = mixture.joined(part, MISSED_SHARE)
            found = self._judged(mixture)
        if not refusal(found, settled=True):
            return Proposal(mixture, found, draws, _equal_weights(draws), FRESH_ONLY, settled.shares)
        onward = populations.go_on(mixture, self.report)
        start = onward[:, -populations.number :]
        mixture = self._described(np.concatenate([draws, onward], axis=1), settled.wide, prior)
        for part in missed:
            mixture = mixture.joined(part, MISSED_SHARE)
        found = self._judged(mixture)
        shares = populations.shares if refusal(found, settled=True) else FRESH_ONLY
        return Proposal(mixture, found, start, _equal_weights(start), shares, populations.shares)

    def _described(self, draws: Array, wide: Mixture, prior: Mixture) -> Mixture:
        """The mixture of draws (2, n, q) of both populations, defended."""
        rng, around = self.counted.rng, self.around
        several = len(around.h) > 1
        chosen = rng.permutation(draws.shape[1])[:FITTED]  # of all particles
        one, other = map(self.counted.coordinates.gathered, draws[:, chosen])
        mixture = described(one, other, rng, laplace(around, DF) if several else None, both=True)
        mixture = defended(mixture, wide, prior, WIDE_SHARE)
        # where climbers have been, populations may have missed something
        return mixture.joined(laplace(around), KNOWN_SHARE) if several else mixture

    def _judged(self, mixture: Mixture) -> Quality:
        """How good a frozen proposal is, by so many draws that a tail it misses shows."""
        x = mixture.sample(self.counted.rng, JUDGED)
        with np.errstate(invalid="ignore"):
            found = judged(self.counted.log_target(x) - self.counted.log_density(mixture, x))
        self.report(f"a proposal that describes them: {found.in_words}")
        return found

    def plan(self, found: Proposal) -> Plan:
        """All that chains have to know."""
        if found.quality == NONE:
            raise SamplingError(
                "no draw around the modes has a finite posterior density: no parameters have such combinations, or "
                "the solver fails there"
            )
        integral, enough = self.counted.target.integral, self.enough
        if self.fibre.dimension and enough.noise <= TOO_NOISY:  # what is enough at a mode need not be elsewhere
            enough = self._enough_points_for(found)
        return Plan(
            mixture=found.mixture,
            quality=found.quality,
            shares=found.shares,
            steps=found.steps,
            lanes=lanes_beside(self.thin) if found.shares[0] < 1 else 1,
            number=enough.number,
            way=enough.way,
            unfolded=self.counted.coordinates.replaced,
            bend=self.counted.coordinates.bend,
            held=np.isin(self.fibre.names, integral.parameters),
            noise_start=integral.start,
            noise_scale=integral.scale,
            noise_points=integral.number,
            start=found.start,
            weights=found.weights,
            moments=self.counted.moments,
            noise=enough.noise,
            modes=len(self.modes.h),
            arrived=found.arrived,
            final=False,
            solves=self.straight.solves + self.counted.solves,
            failures=self.modes.failures + self.counted.failures,
        )

    def _enough_points_for(self, found: Proposal) -> Enough:
        """The number of points on a fibre that draws of the posterior need, at least as many as so far.

        And at least a few: among them chains draw theta anew in every iteration, whether they move or not.
        """
        rng, (weights, *_) = self.counted.rng, found.weights
        x = found.start[0, rng.choice(len(weights), DRAWN, p=weights)]
        c, _ = self.counted.coordinates.backward(x)
        return self.tools.at_least(max(self.enough.number, POINTS[0]), self.enough.way, c, self.counted.moments, rng)


def _equal_weights(draws: Array) -> Array:
    return np.full(draws.shape[:2], 1 / draws.shape[1])


def _counted(
    posterior: Posterior,
    fibre: Fibre,
    tools: Tools,
    modes: Modes,
    rng: np.random.Generator,
) -> tuple[CountedTarget, Enough]:
    """The target around modes, and with how many points, in what way, and how noisily it is estimated."""
    moments = _moments_at(modes, fibre)
    enough = tools.enough(combination_coordinates(fibre).backward(modes.h[:1])[0], moments, rng)
    tool = tools.make(enough.number, enough.way)
    plain = CountedTarget(Target(posterior, fibre, tool, nothing(posterior)), moments, rng)
    parameters = apart(posterior, fibre)
    if not parameters or enough.noise > TOO_NOISY:
        return plain, enough
    own = [fibre.combinations.independent.index(Name(name)) for name in parameters]
    width = np.sqrt(np.diag(modes.covariance[0])[own])
    start = modes.position[0][[fibre.names.index(name) for name in parameters]]
    theta = _some_theta(plain, modes)
    found = posterior.outputs(theta)
    integral = fitted(posterior, parameters, start, width, found, theta, LITTLE_NOISE, rng)
    counted = CountedTarget(Target(posterior, fibre, tool, integral), moments, rng)
    counted.solves += plain.solves + int(found.solves.sum())
    counted.failures += plain.failures + int(found.failures.sum())
    return counted, enough


def _some_theta(counted: CountedTarget, modes: Modes) -> Array:
    """The modes, and some draws of the posterior more or less, by one small round of importance sampling."""
    around = unfolded(counted.target.posterior, counted.coordinates, modes)
    counted.solves += around.solves - modes.solves
    law = laplace(around)
    x = law.sample(counted.rng, DRAWN)
    made = counted.estimates(x)
    with np.errstate(invalid="ignore"):
        weights = beside_largest(made.log_target - counted.log_density(law, x))
    theta = counted.target.fibre.to_theta(modes.position)
    if weights.sum() > 0:
        chosen = counted.rng.choice(DRAWN, DRAWN, p=weights / weights.sum())
        theta = np.concatenate([theta, made.chosen[chosen]])
    return theta


def _moments_at(modes: Modes, fibre: Fibre) -> Moments:
    """For laws that are learned: the highest mode, with the prior's spread along the fibre."""
    q = fibre.rank
    spread = np.concatenate([np.ones(q), fibre.spread_in_coordinates])
    covariance = np.diag(spread**2)
    covariance[:q, :q] = modes.covariance[0]
    return Moments(np.concatenate([modes.h[0], modes.position[0]])[None], covariance[None])
