"""What happens in each experiment: condition and experiment tables of both versions to what a network is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from equifinal.errors import DataError, did_you_mean
from equifinal.formats.petab.tables import Row, exact
from equifinal.formats.sbml.network import Network
from equifinal.language.expression import TIME, Expression, Number, names

IGNORED = ("conditionId", "conditionName")


@dataclass(frozen=True)
class Condition:
    """New values by name: of constants, and of states."""

    values: Mapping[str, Expression]
    starts: Mapping[str, Expression]

    @property
    def all(self) -> dict[str, Expression]:
        return {**self.values, **self.starts}


NOTHING = Condition({}, {})


@dataclass(frozen=True)
class Course:
    """An experiment: at rest under `rest` first, if that is not None; from `onset` on under `first`; then changes."""

    name: str
    first: Condition
    rest: Condition | None = None
    onset: Fraction = Fraction(0)
    later: tuple[tuple[Fraction, Condition], ...] = ()


def sorted_condition(network: Network, targets: Mapping[str, Expression], place: str) -> Condition:
    """New values sorted by what they are of."""
    values: dict[str, Expression] = {}
    starts: dict[str, Expression] = {}
    for name, value in targets.items():
        species = network.species.get(name)
        is_state = name in network.rates or (species is not None and species.state is not None)
        if name in network.definitions and not is_state:
            raise DataError(f"{place}: '{name}' is given by a rule of the model, so that a condition cannot set it")
        (starts if is_state else values)[name] = value
    return Condition(values, starts)


# --- version 1: a column for each name, a row for each condition ---


def read_conditions_1(
    rows: Iterable[Row],
    network: Network,
    renamed: Callable[[str], str],
    known: Callable[[str], bool],
    value: Callable[[Row, str, str], Expression],
) -> dict[str, Condition]:
    found: dict[str, Condition] = {}
    for row in rows:
        identifier = row.required("conditionId")
        if identifier in found:
            raise DataError(f"{row.place}: condition '{identifier}' appears twice")
        targets: dict[str, Expression] = {}
        for column in row.cells:
            if column in IGNORED or not column:
                continue
            name = renamed(column)
            if not known(name):
                hint = did_you_mean(column, network.names)
                raise DataError(f"{row.file}: column '{column}' is neither a condition's name nor in the model{hint}")
            text = row.text(column)
            if text:
                targets[name] = value(row, column, text)
        found[identifier] = sorted_condition(network, targets, row.place)
    return found


def course_1(key: tuple[str, ...], conditions: Mapping[str, Condition], row: Row) -> Course:
    before, during = key
    for identifier in filter(None, key):
        if identifier not in conditions:
            raise DataError(f"{row.place}: unknown condition '{identifier}'{did_you_mean(identifier, conditions)}")
    if not before:
        return Course(during, conditions[during])
    return Course(f"{before} then {during}", conditions[during], conditions[before])


# --- version 2: a row for each change, and experiments that list conditions by time ---


def read_conditions_2(
    rows: Iterable[Row], renamed: Callable[[str], str]
) -> dict[str, dict[str, tuple[Row, Expression]]]:
    """What each condition sets; it is sorted when it is known that this model is meant."""
    found: dict[str, dict[str, tuple[Row, Expression]]] = {}
    for row in rows:
        targets = found.setdefault(row.required("conditionId"), {})
        name = renamed(row.required("targetId"))
        if name in targets:
            raise DataError(f"{row.place}: this condition sets '{row.text('targetId')}' twice")
        targets[name] = (row, row.formula("targetValue", renamed))
    return found


def read_experiments(rows: Iterable[Row]) -> dict[str, list[tuple[float, Row]]]:
    """The rows of each experiment in order of time."""
    found: dict[str, list[tuple[float, Row]]] = {}
    for row in rows:
        time = row.number("time")
        if math.isnan(time) or time == math.inf:
            raise DataError(f"{row.place}: the time of a condition must be a number or -inf")
        found.setdefault(row.required("experimentId"), []).append((time, row))
    return {name: sorted(periods, key=lambda period: period[0]) for name, periods in found.items()}


def course_2(
    identifier: str,
    experiments: Mapping[str, Sequence[tuple[float, Row]]],
    conditions: Mapping[str, Mapping[str, tuple[Row, Expression]]],
    network: Network,
    known: Callable[[str], bool],
    in_table: Collection[str],
    row: Row,
) -> Course:
    """The course of an experiment; `in_table` are the names of the parameter table."""
    if not identifier:
        return Course("", NOTHING)
    if identifier not in experiments:
        raise DataError(f"{row.place}: unknown experiment '{identifier}'{did_you_mean(identifier, experiments)}")
    periods: dict[float, dict[str, Expression]] = {}
    earliest = experiments[identifier][0][0]
    for time, period in experiments[identifier]:
        targets = periods.setdefault(time, {})
        condition = period.text("conditionId")
        if condition and condition not in conditions:
            raise DataError(f"{period.place}: unknown condition '{condition}'{did_you_mean(condition, conditions)}")
        for name, (change, value) in (conditions[condition] if condition else {}).items():
            if name in in_table:
                raise DataError(f"{change.place}: '{name}' is in the parameter table, which no condition can change")
            for used in (name, *names(value)):
                if not known(used) and used != TIME:
                    raise DataError(f"{change.place}: unknown name '{used}'{did_you_mean(used, network.names)}")
            unset = [used for used in names(value) if time == earliest and used not in in_table and used != TIME]
            if unset:  # nothing in the model has a value yet
                raise DataError(
                    f"{change.place}: in the first period of an experiment ('{identifier}'), a new value may name "
                    f"parameters of the parameter table only, which '{unset[0]}' is not"
                )
            if name in targets:
                raise DataError(f"{period.place}: two conditions set '{name}' at the same time")
            targets[name] = value
    sorted_periods = [
        (time, sorted_condition(network, targets, f"experiment '{identifier}'")) for time, targets in periods.items()
    ]
    rest = sorted_periods.pop(0)[1] if sorted_periods[0][0] == -math.inf else None
    if not sorted_periods:
        return Course(identifier, NOTHING, rest)
    (onset, first), *later = sorted_periods
    return Course(identifier, first, rest, exact(onset), tuple((exact(time), condition) for time, condition in later))


def is_number(value: Expression) -> bool:
    return isinstance(value, Number)
