"""Steady states as rational functions."""

from __future__ import annotations

from fractions import Fraction

from equifinal.language.expression import to_text
from equifinal.language.model import Model
from equifinal.language.steady import conserved_totals, rational_steady_state


def at_rest(text: str, positive: bool = True, **constants: object) -> dict[str, str] | None:
    model = Model.parse(text, ["x"], constants=constants)
    found = rational_steady_state(model.vary(before=model), positive=positive)
    if found is None:
        return None
    assert found.before is None
    return {x: to_text(value) for x, value in found.initial.items()}


def test_a_chain_of_linear_steps() -> None:
    text = "x' = k1*u*(1 - x) - k2*x\nz' = k3*x*(T - z) - k4*z\nx(0) = 0\nz(0) = 0"
    assert at_rest(text, u=2) == {"x": "k1/(k1 + 1/2*k2)", "z": "T*k1*k3/(k1*k3 + k1*k4 + 1/2*(k2*k4))"}


def test_a_total_stays_what_it_was() -> None:
    found = at_rest("x' = -a*x + b*z\nz' = a*x - b*z\nx(0) = x0\nz(0) = 1")
    assert found == {"x": "(b*x0 + b)/(a + b)", "z": "(a*x0 + a)/(a + b)"}


def test_totals_are_found() -> None:
    model = Model.parse("r' = -k*r*l + b*c\nl' = -k*r*l + b*c\nc' = k*r*l - b*c", ["c"])
    totals = conserved_totals(model.states, model.rhs)
    assert len(totals) == 2
    assert {"c": Fraction(1), "r": Fraction(1)} in totals


def test_several_steady_states_or_roots_are_not_rational() -> None:
    assert at_rest("x' = r*x*(1 - x/K)\nx(0) = 1") is None  # 0 or K
    assert at_rest("x' = a - b*x^2\nx(0) = 1") is None
    assert at_rest("x' = a*exp(-x)\nx(0) = 1") is None
    assert at_rest("x' = a\nx(0) = 1") is None  # none at all


def test_a_formula_that_holds_only_sometimes_is_not_for_solvers() -> None:
    text = "x' = k - V*x/(K + x)\nx(0) = 1"
    assert at_rest(text) is None
    assert at_rest(text, positive=False) == {"x": "K*k/(V - k)"}


def test_the_model_before_may_have_other_constants() -> None:
    model = Model.parse("x' = u*a - b*x\nx(0) = 0", ["x"], constants={"u": 1})
    stimulated = model.vary(constants={"u": 5}, before=model)
    found = rational_steady_state(stimulated)
    assert found is not None
    assert to_text(found.initial["x"]) == "a/b"
    assert rational_steady_state(model) is None
