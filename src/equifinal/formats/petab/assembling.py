"""Networks, observables, measurements and courses to the experiments of a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from equifinal.errors import DataError, ModelError, did_you_mean
from equifinal.formats.petab.courses import Condition, Course, is_number
from equifinal.formats.petab.observables import Measurement, Seen, outputs_of
from equifinal.formats.petab.parameters import Parameter
from equifinal.formats.petab.tables import Row, exact
from equifinal.formats.sbml import modelling
from equifinal.formats.sbml.names import RESERVED
from equifinal.formats.sbml.network import Network
from equifinal.formats.sbml.settling import Settling
from equifinal.language.expression import TIME, Expression, Name, Number, names
from equifinal.language.model import Model
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Noise


@dataclass(frozen=True)
class Part:
    """A model with the parameters of the problem: what all its experiments have in common."""

    network: Network
    parameters: Mapping[str, Parameter]
    aliases: Mapping[str, str]

    def renamed(self, identifier: str) -> str:
        """The name of an identifier, be it of the model, a table or a placeholder."""
        identifier = self.aliases.get(identifier, identifier)
        name = self.network.names.get(identifier, identifier)
        return name if identifier in self.network.names or name not in RESERVED else name + "_"

    def taken(self, name: str) -> bool:
        """Whether the model or the parameter table has a name already."""
        network = self.network
        tables = (network.values, network.assigned, network.rates, network.definitions, network.missing, self.names)
        return any(name in table for table in tables)

    @cached_property
    def names(self) -> dict[str, Parameter]:
        return {self.renamed(identifier): parameter for identifier, parameter in self.parameters.items()}

    def reached(self, formulas: Iterable[Expression]) -> set[str]:
        """Names in formulas, and in the rules of the model that these name."""
        found: set[str] = set()
        stack = [name for formula in formulas for name in names(formula)]
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += names(self.network.definitions[name]) if name in self.network.definitions else ()
        return found

    def known(self, name: str) -> bool:
        return self.taken(name) or name in self.network.species

    def value(self, row: Row, column: str, text: str) -> Expression:
        """What a cell stands for that holds a number or the identifier of a parameter."""
        try:
            number = float(text) if "_" not in text else None
        except ValueError:
            number = None
        if number is not None:
            return Number(exact(row.finite_number(text, column)))
        name = self.renamed(text)
        if not self.known(name):
            hint = did_you_mean(text, (*self.parameters, *self.network.names))
            raise DataError(f"{row.place}, column '{column}': unknown parameter '{text}'{hint}")
        return Name(name)

    @cached_property
    def unknown(self) -> set[str]:
        return {name for name, parameter in self.names.items() if parameter.prior is not None}

    @cached_property
    def fixed(self) -> dict[str, Expression]:
        return {
            name: Number(exact(parameter.nominal))
            for name, parameter in self.names.items()
            if parameter.prior is None and parameter.nominal is not None
        }

    def later_than(self, start: Fraction) -> Callable[[Expression], bool]:
        """Whether a time is after the start for all parameters within their bounds."""
        lowest = {name: parameter.lower for name, parameter in self.names.items()}
        return lambda time: isinstance(time, Name) and lowest.get(time.name, start) > start


class Assembled(NamedTuple):
    """An experiment, and for each of its rows of data the output and the time."""

    experiment: Experiment
    seen: Sequence[Seen]


def assembled(part: Part, course: Course, measurements: Sequence[Measurement], *, version: int) -> Assembled:
    """One experiment with its data.

    Raises
    ------
    DataError, ModelError
        If the model cannot be made; beginning with the experiment's name.
    """
    seen = outputs_of(measurements, part.taken)
    _check_seen(part, course, seen)
    try:
        model, noises = _model(part, course, seen, version)
    except ModelError as error:
        where = f"under condition '{course.name}': " if course.name else ""
        raise ModelError(f"{where}{error.message}", word=error.word, file=error.file) from None
    observations = tuple(_observations(entry, noises) for entry in seen)
    return Assembled(Experiment(model, observations, {}, course.name), seen)


def _check_seen(part: Part, course: Course, seen: Iterable[Seen]) -> None:
    """Names and times, while it is known which rows they are from."""
    given = {name for condition in (course.rest, course.first) if condition for name in condition.all}
    for entry in seen:
        for name in (*names(entry.formula), *names(entry.noise)):
            if not part.known(name) and name not in {*entry.placeholders, *given, entry.output, TIME}:
                hint = did_you_mean(name, (*part.parameters, *part.network.names))
                raise DataError(f"{entry.observable.row.place}: unknown name '{name}'{hint}")
        for measured in entry.rows:
            if measured.time < course.onset:
                start = f"the start of its experiment at {float(course.onset):g}"
                raise DataError(f"{measured.row.place}: the time {measured.time:g} is before {start}")


def _model(part: Part, course: Course, seen: Iterable[Seen], version: int) -> modelling.Made:
    outputs = {entry.output: entry.formula for entry in seen}
    noises = {entry.output: entry.noise for entry in seen if entry.numbers is None}
    base = {**part.fixed, **{name: value for entry in seen for name, value in entry.placeholders.items()}}
    unknown, onset = part.unknown, Number(course.onset)
    first, before, changes = course.first, None, [(Number(time), condition.all) for time, condition in course.later]
    values = {**base, **first.values}
    if course.rest is not None:
        before = _at_rest(part, course.rest, base, outputs, unknown)
        kept = course.rest.values if version > 1 else {}
        reached = part.reached(first.all.values()) if version > 1 else set()
        moving = reached & {*first.values, *part.network.rates}
        at_once, values = _after_rest(first, {**base, **kept}, moving)
        if at_once:
            changes.insert(0, (onset, at_once))
    experiment = modelling.Experiment(
        unknown=unknown,
        values=values,
        starts=first.starts if before is None else {},
        changes=changes,
        onset=onset if course.onset else None,
        before=before,
        surely_later=part.later_than(course.onset),
    )
    return modelling.model_of(part.network, experiment, outputs, noises)


def _at_rest(
    part: Part, rest: Condition, base: Mapping[str, Expression], outputs: Mapping[str, Expression], unknown: set[str]
) -> Model:
    held = modelling.Experiment(unknown=unknown, values={**base, **rest.values}, starts=rest.starts, at_rest=True)
    return modelling.model_of(part.network, held, outputs).model


def _after_rest(
    first: Condition, values: Mapping[str, Expression], moving: set[str]
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """What changes when the rest ends, as a jump where it depends on what was before, else as a value from then on.

    ``moving`` is what new values name that changes now: it stands for what was before.
    """
    if moving:
        return first.all, dict(values)
    at_once = dict(first.starts)
    from_then_on = dict(values)
    plain = all(is_number(value) for value in first.starts.values())
    for name, value in first.values.items():
        if is_number(value) or plain:
            from_then_on[name] = value
        else:
            at_once[name] = value
    return at_once, from_then_on


def _observations(entry: Seen, noises: Mapping[str, Expression]) -> Observations:
    observable = entry.observable
    argument: Any
    if entry.numbers is not None:
        argument = entry.numbers[0] if len(set(entry.numbers)) == 1 else tuple(entry.numbers)
    else:
        settled = noises[entry.output]
        number = Settling().value(settled)
        argument = settled.name if isinstance(settled, Name) else settled if number is None else float(number)
    try:
        noise = Noise(observable.family, **{observable.argument: argument})
        times, values = [row.time for row in entry.rows], [row.value for row in entry.rows]
        return Observations(entry.output, times, values, noise)
    except (DataError, ModelError) as error:
        by_row = f"{entry.rows[0].row.file}, observable '{observable.identifier}'"
        place = by_row if observable.noise_placeholders else observable.row.place
        raise DataError(f"{place}: {getattr(error, 'message', error)}") from None
