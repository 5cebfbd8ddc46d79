r"""The uniform law on a fibre that is a polytope: exact draws of theta_I given c, and their density.

Where coordinates w exist in which the combinations are affine (`affine`), w_D = B w_I + s(c), and the
fibre over c, seen in w_I, is

    P_c = {w_I : lower_I <= w_I <= upper_I, lower_D <= B w_I + s(c) <= upper_D}.

The box around it is cut into r! simplices, and these by one half-space after another. Of a simplex with vertices
v_1..v_a inside and u_1..u_b outside there remains the hull of the points x_i0 = v_i and x_ij, where the edge from v_i
to u_j is cut. It is a projective image of a product of simplices of dimensions a - 1 and b, whose staircase
triangulation it inherits: a simplex for each of the binomial(a - 1 + b, b) monotone lattice paths from x_10 to x_ab.

A point takes r uniforms. The first chooses a simplex by volume; what is left of it is uniform again, and with the
others gives a point in the simplex: with s_k = v_k^(1 / (r - k)), k = 0..r-1, and the vertices x_0..x_r,

    w_I = (1 - s_0) x_0 + s_0 ((1 - s_1) x_1 + s_1 (... + s_{r-1} x_r)).

For each c it is a bijection of the unit cube and P_c, up to sets without volume, and preserves volume up to a factor.
The density of theta_I is 1/vol(P_c) times |dw_I/dtheta_I|.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre.fibre import Fibre
from equifinal.samplers.points import polytope_loops as polytope_kernel
from equifinal.samplers.points.affine import NotAffine, affine_form
from equifinal.samplers.points.law import Drawn, Moments
from equifinal.samplers.points.polytope_loops import MOST_DIMENSIONS, Cuts

Array = NDArray[np.float64]


class PolytopeLaw:
    """theta_I given c, uniform on the fibre in coordinates that make it a polytope.

    Parameters
    ----------
    fibre
        Its chart says what theta_I is.

    Attributes
    ----------
    width
        Number of uniforms per point: r.

    Raises
    ------
    SamplingError
        If the fibres are not polytopes, are unbounded as far as the bounds tell, or have no or too many dimensions.
    """

    def __init__(self, fibre: Fibre):
        self.fibre = fibre
        self.width: int = fibre.dimension
        if not self.width:
            raise SamplingError("there is no uniform law on the fibres: each is a finite set of points (r = 0)")
        if self.width > MOST_DIMENSIONS:
            raise SamplingError(
                f"the fibres have {self.width} dimensions; polytopes are decomposed in at most {MOST_DIMENSIONS}"
            )
        try:
            form = affine_form(fibre)
        except NotAffine as reason:
            raise SamplingError(f"the fibres are not polytopes: {reason}") from None
        free, dependent = fibre.chart.free, fibre.chart.dependent
        bounds = fibre.bounds.copy()
        with np.errstate(divide="ignore"):
            bounds[form.logarithmic] = np.log(bounds[form.logarithmic])
        slopes, inverse = form.solved(free.tolist(), dependent.tolist())
        self._cuts = Cuts(form.levels, inverse, slopes, bounds[free], bounds[dependent], form.logarithmic[free])
        self._require_bounded()

    def __reduce__(self) -> tuple[type[PolytopeLaw], tuple[Fibre]]:
        return PolytopeLaw, (self.fibre,)

    def draw(self, c: Array, uniforms: Array, moments: Moments | None = None) -> Drawn:
        """Points of the fibres, and their log density with respect to dtheta_I.

        Parameters
        ----------
        c
            (n, q).
        uniforms
            (n, N, r), in [0, 1).

        Returns
        -------
        theta_I (n, N, r) and its log density (n, N). Both are NaN, "no point", where the fibre over c is empty or
        without volume: no theta has these values within the bounds.
        """
        c, uniforms = self._checked(c, uniforms, "uniforms")
        return Drawn(*polytope_kernel.draw(self._cuts, c, uniforms))

    def log_density(self, c: Array, free: Array, moments: Moments | None = None) -> Array:
        """(n, N): of given points theta_I (n, N, r); minus infinity outside the fibre."""
        c, free = self._checked(c, free, "theta_I")
        return polytope_kernel.log_densities(self._cuts, c, free)

    def inverse(self, c: Array, free: Array) -> Array:
        """(n, N, r): the uniforms from which `draw` makes these theta_I; NaN outside the fibre."""
        c, free = self._checked(c, free, "theta_I")
        return polytope_kernel.inverse(self._cuts, c, free)

    def volume(self, c: Array) -> Array:
        """(n,): of the fibres, measured in w_I (theta_I or their logarithms); 0 where there is no point."""
        c, _ = self._checked(c, np.empty((len(c), 0, self.width)), "theta_I")
        return polytope_kernel.volumes(self._cuts, c)

    def _checked(self, c: Any, points: Any, what: str) -> tuple[Array, Array]:
        """Check shapes and types first, because compiled code would not."""
        c, points = (np.ascontiguousarray(x, dtype=np.float64) for x in (c, points))
        if c.ndim != 2 or c.shape[1] != self.fibre.rank:
            raise SamplingError(f"c must have the shape (n, {self.fibre.rank}), not {c.shape}")
        if points.ndim != 3 or points.shape[0] != len(c) or points.shape[2] != self.width:
            raise SamplingError(f"{what} must have the shape ({len(c)}, N, {self.width}), not {points.shape}")
        return c, points

    def _require_bounded(self) -> None:
        """Whether the box is finite is the same for all c: so for one at which w = 0 is well inside."""
        free, dependent = (np.where(np.isfinite(b), [-1.0, 1.0], b) for b in (self._cuts.free, self._cuts.dependent))
        low, high = np.zeros(self.width), np.zeros(self.width)
        trial = self._cuts._replace(free=free, dependent=dependent)
        if not polytope_kernel.set_box(trial, np.zeros(self.fibre.rank), low, high):
            infinite = ~np.isfinite(low) | ~np.isfinite(high)
            coordinates = zip(self.fibre.free, self._cuts.logarithmic, strict=True)
            shown = [f"log {name}" if logarithmic else name for name, logarithmic in coordinates]
            raise SamplingError(
                "there is no uniform law on the fibres: the priors' bounds leave them unbounded in "
                + ", ".join(s for s, is_infinite in zip(shown, infinite, strict=True) if is_infinite)
            )
