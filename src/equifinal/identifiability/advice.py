"""What to add to a model so that everything becomes identifiable: a value to know, a state to measure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import SECOND, Budget, TooLarge, matrix_steps
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, analyse_locally, slice_coordinates
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.algebra.elimination.fibre_points import FibreSlice, slice_fibre
from equifinal.algebra.elimination.quotient import NotFinite
from equifinal.algebra.generators.membership import Constants
from equifinal.algebra.generators.selection import Generators, level_set
from equifinal.identifiability.freedoms import different
from equifinal.language.model import Model

MOST = 6  # pieces of advice of one kind


@dataclass(frozen=True)
class Advice:
    """An addition that would make the model identifiable.

    Attributes
    ----------
    kind
        ``know`` (parameters or initial values) or ``measure`` (states, or combinations that the model defines).
    names
        What to know or measure.
    leads_to
        ``globally`` or ``locally``: how identifiable the target would then be.
    target
        The quantity that would become identifiable; None if that is everything.
    """

    kind: str
    names: tuple[str, ...]
    leads_to: str
    target: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Advice:
        return Advice(**{**data, "names": tuple(data["names"])})


def advise(
    models: Sequence[Model],
    local: LocalAnalysis,
    fibre: FibreSlice | None,
    generators: Generators,
    constants: Constants,
    rng: random.Random,
    budget: Budget,
) -> list[Advice]:
    """Smallest sets of values to know, and single states to measure, that make everything identifiable."""
    if not local.kernel and (fibre is None or fibre.degree == 1):
        return []
    advice = list(_ranked(_to_know(local, fibre, generators, constants, rng, budget.part(2 * SECOND))))
    advice += list(_ranked(_to_measure(models, local, fibre, rng, budget.part(2 * SECOND))))
    return advice


def _ranked(candidates: Iterator[Advice]) -> list[Advice]:
    everything: list[Advice] = []
    best: list[Advice] = []
    while len(best) < MOST and (advice := next(candidates, None)):
        everything.append(advice)
        best += [advice] if advice.leads_to == "globally" else []
    return best or everything[:MOST]


def _to_know(
    local: LocalAnalysis,
    fibre: FibreSlice | None,
    generators: Generators,
    constants: Constants,
    rng: random.Random,
    limit: Budget,
) -> Iterator[Advice]:
    r = len(local.kernel)
    if r == 0:
        assert fibre is not None
        values = dict(zip(fibre.free, fibre.points.coordinates, strict=True))
        for size in (1, 2, 3):  # the smallest sets only
            enough = False
            for subset in islice(combinations(values, size), 300):
                left = fibre.points.modulus
                for name in subset:
                    left = left.gcd(values[name] - local.point[name])
                if left.degree() == 1:
                    enough = True
                    yield Advice("know", subset, "globally")
            if enough:
                break
        return
    columns = [i for i in range(len(local.names)) if any(row[i] for row in local.kernel)]
    point = {n: local.point[n] for n in local.names}
    choices = list(islice(_independent(local, columns, r), 40))
    if fibre is not None and fibre.degree > 1:  # one more value may be needed to choose a branch
        several = [local.names.index(n) for n in different(fibre) if local.names.index(n) not in columns]
        choices += [(*chosen, i) for chosen in choices[:8] for i in several[:4]]
    for chosen in choices:
        chosen, extra = chosen[:r], chosen[r:]
        names = tuple(local.names[i] for i in (*chosen, *extra))
        leads_to = "locally"
        if fibre is not None and generators.complete:
            try:
                fixed = {n: point[n] for n in names}
                _, points = level_set(generators.functions, constants, point, fixed, local.prime, rng, limit)
                leads_to = "globally" if points.count == 1 else "locally"
            except (TooLarge, NotFinite, BadPrime):
                pass
        if leads_to == "globally" or not extra:
            yield Advice("know", names, leads_to)


def _independent(local: LocalAnalysis, columns: Sequence[int], r: int) -> Iterator[tuple[int, ...]]:
    """Sets of r coordinates that, once known, leave no continuous freedom: columns of the kernel of full rank."""

    def extended(chosen: tuple[int, ...], start: int) -> Iterator[tuple[int, ...]]:
        if len(chosen) == r:
            yield chosen
            return
        for position in range(start, len(columns)):
            more = (*chosen, columns[position])
            entries = [row[i] for row in local.kernel for i in more]
            if flint.nmod_mat(r, len(more), entries, local.prime).rank() == len(more):
                yield from extended(more, position + 1)

    return extended((), 0)


def _to_measure(
    models: Sequence[Model],
    local: LocalAnalysis,
    fibre: FibreSlice | None,
    rng: random.Random,
    limit: Budget,
) -> Iterator[Advice]:
    """States and defined combinations of the first experiment whose measurement would settle everything."""
    first, *others = models
    for state in _settling(models, local, limit):
        extended = [replace(first, outputs=(*first.outputs, state)), *others]
        try:
            new = analyse_locally(extended, local.names, rng, limit)
            if new.rank < len(local.names):
                continue
            leads_to = "locally"
            if fibre is not None:
                sliced = slice_fibre(extended, new, slice_coordinates(new, local.names), rng, limit)
                leads_to = "globally" if sliced.degree == 1 else "locally"
        except (TooLarge, NotFinite, BadPrime):
            continue
        if leads_to == "globally" or local.kernel:
            yield Advice("measure", (state,), leads_to)


def _settling(models: Sequence[Model], local: LocalAnalysis, limit: Budget) -> list[str]:
    """States and defined combinations of the first experiment with which the rank is full."""
    first = models[0]
    choices = [name for name in (*first.states, *first.definitions) if name not in first.outputs]
    point = np.array([[local.point[name] for name in local.names]], dtype=np.int64)
    everything = [replace(first, outputs=(*first.outputs, *choices)), *models[1:]]
    blocks, found = [], list[str]()
    try:
        for model, signals in zip(everything, local.inputs, strict=True):
            run = OutputSeries(model, local.names, point, signals, local.prime)
            run.extend(local.order, limit)
            blocks.append(run.output_jacobian()[0].reshape(len(model.outputs), local.order, len(local.names)))
        known = [*blocks[0][: len(first.outputs)], *(rows for block in blocks[1:] for rows in block)]
        for name, rows in zip(choices, blocks[0][len(first.outputs) :], strict=True):
            matrix = np.concatenate([*known, rows])
            limit.spend(200 + matrix_steps(*matrix.shape))
            if flint.nmod_mat(*matrix.shape, [int(v) for v in matrix.ravel()], local.prime).rank() == len(local.names):
                found.append(name)
    except (TooLarge, BadPrime):
        pass
    return found
