r"""Coordinates x for proposals of c in which roots that meet do no harm.

Where two parameters may change places, c holds symmetric functions of them: a+b and a*b. At a = b the density of c is
infinite, like 1/sqrt((a+b)^2 - 4ab), and no smooth proposal for c fits it. In (a, b) it is smooth. So some combinations
that are functions of as many parameters alone, with several roots, are replaced by these parameters. x is h of what is
there then (`combination_coordinates`), and c is a function of x, which several x have in common. A proposal q of x is
one of c with the density

    q_C(c) = sum over all x_k with c(x_k) = c of q(x_k) / |dc/dx_k|,

which has the same poles as p_C, so that weights l p_C / q_C stay finite. Which of the x_k a chain is at is a label,
drawn by its share in q_C; so x has the density

    t(x) = l(c) p_C(c) |dc/dx| q(x) / sum_k q(x_k) |dc/dx| / |dc/dx_k|,

and that is what local steps in x are accepted by.

Combinations that are dealt with otherwise may be held where they are: then x does not have them. And x may be bent
(`bending`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.language.expression import Expression, Name, names
from equifinal.samplers.coordinates.bending import Bend, straightening
from equifinal.samplers.coordinates.of_combinations import CombinationCoordinates, combination_coordinates
from equifinal.samplers.proposals.mixture import Mixture

Array = NDArray[np.float64]

TOGETHER = 3  # combinations that are looked at together, to find some that depend on as many parameters


class Images(NamedTuple):
    """All points with one c: x (n, K, q), and log |dx_k/dx|, minus infinity where there are fewer than K."""

    x: Array
    log_slope: Array


class Unfolding:
    """c as a function of x, and back.

    Attributes
    ----------
    finer
        The fibre whose combinations x are; that of c itself where no roots can meet.
    moved
        Which of them x has: all that are not held.
    bend
        How x is bent.
    """

    def __init__(self, fibre: Fibre):
        self.finer: Fibre = fibre
        self.block: Fibre | None = None
        self.columns: NDArray[np.int64] = np.empty(0, np.int64)
        found = _block(fibre)
        if found:
            self.finer, self.block, self.columns = found
        self.moved: NDArray[np.int64] = np.arange(self.finer.rank)
        self.bend: Bend = Bend.straight(self.finer.rank)
        self._held = np.zeros(self.finer.rank)

    def holding(self, parameters: Sequence[str], values: Array) -> Unfolding:
        """The same with combinations that are parameters by themselves held at these coordinates."""
        single = [self.finer.combinations.independent.index(Name(name)) for name in parameters]
        made = copy.copy(self)
        made.moved, made._held = np.setdiff1d(self.moved, single), self._held.copy()
        made._held[single] = values
        made.bend = Bend.straight(len(made.moved))
        return made

    def bent(self, bend: Bend) -> Unfolding:
        """The same with x bent in this way."""
        made = copy.copy(self)
        made.bend = bend
        return made

    @property
    def replaced(self) -> NDArray[np.bool_]:
        """Which combinations x has parameters for: x must mean the same wherever a run is continued."""
        return np.isin(np.arange(self.finer.rank), self.columns)

    @property
    def coordinates(self) -> CombinationCoordinates:
        return combination_coordinates(self.finer)

    def straightened(self, x: Array) -> Unfolding:
        """The same, bent so that draws x look more normal."""
        h, _ = self.bend.backward(self.gathered(x))
        return self.bent(straightening(h, self.coordinates.without_unit[self.moved]))

    def at(self, u: Array) -> Array:
        """x of positions u (n, d) in sampling coordinates."""
        return self.bend.forward(self.coordinates.forward(self.finer.xi(self.finer.to_theta(u)))[:, self.moved])

    def backward(self, x: Array) -> tuple[Array, Array]:
        """c, and log |dc/dx|; both with what is held, as if it were in x."""
        h, bent = self._whole(x)
        c, log_slope = self._backward(h)
        return c, log_slope + bent

    def _whole(self, x: Array) -> tuple[Array, Array]:
        """h, with what is held, and log |dh/dx|."""
        whole = np.tile(self._held, (len(x), 1))
        whole[:, self.moved], log_slope = self.bend.backward(x)
        return whole, log_slope.sum(axis=1)

    def _backward(self, h: Array) -> tuple[Array, Array]:
        c, log_slope = self.coordinates.backward(h)
        if self.block is None:
            return c, log_slope
        parameters = np.ascontiguousarray(c[:, self.columns])
        found = self.block.geometry(parameters)
        possible = self.block.contains(parameters) & np.isfinite(found.log_volume)
        c[:, self.columns] = found.values
        return c, np.where(possible, log_slope + found.log_volume, -np.inf)

    def images(self, x: Array) -> Images:
        if self.block is None:
            return Images(x[:, None], np.zeros((len(x), 1)))
        h, bent = self._whole(x)
        c, log_slope = self._backward(h)
        roots = self.block.roots(np.empty((len(x), 0)), np.nan_to_num(c[:, self.columns]))
        n, most = roots.log_det.shape
        there = np.arange(most) < roots.found[:, None]
        psi, _ = self.coordinates.backward(np.repeat(h, most, axis=0))
        psi[:, self.columns] = np.where(there[..., None], roots.theta, roots.theta[:, :1]).reshape(n * most, -1)
        images = self.coordinates.forward(psi)
        found = self.bend.forward(images[:, self.moved])
        own_slope = self.coordinates.backward(images)[1] + self.bend.backward(found)[1].sum(axis=1)
        with np.errstate(invalid="ignore"):
            ratio = (log_slope + bent)[:, None] - own_slope.reshape(n, most) - roots.log_det
        there &= np.isfinite(ratio)
        return Images(found.reshape(n, most, -1), np.where(there, ratio, -np.inf))

    def log_density(self, mixture: Mixture, x: Array) -> Array:
        """log of q_C(c) |dc/dx|."""
        if self.block is None:
            return mixture.log_density(x)
        return np.logaddexp.reduce(self._shares(mixture, self.images(x)), axis=1)

    def gathered(self, x: Array) -> Array:
        """Of all x with the same c, that whose first replaced parameter is smallest.

        A mixture that is fitted to these has all its components where one image of the posterior is, instead of some
        for each: q_C needs no more.
        """
        if self.block is None:
            return x
        images = self.images(x)
        first = images.x[:, :, np.searchsorted(self.moved, self.columns[0])]
        there = np.isfinite(images.log_slope)
        chosen = images.x[np.arange(len(x)), np.argmin(np.where(there, first, np.inf), axis=1)]
        return np.where(np.any(there, axis=1, keepdims=True), chosen, x)

    def relabelled(self, mixture: Mixture, x: Array, uniforms: Array) -> Array:
        """Another x with the same c, by its share in q_C."""
        if self.block is None:
            return x
        images = self.images(x)
        log_shares = self._shares(mixture, images)
        total = np.logaddexp.reduce(log_shares, axis=1)
        with np.errstate(invalid="ignore"):
            ends = np.cumsum(np.exp(log_shares - total[:, None]), axis=1)
        chosen = np.sum(uniforms[:, None] > ends, axis=1)
        fine = np.isfinite(total) & (chosen < ends.shape[1])
        rows = np.arange(len(x))
        return np.where(fine[:, None], images.x[rows, np.minimum(chosen, ends.shape[1] - 1)], x)

    @staticmethod
    def _shares(mixture: Mixture, images: Images) -> Array:
        n, most, q = images.x.shape
        there = np.isfinite(images.log_slope)
        flat = np.where(there[..., None], images.x, 0.0).reshape(n * most, q)
        return np.where(there, mixture.log_density(flat).reshape(n, most) + images.log_slope, -np.inf)


_known: WeakKeyDictionary[Fibre, Unfolding] = WeakKeyDictionary()


def unfolding(fibre: Fibre) -> Unfolding:
    """Made once for a fibre."""
    if fibre not in _known:
        _known[fibre] = Unfolding(fibre)
    return _known[fibre]


def _block(fibre: Fibre) -> tuple[Fibre, Fibre, NDArray[np.int64]] | None:
    """The finer fibre, that of the block alone, and the block's columns in c; none if no roots can meet."""
    functions = fibre.combinations.independent
    own = set().union(*_closed(fibre))
    if not own:
        return None
    columns = [j for j, f in enumerate(functions) if _used(fibre, f) <= own]
    parameters = [name for name in fibre.names if name in own]
    replaced: list[Expression] = list(functions)
    for j, name in zip(columns, parameters, strict=True):
        replaced[j] = Name(name)
    try:
        block = _fibre_of(fibre, [functions[j] for j in columns], parameters)
        finer = Fibre(replaced, fibre.priors, constants=fibre.constants)
    except IdentifiabilityError:
        return None
    kept = finer.combinations.independent == tuple(replaced) and not finer.combinations.labels
    kept &= block.combinations.independent == tuple(functions[j] for j in columns)
    return (finer, block, np.array(columns)) if kept else None


