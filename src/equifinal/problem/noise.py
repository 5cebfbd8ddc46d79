"""How observations scatter around the model's output: a family from `noise_families`, its arguments, and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, ModelError, did_you_mean
from equifinal.language.expression import (
    TIME,
    Expression,
    Name,
    Number,
    evaluate,
    initial_name,
    name_nodes,
    names,
    substitute,
    to_text,
    with_name,
)
from equifinal.language.model import Model, read_part
from equifinal.language.parser import is_name, parse_expression
from equifinal.language.tokens import canonical_name
from equifinal.problem.families import Argument, NoiseFamily, family_name
from equifinal.problem.noise_families import FAMILIES, code_of, code_of_sum

Array = NDArray[np.float64]
Sides = NDArray[np.int8]
Given = float | tuple[float, ...] | str | Expression
Limit = float | tuple[float, ...]

_NOTHING = np.empty(0)
OUTPUT = "m"  # what expressions may call the output, whatever its name
NONE = {"below": -math.inf, "above": math.inf}  # limits that nothing lies beyond


@dataclass(frozen=True, init=False)
class Noise:
    """A noise family with its arguments: ``Noise("normal", sd=5)`` or ``Noise("normal", sd="a + b*m")``.

    Every argument is a positive number, or one for each row of the data; the name of a parameter; or an expression in
    parameters, constants, the output, as ``m`` or by its name, and what else the model defines.

    Parameters
    ----------
    family
        ``normal`` (sd and/or relative), ``student-t`` (df; scale and/or relative), ``laplace`` (scale and/or
        relative), ``lognormal`` (sdlog), ``log2-normal``, ``log10-normal`` (sd), ``log-laplace``, ``log10-laplace``
        (scale), ``poisson`` or ``negative-binomial`` (overdispersion).
    below, above
        Limits, numbers or one for each row: of an observation that is less than ``below`` no more is known than that,
        nor of one that is more than ``above``.

    Attributes
    ----------
    arguments
        Those that are given; an expression that is more than a parameter's name as such.
    """

    family: str
    arguments: Mapping[str, Given]
    below: Limit
    above: Limit

    def __init__(
        self,
        family: str,
        /,
        *,
        below: float | Sequence[float] | None = None,
        above: float | Sequence[float] | None = None,
        **arguments: float | str | Sequence[float] | Expression,
    ):
        name = family_name(family, FAMILIES, "noise family")
        record = FAMILIES[name]
        who = f"{name} noise"
        record.check_names(who, arguments, also=("below", "above"))
        rules = {rule.name: rule for rule in record.arguments}
        found = {key: _argument(value, rules[key], who) for key, value in arguments.items()}
        limits = {key: _limit(value, key, who) for key, value in (("below", below), ("above", above))}
        for key, value in ({"family": name, "arguments": found} | limits).items():
            object.__setattr__(self, key, value)
        for low, high in np.broadcast(limits["below"], limits["above"]) if self._rows_agree() else ():
            if not low < high:
                raise DataError(f"{who}: 'below' ({low:g}) must be less than 'above' ({high:g})")

    @property
    def record(self) -> NoiseFamily:
        return FAMILIES[self.family]

    @property
    def code(self) -> int:
        """Number by which compiled loops know the family."""
        return code_of(self.record)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments that are parameters themselves."""
        return tuple(value for value in self.arguments.values() if isinstance(value, str))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Arguments that are expressions."""
        return tuple(value for value in self.arguments.values() if not isinstance(value, (float, tuple, str)))

    @property
    def by_row(self) -> bool:
        """Whether an argument is known for rows of the data only."""
        return any(isinstance(value, tuple) for value in self.arguments.values())

    @property
    def values(self) -> tuple[Given, ...]:
        """Every argument of the family in its order, given or by default."""
        return tuple(self.arguments.get(rule.name, rule.default or 0.0) for rule in self.record.arguments)

    @property
    def sum(self) -> int:
        """Number by which compiled loops know the one sum that observations need; -1 if none is enough."""
        return code_of_sum(self.record) if self.record.sum.holds(self.arguments) else -1

    @property
    def texts(self) -> dict[str, float | tuple[float, ...] | str]:
        """The arguments with expressions as text, which `Noise` reads back."""
        return {k: v if isinstance(v, (float, tuple, str)) else text_of(v) for k, v in self.arguments.items()}

    @property
    def limits(self) -> dict[str, Limit]:
        """Those of ``below`` and ``above`` that are given."""
        return {key: value for key, none in NONE.items() if (value := getattr(self, key)) != none}

    def __str__(self) -> str:
        shown = ", ".join(f"{k} = {_words(v)}" for k, v in self.arguments.items())
        limits = "".join(f", censored {key} {_words(value)}" for key, value in self.limits.items())
        return (f"{self.family}({shown})" if shown else self.family) + limits

    # --- rows ---

    def _lengths(self) -> dict[str, int]:
        parts = {**self.arguments, "below": self.below, "above": self.above}
        return {key: len(value) for key, value in parts.items() if isinstance(value, tuple)}

    def _rows_agree(self) -> bool:
        return len(set(self._lengths().values())) < 2

    def at_rows(self, rows: NDArray[np.int64], number: int, output: str) -> Noise:
        """The noise of some rows of so many, in this order."""
        for key, length in self._lengths().items():
            if length != number:
                raise DataError(
                    f"output '{output}': '{key}' of its noise has {length} numbers for {number} rows of data"
                )
        if not self._lengths():
            return self
        some = {k: tuple(v[i] for i in rows) if isinstance(v, tuple) else v for k, v in self.arguments.items()}
        for key, value in some.items():
            if isinstance(value, tuple) and any(math.isnan(number) for number in value):
                raise DataError(f"output '{output}': '{key}' of its noise is missing in a row with an observation")
        limits = {k: tuple(v[i] for i in rows) if isinstance(v, tuple) else v for k, v in self.limits.items()}
        return Noise(self.family, **some, **limits)  # type: ignore[arg-type]

    # --- limits ---

    @property
    def general_limits(self) -> tuple[float, float]:
        """The limits that hold for whatever is observed, not only for rows of the data."""
        low, high = (
            own if isinstance(own, float) else NONE[key] for key, own in (("below", self.below), ("above", self.above))
        )
        return low, high

    def check_values(self, values: Array, output: str, limits: Array = _NOTHING) -> None:
        """Refuse observations and limits that the family gives no probability to; ``limits`` are those below."""
        word, allows = self.record.support
        seen = np.concatenate([values, limits])
        bad = seen[np.isfinite(seen) & ~allows(seen)]
        if bad.size:
            raise DataError(f"output '{output}' has {self.family} noise, so its data must be {word}; found {bad[0]:g}")
        empty = [limit for limit in limits if -math.inf < limit <= 0]
        if empty and not allows(np.array([-1.0]))[0]:
            raise DataError(f"output '{output}' has {self.family} noise, so nothing lies below {empty[0]:g}")

    # --- in a model ---

    def about(self, output: str, model: Model, increment: bool = False) -> Noise:
        """The same noise with ``m`` and names of the model's own read as what they are."""
        found = {key: self._resolved(key, value, output, model, increment) for key, value in self.arguments.items()}
        return self if found == self.arguments else Noise(self.family, **found, **self.limits)  # type: ignore[arg-type]

    def _resolved(self, key: str, value: Given, output: str, model: Model, increment: bool) -> Given:
        if isinstance(value, (float, tuple)):
            return value
        if isinstance(value, str):
            if value in model.parameters or not (value == OUTPUT or is_declared(value, model)):
                return value
            value = Name(value)
        used, where = names(value), f"{self.family} noise: '{key}'"
        if OUTPUT in used and output != OUTPUT:
            if is_declared(OUTPUT, model) or OUTPUT in model.parameters:
                raise DataError(
                    f"{where} contains 'm', which the model has too; call the output by its name, '{output}'"
                )
            value, used = substitute(value, {OUTPUT: Name(output)}), (*used, output)
        if increment and output in used:
            raise DataError(
                f"{where} contains the output, of which only increments are observed; give a share of the expected "
                "increment as 'relative'"
            )
        formula = model.definitions.get(output)
        if formula is not None and not increment and not isinstance(formula, Number):
            value = with_name(
                value, formula, Name(output)
            )  # scatter depends on the output, not on what that consists of
        return parse_expression(text_of(value))  # so that it is the same once it has been stored

    def simulate(self, mean: Array, values: Mapping[str, Any], rng: np.random.Generator) -> Array:
        """Draw an observation around each entry of ``mean``; NaN where the family is not defined there.

        Limits are not applied: see `censored`.

        Parameters
        ----------
        mean
            Its last axis is that of the rows.
        values
            Of the parameters that the noise names, and of its expressions by their text; they broadcast against
            ``mean``.
        """
        given = [values[text] if isinstance(text, str) else text for text in _in_order(self)]
        arguments = [
            rule.unit * np.asarray(value, float) for rule, value in zip(self.record.arguments, given, strict=True)
        ]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return self.record.simulate(np.asarray(mean, float), arguments, rng)


