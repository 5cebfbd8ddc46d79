r"""The freedoms of a fibre in words: scalings, shifts and swaps that leave every output unchanged.

A scaling :math:`\theta_i \to a^{w_i}\theta_i` leaves the output unchanged if and only if
:math:`(w_i\theta_i)` lies in the kernel at every point, a shift :math:`\theta_i \to \theta_i + a w_i` if and
only if :math:`(w_i)` does; both are rational linear systems for w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import flint

from equifinal.algebra.arithmetic.local_rank import pivots_of
from equifinal.algebra.elimination.fibre_points import FibreSlice
from equifinal.algebra.elimination.quotient import is_single_valued
from equifinal.algebra.generators.monomials import rational_nullspace, short_lattice_basis
from equifinal.algebra.generators.null_spaces import KernelField


@dataclass(frozen=True)
class Freedom:
    """A one-parameter family of changes that no output shows: ``scaling`` or ``shift``, with whole-number
    weights.
    """

    kind: str
    weights: dict[str, int]


def _annihilators(field: KernelField) -> list[tuple[list[int], list[list[int]]]]:
    """At every point the linear forms that vanish on the kernel."""
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


def continuous_freedoms(field: KernelField, moving: Sequence[str]) -> list[Freedom]:
    """All scalings and shifts, shortest first; the field must hold a few points."""
    names, p = field.local.names, field.local.prime
    columns = [names.index(n) for n in moving]
    found = []
    for kind in ("scaling", "shift"):
        rows = []
        for point, forms in _annihilators(field):
            weights = [point[i] if kind == "scaling" else 1 for i in columns]
            rows += [[form[i] * w % p for i, w in zip(columns, weights, strict=True)] for form in forms]
        for vector in short_lattice_basis(rational_nullspace(rows, len(columns), p)):
            weights_by_name = {n: w for n, w in zip(moving, vector, strict=True) if w}
            if kind == "shift" and len(weights_by_name) == 1:
                continue  # a coordinate that is free altogether is said once, as a scaling
            found.append(Freedom(kind, weights_by_name))
    return found


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
