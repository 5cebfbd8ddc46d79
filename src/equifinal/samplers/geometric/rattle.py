r"""RATTLE: steps along a level set {u : xi(u) = c}, for any smooth xi from R^d to R^q.

The momentum p lies in the tangent space ker Dxi(u). With Pi(u) the orthogonal projection on it, and g a force, the
gradient of a log density (or none: then steps follow geodesics), one step of size eps is

    p+ = p + eps/2 Pi(u) g(u)
    u' = u + eps p+ - Dxi(u)^T lambda,    lambda such that xi(u') = c
    p' = Pi(u') [(u' - u)/eps + eps/2 g(u')].

The correction is along the normal space of the point where the step starts: only then is the step its own reverse
after p -> -p. It then also preserves dH x dp, the Hausdorff measure of the level set times that of its tangent spaces
(not the Lebesgue measure of R^d). To sample the density f with respect to dH, draw p ~ N(0, I), project it, take M
steps, and accept with

    alpha = min(1, f(u_M) / f(u) exp(|p|^2/2 - |p_M|^2/2)).

The conditional law of a density pi(u) given xi(u) = c has f = pi/J with J = sqrt(det(Dxi Dxi^T)), by the coarea
formula; its constrained Hamiltonian dynamics have the force grad(log pi - log J), and an energy error O(eps^2).

For lambda there may be several solutions or none, and Newton's method may find one going forth and another coming
back. Such moves must be rejected, or the sampler is wrong: so after M steps the same M steps are taken from
(u_M, -p_M), and the move fails unless position and momentum both come back (Zappa, Holmes-Cerfon and Goodman).

Nothing here depends on how xi is written: the rows of Dxi enter only through an orthonormal basis N of their span and
through Newton corrections, both unchanged when a component of xi is multiplied by a constant.

References
----------
Andersen (1983), Rattle: a "velocity" version of the Shake algorithm for molecular dynamics calculations.
J. Comput. Phys. 52, 24-34.
Leimkuhler, Skeel (1994), Symplectic numerical integrators in constrained Hamiltonian systems. J. Comput. Phys. 112,
117-125.
Zappa, Holmes-Cerfon, Goodman (2018), Monte Carlo on manifolds: sampling densities and integrating functions.
Comm. Pure Appl. Math. 71, 2609-2647.
Lelievre, Rousset, Stoltz (2019), Hybrid Monte Carlo methods for sampling probability measures on submanifolds.
Numer. Math. 143, 379-421.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from equifinal.errors import DataError, SamplingError
from equifinal.samplers.geometric import rattle_loops as kernel
from equifinal.samplers.geometric.rattle_loops import Array, Integers, Place, Rules, move_chains, project_chains


class Status(IntEnum):
    """How a move ended; ``message`` says what may be done about it. The last two are for callers to set."""

    OK = kernel.OK
    NEWTON_FAILED = kernel.NEWTON_FAILED
    NOT_REVERSIBLE = kernel.NOT_REVERSIBLE
    RANK_DEFICIENT = kernel.RANK_DEFICIENT
    NOT_FINITE = kernel.NOT_FINITE
    LEFT_SUPPORT = 5
    BRANCH_CHANGED = 6

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: "moved",
    Status.NEWTON_FAILED: "a step found no way back to the level set; take smaller steps",
    Status.NOT_REVERSIBLE: "the way back did not end where the move began; take smaller or fewer steps",
    Status.RANK_DEFICIENT: (
        "the derivatives of the constraints are linearly dependent here, so that there is no tangent space; drop "
        "constraints that follow from the others, or start elsewhere"
    ),
    Status.NOT_FINITE: (
        "the position, the momentum, the step size, the constraint or the force is infinite or undefined; take "
        "smaller steps, or start where everything is defined"
    ),
    Status.LEFT_SUPPORT: "the move ended where the density is zero; take smaller or fewer steps",
    Status.BRANCH_CHANGED: "the move ended on another branch of the level set; take smaller steps",
}


@dataclass(frozen=True, eq=False)
class Constraint:
    """A smooth function xi from R^d to R^q, and perhaps a force, as compiled functions of this process.

    Attributes
    ----------
    address
        Of ``int64 f(const double* u, const int64* data, double* xi, double* jacobian)``, which returns 0 if xi could be
        evaluated; ``jacobian`` is Dxi, q x d, row by row. Never called if q = 0. Threads may call it at once.
    data
        Handed through to both functions as it is.
    rank, dimension
        q and d.
    force
        Address of ``int64 g(const double* u, const int64* data, double* gradient)``, or 0 for none.
    keepalive
        Whatever must live as long as the addresses are used.
    """

    address: int
    data: Integers
    rank: int
    dimension: int
    force: int = 0
    keepalive: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.rank <= self.dimension:
            raise SamplingError(f"{self.rank} independent constraints cannot hold in {self.dimension} dimensions")
        if self.rank > 0 and self.address == 0:
            raise SamplingError("a constraint needs the address of its function")
        object.__setattr__(self, "data", np.array(self.data, dtype=np.int64, ndmin=1, order="C"))

    def __reduce__(self) -> NoReturn:  # elsewhere its addresses would point anywhere
        raise TypeError("a Constraint holds addresses of this process and cannot be sent to another")


@dataclass(frozen=True)
class Settings:
    """Options of a move.

    Attributes
    ----------
    tolerance
        Newton's method ends with a correction of u of at most ``tolerance (1 + |u|)``. As it converges quadratically,
        what remains is round-off.
    iterations
        Newton corrections before a step fails.
    reversibility
        On the way back u may be off by ``reversibility (1 + |u|)``, and p likewise: far more than round-off makes,
        far less than lies between two solutions. Infinity leaves the check out, which makes the sampler wrong.
    """

    tolerance: float = 1e-10
    iterations: int = 25
    reversibility: float = 1e-7

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < self.reversibility:
            raise DataError("rattle option 'tolerance' must be positive and less than 'reversibility'")
        if self.iterations < 1:
            raise DataError(f"rattle option 'iterations' must be at least 1, not {self.iterations!r}")


class Projection(NamedTuple):
    """Tangential momenta, a row a chain; NaN where there is no tangent space."""

    p: Array
    log_j: Array
    status: Integers


class Move(NamedTuple):
    """Where each chain went; the first axis of every array is the chain.

    Attributes
    ----------
    u, p
        The end of the move; where it failed, its start.
    log_j_start, log_j_end
        log J at both ends; -inf where the rank is deficient, NaN where undefined.
    kinetic_drop
        |p|^2/2 - |p_M|^2/2, which enters the acceptance, for the projected momentum p.
    status
        A `Status`.
    newton_iterations
        Over all steps, forth and back.
    """

    u: Array
    p: Array
    log_j_start: Array
    log_j_end: Array
    kinetic_drop: Array
    status: Integers
    newton_iterations: Integers


def project(constraint: Constraint, u: ArrayLike, p: ArrayLike) -> Projection:
    """The part of each momentum in ker Dxi(u)."""
    u, p = _rows(constraint, u=u, p=p)
    projected = Projection(p.copy(), np.empty(len(u)), np.empty(len(u), dtype=np.int64))
    project_chains(_rules(constraint, Settings())._replace(g=0), _place(constraint), u, projected)
    return projected


def log_volume(constraint: Constraint, u: ArrayLike) -> Array:
    """log J = 1/2 log det(Dxi Dxi^T) at each row of u; -inf where the rank is deficient, NaN where undefined."""
    (u,) = _rows(constraint, u=u)
    return project(constraint, u, np.zeros_like(u)).log_j


def move(
    constraint: Constraint,
    u: ArrayLike,
    p: ArrayLike,
    step_sizes: ArrayLike,
    steps: ArrayLike,
    settings: Settings | None = None,
) -> Move:
    """Move every chain along its own level set, and make sure that it could come back.

    A chain's move is the same whatever chains are moved with it. It never raises for numbers: see `Status`.

    Parameters
    ----------
    constraint
        xi, and perhaps a force.
    u, p
        Positions and momenta, (chains, d). Momenta are projected first, so that draws of N(0, I) will do.
    step_sizes, steps
        eps and M: one number for all, or one a chain.
    settings
        Tolerances.
    """
    u, p = _rows(constraint, u=u, p=p)
    settings = settings or Settings()
    try:
        sizes = np.array(np.broadcast_to(np.asarray(step_sizes, dtype=np.float64), len(u)))
        counts = np.array(np.broadcast_to(np.asarray(steps).astype(np.int64, casting="safe"), len(u)))
    except (TypeError, ValueError):
        raise SamplingError(f"step_sizes and steps must be one number, or one for each of {len(u)} chains") from None
    if (counts < 0).any():
        raise SamplingError("steps must not be negative")
    numbers, integers = np.empty((3, len(u))), np.empty((2, len(u)), dtype=np.int64)
    moved = Move(np.empty_like(u), np.empty_like(u), *numbers, *integers)
    move_chains(_rules(constraint, settings), _place(constraint), u, p, sizes, counts, moved)
    return moved


def _rows(constraint: Constraint, **given: ArrayLike) -> list[Array]:
    # copies, as Numba compiles anew for arrays that may not be written to
    arrays = {name: np.array(value, dtype=np.float64, order="C") for name, value in given.items()}
    chains = len(arrays["u"]) if arrays["u"].ndim else 0
    for name, array in arrays.items():
        if array.shape != (chains, constraint.dimension):
            raise SamplingError(f"{name} must have the shape ({chains}, {constraint.dimension}), not {array.shape}")
    return list(arrays.values())


def _rules(constraint: Constraint, settings: Settings) -> Rules:
    numbers = (float(settings.tolerance), int(settings.iterations), float(settings.reversibility))
    return Rules(int(constraint.address), int(constraint.force), constraint.data, *numbers)


def _place(constraint: Constraint) -> Place:
    q, d = constraint.rank, constraint.dimension
    shapes: list[tuple[int, ...]] = [(q,), (q, d), (q, d), (d,), (q,), (q, q), (q,), (d,), (d,), (d,), (d,)]
    return Place(*(np.empty(shape) for shape in shapes))
