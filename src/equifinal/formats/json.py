"""A whole problem, data included, as one JSON text, and back: what lets a results file explain itself years later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from equifinal.errors import DataError, EquifinalError
from equifinal.files import read_text
from equifinal.language.expression import Call, Expression, to_text
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression
from equifinal.problem.data import Experiment, InputSeries, Observations
from equifinal.problem.labels import Label
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings

KIND = "a stored problem (JSON)"
FORMAT = 2  # 1 has no events, levels, onsets, steady states and labels; it is read as well


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
            raise DataError(f"its format is {document['format']}, but this version reads formats 1 and {FORMAT}")
        return Problem(
            tuple(_read_experiment(e) for e in document["experiments"]),
            {name: Prior(table.pop("family"), **table) for name, table in document["priors"].items()},
            SolverSettings(**document["solver"]),
            {},
            document["name"],
            {name: Label(**label) for name, label in document.get("labels", {}).items()},
            document.get("nominal", {}),
            tuple(document.get("notes", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, EquifinalError) as error:
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
        "equations": _texts(model.equations),
        "initial": _texts(model.initial),
        "definitions": _texts(model.definitions),
        "outputs": list(model.outputs),
        "quantities": _texts(model.quantities),
        "trajectories": _texts(model.trajectories),
    }
    if model.levels:
        table["levels"] = _texts(model.levels)
    if model.events:
        table["events"] = [{"time": _text(e.time), "sets": _texts(e.sets), "first": e.first} for e in model.events]
    if model.onset is not None:
        table["onset"] = _text(model.onset)
    if model.before is not None:
        table["before"] = _model(model.before)
    return table


def _read_model(table: Mapping[str, Any]) -> Model:
    return Model(
        states=tuple(table["states"]),
        parameters=tuple(table["parameters"]),
        constants={name: _fraction(value) for name, value in table["constants"].items()},
        inputs=tuple(table["inputs"]),
        equations=_expressions(table["equations"]),
        initial=_expressions(table["initial"]),
        definitions=_expressions(table["definitions"]),
        outputs=tuple(table["outputs"]),
        quantities=_expressions(table["quantities"]),
        trajectories=_expressions(table.get("trajectories", {})),
        levels=_expressions(table.get("levels", {})),
        events=tuple(
            Event(parse_expression(e["time"]), _expressions(e["sets"]), bool(e["first"]))
            for e in table.get("events", ())
        ),
        onset=parse_expression(table["onset"]) if "onset" in table else None,
        before=_read_model(table["before"]) if "before" in table else None,
    )


def _read_experiment(table: Mapping[str, Any]) -> Experiment:
    return Experiment(
        _read_model(table["model"]),
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
        object.__setattr__(found, "previous", np.array(entry["previous"], float))
    return found


def _limits(entry: Observations) -> dict[str, list[float]] | None:
    """The limits of the rows, where they are not those of the noise."""
    pairs = ((entry.below, entry.noise.below), (entry.above, entry.noise.above))
    if all((rows == own).all() for rows, own in pairs):
        return None
    return {"below": entry.below.tolist(), "above": entry.above.tolist()}


def _fraction(text: str) -> Fraction:
    """Read a fraction as written here; an exponent, which could take forever, is refused."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or 1))


def _text(expression: Expression) -> str:
    """Text that reads back as the same expression; a condition by itself stands in brackets."""
    text = to_text(expression, decimals=True)
    return f"({text})" if isinstance(expression, Call) and expression.function in CONDITIONS else text


def _texts(expressions: Mapping[str, Expression]) -> dict[str, str]:
    return {name: _text(expression) for name, expression in expressions.items()}


def _expressions(texts: Mapping[str, str]) -> dict[str, Expression]:
    return {name: parse_expression(text) for name, text in texts.items()}
