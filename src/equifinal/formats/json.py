"""A whole problem, data included, as one JSON text, and back: what lets a results file explain itself years later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from equifinal.errors import DataError, EquifinalError
from equifinal.files import quoted, read_text
from equifinal.language.checks import checked, free_names
from equifinal.language.expression import Expression
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression
from equifinal.language.trees import from_tree, number_from_text, to_tree
from equifinal.problem.data import Experiment, InputSeries, Observations
from equifinal.problem.labels import Label
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings

KIND = "a stored problem (JSON)"
FORMAT = 2  # 1 has expressions as text, and no events, levels, onsets, steady states and labels; it is read as well


def recognises(path: Path) -> bool:
    """Recognise a file by its ending."""
    return path.suffix.lower() == ".json"


def load(path: Path, *, data: bool = True) -> Problem:
    """Read a problem that `problem_to_json` made; its data are always with it."""
    text = read_text(path)
    try:
        return problem_from_json(text)
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None


def problem_to_json(problem: Problem) -> str:
    """Everything that determines the posterior; `problem_from_json` reads it back with the same fingerprint."""
    document = {
        "format": FORMAT,
        "name": problem.name,
        "experiments": [_experiment(e) for e in problem.experiments],
        "priors": {name: _prior(prior) for name, prior in problem.priors.items()},
        "solver": vars(problem.solver),
        "labels": {name: vars(label) for name, label in problem.labels.items()},
        "nominal": dict(problem.nominal),
        "notes": list(problem.notes),
    }
    return json.dumps(document, ensure_ascii=False)


def problem_from_json(text: str) -> Problem:
    """Read back what `problem_to_json` gave.

    Raises
    ------
    DataError
        If the text is something else.
    """
    try:
        document = json.loads(text)
        if document["format"] not in (1, FORMAT):
            raise DataError(f"its format is {str(document['format'])[:20]}, but this version reads 1 and {FORMAT}")
        read = parse_expression if document["format"] == 1 else from_tree
        return Problem(
            tuple(_read_experiment(e, read) for e in document["experiments"]),
            {name: Prior(table.pop("family"), **table) for name, table in document["priors"].items()},
            SolverSettings(**document["solver"]),
            {},
            document["name"],
            {name: Label(**label) for name, label in document.get("labels", {}).items()},
            document.get("nominal", {}),
            tuple(document.get("notes", ())),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, EquifinalError) as error:
        raise DataError(f"this is not a stored problem: {error}") from None


def _prior(prior: Prior) -> dict[str, Any]:
    bounds = {"lower": prior.lower, "upper": prior.upper}
    finite = {name: value for name, value in bounds.items() if np.isfinite(value)}
    return {"family": prior.family, "coordinate": prior.coordinate, **finite, **prior.arguments}


def _experiment(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "model": _model(experiment.model),
        "observations": [
            {
                "output": entry.output,
                "times": entry.times.tolist(),
                "values": entry.values.tolist(),
                "previous": entry.previous.tolist() if entry.increment else None,
                "family": entry.noise.family,
                "arguments": {**entry.noise.texts, **entry.noise.limits},
                "censored": entry.censored.tolist() if entry.censored.any() else None,
                "limits": _limits(entry),
            }
            for entry in experiment.observations
        ],
        "inputs": {
            name: {"times": s.times.tolist(), "values": s.values.tolist(), "interpolation": s.interpolation}
            for name, s in experiment.inputs.items()
        },
    }


def _model(model: Model) -> dict[str, Any]:
    table: dict[str, Any] = {
        "states": list(model.states),
        "parameters": list(model.parameters),
        "constants": {name: str(value) for name, value in model.constants.items()},
        "inputs": list(model.inputs),
        "equations": _trees(model.equations),
        "initial": _trees(model.initial),
        "definitions": _trees(model.definitions),
        "outputs": list(model.outputs),
        "quantities": _trees(model.quantities),
        "trajectories": _trees(model.trajectories),
    }
    if model.levels:
        table["levels"] = _trees(model.levels)
    if model.events:
        table["events"] = [{"time": to_tree(e.time), "sets": _trees(e.sets), "first": e.first} for e in model.events]
    if model.onset is not None:
        table["onset"] = to_tree(model.onset)
    if model.before is not None:
        table["before"] = _model(model.before)
    return table


Reader = Callable[[Any], Expression]


def _read_model(table: Mapping[str, Any], read: Reader) -> Model:
    def expressions(name: str) -> dict[str, Expression]:
        return {key: read(value) for key, value in table.get(name, {}).items()}

    model = Model(
        states=_names(table["states"]),
        parameters=_names(table["parameters"]),
        constants={name: number_from_text(value).value for name, value in table["constants"].items()},
        inputs=_names(table["inputs"]),
        equations=expressions("equations"),
        initial=expressions("initial"),
        definitions=expressions("definitions"),
        outputs=_names(table["outputs"]),
        quantities=expressions("quantities"),
        trajectories=expressions("trajectories"),
        levels=expressions("levels"),
        events=tuple(
            Event(read(e["time"]), {name: read(value) for name, value in e["sets"].items()}, bool(e["first"]))
            for e in table.get("events", ())
        ),
        onset=read(table["onset"]) if "onset" in table else None,
        before=_read_model(table["before"], read) if "before" in table else None,
    )
    if set(model.states) != set(model.equations) or set(model.states) != set(model.initial):
        raise DataError("its states, equations and initial values do not belong together")
    for name in free_names(model):
        if name not in model.parameters:
            raise DataError(f"{quoted(name)} is not one of its parameters")
    return checked(model)


def _names(entries: Any) -> tuple[str, ...]:
    if not isinstance(entries, list) or not all(isinstance(name, str) for name in entries):
        raise DataError("names must be texts in a list")
    return tuple(entries)


def _read_experiment(table: Mapping[str, Any], read: Reader) -> Experiment:
    return Experiment(
        _read_model(table["model"], read),
        tuple(_read_observations(entry) for entry in table["observations"]),
        {name: InputSeries(**series) for name, series in table["inputs"].items()},
        table["name"],
    )


def _read_observations(entry: Mapping[str, Any]) -> Observations:
    noise = Noise(entry["family"], **entry["arguments"])
    increment = entry["previous"] is not None
    found = Observations(
        entry["output"],
        entry["times"],
        entry["values"],
        noise,
        increment=increment,
        censored=entry.get("censored"),
        limits=entry.get("limits"),
    )
    if increment:  # rows without a value are gone, and the one before each value need not be the one before it here
        previous = np.array(entry["previous"], float)
        if previous.shape != found.times.shape or not (previous <= found.times).all():
            raise DataError(f"the times since when {quoted(found.output)} counts do not belong to its values")
        object.__setattr__(found, "previous", previous)
    return found


def _limits(entry: Observations) -> dict[str, list[float]] | None:
    """The limits of the rows, where they are not those of the noise."""
    pairs = ((entry.below, entry.noise.below), (entry.above, entry.noise.above))
    if all((rows == own).all() for rows, own in pairs):
        return None
    return {"below": entry.below.tolist(), "above": entry.above.tolist()}


def _trees(expressions: Mapping[str, Expression]) -> dict[str, Any]:
    return {name: to_tree(expression) for name, expression in expressions.items()}
