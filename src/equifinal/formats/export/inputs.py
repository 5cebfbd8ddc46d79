"""Known inputs as formulas of time: what a format without tables of them can have."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from equifinal.language.expression import TIME, Call, Expression, Name, Number, Product, Sum
from equifinal.language.model import Model
from equifinal.problem.data import Experiment, InputSeries


def with_inputs_written(experiment: Experiment) -> Model:
    """The model of an experiment, its inputs as definitions."""
    model = experiment.model
    if not experiment.inputs:
        return model
    written = {name: input_formula(series) for name, series in experiment.inputs.items()}
    return replace(model, inputs=(), definitions={**written, **model.definitions})


def input_formula(series: InputSeries) -> Expression:
    """Steps or straight lines between knots, which are held outside them."""
    knots = [(_number(t), _number(v)) for t, v in zip(series.times, series.values, strict=True)]
    pieces: list[Expression] = [knots[0][1], Call("before", (knots[0][0],))]
    for (t, v), (then, after) in pairwise(knots):
        between: Expression = v
        if series.interpolation == "linear" and v != after:
            slope = (after.value - v.value) / (then.value - t.value)
            between = Sum((Number(v.value - slope * t.value), Product((Number(slope), Name(TIME)))))
        pieces += [between, Call("before", (then,))]
    return Call("piecewise", (*pieces, knots[-1][1]))


def _number(value: float) -> Number:
    return Number(Fraction(repr(float(value))))
