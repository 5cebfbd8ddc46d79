"""Numbers, names and expressions as users write them in doses, changes and steady states."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from equifinal.errors import DataError, ModelError
from equifinal.language.expression import TIME, Call, Expression, Name, Number, Power, Product, Sum, names, substitute
from equifinal.language.model import Model, exact_number, read_part

Part = int | float | str | Fraction | Expression


def part(value: Any, what: str) -> Expression:
    """A number, or an expression given as text; anything else is an error that says what would be right."""
    if isinstance(value, (Number, Name, Sum, Product, Power, Call)):
        return value
    try:
        return read_part(value, what) if isinstance(value, str) else Number(exact_number(value, what))
    except ModelError as error:
        raise DataError(
            f"{error.message}; it may be a number, a constant, a parameter, or an expression in these"
        ) from None


def number(expression: Expression) -> Fraction | None:
    """The value of an expression that is just a number."""
    return expression.value if isinstance(expression, Number) else None


def added(*terms: Expression) -> Expression:
    """A sum; numbers are added up, and zeros left out."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, Sum) else (term,))]
    values = [value for term in flat if (value := number(term)) is not None]
    others = [term for term in flat if number(term) is None]
    total = sum(values, Fraction(0))
    parts = [*others, *([Number(total)] if total or not others else [])]
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))


def multiplied(*factors: Expression) -> Expression:
    """A product; numbers are multiplied, and ones left out."""
    flat = [part for factor in factors for part in (factor.factors if isinstance(factor, Product) else (factor,))]
    product, others = Fraction(1), [factor for factor in flat if number(factor) is None]
    for factor in flat:
        product *= value if (value := number(factor)) is not None else 1
    parts = [*([Number(product)] if product != 1 or not others else []), *others]
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def changing_name(expression: Expression, model: Model) -> str | None:
    """The first name in an expression that stands for something that changes with time."""
    changing = {*model.states, *model.inputs, *model.levels, TIME}
    return next((name for name in names(substitute(expression, model.closed_definitions)) if name in changing), None)


def taken_names(model: Model) -> set[str]:
    """Every name that means something in a model."""
    found = {*model.states, *model.parameters, *model.constants, *model.inputs, *model.definitions, *model.levels}
    return found | {*model.quantities, *model.trajectories}


def unused_name(wanted: str, taken: Iterable[str]) -> str:
    """The name that is wanted, with underscores after it as long as it means something else."""
    occupied = set(taken)
    while wanted in occupied:
        wanted += "_"
    return wanted
