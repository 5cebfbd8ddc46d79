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
from equifinal.language.expression import Expression, to_text
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression
from equifinal.problem.data import Experiment, InputSeries, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings

KIND = "a stored problem (JSON)"
FORMAT = 1


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
        if document["format"] != FORMAT:
            raise DataError(f"its format is {document['format']}, but this version reads format {FORMAT}")
        return Problem(
            tuple(_read_experiment(e) for e in document["experiments"]),
            {name: Prior(table.pop("family"), **table) for name, table in document["priors"].items()},
            SolverSettings(**document["solver"]),
            {},
            document["name"],
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, EquifinalError) as error:
        raise DataError(f"this is not a stored problem: {error}") from None


def _prior(prior: Prior) -> dict[str, Any]:
    bounds = {"lower": prior.lower, "upper": prior.upper}
    finite = {name: value for name, value in bounds.items() if np.isfinite(value)}
    return {"family": prior.family, "coordinate": prior.coordinate, **finite, **prior.arguments}


def _experiment(experiment: Experiment) -> dict[str, Any]:
    model = experiment.model
    return {
        "name": experiment.name,
        "model": {
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
        },
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


def _read_experiment(table: Mapping[str, Any]) -> Experiment:
    model = table["model"]
    return Experiment(
        Model(
            states=tuple(model["states"]),
            parameters=tuple(model["parameters"]),
            constants={name: _fraction(value) for name, value in model["constants"].items()},
            inputs=tuple(model["inputs"]),
            equations=_expressions(model["equations"]),
            initial=_expressions(model["initial"]),
            definitions=_expressions(model["definitions"]),
            outputs=tuple(model["outputs"]),
            quantities=_expressions(model["quantities"]),
            trajectories=_expressions(model.get("trajectories", {})),
        ),
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


def _texts(expressions: Mapping[str, Expression]) -> dict[str, str]:
    return {name: to_text(expression, decimals=True) for name, expression in expressions.items()}


def _expressions(texts: Mapping[str, str]) -> dict[str, Expression]:
    return {name: parse_expression(text) for name, text in texts.items()}
