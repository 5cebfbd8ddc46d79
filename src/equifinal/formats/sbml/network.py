"""An SBML model between file and `Model`: what it consists of, before any experiment has changed something.

Names stand for what they stand for in SBML's formulas: a species for its concentration or, with
``hasOnlySubstanceUnits``, its amount. A species in a compartment whose size changes has its amount as a state, and is
itself a definition, amount over size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from equifinal.language.expression import Expression, substitute


class Species(NamedTuple):
    """A species, the compartment that its concentration refers to (None: it is an amount), and its state.

    ``state`` is its own name, that of its amount, or None where it is not a state.
    """

    compartment: str | None
    state: str | None


@dataclass(frozen=True)
class Happening:
    """An SBML event; formulas are open (see `settling`).

    Attributes
    ----------
    sets
        New values by name.
    then
        Whether these are computed when it happens rather than when it was triggered.
    at_once
        Whether it happens at the start if its trigger holds there.
    """

    name: str
    trigger: Expression
    sets: Mapping[str, Expression]
    delay: Expression | None = None
    priority: Expression | None = None
    then: bool = False
    at_once: bool = False
    persistent: bool = True

    @property
    def formulas(self) -> tuple[Expression, ...]:
        optional = (self.delay, self.priority)
        return (self.trigger, *self.sets.values(), *(formula for formula in optional if formula is not None))

    def substituted(self, put: Mapping[str, Expression]) -> Happening:
        """The same with something else for names in its formulas."""
        return replace(
            self,
            trigger=substitute(self.trigger, put),
            sets={name: substitute(value, put) for name, value in self.sets.items()},
            delay=None if self.delay is None else substitute(self.delay, put),
            priority=None if self.priority is None else substitute(self.priority, put),
        )


@dataclass(frozen=True)
class Network:
    """Everything in an SBML model that matters here.

    Attributes
    ----------
    values
        Numbers by name: parameters, sizes of compartments, species that nothing changes, stoichiometries.
    assigned
        The same where a formula gives the value at the start.
    rates, starts
        For each state its derivative, and a formula for its value at the start.
    definitions
        What is given by a formula at all times: assignment rules, rates of reactions, concentrations.
    places
        The compartment of each species.
    missing
        Names without a value; an experiment has to give one.
    parameters
        Which of the constants are parameters of the model or of one of its reactions.
    names
        The name here of each identifier in the file.
    labels
        What the file calls them, where that says more.
    """

    file: str
    values: Mapping[str, Fraction] = field(default_factory=dict)
    assigned: Mapping[str, Expression] = field(default_factory=dict)
    rates: Mapping[str, Expression] = field(default_factory=dict)
    starts: Mapping[str, Expression] = field(default_factory=dict)
    definitions: Mapping[str, Expression] = field(default_factory=dict)
    species: Mapping[str, Species] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    happenings: tuple[Happening, ...] = ()
    missing: frozenset[str] = frozenset()
    parameters: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def missing_name(state: str) -> str:
    """Stands for a start that the file does not give."""
    return f"start of {state}"
