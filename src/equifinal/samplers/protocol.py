"""What a sampler is.

A sampler is a module (or any object) with the names of `Sampler`; `registry` knows it by name, and `running` drives it:

1. ``Settings`` is a frozen dataclass of its options, which checks them when it is made.
2. ``prepare`` finds, once for all chains, what the sampler needs to know and never changes again: the *plan*.
3. ``init`` puts each chain somewhere: the *state*, which is only what moves.
4. ``run_block`` makes iterations. It is a pure function of (task, plan, state, generators, iteration), so that blocks
   may be cut anywhere, run in threads, processes or on other machines, and be repeated after an interruption. Whatever
   is adapted is a part of the state and stands still from iteration ``task.warmup`` on, so that every draw that is kept
   comes from one Markov kernel with the posterior as its invariant law. Each chain uses its own generator only.
5. ``review`` looks at a run now and then, and may find that the plan was not good enough: then the run begins again
   with a better one.
6. ``examine`` looks back at the finished run.

Plans and states are NamedTuples of arrays and numbers (plans may hold other such tuples), which is all that a
checkpoint stores. In a state, the first axis of every array is the chain. Nothing that a clock measures may enter them.

Samplers that make one step at a time write ``step`` and leave the rest to `steps_in_a_block`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equifinal.fibre import Fibre
    from equifinal.posterior.posterior import Posterior

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class FibreUse(Enum):
    """How a sampler that uses a fibre (``Settings.needs_fibre``) wants it.

    ``EXACT``: the model's own, and an error where the analysis does not give it. ``COARSEST``: the coarsest that is
    known to be right; where the analysis ends without one, each parameter stands for itself.
    """

    EXACT = "exact"
    COARSEST = "coarsest"


class Task(NamedTuple):
    """What is to be sampled, and how: all that is known before a sampler starts."""

    posterior: Posterior
    fibre: Fibre | None
    settings: Any
    warmup: int = 0
    thin: int = 1

    @property
    def own_fibre(self) -> Fibre:
        """The fibre, for samplers that cannot do without."""
        assert self.fibre is not None
        return self.fibre


class NoPlan(NamedTuple):
    """The plan of samplers that need none.

    Where a chain has several ``lanes``, iteration i is that of lane i mod lanes. Then ``stood`` (chains, lanes, 2) of
    its state counts the moves for which each lane has been where it is, and was anywhere at the most.
    """

    solves: int = 0
    failures: int = 0
    refusal: str = ""
    lanes: int = 1

    def wants_more(self, state: Any) -> bool:
        """Whether a run that ends by itself should go on for what its state tells of this plan."""
        return False


class Partly(str):
    """What a preparation tells again and again of one thing that takes long, and the share of it that is done."""

    done: float

    def __new__(cls, text: str, done: float) -> Partly:
        told = super().__new__(cls, text)
        told.done = done
        return told


class Start(NamedTuple):
    """Where chains begin, and the ODE solves (and failures) that finding it took, one number for each chain."""

    state: Any
    solves: Integers
    failures: Integers


class Block(NamedTuple):
    """Iterations of all chains: (chains, iterations, ...).

    ``accepted`` tells which proposals were, ``acceptance`` with what probability; ``counts`` has a column for each name
    of the sampler's ``COUNTS``.
    """

    position: Array
    log_prior: Array
    log_likelihood: Array
    acceptance: Array
    accepted: NDArray[np.bool_]
    solves: Integers
    failures: Integers
    counts: Integers


class Info(NamedTuple):
    """What happened in one step, one number for each chain; see `Block`."""

    acceptance: Array
    accepted: NDArray[np.bool_]
    solves: Integers
    failures: Integers
    counts: Integers


class Kept(NamedTuple):
    """The draws of a run, for ``examine``: theta (chains, draws, parameters) and log likelihoods."""

    theta: Array
    log_likelihood: Array


class Sampler(Protocol):
    """The contract; see the module for what each part promises."""

    @property
    def Settings(self) -> Callable[..., Any]:
        """Options: a frozen dataclass with a property ``needs_fibre``."""

    @property
    def WARMUP(self) -> int:
        """Iterations of warm-up, where a user does not say."""

    @property
    def COUNTS(self) -> tuple[str, ...]:
        """Names of what is counted after warm-up."""

    @property
    def Plan(self) -> type[tuple[Any, ...]]:
        """A NamedTuple with at least the fields and the method of `NoPlan`."""

    @property
    def State(self) -> type[tuple[Any, ...]]:
        """A NamedTuple with at least ``position`` (sampling coordinates), ``log_prior`` and ``log_likelihood``."""

    def prepare(self, task: Task, seed: int, report: Callable[[str], None], /) -> Any:
        """Find the plan; ``report`` is told what is being done, and ``plan.refusal`` tells why not to use it."""

    def init(self, task: Task, plan: Any, rngs: Sequence[np.random.Generator], /) -> Start:
        """Put a chain somewhere for each generator."""

    def run_block(
        self, task: Task, plan: Any, state: Any, rngs: Sequence[np.random.Generator], iteration: int, count: int, /
    ) -> tuple[Any, Block]:
        """Make ``count`` iterations, of which the first has number ``iteration``; it advances the generators."""

    def review(self, task: Task, plan: Any, state: Any, seed: int, report: Callable[[str], None], /) -> Any:
        """Give a better plan, if this one turned out not to be good enough; else None."""

    def join(self, states: Sequence[Any], /) -> Any:
        """Put states of chains that ran apart together; `concatenated` does it for most samplers."""

    def examine(self, task: Task, plan: Any, state: Any, draws: Kept, /) -> Mapping[str, float]:
        """Tell what else there is to know about a finished run, by name."""


def no_plan(task: Task, seed: int, report: Callable[[str], None]) -> NoPlan:
    """``prepare`` of samplers that need no plan."""
    return NoPlan()


def no_review(task: Task, plan: Any, state: Any, seed: int, report: Callable[[str], None]) -> None:
    """``review`` of samplers whose plan is good enough whatever happens."""


def no_findings(task: Task, plan: Any, state: Any, draws: Kept) -> Mapping[str, float]:
    """``examine`` of samplers that have nothing to add."""
    return {}


def concatenated(states: Sequence[Any]) -> Any:
    """``join`` of samplers whose arrays have the same shape in all chains."""
    return type(states[0])(*(np.concatenate(parts) for parts in zip(*states, strict=True)))


Init = Callable[[Task, Any, Sequence[np.random.Generator]], Start]
RunBlock = Callable[[Task, Any, Any, Sequence[np.random.Generator], int, int], tuple[Any, Block]]


def steps_in_a_block(
    step: Callable[[Task, Any, Sequence[np.random.Generator], int], tuple[Any, Info]],
) -> RunBlock:
    """``run_block`` of samplers that make one step at a time."""

    def run_block(
        task: Task, plan: Any, state: Any, rngs: Sequence[np.random.Generator], iteration: int, count: int
    ) -> tuple[Any, Block]:
        made = []
        for now in range(iteration, iteration + count):
            state, info = step(task, state, rngs, now)
            made.append((state.position, state.log_prior, state.log_likelihood, *info))
        return state, Block(*(np.stack(parts, axis=1) for parts in zip(*made, strict=True)))

    return run_block
