"""What a file says twice, or says of something that cannot have it: refused, since either reading would be a guess."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from equifinal.errors import ModelError, did_you_mean


def refuse_contradictions(model: Any) -> None:
    """Check identifiers, and what rules, initial assignments, events and reactions are about.

    Raises
    ------
    ModelError
        Naming what is wrong.
    """
    things: dict[str, Any] = {}
    for items in (model.getListOfCompartments(), model.getListOfSpecies(), model.getListOfParameters()):
        _put(things, items)
    _put(dict(things), model.getListOfReactions())
    ruled: dict[str, Any] = {}
    for rule in _each(model.getListOfRules()):
        name = rule.getVariable()
        if name in ruled:
            raise ModelError(f"there are two rules for '{name}'", word=name)
        if name in things and _constant(things[name]):
            raise ModelError(f"there is a rule for '{name}', which is constant", word=name)
        ruled[name] = rule
    for assignment in _each(model.getListOfInitialAssignments()):
        name = assignment.getSymbol()
        if name in ruled and ruled[name].isAssignment():
            raise ModelError(f"'{name}' has both an assignment rule and an initial assignment", word=name)
    for at, event in enumerate(_each(model.getListOfEvents()), start=1):
        for assignment in _each(event.getListOfEventAssignments()):
            name = assignment.getVariable()
            where = f"event '{event.getId() or event.getName() or at}'"
            if name in ruled and ruled[name].isAssignment():
                raise ModelError(f"{where} sets '{name}', which an assignment rule gives at all times", word=name)
            if name in things and _constant(things[name]):
                raise ModelError(f"{where} sets '{name}', which is constant", word=name)
    species = {item.getId(): item for item in _each(model.getListOfSpecies())}
    for reaction in _each(model.getListOfReactions()):
        for reference in (*_each(reaction.getListOfReactants()), *_each(reaction.getListOfProducts())):
            name, where = reference.getSpecies(), f"reaction '{reaction.getId()}'"
            if name not in species:
                raise ModelError(f"{where}: '{name}' is not a species{did_you_mean(name, species)}", word=name)
            if name in ruled and not species[name].getBoundaryCondition():
                raise ModelError(
                    f"{where} changes '{name}', which has a rule as well; boundaryCondition would leave it to the rule",
                    word=name,
                )


def _each(items: Any) -> Iterator[Any]:
    return (items.get(i) for i in range(items.size()))


def _put(things: dict[str, Any], items: Any) -> None:
    for item in _each(items):
        if item.getId() in things:
            raise ModelError(f"the identifier '{item.getId()}' appears twice", word=item.getId())
        things[item.getId()] = item


def _constant(item: Any) -> bool:
    return bool(item.getConstant())
