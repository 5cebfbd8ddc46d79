"""From what rational models determine back to the parameters of the models that they come from.

What the rational models determine with their new parameters free, the real ones determine as well; that something is
not determined is told by the directions in which parameters can move together with everything that is tied to them.
Combinations for sampling are rational functions of the parameters. Where those found contain functions, these are
replaced by what they depend on: the combinations are then finer than what data determine, which is as right and less
efficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

from equifinal.algebra.arithmetic.local_rank import LocalAnalysis
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.identifiability.advice import Advice
from equifinal.identifiability.child import Tell
from equifinal.identifiability.freedoms import AnyOrder, Exchange, Freedom, JointMotion, Scaling, SeveralValues, Shift
from equifinal.identifiability.lifting.follow import closed, follows
from equifinal.identifiability.lifting.lifted import HALVED, LATE, RESTING, Lifted, Tie, TiedKernel
from equifinal.identifiability.orders import symmetric_functions
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN, Identifiability
from equifinal.language.expression import (
    Expression,
    Name,
    Number,
    Power,
    Product,
    is_rational,
    names,
    substitute,
    to_text,
)
from equifinal.language.model import Model
from equifinal.language.rational import added, multiplied, number, simplified


class Translation:
    """What is found of the rational models, for the models."""

    def __init__(self, models: Sequence[Model], lifted: Lifted, locals_: Sequence[LocalAnalysis]):
        self.models = models
        self.lifted = lifted
        kernels = [TiedKernel(lifted, local) for local in locals_]
        self.kernel: TiedKernel = min(kernels, key=lambda k: len(k.basis))  # a rank is never too large
        self.theta: tuple[str, ...] = tuple(lifted.parameters)
        first = models[0].constants
        same = {n: v for n, v in first.items() if all(m.constants.get(n) == v for m in models)}
        self.constants: dict[str, Fraction] = {n: v for n, v in same.items() if n not in self.theta}
        self.free: bool = bool({LATE, RESTING} & set(lifted.assumptions))  # from a state that is tied to nothing
        self.rough: bool = HALVED in lifted.assumptions
        self.ties: dict[str, Tie] = {tie.name: tie for tie in lifted.ties}
        self.stands_for: dict[str, str] = self._standing_for()
        self.moving: list[str] = [n for n in self.theta if not self.kernel.fixes(lifted.parameters[n], {})]

    def _standing_for(self) -> dict[str, str]:
        """Ties that are one-to-one functions of a parameter that occurs nowhere else, with that parameter."""
        uses = [n for tie in self.lifted.ties for n in names(tie.argument)] + list(self.lifted.unknowns)
        found = {}
        for tie in self.lifted.ties:
            exponents = _exponents(tie) if tie.kind == "exp" else [tie.argument]
            argument = exponents[0] if len(exponents) == 1 else None
            if tie.one_to_one and isinstance(argument, Name) and tie.name in self.lifted.unknowns:
                count = sum(n == argument.name for n in uses)
                if count == sum(n == argument.name for n in names(tie.argument)) and argument.name in self.theta:
                    found[tie.name] = argument.name
        return found

    @property
    def is_faithful(self) -> bool:
        """Whether the unknowns are the parameters, or each a one-to-one function of one of them."""
        others = [n for n in self.lifted.unknowns if n not in self.theta]
        return not self.lifted.hidden and not self.lifted.known and all(n in self.stands_for for n in others)

    # --- the answer ---

    def of(self, found: Identifiability) -> Identifiability:
        """The answer for the models, given that for the rational ones."""
        known = self._known(found)
        combinations, replaced = self._combinations(found)
        parameters = {name: self._verdict(Name(name), known) for name in self.theta}
        quantities = self._quantities(known)
        identifiable = tuple(c for c in combinations if not replaced or self._is_determined(c, known))
        finer = len(identifiable) < len(combinations)
        everywhere = all(word == GLOBALLY for word in parameters.values())
        degree = 1 if everywhere else found.fibre_degree if self.is_faithful else 0
        counts = {self.stands_for.get(n, n): k for n, k in found.alternatives.items()} if self.is_faithful else {}
        counts = {n: k for n, k in counts.items() if {**parameters, **quantities}.get(n) == LOCALLY}
        return replace(
            found,
            parameters=parameters,
            quantities=quantities,
            alternatives=counts,
            combinations=combinations,
            constants={n: v for n, v in found.constants.items() if any(n in names(c) for c in combinations)},
            complete=found.complete or {Name(n) for n in self.theta} <= set(combinations),
            functions=self._shown(found) if finer else (),
            finer=finer,
            rational=identifiable if finer else (),
            fibre_dimension=self.kernel.dimension(),
            fibre_degree=degree,
            freedoms=self._freedoms(found),
            advice=self._advice(found.advice),
            assumptions=self.lifted.assumptions,
        )

    def _is_determined(self, function: Expression, known: Sequence[Expression]) -> bool:
        """Whether a combination is identifiable; symmetric ones are where those of what stands for parameters are."""
        if self._verdict(function, known) == GLOBALLY:
            return True
        standing = {new: old for old, new in self.stands_for.items()}
        inside = [standing[n] for n in names(function) if n in standing]
        if len(inside) < len(names(function)) or function not in self._symmetric(added(map(Name, inside))):
            return False
        every = symmetric_functions((tuple((n,) for n in inside),))
        return all(follows(f, known, self.kernel.order, self.constants) for f in every)

    def _verdict(self, function: Expression, known: Sequence[Expression]) -> str:
        """Of a function of parameters, or of coordinates and ties, given functions that are identifiable."""
        expression = substitute(function, self.lifted.parameters)
        try:
            fixed = self.kernel.fixes(expression, self.constants)
        except (BadPrime, KeyError, ValueError):
            return UNKNOWN
        if not fixed:
            return UNKNOWN if self.free else NOT
        if follows(expression, known, self.kernel.order, self.constants):
            return GLOBALLY
        return UNKNOWN if self.rough else LOCALLY

    def _known(self, found: Identifiability) -> list[Expression]:
        """Functions of coordinates and ties that are identifiable, so many that all others follow from them."""
        known: list[Expression] = []
        if found.scope == "global":
            known += [Name(n) for n, word in found.parameters.items() if word == GLOBALLY]
            known += found.combinations
        known += [self._argument(e) for e in known if self._is_exponential(e)]
        return closed(self.lifted, known, self.constants, backwards=True)

    def _is_exponential(self, expression: Expression) -> bool:
        """Whether an expression is a product of powers of exponentials."""
        factors = expression.factors if isinstance(expression, Product) else (expression,)
        bases = [factor.base if isinstance(factor, Power) else factor for factor in factors]
        tied = [base for base in bases if isinstance(base, Name) and base.name in self.ties]
        return all(self.ties[base.name].kind == "exp" for base in tied) and len(tied) == len(
            [base for base in bases if not isinstance(base, Number)]
        )

    def _argument(self, expression: Expression) -> Expression:
        """The logarithm of a product of powers of exponentials, but for a number."""
        terms = []
        for factor in expression.factors if isinstance(expression, Product) else (expression,):
            base, times = (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, 1)
            if isinstance(base, Name):
                terms.append(multiplied(number(times), self.ties[base.name].argument))
        return simplified(added(terms))

    def _quantities(self, known: Sequence[Expression]) -> dict[str, str]:
        verdicts: dict[str, str] = {}
        lifted = {name: e for model in self.lifted.models for name, e in model.interest.items()}
        for model in self.models:
            constants = {n: Number(v) for n, v in model.constants.items()}
            for name, expression in model.interest.items():
                numeric = substitute(expression, constants)
                if is_rational(numeric):
                    verdicts[name] = self._verdict(numeric, known)
                elif name in lifted:
                    verdicts[name] = self._verdict(substitute(lifted[name], constants), known)
                else:
                    verdicts[name] = UNKNOWN
        return verdicts

    # --- combinations ---

    def _is_plain(self, expression: Expression) -> bool:
        """Whether an expression is a function of the parameters as it stands."""
        return set(names(expression)) <= {*self.theta, *self.constants}

    def _logarithm(self, expression: Expression) -> list[Expression] | None:
        """What determines a product of exponentials, and is determined by it: the logarithm.

        None if it is not such a product, or its logarithm no rational function of the parameters (but for a factor).
        """
        vector: dict[Expression | None, list[Expression]] = {}
        for factor in expression.factors if isinstance(expression, Product) else (expression,):
            base, times = (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, 1)
            if isinstance(base, Number):
                continue
            tie = self.ties.get(base.name) if isinstance(base, Name) else None
            if tie is None or tie.kind != "exp":
                return None
            for (b, m), c in tie.vector.items():
                if b is not None and not isinstance(b, Number):
                    return None
                vector.setdefault(b, []).append(multiplied(number(times * c), m))
        parts = [simplified(added(terms)) for terms in vector.values()]
        if not parts or not all(self._is_plain(part) for part in parts):
            return None
        same = all(isinstance(simplified(multiplied(p, Power(parts[0], -1))), Number) for p in parts[1:])
        return parts[:1] if same else None

    def _combinations(self, found: Identifiability) -> tuple[tuple[Expression, ...], bool]:
        """Combinations that determine the output, and whether they may determine more."""
        kept: dict[Expression, None] = {}
        finer = False
        for e in found.combinations:
            if self._is_plain(e):
                kept[e] = None
            elif (logarithm := self._logarithm(e)) is not None:
                kept |= dict.fromkeys(logarithm)
            elif symmetric := self._symmetric(e):
                finer = True
                kept |= dict.fromkeys(symmetric)
            else:
                inside = self.lifted.determining(e)
                finer = True
                kept |= dict.fromkeys(f for f in inside if set(names(f)) & set(self.theta))
        alone = {e.name for e in kept if isinstance(e, Name)}
        return tuple(e for e in kept if isinstance(e, Name) or not set(names(e)) & set(self.theta) <= alone), finer

    def _symmetric(self, expression: Expression) -> Sequence[Expression]:
        """Symmetric functions of parameters that determine a symmetric function of what stands for them; or none."""
        inside = names(expression)
        if len(inside) < 2 or not all(n in self.stands_for and self.ties[n].kind == "exp" for n in inside):
            return ()
        if not self._one_base(dict.fromkeys(inside, 1)):
            return ()
        for first, second in pairwise(inside):
            exchanged = substitute(expression, {first: Name(second), second: Name(first)})
            if simplified(exchanged) != simplified(expression):
                return ()
        return [simplified(f) for f in symmetric_functions((tuple((self.stands_for[n],) for n in inside),))]

    def _shown(self, found: Identifiability) -> tuple[str, ...]:
        shown = []
        for e in found.combinations:
            unnamed = [n for n in self.lifted.hidden if " later, " in n]
            if set(names(e)) <= set(self.lifted.known) or set(names(self.lifted.written(e))) & set(unnamed):
                continue
            if logarithm := self._logarithm(e):
                shown += [to_text(part) for part in logarithm]
            else:
                shown.append(to_text(self.lifted.written(e)))
        return tuple(dict.fromkeys(shown))

    # --- freedoms and advice ---

    def _freedoms(self, found: Identifiability) -> tuple[Freedom, ...]:
        if self.lifted.is_exact:
            return found.freedoms
        kept: list[Freedom] = []
        if self.is_faithful:
            for freedom in found.freedoms:
                kept += self._renamed(freedom)
            return tuple(kept)
        dimension = self.kernel.dimension()
        return (JointMotion(tuple(self.moving), dimension),) if dimension and not self.free else ()

    def _renamed(self, freedom: Freedom) -> Iterable[Freedom]:
        """The freedom in parameters, where unknowns stand for parameters."""
        new = self.stands_for
        match freedom:
            case Scaling(weights, symbol) if not set(weights) & set(new):
                yield freedom
            case Scaling(weights, symbol) if set(weights) <= set(new) and self._one_base(weights):
                yield Shift({new[n]: w for n, w in weights.items()}, symbol)
            case Scaling(weights, _) | Shift(weights, _):
                yield JointMotion(tuple(new.get(n, n) for n in weights), 1)
            case Exchange((first, second), adjusting):
                others = None if adjusting is None else tuple(new.get(n, n) for n in adjusting)
                yield Exchange((new.get(first, first), new.get(second, second)), others)
            case JointMotion(moved, dimension):
                yield JointMotion(tuple(new.get(n, n) for n in moved), dimension)
            case AnyOrder(blocks):
                yield AnyOrder(tuple(tuple(new.get(n, n) for n in block) for block in blocks))
            case SeveralValues(several, points):
                yield SeveralValues(tuple(new.get(n, n) for n in several), points)

    def _one_base(self, weights: Mapping[str, int]) -> bool:
        bases = {frozenset((b, c) for (b, _), c in self.ties[n].vector.items()) for n in weights}
        return len(bases) == 1 and all(self.ties[n].kind == "exp" for n in weights)

    def _advice(self, advice: Sequence[Advice]) -> tuple[Advice, ...]:
        """Advice on what the models have, and where it is certain to help."""
        there = {*self.theta, *(x for model in self.models for x in (*model.states, *model.definitions))}
        kept = []
        for one in advice:
            renamed = replace(one, names=tuple(self.stands_for.get(n, n) for n in one.names))
            if set(renamed.names) <= there and (self.is_faithful or one.kind == "know"):
                kept.append(renamed)
        return tuple(kept) if self.is_faithful else ()


class Run(Protocol):
    """An analysis of rational models, which tells what it knows on the way."""

    locals: list[LocalAnalysis]

    def run(self, tell: Tell) -> Identifiability: ...


def translated(models: Sequence[Model], lifted: Lifted, analysis: Run, tell: Tell) -> Identifiability:
    """What the analysis of the rational models that they were lifted to says about the models."""
    translation: list[Translation] = []

    def back(found: Identifiability) -> Identifiability:
        if not translation:  # the local analyses come first
            translation.append(Translation(models, lifted, analysis.locals))
        return translation[0].of(found)

    return back(analysis.run(lambda found: tell(back(found))))


def _exponents(tie: Tie) -> list[Expression]:
    """The different monomials in the exponent of a power whose bases are numbers; none where they are not."""
    if any(base is not None and not isinstance(base, Number) for base, _ in tie.vector):
        return []
    return list(dict.fromkeys(m for _, m in tie.vector))
