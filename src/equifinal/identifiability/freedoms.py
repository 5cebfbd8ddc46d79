r"""The freedoms of a fibre: scalings, shifts, exchanges and other changes that leave every output unchanged.

A scaling :math:`\theta_i \to s^{w_i}\theta_i` leaves the output unchanged if and only if
:math:`(w_i\theta_i)` lies in the kernel at every point, a shift :math:`\theta_i \to \theta_i + s w_i` if and
only if :math:`(w_i)` does; both are rational linear systems for w. `words.identifiability` makes sentences of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import flint

from equifinal.algebra.arithmetic.local_rank import pivots_of
from equifinal.algebra.elimination.fibre_points import FibreSlice
from equifinal.algebra.elimination.quotient import is_single_valued
from equifinal.algebra.generators.monomials import rational_nullspace, short_lattice_basis
from equifinal.algebra.generators.null_spaces import KernelField


@dataclass(frozen=True)
class Freedom:
    """A change of parameters that no output shows; every kind of change is a class of its own."""

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind} | asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Freedom:
        fields = {name: _tuples(v) for name, v in data.items() if name != "kind"}
        return {freedom.kind: freedom for freedom in Freedom.__subclasses__()}[data["kind"]](**fields)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Scaling(Freedom):
    """Every parameter is multiplied by its power of a factor: theta_i -> s^w_i theta_i.

    ``symbol`` is a name for s that means nothing else in the models.
    """

    kind = "scaling"
    weights: Mapping[str, int]
    symbol: str = "s"


@dataclass(frozen=True)
class Shift(Freedom):
    """A multiple of one amount is added to every parameter: theta_i -> theta_i + w_i s."""

    kind = "shift"
    weights: Mapping[str, int]
    symbol: str = "s"


@dataclass(frozen=True)
class JointMotion(Freedom):
    """These parameters move together in `dimension` directions that have no simpler description."""

    kind = "joint motion"
    names: tuple[str, ...]
    dimension: int


@dataclass(frozen=True)
class Exchange(Freedom):
    """Two parameters may be exchanged if others adjust; which ones is None where that differs between solutions."""

    kind = "exchange"
    pair: tuple[str, str]
    adjusting: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class AnyOrder(Freedom):
    """Blocks of parameters that may stand in any order, each one as a whole."""

    kind = "any order"
    blocks: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SeveralValues(Freedom):
    """Each of these parameters has several values, in `points` parameter sets counted over the complex numbers."""

    kind = "several values"
    names: tuple[str, ...]
    points: int


def assemble(
    dimension: int,
    continuous: Sequence[Freedom],
    moving: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    swapped: Sequence[str],
    changing: Sequence[str],
    degree: int,
    *,
    exact: bool = True,
) -> list[Freedom]:
    """Scalings, shifts and exchanges, and what is left of the freedom when these do not account for all of it.

    A degree that is not exact, but an upper bound, is not given as a number of parameter sets.
    """
    freedoms = list(continuous[:dimension])
    if len(freedoms) < dimension:
        freedoms.append(JointMotion(tuple(moving), dimension - len(freedoms)))
    for pair in pairs:
        undecided = not changing and degree > 2
        freedoms.append(Exchange(pair, None if undecided else tuple(n for n in changing if n not in pair)))
    accounted = {name for pair in pairs for name in pair} | set(changing) if pairs else set()
    if left_over := tuple(name for name in swapped if name not in accounted):
        freedoms.append(SeveralValues(left_over, degree if exact else 0))
    return freedoms


def _annihilators(field: KernelField) -> list[tuple[list[int], list[list[int]]]]:
    """Find, at every point, the linear forms that vanish on the kernel."""
    n, p = len(field.local.names), field.local.prime
    found = []
    for point, kernel in zip(field.points, field.kernels, strict=True):
        reduced, rank = flint.nmod_mat(len(kernel), n, [v for row in kernel for v in row], p).rref()
        pivots = pivots_of(reduced, rank)
        forms = []
        for free in (j for j in range(n) if j not in set(pivots)):
            form = [int(j == free) for j in range(n)]
            for i, pivot in enumerate(pivots):
                form[pivot] = -int(reduced[i, free]) % p
            forms.append(form)
        found.append((point, forms))
    return found


def continuous_freedoms(field: KernelField, moving: Sequence[str], symbol: str) -> list[Scaling | Shift]:
    """All scalings and shifts, shortest first; the field must hold a few points."""
    names, p = field.local.names, field.local.prime
    columns = [names.index(n) for n in moving]
    freedoms: list[Scaling | Shift] = []
    for kind in (Scaling, Shift):
        rows = []
        for point, forms in _annihilators(field):
            weights = [point[i] if kind is Scaling else 1 for i in columns]
            rows += [[form[i] * w % p for i, w in zip(columns, weights, strict=True)] for form in forms]
        for vector in short_lattice_basis(rational_nullspace(rows, len(columns), p)):
            weights_by_name = {n: w for n, w in zip(moving, vector, strict=True) if w}
            if kind is Shift and len(weights_by_name) == 1:
                continue  # a coordinate that is free altogether counts once, as a scaling
            freedoms.append(kind(weights_by_name, symbol))
    return freedoms


def exchanged(fibre: FibreSlice, candidates: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of coordinates that may be exchanged: sum and product have one value, they have two."""
    values = dict(zip(fibre.free, fibre.points.coordinates, strict=True))
    modulus = fibre.points.modulus
    pairs = []
    for i, a in enumerate(candidates):
        for b in candidates[i + 1 :]:
            if a not in values or b not in values:
                continue
            total, product = values[a] + values[b], values[a] * values[b]
            if is_single_valued(total, modulus) and is_single_valued(product, modulus):
                pairs.append((a, b))
    return pairs


def different(fibre: FibreSlice) -> list[str]:
    """Coordinates that are not the same at all points of the slice."""
    modulus = fibre.points.modulus
    coordinates = zip(fibre.free, fibre.points.coordinates, strict=True)
    return [name for name, values in coordinates if not is_single_valued(values, modulus)]
