"""Cases of the SBML semantic test suite, solved and compared within each case's own tolerances."""

from __future__ import annotations

import csv
import json
from typing import NamedTuple

import numpy as np

from equifinal import ode
from equifinal.errors import EquifinalError
from equifinal.formats.sbml.importing import read_network
from equifinal.formats.sbml.modelling import Experiment, model_of
from equifinal.formats.sbml.network import Network
from equifinal.language.expression import Expression, Name, Product, reciprocal
from tests.support.shared_folder import SHARED

FOLDER = SHARED / "sbml"


class Outcome(NamedTuple):
    """What became of a case: ``agrees``, ``refused`` or ``differs``, and why."""

    verdict: str
    why: str = ""


def cases() -> dict[str, str]:
    """Every case with its kind; empty where the suite is not there."""
    index = FOLDER / "index.json"
    return json.loads(index.read_text()) if index.exists() else {}


def outcome(case: str) -> Outcome:
    folder = FOLDER / case
    settings = dict(_setting(line) for line in (folder / "settings.txt").read_text().splitlines() if ":" in line)
    rows = [row for row in csv.reader((folder / "results.csv").read_text().splitlines()) if row]
    expected = np.array([[float(cell) for cell in row] for row in rows[1:]])
    variables = _listed(settings["variables"])
    try:
        network = read_network(folder / "model.xml")
        amounts, concentrations = _listed(settings["amount"]), _listed(settings["concentration"])
        outputs = {f"seen_{v}": _seen(network, v, v in amounts, v in concentrations) for v in variables}
        model = model_of(network, Experiment(), outputs).model
    except EquifinalError as error:
        return Outcome("refused", str(error))
    constants = np.array([[float(value) for value in model.constants.values()]])
    times = expected[:, 0]
    found = ode.simulate(ode.compile_system(model, ()), constants, times, rtol=1e-8, atol=1e-14, max_steps=1_000_000)
    if found.status[0]:
        return Outcome("refused", ode.Status(found.status[0]).message)
    header = [cell.strip() for cell in rows[0]]
    absolute, relative = float(settings["absolute"]), float(settings["relative"])
    for variable in variables:
        wanted = expected[:, header.index(variable, 1)]
        got = found.outputs[0, :, model.outputs.index(f"seen_{variable}")]
        wrong = ~(np.abs(got - wanted) <= absolute + relative * np.abs(wanted))
        if wrong.any():
            at = int(np.argmax(wrong))
            return Outcome("differs", f"{variable} at time {times[at]:g}: {got[at]:g}, expected {wanted[at]:g}")
    return Outcome("agrees")


def _seen(network: Network, identifier: str, as_amount: bool, as_concentration: bool) -> Expression:
    name = network.names[identifier]
    species = network.species.get(name)
    if species is None:
        return Name(name)
    if as_amount and species.compartment is not None:
        return Product((Name(name), Name(species.compartment)))
    if as_concentration and species.compartment is None:
        return Product((Name(name), reciprocal(Name(network.places[name]))))
    return Name(name)


def _setting(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
