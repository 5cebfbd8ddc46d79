"""Observables and measurements: what is seen of the model, how it scatters, and the rows of data by experiment.

A measurement may give its own values for placeholders in the formulas of its observable. Within an experiment,
measurements with the same values share an output; others get outputs of their own, ``obs``, ``obs_2``, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple
from unicodedata import normalize

from equifinal.errors import DataError, did_you_mean
from equifinal.formats.petab.tables import Row
from equifinal.formats.sbml.settling import Settling
from equifinal.language.expression import Expression, Name, Number, names, substitute, with_name

# noise families by distribution and transformation: the family here, and its argument
NOISE: dict[tuple[str, str], tuple[str, str]] = {
    ("normal", "lin"): ("normal", "sd"),
    ("normal", "log"): ("lognormal", "sdlog"),
    ("normal", "log10"): ("log10-normal", "sd"),
    ("laplace", "lin"): ("laplace", "scale"),
    ("laplace", "log"): ("log-laplace", "scale"),
    ("laplace", "log10"): ("log10-laplace", "scale"),
}
DISTRIBUTIONS_2 = {
    "normal": ("normal", "lin"),
    "log-normal": ("normal", "log"),
    "laplace": ("laplace", "lin"),
    "log-laplace": ("laplace", "log"),
}


@dataclass(frozen=True)
class Observable:
    """A row of the observable table, formulas parsed; placeholders stand in them by name."""

    row: Row
    identifier: str
    name: str
    formula: Expression
    noise: Expression
    placeholders: tuple[str, ...]
    noise_placeholders: tuple[str, ...]
    family: str
    argument: str


class Measurement(NamedTuple):
    """A row of the measurement table; `key` says in which experiment."""

    row: Row
    observable: Observable
    key: tuple[str, ...]
    time: float
    value: float
    overrides: tuple[Expression, ...]
    noise_overrides: tuple[Expression, ...]


@dataclass
class Seen:
    """Measurements of one experiment that share an output: its formula, and the noise of each row.

    ``noise`` is one formula for all rows where ``numbers`` is None; else each row has its number.
    """

    output: str
    observable: Observable
    formula: Expression
    placeholders: Mapping[str, Expression]
    noise: Expression
    rows: list[Measurement] = field(default_factory=list)
    numbers: list[float] | None = None


def read_observables(
    rows: Iterable[Row], renamed: Callable[[str], str], taken: Callable[[str], bool], *, version: int
) -> dict[str, Observable]:
    """Every observable by its identifier.

    Parameters
    ----------
    renamed
        The name of each identifier of model and parameter table.
    taken
        Whether something else has a name already.
    """
    found: dict[str, Observable] = {}
    for row in rows:
        identifier = row.required("observableId")
        if identifier in found:
            raise DataError(f"{row.place}: observable '{identifier}' appears twice")
        name = _as_name(renamed(identifier))
        while taken(name) or any(name == other.name for other in found.values()):
            name += "_"
        formula = row.formula("observableFormula", renamed)
        noise = row.formula("noiseFormula", renamed) if row.text("noiseFormula") else Number(Fraction(1))
        if version == 1:
            distribution = row.one_of("noiseDistribution", ("normal", "laplace"), "normal")
            kind = (distribution, row.one_of("observableTransformation", ("lin", "log", "log10"), "lin"))
            own = _placeholders_1(formula, noise, "observableParameter", identifier, row)
            of_noise = _placeholders_1(formula, noise, "noiseParameter", identifier, row)
        else:
            kind = DISTRIBUTIONS_2[row.one_of("noiseDistribution", tuple(DISTRIBUTIONS_2), "normal")]
            own, of_noise = (tuple(map(renamed, row.listed(f"{of}Placeholders"))) for of in ("observable", "noise"))
        # an observable's own identifier stands for its formula, and here for both: scatter that is relative to an
        # output is so whatever the output consists of
        noise = substitute(noise, {renamed(identifier): Name(name)})
        if not isinstance(formula, Number):
            noise = with_name(noise, formula, Name(name))
        found[identifier] = Observable(row, identifier, name, formula, noise, own, of_noise, *NOISE[kind])
    return found


def _as_name(identifier: str) -> str:
    """An identifier with odd characters, which formulas cannot have; its label keeps them."""
    name = re.sub(r"\W", "_", normalize("NFKC", identifier))
    return name if name.isidentifier() else f"_{name}"


def _placeholders_1(formula: Expression, noise: Expression, kind: str, identifier: str, row: Row) -> tuple[str, ...]:
    pattern = re.compile(rf"{kind}([0-9]+)_{re.escape(identifier)}")
    found = {int(m.group(1)): n for n in (*names(formula), *names(noise)) if (m := pattern.fullmatch(n))}
    if sorted(found) != list(range(1, len(found) + 1)):
        raise DataError(f"{row.place}: the placeholders {kind}N_{identifier} must be numbered from 1 without gaps")
    return tuple(found[k] for k in sorted(found))


def read_measurements(
    rows: Iterable[Row],
    observables: Mapping[str, Observable],
    key: Callable[[Row], tuple[str, ...]],
    value: Callable[[Row, str, str], Expression],
) -> list[Measurement]:
    """Every measurement.

    Parameters
    ----------
    key
        Which experiment a row belongs to.
    value
        The number or parameter that the text of a cell stands for, of a row and a column.
    """
    found = []
    for row in rows:
        identifier = row.required("observableId")
        if identifier not in observables:
            raise DataError(f"{row.place}: unknown observable '{identifier}'{did_you_mean(identifier, observables)}")
        observable = observables[identifier]
        overrides = tuple(value(row, "observableParameters", text) for text in row.listed("observableParameters"))
        of_noise = tuple(value(row, "noiseParameters", text) for text in row.listed("noiseParameters"))
        for given, wanted, column in (
            (overrides, observable.placeholders, "observableParameters"),
            (of_noise, observable.noise_placeholders, "noiseParameters"),
        ):
            if len(given) != len(wanted):
                counts = f"{len(given)} values, but '{identifier}' has {len(wanted)} placeholders"
                raise DataError(f"{row.place}, column '{column}': {counts}")
        found.append(
            Measurement(row, observable, key(row), row.number("time"), row.finite("measurement"), overrides, of_noise)
        )
    return found


def outputs_of(measurements: Sequence[Measurement], taken: Callable[[str], bool]) -> list[Seen]:
    """The outputs that the measurements of one experiment need."""
    groups: dict[tuple[object, ...], Seen] = {}
    counts: dict[str, int] = {}
    for measured in measurements:
        observable = measured.observable
        noise_values = dict(zip(observable.noise_placeholders, measured.noise_overrides, strict=True))
        values = dict(zip(observable.placeholders, measured.overrides, strict=True))
        noise = substitute(observable.noise, {**noise_values, **values})
        number = Settling().value(noise)
        group = (observable.identifier, measured.overrides, "a number" if number is not None else noise)
        if group not in groups:
            counts[observable.identifier] = counts.get(observable.identifier, 0) + 1
            groups[group] = _new(observable, values, noise, counts[observable.identifier], taken)
            groups[group].numbers = None if number is None else []
        seen = groups[group]
        seen.rows.append(measured)
        if seen.numbers is not None and number is not None:
            seen.numbers.append(float(number))
    return list(groups.values())


def _new(
    observable: Observable,
    values: Mapping[str, Expression],
    noise: Expression,
    count: int,
    taken: Callable[[str], bool],
) -> Seen:
    ending = f"_{count}" if count > 1 else ""
    output = observable.name + ending
    while ending and taken(output):
        output += "_"
    own = {name: f"{name}{ending}" for name in values}
    formula = substitute(observable.formula, {name: Name(new) for name, new in own.items()})
    noise = substitute(noise, {observable.name: Name(output)})
    return Seen(output, observable, formula, {own[n]: value for n, value in values.items()}, noise)
