"""The identifiable model: the same outputs, written in the identifiable combinations, with fewer parameters.

On a fibre some coordinates theta_I are free, and a chart in closed form gives the others, theta_D = g(theta_I, c). No
output depends on theta_I, so it may be fixed at any value: what is left has c as its parameters, and every output of
the old model is one of the new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from equifinal.algebra.elimination.triangular import combination_name
from equifinal.fibre.chart import TriangularChart
from equifinal.fibre.fibre import Fibre
from equifinal.language.checks import checked, free_names
from equifinal.language.expression import (
    Expression,
    Name,
    Number,
    Product,
    evaluate,
    name_nodes,
    names,
    negative,
    reciprocal,
    substitute,
)
from equifinal.language.functions import call_on_arrays
from equifinal.language.lookalikes import numbered
from equifinal.language.model import Model


@dataclass(frozen=True)
class Reparametrised:
    """How a model is written in its combinations.

    Attributes
    ----------
    combinations
        Each new parameter as a function of the old ones; one that is an old parameter keeps its name.
    fixed
        The old parameters that no output depends on, with the values they were given.
    definitions
        The other old parameters in terms of new and fixed ones.
    """

    combinations: Mapping[str, Expression]
    fixed: Mapping[str, Fraction]
    definitions: Mapping[str, Expression]

    def model(self, model: Model) -> Model:
        """A model of the old parameters in terms of the new ones."""
        own = set(free_names(model))
        wanted: list[str] = [name for name in self.definitions if name in own]
        for name in wanted:  # definitions may use each other
            wanted += [n for n in names(self.definitions[name]) if n in self.definitions and n not in wanted]
        definitions = {name: self.definitions[name] for name in self.definitions if name in wanted}
        used = own | {n for e in definitions.values() for n in names(e)}
        draft = replace(
            model,
            constants={**model.constants, **{n: v for n, v in self.fixed.items() if n in used}},
            definitions={**definitions, **model.definitions},
            before=self.model(model.before) if model.before is not None else None,
        )
        return checked(replace(draft, parameters=free_names(draft)))

    def values(self, theta: Mapping[str, float]) -> dict[str, float]:
        """The new parameters at old ones."""
        return {n: float(evaluate(e, theta, float, call_on_arrays)) for n, e in self.combinations.items()}


def reparametrised(fibre: Fibre, theta: Mapping[str, float], taken: Iterable[str]) -> Reparametrised | None:
    """Write a model in the combinations of its fibre; free coordinates are fixed at their values in `theta`.

    New names are none of those that are ``taken``: the model's own, of states and definitions as well. None where there
    is nothing to gain, or no chart is rational.
    """
    chart = fibre.chart
    if not fibre.dimension or not isinstance(chart, TriangularChart) or any(step.degree != 1 for step in chart.steps):
        return None
    numbers: dict[str, Expression] = {name: Number(value) for name, value in fibre.constants.items()}
    independent = [substitute(combination, numbers) for combination in fibre.combinations.independent]
    unused = numbered("c", len(independent), {*taken, *fibre.names, *fibre.constants})
    new: dict[str, Expression] = {}
    called: dict[str, Expression] = {}
    for j, combination in enumerate(independent):
        name = combination.name if isinstance(combination, Name) else unused[j]
        new[name] = combination
        called[combination_name(j)] = Name(name)
    fixed = {name: Fraction(repr(float(theta[name]))) for name in fibre.free}
    definitions: dict[str, Expression] = {}
    for step in chart.steps:
        constant, slope = (substitute(coefficient, called) for coefficient in step.coefficients)
        if step.name in new:
            continue  # identifiable by itself
        definitions[step.name] = Product((negative(constant), reciprocal(slope)))
    if any(node.name.startswith("c[") for e in definitions.values() for node in name_nodes(e)):
        return None
    return Reparametrised(new, fixed, definitions)
