"""A file's compartments, species, parameters, reactions and rules to a `Network`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from equifinal.errors import ModelError
from equifinal.formats.sbml.contradictions import refuse_contradictions
from equifinal.formats.sbml.functions import ZERO, number
from equifinal.formats.sbml.happenings import read_event
from equifinal.formats.sbml.mathml import RATE, MathReader
from equifinal.formats.sbml.names import fresh, renamed
from equifinal.formats.sbml.network import Happening, Network, Species, missing_name
from equifinal.formats.sbml.reading import open_sbml
from equifinal.language.checks import in_order
from equifinal.language.expression import (
    Expression,
    Name,
    Number,
    Product,
    Sum,
    name_nodes,
    negative,
    reciprocal,
    substitute,
)


def read_network(path: Path) -> Network:
    """Read an SBML file.

    Raises
    ------
    DataError, ModelError
        If it is not one, or contains what cannot be represented exactly, by name and place.
    """
    document = open_sbml(path)
    try:
        return _Importer(document.getModel(), path.name).network()
    except ModelError as error:
        raise error if error.file else error.moved(file=path.name) from None
    except RecursionError:
        raise ModelError("formulas are nested too deeply", file=path.name) from None


def _each(items: Any) -> Iterator[Any]:
    return (items.get(i) for i in range(items.size()))


class _Importer:
    """Sorts what a model consists of by what changes it."""

    def __init__(self, model: Any, file: str):
        self.model, self.file = model, file
        self._refuse_what_is_not_supported()
        refuse_contradictions(model)
        self.names = renamed(self._identifiers())
        self.math = MathReader(self.names)
        for definition in _each(model.getListOfFunctionDefinitions()):
            tree = definition.getMath()
            if tree is not None:
                self.math.define(definition.getId(), tree)
        # what has no formula yet, as Level 3 Version 2 allows, says nothing
        rules = [rule for rule in _each(model.getListOfRules()) if rule.getMath() is not None]
        self.assignments = {r.getVariable(): r for r in rules if r.isAssignment()}
        self.rate_rules = {r.getVariable(): r for r in rules if r.isRate()}
        self.first = {a.getSymbol(): a for a in _each(model.getListOfInitialAssignments()) if a.getMath() is not None}
        self.events = [e for e in _each(model.getListOfEvents()) if e.getTrigger() and e.getTrigger().getMath()]
        self.jumping = {a.getVariable() for e in self.events for a in _each(e.getListOfEventAssignments())}
        self.values: dict[str, Fraction] = {}
        self.assigned: dict[str, Expression] = {}
        self.rates: dict[str, Expression] = {}
        self.starts: dict[str, Expression] = {}
        self.definitions: dict[str, Expression] = {}
        self.species: dict[str, Species] = {}
        self.missing: set[str] = set()
        self.parameters: list[str] = []
        self.labels: dict[str, str] = {}
        self.happenings: list[Happening] = []

    def _refuse_what_is_not_supported(self) -> None:
        model = self.model
        for rule in _each(model.getListOfRules()):
            if rule.isAlgebraic():
                raise ModelError("algebraic rules are not supported")
        for reaction in _each(model.getListOfReactions()):
            if reaction.getFast():
                raise ModelError(
                    f"reaction '{reaction.getId()}' is fast, which is not supported", word=reaction.getId()
                )
        if model.getNumConstraints():
            pass  # they say when a simulation is not to be trusted, and change nothing

    def _identifiers(self) -> Iterator[str]:
        model = self.model
        lists = (
            model.getListOfSpecies(),
            model.getListOfCompartments(),
            model.getListOfParameters(),
            model.getListOfReactions(),
        )
        for items in lists:
            for item in _each(items):
                yield item.getId()
        for reaction in _each(model.getListOfReactions()):
            for reference in self._references(reaction):
                if reference.isSetId():
                    yield reference.getId()

    def _references(self, reaction: Any) -> Iterator[Any]:
        yield from _each(reaction.getListOfReactants())
        yield from _each(reaction.getListOfProducts())

    # --- the parts ---

    def network(self) -> Network:
        self.varying = {c.getId() for c in _each(self.model.getListOfCompartments()) if self._changes(c.getId())}
        for compartment in _each(self.model.getListOfCompartments()):
            self._constant_or_ruled(
                compartment, compartment.getSize() if compartment.isSetSize() else None, "compartment"
            )
        for parameter in _each(self.model.getListOfParameters()):
            self._constant_or_ruled(parameter, parameter.getValue() if parameter.isSetValue() else None, "parameter")
        changes = self._reactions()
        every_species = list(_each(self.model.getListOfSpecies()))
        for species in every_species:
            self._one_species(species, changes.get(species.getId(), []))
        self._check_rules()
        self.happenings = [read_event(event, i, self.math) for i, event in enumerate(self.events, start=1)]
        self._put_rates_in()
        return Network(
            file=self.file,
            values=self.values,
            assigned=self.assigned,
            rates=self.rates,
            starts=self.starts,
            definitions=self.definitions,
            species=self.species,
            places={self.names[s.getId()]: self.names[s.getCompartment()] for s in every_species},
            happenings=tuple(self.happenings),
            missing=frozenset(self.missing),
            parameters=tuple(self.parameters),
            names=self.names,
            labels=self.labels,
        )

    def _changes(self, identifier: str) -> bool:
        return identifier in self.assignments or identifier in self.rate_rules or identifier in self.jumping

    def _label(self, item: Any, name: str) -> None:
        label = item.getName() or item.getId()
        if label != name:
            self.labels[name] = label

    def _constant_or_ruled(self, item: Any, value: float | None, what: str) -> None:
        """Something whose value is a number, a formula at the start, a rule, or not known."""
        identifier, name = item.getId(), self.names[item.getId()]
        self._label(item, name)
        where = f"{what} '{identifier}'"
        if identifier in self.assignments:
            self.definitions[name] = self.math.read(self.assignments[identifier].getMath(), f"the rule for {where}")
            return
        if what == "parameter" and identifier not in self.rate_rules and identifier not in self.first:
            self.parameters.append(name)
        known = value is not None and not math.isnan(value)
        start = self._start(identifier, name, number_of(value, where) if known and value is not None else None)
        if identifier in self.rate_rules:
            self.rates[name] = self.math.read(self.rate_rules[identifier].getMath(), f"the rule for {where}")
            self.starts[name] = Name(missing_name(name)) if start is None else start
        elif start is None:
            self.missing.add(name)
        else:
            self._constant(name, start)

    def _constant(self, name: str, start: Expression) -> None:
        if isinstance(start, Number):
            self.values[name] = start.value
        else:
            self.assigned[name] = start

    def _start(self, identifier: str, name: str, value: Expression | None) -> Expression | None:
        if identifier not in self.first:
            return value
        return self.math.read(self.first[identifier].getMath(), f"the initial assignment of '{identifier}'")

    # --- reactions ---

    def _reactions(self) -> dict[str, list[Expression]]:
        """What reactions add to the amount of each species in a unit of time; the rate of each gets a name."""
        changes: dict[str, list[Expression]] = {}
        for reaction in _each(self.model.getListOfReactions()):
            identifier, law = reaction.getId(), reaction.getKineticLaw()
            where = f"reaction '{identifier}'"
            if law is None or law.getMath() is None:
                raise ModelError(f"{where} has no kinetic law", word=identifier)
            rate = self.math.read(law.getMath(), where, self._local_parameters(reaction, law))
            self.definitions[self.names[identifier]] = rate
            for sign, references in ((-1, reaction.getListOfReactants()), (1, reaction.getListOfProducts())):
                for reference in _each(references):
                    factor = self._stoichiometry(reference, where)
                    flow = _times(factor, Name(self.names[identifier]))
                    changes.setdefault(reference.getSpecies(), []).append(negative(flow) if sign < 0 else flow)
        return changes

    def _local_parameters(self, reaction: Any, law: Any) -> dict[str, str]:
        local: dict[str, str] = {}
        items = [*_each(law.getListOfParameters()), *_each(law.getListOfLocalParameters())]
        for item in items:
            identifier = item.getId()
            if identifier in local:
                continue  # both lists may show the same
            taken = {*self.names.values(), *self.values, *self.missing}
            name = fresh(f"{self.names[reaction.getId()]}_{identifier}", taken)
            local[identifier] = name
            self.labels[name] = f"{identifier} of {reaction.getId()}"
            self.parameters.append(name)
            if item.isSetValue():
                self.values[name] = number_of(item.getValue(), f"parameter '{identifier}'").value
            else:
                self.missing.add(name)
        return local

    def _stoichiometry(self, reference: Any, where: str) -> Expression:
        where = f"{where}, stoichiometry of '{reference.getSpecies()}'"
        identifier = reference.getId() if reference.isSetId() else ""
        formula = reference.getStoichiometryMath() if hasattr(reference, "getStoichiometryMath") else None
        if formula is not None and formula.getMath() is not None:
            return self.math.read(formula.getMath(), where)
        value = reference.getStoichiometry()
        known = math.isfinite(value)
        plain: Expression | None = None
        if known:
            plain = Number(number_of(value, where).value / (reference.getDenominator() or 1))
        if not identifier:
            if plain is None:
                raise ModelError(f"{where} is not given")
            return plain
        name = self.names[identifier]
        if identifier in self.assignments:
            self.definitions[name] = self.math.read(self.assignments[identifier].getMath(), where)
        else:
            start = self._start(identifier, name, plain)
            if identifier in self.rate_rules:
                self.rates[name] = self.math.read(self.rate_rules[identifier].getMath(), where)
            if start is None:
                raise ModelError(f"{where} is not given")
            if identifier in self.rate_rules:
                self.starts[name] = start
            else:
                self._constant(name, start)
        return Name(name)

    # --- species ---

    def _one_species(self, item: Any, flows: list[Expression]) -> None:
        identifier, name = item.getId(), self.names[item.getId()]
        where = f"species '{identifier}'"
        self._label(item, name)
        place = self.model.getCompartment(item.getCompartment())
        if place is None:
            raise ModelError(f"{where} is in '{item.getCompartment()}', which is not a compartment")
        size = self.names[place.getId()]
        as_amount = item.getHasOnlySubstanceUnits() or place.getSpatialDimensionsAsDouble() == 0
        moves = bool(flows) and not item.getBoundaryCondition() and not item.getConstant()
        compartment = None if as_amount else size
        if identifier in self.assignments:
            self.definitions[name] = self.math.read(self.assignments[identifier].getMath(), f"the rule for {where}")
            self.species[name] = Species(compartment, None)
            return
        start = self._species_start(item, name, size, as_amount)
        if identifier in self.rate_rules:
            rate = self.math.read(self.rate_rules[identifier].getMath(), f"the rule for {where}")
            self._state(name, Species(compartment, name), rate, start, where)
            return
        if place.getId() in self.varying and not as_amount:
            self._by_amount(item, name, size, flows if moves else [], start)
            return
        if not moves:
            self.species[name] = Species(compartment, None)
            if start is None:
                self.missing.add(name)
            else:
                self._constant(name, start)
            return
        rate = _times(Sum(tuple(flows)) if len(flows) > 1 else flows[0], self._conversion(item))
        if not as_amount:
            rate = Product((rate, reciprocal(Name(size))))
        self._state(name, Species(compartment, name), rate, start, where)

    def _state(self, name: str, kind: Species, rate: Expression, start: Expression | None, where: str) -> None:
        self.species[name] = kind
        self.rates[name] = rate
        self.starts[name] = Name(missing_name(name)) if start is None else start

    def _by_amount(self, item: Any, name: str, size: str, flows: list[Expression], start: Expression | None) -> None:
        """A concentration where the size changes: the amount is what reactions change."""
        amount = fresh(f"{name}_amount", {*self.names.values(), *self.values})
        self.labels[amount] = f"amount of {item.getName() or item.getId()}"
        total: Expression | None = None
        if start is not None:
            total = Product((start, Name(size)))
            if item.isSetInitialAmount() and item.getId() not in self.first:
                total = number_of(item.getInitialAmount(), f"species '{item.getId()}'")
        self.definitions[name] = Product((Name(amount), reciprocal(Name(size))))
        self.species[name] = Species(size, amount)
        if not flows and item.getId() not in self.jumping:
            if total is None:
                self.missing.add(amount)
            else:
                self._constant(amount, total)
            return
        rate = _times(Sum(tuple(flows)), self._conversion(item)) if flows else ZERO
        self.rates[amount] = rate
        self.starts[amount] = Name(missing_name(amount)) if total is None else total

    def _species_start(self, item: Any, name: str, size: str, as_amount: bool) -> Expression | None:
        """The value at the start, in what the name stands for."""
        if item.getId() in self.first:
            return self._start(item.getId(), name, None)
        where = f"species '{item.getId()}'"
        if item.isSetInitialAmount():
            amount = number_of(item.getInitialAmount(), where)
            return amount if as_amount or not amount.value else Product((amount, reciprocal(Name(size))))
        if item.isSetInitialConcentration():
            concentration = number_of(item.getInitialConcentration(), where)
            return Product((concentration, Name(size))) if as_amount and concentration.value else concentration
        return None

    def _conversion(self, item: Any) -> Expression:
        own = item.getConversionFactor() if item.isSetConversionFactor() else self.model.getConversionFactor()
        if not own:
            return Number(Fraction(1))
        if own not in self.names:
            raise ModelError(f"the conversion factor '{own}' is not a parameter", word=own)
        return Name(self.names[own])

    # --- rules, derivatives, events ---

    def _check_rules(self) -> None:
        for identifier in (*self.assignments, *self.rate_rules, *self.first, *self.jumping):
            if identifier not in self.names:
                raise ModelError(f"a rule, initial assignment or event is about '{identifier}', which does not exist")
        in_order(self.definitions)  # rules that nothing uses must not be circular either

    def _put_rates_in(self) -> None:
        """Derivatives that are named in formulas: of a state its rate, of a constant zero."""

        def rate(name: str) -> Expression:
            subject = name.removeprefix(RATE)
            if subject in self.definitions:
                raise ModelError(f"the rate of '{subject}', which is not a state, is not supported", word=subject)
            return self.rates.get(subject, ZERO)

        tables = (self.rates, self.definitions, self.assigned, self.starts)
        for _ in range(20):
            formulas = [formula for table in tables for formula in table.values()]
            formulas += [formula for happening in self.happenings for formula in happening.formulas]
            found = {node.name for formula in formulas for node in name_nodes(formula)}
            put = {name: rate(name) for name in found if name.startswith(RATE)}
            if not put:
                return
            for table in tables:
                table.update({name: substitute(formula, put) for name, formula in table.items()})
            self.happenings = [happening.substituted(put) for happening in self.happenings]
        raise ModelError("rates are defined in terms of each other")


def number_of(value: float, where: str) -> Number:
    if not math.isfinite(value):
        raise ModelError(f"{where} has the value {value}, which is not a finite number")
    return number(value)


def _times(first: Expression, second: Expression) -> Expression:
    if isinstance(first, Number) and first.value == 1:
        return second
    if isinstance(second, Number) and second.value == 1:
        return first
    return Product((first, second))