def _closed(fibre: Fibre) -> list[set[str]]:
    """Smallest sets of parameters that as many combinations depend on alone, with several roots."""
    functions = fibre.combinations.independent
    several = [f for f in functions if not isinstance(f, Name)]
    found: list[set[str]] = []
    for size in range(1, TOGETHER + 1):
        for chosen in combinations(several, size):
            own = set().union(*(_used(fibre, f) for f in chosen))
            inside = [f for f in functions if _used(fibre, f) <= own]
            if len(inside) == len(own) and not any(smaller <= own for smaller in found):
                found.append(own)
    if fibre.dimension == 0 and fibre.chart.degree > 1 and not found:
        found.append(set(fibre.names))
    return [own for own in found if _degree(fibre, own) > 1]


def _degree(fibre: Fibre, own: set[str]) -> int:
    inside = [f for f in fibre.combinations.independent if _used(fibre, f) <= own]
    try:
        return _fibre_of(fibre, inside, [name for name in fibre.names if name in own]).chart.degree
    except IdentifiabilityError:
        return 1


def _fibre_of(fibre: Fibre, functions: list[Expression], parameters: list[str]) -> Fibre:
    priors = {name: fibre.priors[name] for name in parameters}
    return Fibre(functions, priors, constants=fibre.constants)


def _used(fibre: Fibre, function: Expression) -> set[str]:
    return {name for name in names(function) if name in fibre.names}
