"""What ideal data could determine: exact structural identifiability with the model's real initial values.

`analyse` answers for every parameter, unknown initial value and quantity of interest whether it is globally,
locally or not identifiable, and gives simple generators of the field of all identifiable functions.
``docs/identifiability.md`` explains the method.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, count
from math import inf, prod
from typing import Any

from equifinal.algebra.arithmetic.budget import SECOND, Budget, OutOfTime, TooLarge
from equifinal.algebra.arithmetic.functions import degree_bound
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, analyse_locally, moving, slice_coordinates
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.fibre_points import FibreSlice, only_the_point, slice_fibre
from equifinal.algebra.elimination.quotient import NotFinite
from equifinal.algebra.elimination.solve import Stripper
from equifinal.algebra.generators.candidates import Search
from equifinal.algebra.generators.membership import alternatives, is_invariant
from equifinal.algebra.generators.null_spaces import KernelField
from equifinal.algebra.generators.selection import Generators
from equifinal.errors import EquifinalError, IdentifiabilityError
from equifinal.identifiability.advice import Advice, advise
from equifinal.identifiability.called import judged
from equifinal.identifiability.child import Ended, Tell, in_child
from equifinal.identifiability.freedoms import Freedom, assemble, continuous_freedoms, different, exchanged
from equifinal.identifiability.lifting.lift import lift
from equifinal.identifiability.lifting.lifted import RICH
from equifinal.identifiability.lifting.translation import translated
from equifinal.identifiability.moves import moves_along_fibre, smallest_degree
from equifinal.identifiability.orders import Classes, any_order, in_any_order
from equifinal.identifiability.verdicts import (
    GLOBALLY,
    LOCALLY,
    NOT,
    OUT_OF_TIME,
    TOO_LARGE,
    Identifiability,
    NoExactAnalysis,
)
from equifinal.language.expression import Expression, Name, Number, names, substitute, to_text
from equifinal.language.model import Model

WORK = 20 * SECOND  # of an analysis with effort 1


def analyse(
    models: Model | Sequence[Model], *, time_limit: float = 60.0, effort: float = 3.0, seed: int = 0
) -> Identifiability:
    """What the outputs of a model, or of several experiments sharing parameters by name, determine.

    Parameters
    ----------
    models
        One model, or several; theta is the union of their parameters in order of first appearance.
    time_limit
        Seconds, infinite for none; what is not shown by then is labelled as such, never guessed.
    effort
        How much work may be done before a question is called too large; 1, which a fit allows, is about twenty seconds
        on a quiet machine. Work is counted, not timed: without a time limit the answer is the same on every machine.
    seed
        Of the random points and primes. The answer does not depend on it (except with `error_probability`).

    Raises
    ------
    IdentifiabilityError
        When a model has no power series at its initial values, when not even the local analysis came to an end, or
        when the arguments are not models.
    """
    experiments = (models,) if isinstance(models, Model) else tuple(models) if isinstance(models, Sequence) else ()
    if not experiments or not all(isinstance(model, Model) for model in experiments):
        raise IdentifiabilityError("analyse needs a Model, or a list of Models")
    for name, value in (("time_limit", time_limit), ("effort", effort)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise IdentifiabilityError(f"`{name}` must be positive, not {value!r}")
    started = time.monotonic()

    def work(tell: Tell) -> Identifiability:
        lifted = None if all(model.is_plain for model in experiments) else lift(experiments)
        analysis = _Analysis(lifted.models if lifted else experiments, float(time_limit), effort * WORK, seed, started)
        return translated(experiments, lifted, analysis, tell) if lifted else analysis.run(tell)

    try:
        found, ended = in_child(work, time_limit)
        if ended:
            return found
        if found is None:
            raise IdentifiabilityError(f"the local analysis did not finish within {time_limit:g} s")
        return replace(found, unfinished=OUT_OF_TIME, seconds=time.monotonic() - started)
    except EquifinalError:
        raise
    except Ended:
        raise IdentifiabilityError("the analysis was ended from outside, perhaps for want of memory") from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise IdentifiabilityError(
            f"the analysis of this model failed because of a bug in equifinal ({reason})"
        ) from error


class _Analysis:
    """One run of `analyse`."""

    def __init__(self, models: tuple[Model, ...], time_limit: float, work: float, seed: int, started: float):
        self.models, self.time_limit, self.work, self.started = models, time_limit, work, started
        self.budget = Budget(work, started + time_limit - time.monotonic())
        self.rng, self.seed = random.Random(seed), seed
        self.names = tuple(dict.fromkeys(name for model in models for name in model.parameters))
        first = models[0].constants
        self.constants = {
            name: value
            for name, value in first.items()
            if value not in (0, 1) and name not in self.names and all(m.constants.get(name) == value for m in models)
        }

    def run(self, tell: Tell) -> Identifiability:
        """The answer; what is known on the way is told, in case there is no time for more."""
        self.tell = tell
        first = self._local(0)
        if classes := self._any_order(first):
            none = Generators()
            known = self._answer(first, [], none, self._certificate(first, [], none, move=False), thorough=False)
            return in_any_order(known, classes, self.models, first, self._quantities())
        locals_, fibres, generators, certificate = self._trusted(first)
        return self._answer(locals_, fibres, generators, certificate, thorough=True)

    def _answer(
        self,
        locals_: Sequence[LocalAnalysis],
        fibres: Sequence[FibreSlice],
        generators: Generators,
        certificate: Mapping[str, Any],
        *,
        thorough: bool,
    ) -> Identifiability:
        local = locals_[0]
        status, counts = self._statuses(local, fibres)
        status_of, rng = partial(self._status, local=local, fibres=fibres), random.Random(self.seed)
        quantities = {name: judged(e, status_of, rng) for name, e in self._quantities().items()}
        counts |= {name: count for name, (_, count) in quantities.items() if count > 1}
        degree = fibres[0].degree if fibres else 0
        freedoms: Sequence[Freedom] = ()
        advice: list[Advice] = []
        if thorough:
            degree = self._degree(fibres, generators)
            exact = generators.complete or not local.kernel
            freedoms = self._freedoms(local, fibres, status, degree, exact)
            with suppress(OutOfTime):
                first = fibres[0] if fibres else None
                advice = advise(self.models, local, first, generators, self.constants, self.rng, self.budget)
        return Identifiability(
            parameters=status,
            quantities={name: word for name, (word, _) in quantities.items()},
            alternatives=counts,
            combinations=tuple(generators.functions),
            constants={n: v for n, v in self.constants.items() if any(n in names(g) for g in generators.functions)},
            fibre_dimension=len(local.kernel),
            fibre_degree=degree,
            scope="global" if fibres else "local",
            complete=generators.complete,
            freedoms=tuple(freedoms),
            advice=tuple(advice),
            error_probability=self._error_probability(locals_, fibres),
            seconds=time.monotonic() - self.started,
            unfinished=OUT_OF_TIME if self.budget.expired else "" if generators.complete else TOO_LARGE,
            certificate=certificate,
            assumptions=(RICH,) if any(model.inputs for model in self.models) else (),
        )

    def _quantities(self) -> dict[str, Expression]:
        meant = dict[str, Expression]()
        for model in self.models:
            for name, expression in model.interest.items():
                numeric = substitute(expression, {c: Number(v) for c, v in model.constants.items()})
                if meant.setdefault(name, numeric) != numeric:
                    raise IdentifiabilityError(
                        f"quantity '{name}' differs between experiments; use a different name in each"
                    )
        return meant

    def _any_order(self, locals_: Sequence[LocalAnalysis]) -> Classes:
        """Shown at both points, so that both would have to be special in the same way."""
        rng, classes = random.Random(self.seed), None
        for local in locals_:
            with suppress(OutOfTime):
                found = any_order(self.models, local, rng, self.budget.beside(self.work))
                classes = found if classes in (None, found) else ()
            if not classes:
                return ()
        return classes or ()

    # --- stages ---

    def _trusted(
        self, first: list[LocalAnalysis]
    ) -> tuple[list[LocalAnalysis], list[FibreSlice], Generators, Mapping[str, Any]]:
        """Analyse until moving along the fibre bears it out; longer power series if it does not."""
        least = 0
        for _ in range(4):
            locals_ = self._local(least) if least else first
            simple = self._local_generators(locals_) if self.time_limit < inf else None
            if simple:
                self._tell(locals_, [], simple)
            fibres = self._fibres(locals_)
            if fibres:
                self._tell(locals_, fibres, Generators())
            generators = self._generators(fibres) if fibres else simple or self._local_generators(locals_)
            self._tell(locals_, fibres, generators)
            certificate = self._certificate(locals_, fibres, generators)
            if certificate["moved_along_fibre"] is not False:
                return locals_, fibres, generators, certificate
            least = 2 * certificate["series_order"]
        # never claim globally what a check contradicts
        simple = self._local_generators(locals_)
        return locals_, [], simple, self._certificate(locals_, [], simple)

    def _tell(self, locals_: list[LocalAnalysis], fibres: list[FibreSlice], generators: Generators) -> None:
        certificate = self._certificate(locals_, fibres, generators, move=False)
        self.tell(self._answer(locals_, fibres, generators, certificate, thorough=False))

    def _local_generators(self, locals_: Sequence[LocalAnalysis]) -> Generators:
        """Simple combinations that are identifiable at least locally: cheap, and all there is without a fibre."""
        search = Search(self.models, list(map(only_the_point, locals_)), self.constants, random.Random(self.seed))
        return search.at_least_locally(self.budget.beside(SECOND))

    def _local(self, least: int) -> list[LocalAnalysis]:
        """Two independent local analyses that agree on the rank; the larger rank is right."""
        found: list[LocalAnalysis] = []
        try:
            while len(found) < 2:
                new = analyse_locally(self.models, self.names, self.rng, self.budget, least)
                if found and new.rank != found[0].rank:
                    found = [max(new, found[0], key=lambda a: a.rank)]
                else:
                    found.append(new)
        except BadPrime:
            raise NoExactAnalysis(
                "the model divides by zero at its initial values, so its outputs have no power series at time 0"
            ) from None
        except OutOfTime:
            if not found:
                raise IdentifiabilityError(f"the local analysis did not finish within {self.time_limit:g} s") from None
        except TooLarge:
            if not found:
                raise IdentifiabilityError("the model is too large even for the local analysis") from None
        self.locals = found
        self._tell(found, [], Generators())
        return found

    def _preference(self) -> list[str]:
        """Which coordinates to fix first when a fibre is sliced: observation parameters, rates, initial
        values.
        """
        seen = {n for m in self.models for e in m.observed for n in names(e)}
        rates = {n for m in self.models for e in m.rhs for n in names(e)}
        return sorted(self.names, key=lambda n: 0 if n in seen else 1 if n in rates else 2)

    def _fibres(self, locals_: Sequence[LocalAnalysis]) -> list[FibreSlice]:
        """Slices of fibres at two points; none if that is too large, one if the first took much."""
        found: list[FibreSlice] = []
        for local in locals_:
            if found and found[0].steps > 0.15 * self.work:
                break
            share = 0.9 if not found else 0.3
            try:
                # first as little as a fit allows: with more, a method that leads nowhere may take all the time there is
                with suppress(TooLarge):
                    found.append(self._slice(local, self.budget.part(share * min(WORK, self.budget.left))))
                    continue
                if self.work > WORK:
                    found.append(self._slice(local, self.budget.part(share * self.budget.left)))
            except (TooLarge, NotFinite, BadPrime):
                continue
            except OutOfTime:
                break
        if len(found) == 2 and found[0].degree != found[1].degree:
            return self._undecided(found)
        return found

    def _slice(self, local: LocalAnalysis, limit: Budget) -> FibreSlice:
        return slice_fibre(self.models, local, slice_coordinates(local, self._preference()), self.rng, limit)

    def _undecided(self, found: list[FibreSlice]) -> list[FibreSlice]:
        """Two points gave different degrees: one of them was special; ask until two agree."""
        try:
            while len(found) < 5:
                local = analyse_locally(self.models, self.names, self.rng, self.budget)
                if local.rank != found[0].local.rank:
                    continue
                new = self._slice(local, self.budget)
                same = [f for f in found if f.degree == new.degree]
                if same:
                    return [*same, new]
                found.append(new)
        except (TooLarge, OutOfTime, NotFinite, BadPrime):
            pass
        return []

    def _generators(self, fibres: Sequence[FibreSlice]) -> Generators:
        limit = self.budget.part(self.budget.left * 0.8)
        named = Search(self.models, fibres, self.constants, self.rng).run(limit)
        if named.complete or not self.constants:
            return named
        plain = Search(self.models, fibres, {}, self.rng).run(limit)  # the constants may have special values
        return plain if plain.complete or len(plain.functions) > len(named.functions) else named

    def _status(self, expression: Expression, local: LocalAnalysis, fibres: Sequence[FibreSlice]) -> tuple[str, int]:
        try:
            if not is_invariant(expression, local):
                return NOT, 0
            if not fibres:
                return LOCALLY, 0
            count = alternatives(expression, fibres[0])
        except BadPrime:
            raise IdentifiabilityError(f"{to_text(expression)} divides by zero for all parameters") from None
        return (GLOBALLY, 1) if count == 1 else (LOCALLY, count)

    def _statuses(self, local: LocalAnalysis, fibres: Sequence[FibreSlice]) -> tuple[dict[str, str], dict[str, int]]:
        status, counts = {}, {}
        for name in self.names:
            status[name], count = self._status(Name(name), local, fibres)
            if count > 1:
                counts[name] = count
        return status, counts

    def _degree(self, fibres: Sequence[FibreSlice], generators: Generators) -> int:
        if not fibres:
            return 0
        degree = fibres[0].degree
        if degree > 1 and generators.complete and fibres[0].local.kernel:
            limit = self.budget.part(2 * SECOND)
            with suppress(OutOfTime):
                degree = smallest_degree(generators.functions, self.constants, fibres[0], self.rng, limit)
        return degree

    def _certificate(
        self, locals_: Sequence[LocalAnalysis], fibres: Sequence[FibreSlice], generators: Generators, move: bool = True
    ) -> dict[str, Any]:
        certified = ["rank is at least d - r (a minor does not vanish modulo a prime)"]
        order = max(local.order for local in locals_)
        kernel = f", and nothing changes along the kernel up to order {4 * order}" if locals_[0].kernel else ""
        probable = [f"rank is at most d - r (it does not grow up to order {order} of the power series{kernel})"]
        probable += ["fibre degree", "membership of each combination"]
        moved = None
        if move and fibres and generators.complete and (fibres[0].local.kernel or fibres[0].degree > 1):
            first, limit = fibres[0], self.budget.part(5 * SECOND)
            with suppress(OutOfTime):
                moved = moves_along_fibre(
                    self.models, generators.functions, self.constants, first.local, list(first.fixed), self.rng, limit
                )
        return {
            "method": fibres[0].method if fibres else "power series, local only",
            "primes": [local.prime for local in locals_],
            "points": len(locals_) + len(fibres),
            "series_order": order,
            "candidates": fibres[0].candidates if fibres else None,
            "moved_along_fibre": moved,
            "certified": certified,
            "probable": probable if fibres else probable[:1],
        }

    def _freedoms(
        self, local: LocalAnalysis, fibres: Sequence[FibreSlice], status: Mapping[str, str], degree: int, exact: bool
    ) -> list[Freedom]:
        travelling = [n for n in self.names if n in moving(local)]
        continuous: Sequence[Freedom] = []
        if travelling:
            kernels = KernelField(self.models, local, self.rng)
            try:
                kernels.at_least(len(travelling) + 3, self.budget)
                continuous = continuous_freedoms(kernels, travelling, self._free_symbol())
            except (TooLarge, OutOfTime):
                pass
        swapped = [n for n in self.names if status[n] == LOCALLY] if fibres else []
        pairs = exchanged(fibres[0], swapped) if swapped else []
        # with two points only, everything that differs between them changes together
        changing = different(fibres[0]) if fibres and fibres[0].degree == 2 else []
        return assemble(len(local.kernel), continuous, travelling, pairs, swapped, changing, degree, exact=exact)

    def _free_symbol(self) -> str:
        """A short name that means nothing in the models; not ``a``, which reads as an article."""
        taken = {*self.names}
        taken.update(x for m in self.models for x in (*m.states, *m.constants, *m.definitions, *m.inputs))
        return next(x for x in chain("sqwzvnm", (f"s{k}" for k in count(1))) if x not in taken)

    def _error_probability(self, locals_: Sequence[LocalAnalysis], fibres: Sequence[FibreSlice]) -> float:
        """Bound on the probability of an unlucky random choice, all stages together.

        Schwartz-Zippel: a minor of the Jacobian of degree N vanishes at a random point with probability at
        most N/p. A coefficient of order k has degree at most (2k + 1) h, h the largest degree of an equation;
        a minor of size q has at most q times that. The local analyses are independent of each other. At every
        fibre the same bound stands for the point being generic, and some hundred factors are judged to be
        independent of it (`Stripper`); where the fibre was found at two points, both would have to go wrong
        in the same way.
        """
        expressions = [e for m in self.models for e in (*m.rhs, *m.observed, *m.start)]
        height = max([1, *map(degree_bound, expressions)])
        special = [max(a.rank, 1) * (2 * a.order + 1) * height / a.prime for a in locals_]
        bound = prod(special)
        if fibres:
            factors = 100 * Stripper.MISTAKE if len(self.names) > len(fibres[0].fixed) else 0.0
            bound += prod(special[0] + factors for _ in fibres)
        return min(1.0, bound)
