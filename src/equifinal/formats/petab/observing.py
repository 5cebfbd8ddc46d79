"""Observations as PEtab has them: rows of the observable table, and what each measurement says of its noise.

What is a number or a parameter, and another one in other rows or experiments, is a placeholder of its observable.
Observations of an output whose noise has another form have an observable of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

from equifinal.errors import DataError
from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum, substitute
from equifinal.problem.data import Observations

LOG10, LOG2 = (Call("log", (Number(Fraction(base)),)) for base in (10, 2))
# families of noise: distribution in PEtab, and what the argument is multiplied by
NOISE: dict[str, tuple[str, Expression | None]] = {
    "normal": ("normal", None),
    "lognormal": ("log-normal", None),
    "log10-normal": ("log-normal", LOG10),
    "log2-normal": ("log-normal", LOG2),
    "laplace": ("laplace", None),
    "log-laplace": ("log-laplace", None),
    "log10-laplace": ("log-laplace", LOG10),
}
Shape = tuple[str, str, tuple[tuple[str, Expression | None], ...]]


@dataclass
class Observable:
    """Observations whose noise has the same form.

    Attributes
    ----------
    varying
        Arguments of the noise that are placeholders, in order.
    """

    identifier: str
    entries: list[Observations] = field(default_factory=list)

    @property
    def varying(self) -> list[str]:
        first = self.entries[0].noise.arguments
        return [
            key
            for key, value in first.items()
            if isinstance(value, tuple) or any(entry.noise.arguments[key] != value for entry in self.entries)
        ]

    def placeholder(self, argument: str) -> str:
        return f"noiseParameter{self.varying.index(argument) + 1}_{self.identifier}"

    def row(self, formula: Expression, definition: Expression, text: Callable[[Expression], str]) -> dict[str, Any]:
        """The row of the observable table; `definition` is what its output stands for in the noise."""
        entry, varying = self.entries[0], self.varying
        distribution, unit = NOISE[entry.noise.family]
        given: dict[str, Expression] = {
            key: Name(self.placeholder(key)) if key in varying else _expression(value)
            for key, value in entry.noise.arguments.items()
        }
        scale = substitute(_scale(given, entry.output), {entry.output: definition})
        return {
            "observableId": self.identifier,
            "observableFormula": text(formula),
            "noiseFormula": text(scale if unit is None else Product((scale, unit))),
            "noiseDistribution": distribution,
            "noisePlaceholders": ";".join(map(self.placeholder, varying)),
        }

    def overrides(self, entry: Observations, k: int, text: Callable[[Expression], str]) -> str:
        """What the k-th measurement of an entry says of the noise."""
        values = [entry.noise.arguments[key] for key in self.varying]
        return ";".join(text(_expression(value[k] if isinstance(value, tuple) else value)) for value in values)


def observables_of(
    entries: Sequence[Observations], wanted: Mapping[str, str], taken: set[str]
) -> dict[Shape, Observable]:
    """Observables by what their noise is like.

    Parameters
    ----------
    wanted
        Identifiers by output.
    taken
        Identifiers of the model.

    Raises
    ------
    DataError
        If PEtab cannot express an observation.
    """
    found: dict[Shape, Observable] = {}
    for entry in entries:
        family = entry.noise.family
        if family not in NOISE:
            raise DataError(f"'{entry.output}' has {family} noise, which PEtab does not have")
        if entry.increment:
            raise DataError(f"'{entry.output}' is observed by its increments, which PEtab cannot express")
        if entry.censored.any():
            raise DataError(f"'{entry.output}' has censored data, which PEtab cannot express")
        shape = shape_of(entry)
        if shape not in found:
            used = taken | {other.identifier for other in found.values()}
            names = (f"{wanted[entry.output]}{f'_{k}' if k > 1 else ''}" for k in count(1))
            found[shape] = Observable(next(name for name in names if name not in used))
        found[shape].entries.append(entry)
    return found


def shape_of(entry: Observations) -> Shape:
    """Output, family and arguments, without those that may differ between rows."""
    arguments = entry.noise.arguments.items()
    plain = ((key, None if isinstance(value, (float, tuple, str)) else value) for key, value in arguments)
    return entry.output, entry.noise.family, tuple(plain)


def _scale(given: dict[str, Expression], output: str) -> Expression:
    relative = given.pop("relative", None)
    scale = next(iter(given.values()), None)
    if relative is None:
        assert scale is not None
        return scale
    share = Product((relative, Name(output)))
    if scale is None:
        return Call("abs", (share,))
    return Call("power", (Sum((Power(scale, 2), Power(share, 2))), Number(Fraction(1, 2))))


def _expression(value: Any) -> Expression:
    if isinstance(value, str):
        return Name(value)
    return Number(Fraction(repr(value))) if isinstance(value, float) else value
