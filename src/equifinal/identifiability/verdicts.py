"""What an identifiability analysis answers: verdicts, combinations, freedoms and advice, all as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

from equifinal.algebra.arithmetic.budget import SECOND, Budget, OutOfTime, TooLarge
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.quotient import NotFinite
from equifinal.algebra.generators.expressing import Expressed, express
from equifinal.errors import EquifinalError, IdentifiabilityError
from equifinal.identifiability.advice import Advice
from equifinal.identifiability.freedoms import Freedom
from equifinal.language.expression import Expression, is_rational, names, to_text
from equifinal.language.parser import parse_expression
from equifinal.showing import Shown

GLOBALLY, LOCALLY, NOT, UNKNOWN = "globally", "locally", "not", "unknown"
NUMBERS, NOTHING = "numbers", "nothing"  # assumptions where exact algebra says nothing: what verdicts come from then
OUT_OF_TIME, TOO_LARGE = "out of time", "too large"


class NoExactAnalysis(IdentifiabilityError):
    """Exact algebra says nothing about a model; numbers may."""


@dataclass(frozen=True)
class Design:
    """What experiments as they really are determine, locally: the rank of their sensitivities.

    Attributes
    ----------
    rank
        How many functions of the parameters the outputs determine.
    expected
        How many the analysis says that they can determine.
    unseen
        Parameters and quantities that are identifiable by the analysis, but not by these experiments.
    combinations
        Combinations of the analysis that these experiments do not determine.
    gap
        How clearly the rank shows: how much the least singular value that counts exceeds the next, compared with the
        steps between those that count; above 30 it is clear; 1e300 if none is left.
    points
        At how many random parameters.
    excess
        Where the rank is larger than expected, how much the first singular value that should be zero exceeds what
        cannot be resolved: far more contradicts the analysis.
    """

    rank: int
    expected: int
    unseen: tuple[str, ...]
    combinations: tuple[str, ...]
    gap: float
    points: int
    excess: float = 0.0

    @property
    def is_clear(self) -> bool:
        """Whether singular values that count are well above those that do not, and there are not too many by a hair."""
        return self.gap > 30 and (self.rank <= self.expected or self.contradicts)

    @property
    def contradicts(self) -> bool:
        """Whether these experiments determine more than the analysis says that any can: one of the two is wrong."""
        return self.rank > self.expected and self.excess > 1000

    @property
    def enough(self) -> bool:
        """Whether these experiments determine all that the analysis says can be determined."""
        return not self.unseen and not self.combinations and self.rank >= self.expected

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Design:
        return Design(**{**data, "unseen": tuple(data["unseen"]), "combinations": tuple(data["combinations"])})


@dataclass(frozen=True, repr=False)
class Identifiability(Shown):
    """The answer of `analyse`; `words.identifiability` puts it in sentences.

    Attributes
    ----------
    parameters, quantities
        ``"globally"``, ``"locally"`` or ``"not"`` for every coordinate of theta and every quantity of
        interest. When `scope` is ``"local"``, ``"locally"`` means identifiable at least locally. ``"unknown"`` where
        algebra does not tell: for some models with functions or steady states.
    alternatives
        How many (complex) values a locally identifiable coordinate or quantity may have; only where known and
        above 1.
    combinations
        Generators of the field of globally identifiable functions, simplest first, those without initial
        values before the others. When `complete` is false they are identifiable but may not generate
        everything; when `scope` is ``"local"`` they are identifiable at least locally, and only simple ones are there.
    constants
        Known numbers that `combinations` contain by name.
    fibre_dimension
        r: on how many continuous freedoms the output does not depend.
    fibre_degree
        D: how many points of a fibre agree in r suitable coordinates, at least; only an upper bound of that if there
        are freedoms and the combinations are not `complete`; 0 if not known.
    scope
        ``"global"`` or, when the fibre was not found, ``"local"``.
    freedoms
        What can be changed without any output changing.
    advice
        Smallest additions that would make everything identifiable.
    error_probability
        Bound on the probability that a random choice was unlucky.
    unfinished
        Why there may be more to know: ``"out of time"`` if the time limit ended the analysis, ``"too large"`` if it is
        local or not complete because more would have taken more work than allowed; else empty.
    certificate
        Method, primes, orders, and which parts are certified and which probable.
    finer
        Whether the combinations may determine more than the data do: they determine the output, and samplers may use
        them, but functions in the model, or its steady state, keep what data determine from being rational.
    functions
        Where the combinations are finer, what was found to be determined, as text, functions included.
    rational
        Where the combinations are finer, those of them that are identifiable.
    assumptions
        What "identifiable" takes for granted: ``"rich inputs"`` and ``"seen moments"``, and from where parts of the
        model start (`lifting`). Where there is no exact analysis, ``"numbers"`` if verdicts come from the rank of
        sensitivities, or ``"nothing"`` if there are none.
    design
        What the experiments as they really are determine, locally, if that was found out (`posterior.design`).
    """

    parameters: Mapping[str, str]
    quantities: Mapping[str, str]
    alternatives: Mapping[str, int]
    combinations: tuple[Expression, ...]
    constants: Mapping[str, Fraction]
    fibre_dimension: int
    fibre_degree: int
    scope: str
    complete: bool
    freedoms: tuple[Freedom, ...]
    advice: tuple[Advice, ...]
    error_probability: float
    seconds: float
    unfinished: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)
    finer: bool = False
    functions: tuple[str, ...] = ()
    rational: tuple[Expression, ...] = ()
    assumptions: tuple[str, ...] = ()
    design: Design | None = None

    def __repr__(self) -> str:
        words = {GLOBALLY: "identifiable", LOCALLY: "up to alternatives", NOT: "not identifiable", UNKNOWN: "not known"}
        told = {word: [n for n, verdict in self.parameters.items() if verdict == key] for key, word in words.items()}
        shown = "; ".join(f"{word}: {', '.join(names)}" for word, names in told.items() if names)
        return f"<Identifiability: {shown}>"

    def expresses(self, function: str | Expression, *, time_limit: float = inf) -> Expressed:
        """Is a function of theta identifiable, and if that is easy, how is it written in the combinations?

        Parameters
        ----------
        function
            Text in the model language, such as ``"beta*N/gamma"``, or an expression.
        time_limit
            Seconds, if an answer is of no use later.

        Returns
        -------
        Expressed
            ``status`` as for parameters, and ``formula`` (or None) in the names xi1, xi2, ... of
            `combinations`.
        """
        if not isinstance(function, str | Expression):
            raise IdentifiabilityError(f"a function must be text such as 'beta*N/gamma', not {function!r}")
        expression = parse_expression(function) if isinstance(function, str) else function
        for name in names(expression):
            if name not in self.parameters and name not in self.constants:
                raise IdentifiabilityError(f"'{name}' is neither a parameter nor a named constant of the analysis")
        if not is_rational(expression):
            raise IdentifiabilityError(
                f"'{to_text(expression)}' calls a function, so it cannot be expressed in rational combinations; ask "
                "for a quantity of interest instead"
            )
        if self.finer:
            raise IdentifiabilityError(
                "the combinations are finer than what data determine, since the model has functions or a steady state "
                "that are not rational in its parameters; ask for a quantity of interest instead"
            )
        if not self.complete:
            raise IdentifiabilityError(
                "the combinations are not known to be complete, so membership cannot be decided; "
                f"allow the analysis {self.missing}"
            )
        budget = Budget(10 * SECOND, time_limit)
        try:
            return express(expression, self.combinations, tuple(self.parameters), self.constants, budget)
        except OutOfTime:
            raise IdentifiabilityError(
                f"could not decide within {time_limit:g} s whether {to_text(expression)} is identifiable"
            ) from None
        except BadPrime:
            raise IdentifiabilityError(f"{to_text(expression)} divides by zero for all parameters") from None
        except (TooLarge, NotFinite):
            raise IdentifiabilityError(f"whether {to_text(expression)} is identifiable is too hard to decide") from None

    @property
    def determined(self) -> tuple[Expression, ...]:
        """The combinations that data determine; all of them, unless they are finer than that."""
        return self.rational if self.finer else self.combinations

    @property
    def is_exact(self) -> bool:
        """Whether verdicts come from exact algebra, or at least no others do."""
        return not {NUMBERS, NOTHING} & set(self.assumptions)

    @property
    def missing(self) -> str:
        """What an analysis that is not complete would need."""
        return "more time" if self.unfinished == OUT_OF_TIME else "more effort"

    def to_json(self) -> dict[str, Any]:
        """Plain data; combinations in the model language."""
        return {
            "parameters": dict(self.parameters),
            "quantities": dict(self.quantities),
            "alternatives": dict(self.alternatives),
            "combinations": [to_text(c) for c in self.combinations],
            "constants": {name: str(value) for name, value in self.constants.items()},
            "fibre_dimension": self.fibre_dimension,
            "fibre_degree": self.fibre_degree,
            "scope": self.scope,
            "complete": self.complete,
            "freedoms": [f.to_json() for f in self.freedoms],
            "advice": [a.to_json() for a in self.advice],
            "error_probability": self.error_probability,
            "seconds": self.seconds,
            "unfinished": self.unfinished,
            "certificate": dict(self.certificate),
            "finer": self.finer,
            "functions": list(self.functions),
            "rational": [to_text(c) for c in self.rational],
            "assumptions": list(self.assumptions),
            "design": None if self.design is None else self.design.to_json(),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Identifiability:
        """Read back what `to_json` gave."""
        try:
            return Identifiability(
                parameters=dict(data["parameters"]),
                quantities=dict(data["quantities"]),
                alternatives={k: int(v) for k, v in data["alternatives"].items()},
                combinations=tuple(parse_expression(text) for text in data["combinations"]),
                constants={k: _fraction(v) for k, v in data["constants"].items()},
                fibre_dimension=int(data["fibre_dimension"]),
                fibre_degree=int(data["fibre_degree"]),
                scope=str(data["scope"]),
                complete=bool(data["complete"]),
                freedoms=tuple(Freedom.from_json(f) for f in data["freedoms"]),
                advice=tuple(Advice.from_json(a) for a in data["advice"]),
                error_probability=float(data["error_probability"]),
                seconds=float(data["seconds"]),
                unfinished=str(data.get("unfinished", "")),
                certificate=dict(data["certificate"]),
                finer=bool(data.get("finer", False)),
                functions=tuple(map(str, data.get("functions", ()))),
                rational=tuple(parse_expression(text) for text in data.get("rational", ())),
                assumptions=tuple(map(str, data.get("assumptions", ()))),
                design=Design.from_json(data["design"]) if data.get("design") else None,
            )
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, EquifinalError) as error:
            raise IdentifiabilityError(f"this is not a stored identifiability analysis: {error}") from None


def _fraction(text: str) -> Fraction:
    """Read back what ``str`` makes of a fraction; "1e999999999" would be a number for days."""
    if not re.fullmatch(r"-?\d{1,4000}(/\d{1,4000})?", text, re.ASCII):
        raise ValueError("constants")
    return Fraction(text)