def censored(values: Array, below: Any, above: Any) -> tuple[Array, Sides]:
    """Values with limits in place of those beyond them, and on which side of a limit each lies: -1, 0 or 1."""
    with np.errstate(invalid="ignore"):
        sides = np.where(values < below, -1, np.where(values > above, 1, 0)).astype(np.int8)
    return np.clip(values, below, above), sides


def text_of(expression: Expression) -> str:
    """The text of an argument, which is the name of what the solver computes for it."""
    return to_text(expression, decimals=True)


def is_declared(name: str, model: Model) -> bool:
    """Whether a name is something other than a parameter in the model."""
    own = (TIME, *model.states, *map(initial_name, model.states))
    known = (model.definitions, model.constants, model.inputs, model.levels)
    return name in own or any(name in names for names in known)


def check_names(noise: Noise, texts: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse names in expressions that are none of the known ones; ``texts`` is where they were written."""
    for key, value in noise.arguments.items():
        if isinstance(value, (float, tuple, str)):
            continue
        for node in name_nodes(value):
            if node.name not in known and node.name != OUTPUT:
                hint = did_you_mean(node.name, known)
                raise DataError(f"{key} = {texts[key]!r}, column {node.column}: unknown name '{node.name}'{hint}")


def _in_order(noise: Noise) -> tuple[float | tuple[float, ...] | str, ...]:
    texts = noise.texts
    return tuple(texts.get(rule.name, rule.default or 0.0) for rule in noise.record.arguments)


def _argument(value: Any, rule: Argument, who: str) -> Given:
    if isinstance(value, str):
        return _text(value, rule, who)
    if isinstance(value, (Sequence, np.ndarray)):
        return tuple(_number(number, rule, who, missing=True) for number in value)
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return _number(value, rule, who)
    if isinstance(value, Expression):
        return value
    raise _unusable(value, rule, who)


def _text(text: str, rule: Argument, who: str) -> Given:
    if is_name(canonical_name(text)):
        return canonical_name(text)
    if not text.strip():
        raise _unusable(text, rule, who)
    try:
        expression = read_part(text, f"{who}: '{rule.name}'")
    except ModelError as error:
        raise DataError(error.message) from None
    if names(expression):
        return expression
    try:
        return _number(float(evaluate(expression, {}, Fraction)), rule, who)
    except ArithmeticError:
        raise _unusable(text, rule, who) from None


def _number(value: Any, rule: Argument, who: str, missing: bool = False) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise _unusable(value, rule, who) from None
    usable = abs(number) < 1e300 and (number > 0 or not rule.positive)
    if not usable and not (missing and math.isnan(number)):
        raise _unusable(value, rule, who)
    return number


def _unusable(value: Any, rule: Argument, who: str) -> DataError:
    kind = "a positive number" if rule.positive else "a number"
    return DataError(f"{who}: '{rule.name}' must be {kind} or the name of a parameter or an expression, not {value!r}")


def _limit(value: Any, key: str, who: str) -> Limit:
    if value is None:
        return NONE[key]
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    try:
        found = [NONE[key] if n is None else float(n) for n in (value if several else [value])]
        if any(isinstance(n, (bool, str)) for n in (value if several else [value])):
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{who}: '{key}' must be a number or one for each row, not {value!r}") from None
    found = [NONE[key] if math.isnan(number) else number for number in found]
    if any(number == -NONE[key] for number in found):
        raise DataError(f"{who}: '{key}' must be a finite number, not {value!r}")
    return tuple(found) if several else found[0]


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        finite = [number for number in value if math.isfinite(number)]
        span = f"{min(finite):g} to {max(finite):g}" if finite and min(finite) < max(finite) else ""
        return f"{span} by row" if span else f"{finite[0]:g} in rows" if finite else "by row"
    if isinstance(value, float):
        return format(value, "g")
    return value if isinstance(value, str) else text_of(value)
