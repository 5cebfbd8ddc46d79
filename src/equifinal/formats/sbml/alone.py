"""An SBML model by itself as a problem: what is observed of it, and what is unknown."""

from __future__ import annotations

from pathlib import Path

from equifinal.errors import ModelError
from equifinal.formats.sbml.importing import read_network
from equifinal.formats.sbml.modelling import Experiment, model_of
from equifinal.formats.sbml.network import Network
from equifinal.formats.sbml.settling import COMPARISONS, LOGIC, ONLY_NUMBERS
from equifinal.language.expression import Call, Expression, Name, names, walk
from equifinal.language.model import Model
from equifinal.problem import data
from equifinal.problem.labels import Label
from equifinal.problem.problem import Problem


def problem_of(path: Path) -> Problem:
    """The problem: one experiment, without data or priors."""
    network = read_network(path)
    jumping = {name for happening in network.happenings for name in happening.sets}
    unknown = [name for name in network.parameters if name not in _deciding(network) | jumping]
    try:
        model = model_of(network, Experiment(unknown=unknown), _observed(network)).model
    except RecursionError:
        raise ModelError("formulas are nested too deeply", file=path.name) from None
    nominal = {name: float(network.values[name]) for name in model.parameters if name in network.values}
    return Problem(
        (data.Experiment(model),), name=path.stem, labels=labels_of(network, model), nominal=nominal, notes=(UNITS,)
    )


UNITS = "units in the SBML file are not read: every number is taken as it is"


def _observed(network: Network) -> dict[str, Expression]:
    """An output for each species that changes; with no such species, for whatever else does."""
    changing = [n for n, kind in network.species.items() if kind.state is not None or n in network.definitions]
    changing = changing or [*network.rates]
    if not changing:
        raise ModelError("nothing in the model changes with time", file=network.file)
    return {name: Name(name) for name in changing}


def _deciding(network: Network) -> set[str]:
    """Constants on which a condition or a step depends, so that no formula with them as unknowns exists."""
    formulas = [*network.rates.values(), *network.definitions.values(), *network.assigned.values()]
    formulas += [*network.starts.values(), *(h.trigger for h in network.happenings)]
    found: set[str] = set()
    for formula in formulas:
        for node in walk(formula):
            if isinstance(node, Call) and (
                node.function in COMPARISONS
                or node.function in LOGIC
                or node.function in ("eq", "ne")
                or node.function in ONLY_NUMBERS
            ):
                found |= {*names(node)}
    for name in list(found):
        found |= {*names(network.definitions[name])} if name in network.definitions else set()
    return found


def labels_of(network: Network, model: Model) -> dict[str, Label]:
    """What the file calls the names of a model."""
    known = {*model.states, *model.parameters, *model.outputs, *model.definitions}
    return {name: Label(label[:80]) for name, label in network.labels.items() if name in known and label.strip()}
