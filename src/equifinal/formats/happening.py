"""What happens in an experiment, from the tables of a problem file: doses, changes, an onset, a steady state before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.formats.tables import check_keys, entries_of, inside, table_of
from equifinal.language.expression import TIME, Expression, initial_name, names
from equifinal.language.model import Model
from equifinal.language.tokens import canonical_name
from equifinal.problem.changes import Change, changed, check_change
from equifinal.problem.data import InputSeries
from equifinal.problem.doses import Dose, check_dose, dosed
from equifinal.problem.parts import part, taken_names
from equifinal.problem.steady import resting

DOSE_KEYS = ("state", "amount", "time", "every", "count", "duration", "rate", "lag", "fraction", "first")
CHANGE_KEYS = ("time", "constants", "set", "add", "first")
START_KEYS = ("start", "initial", "before")
STEADY = "steady state"


def happened(
    model: Model,
    document: Mapping[str, Any],
    entry: Mapping[str, Any],
    inputs: Mapping[str, InputSeries],
    parameters: Iterable[str],
    *,
    doses: Sequence[Dose] = (),
    changes: Sequence[Change] = (),
) -> Model:
    """The model as an experiment has it.

    Parameters
    ----------
    document
        The file, whose [[dose]], [[change]] and [model] tables hold for all experiments.
    entry
        The experiment's own table; empty if the file has none.
    inputs
        Those of the experiment.
    parameters
        Names that have priors: if there are any, no other name may be unknown.
    doses, changes
        What else happens, read from data.
    """
    known = set(parameters)
    model = _started(model, document, entry, known)
    model = _at_rest(model, document, entry, inputs, known)
    sources = ((document, ""), (entry, "experiment."))
    found_changes: list[Change] = []
    for source, prefix in sources:
        for i, table in enumerate(entries_of(source, "change", f"{prefix}change"), start=1):
            with inside(f"[[{prefix}change]] number {i}"):
                found_changes.append(_change(table, model, known))
    model = changed(model, [*found_changes, *changes])
    found_doses: list[Dose] = []
    for source, prefix in sources:
        for i, table in enumerate(entries_of(source, "dose", f"{prefix}dose"), start=1):
            with inside(f"[[{prefix}dose]] number {i}"):
                found_doses.append(_dose(table, model, known))
    return dosed(model, [*found_doses, *doses])


def _started(model: Model, document: Mapping[str, Any], entry: Mapping[str, Any], known: set[str]) -> Model:
    own = "start" in entry
    value = entry["start"] if own else table_of(document, "model").get("start")
    if value is None:
        return model
    with inside("start" if own else "[model] start"):
        onset = part(value, "it")
        _check_names([onset], model, known)
        return model.vary(onset=onset)


def _at_rest(
    model: Model,
    document: Mapping[str, Any],
    entry: Mapping[str, Any],
    inputs: Mapping[str, InputSeries],
    known: set[str],
) -> Model:
    everywhere = table_of(document, "model")
    shared, own = everywhere.get("initial"), entry.get("initial")
    for value, where in ((shared, "[model] initial"), (own, "initial")):
        if value is not None and not (isinstance(value, dict) and where == "initial") and value != STEADY:
            instead = "; initial values stand in the equations, x(0) = ..." if where == "[model] initial" else ""
            raise DataError(f'{where} must be "{STEADY}", not {value!r}{instead}')
    if shared is not None and own is not None and own != STEADY:
        raise DataError(
            "[model] says that every experiment starts at a steady state, so this one has no initial values"
        )
    before = dict(table_of(everywhere, "before"))
    for key, value in table_of(entry, "before").items():
        before[key] = {**before.get(key, {}), **value} if isinstance(value, dict) else value
    if shared is None and own != STEADY:
        if before:
            raise DataError(f'before = ... says what held at the steady state; add initial = "{STEADY}"')
        return model
    with inside("before"):
        check_keys(before, ("constants", "inputs"), "it")
        held = {name: _just_before(series) for name, series in inputs.items()}
        held |= dict(table_of(before, "inputs"))
        constants = dict(table_of(before, "constants"))
        _check_names([part(value, f"'{name}'") for name, value in {**held, **constants}.items()], model, known)
    with inside("steady state"):
        for name in model.inputs:
            if name not in held:
                raise DataError(f"the input '{name}' has no value; say before = {{ inputs = {{ {name} = 0 }} }}")
        return resting(model, constants=constants, inputs=held)


def _just_before(series: InputSeries) -> float:
    """The value of an input just before time 0."""
    if series.interpolation == "step":
        earlier = int((series.times < 0).sum())
        return float(series.values[max(earlier - 1, 0)])
    return float(np.interp(0.0, series.times, series.values))


def _dose(table: Mapping[str, Any], model: Model, known: set[str]) -> Dose:
    check_keys(table, DOSE_KEYS, "it")
    if "state" not in table:
        raise DataError('needs state = "...", the name of the state that it enters')
    if "time" not in table and "every" not in table:
        raise DataError("needs time = ..., a number or a list, or every = ... and count = ...")
    given = dict(table)
    state = given.pop("state")
    found = Dose(canonical_name(state) if isinstance(state, str) else state, **given)
    check_dose(found, model)
    parts = [found.amount, found.lag, found.fraction, *found.times[:1], *found.times[-1:]]
    _check_names([*parts, *(p for p in (found.duration, found.rate) if p is not None)], model, known)
    return found


def _change(table: Mapping[str, Any], model: Model, known: set[str]) -> Change:
    check_keys(table, CHANGE_KEYS, "it")
    if "time" not in table:
        raise DataError("needs time = ..., a number, a constant or a parameter")
    named = {key: table_of(table, key) for key in ("constants", "set", "add")}
    found = Change(table["time"], **named, first=table.get("first", False))
    check_change(found, model)
    values = [value for group in (found.constants, found.set, found.add) for value in group.values()]
    _check_names([found.time, *values], model, known)
    return found


def _check_names(expressions: Iterable[Expression], model: Model, known: set[str]) -> None:
    """Refuse names that mean nothing, where all parameters are declared."""
    if not known:
        return
    meant = known | taken_names(model) | {TIME} | {initial_name(x) for x in model.states}
    for expression in expressions:
        for name in names(expression):
            if name not in meant:
                raise DataError(f"unknown name '{name}'{did_you_mean(name, meant)}; a parameter needs a prior")
