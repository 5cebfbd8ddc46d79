"""Doses, changes and steady states become the events and levels that they mean."""

from __future__ import annotations

from fractions import Fraction

import pytest

from equifinal.errors import DataError
from equifinal.language.expression import Number, to_text
from equifinal.language.model import Event, Model
from equifinal.problem.changes import Change, changed
from equifinal.problem.doses import Dose, dosed
from equifinal.problem.steady import resting

ORAL = """
gut' = -ka*gut
blood' = ka*gut - ke*blood
conc = blood/V
gut(0) = 0
blood(0) = 0
"""


def oral() -> Model:
    return Model.parse(ORAL, ["conc"], constants={"D": 100, "wt": 70}, quantities={"CL": "ke*V", "per_kg": "D/wt"})


def said(event: Event) -> tuple[str, dict[str, str]]:
    return to_text(event.time, decimals=True), {x: to_text(v, decimals=True) for x, v in event.sets.items()}


def test_a_bolus_adds_to_its_state() -> None:
    model = dosed(oral(), [Dose("gut", "D", 2)])
    assert [said(event) for event in model.events] == [("2", {"gut": "gut + D"})]
    assert not model.levels
    assert model.parameters == oral().parameters


def test_lag_and_fraction_are_unknown_where_their_names_are() -> None:
    model = dosed(oral(), [Dose("gut", 50, [0, 12], lag="tlag", fraction="F")])
    assert [said(event) for event in model.events] == [
        ("tlag", {"gut": "gut + 50*F"}),
        ("tlag + 12", {"gut": "gut + 50*F"}),
    ]
    assert model.parameters == ("ka", "ke", "V", "tlag", "F")


def test_repeated_doses_are_evenly_spaced() -> None:
    model = dosed(oral(), [Dose("gut", 1, 6, every=0.1, count=4)])
    assert [event.time for event in model.events] == [Number(Fraction(60 + i, 10)) for i in range(4)]
    model = dosed(oral(), [Dose("gut", 1, every="tau", count=3)])
    assert [said(event)[0] for event in model.events] == ["0", "tau", "2*tau"]


@pytest.mark.parametrize(
    "given", [{"amount": 100, "duration": 2}, {"amount": 100, "rate": 50}, {"rate": 50, "duration": 2}]
)
def test_two_of_three_say_an_infusion(given: dict[str, float]) -> None:
    model = dosed(oral(), [Dose("blood", time=1, fraction=0.5, **given)])
    assert to_text(model.equations["blood"]) == "ka*gut - ke*blood + infusion_blood"
    assert [said(event) for event in model.events] == [
        ("1", {"infusion_blood": "infusion_blood + 25"}),
        ("3", {"infusion_blood": "infusion_blood - 25"}),
    ]
    assert model.levels == {"infusion_blood": Number(Fraction(0))}


def test_infusions_into_one_state_share_a_level_and_add_up() -> None:
    model = dosed(oral(), [Dose("blood", 10, 0, duration="T"), Dose("blood", 10, 1, rate="r")])
    assert list(model.levels) == ["infusion_blood"]
    assert [said(event) for event in model.events] == [
        ("0", {"infusion_blood": "infusion_blood + 10/T"}),
        ("T", {"infusion_blood": "infusion_blood - 10/T"}),
        ("1", {"infusion_blood": "infusion_blood + r"}),
        ("10/r + 1", {"infusion_blood": "infusion_blood - r"}),
    ]


def test_an_infusion_takes_a_name_that_is_free() -> None:
    model = Model.parse("x' = -infusion_x*x\nx(0) = 0", ["x"])
    assert list(dosed(model, [Dose("x", 1, rate=1)]).levels) == ["infusion_x_"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"amount": 1, "every": 2}, "every needs count"),
        ({"amount": 1, "count": 2}, "needs every"),
        ({"amount": 1, "every": 2, "count": 0}, "whole number from 1"),
        ({"amount": 1, "every": 2, "count": 3, "time": [0, 1]}, "one time"),
        ({"amount": 1, "every": -2, "count": 3}, "every must be positive"),
        ({"amount": 1, "time": [3, 1]}, "entry 2: 1 comes after 3"),
        ({"amount": 1, "time": []}, "empty list"),
        ({"amount": 1, "time": [0, "soon after"]}, "time, entry 2, column 6.*may be a number, a constant, a parameter"),
        ({"amount": 1, "lag": "half an hour"}, "lag, column 6"),
        ({"amount": 1, "lag": [1]}, "lag must be a number"),
        ({"amount": 1, "duration": 2, "rate": 3}, "rate times duration is 6, but the amount is 1"),
        ({"amount": "D", "duration": 2, "rate": 3}, "leave one out"),
        ({}, "needs an amount"),
        ({"duration": 2}, "needs an amount"),
        ({"amount": -1}, "must not be negative"),
        ({"amount": 1, "fraction": -0.5}, "fraction must not be negative"),
        ({"amount": 1, "duration": 0}, "duration must be positive"),
        ({"amount": float("nan")}, "finite number"),
        ({"amount": True}, "amount must be a number"),
        ({"amount": 1, "first": 1}, "true or false"),
        ({"amount": 1, "time": -1}, "negative; the model starts at time 0"),
        ({"amount": 1, "lag": "conc"}, "lag depends on 'blood', which changes"),
        ({"amount": 1, "time": "t"}, "depends on 't'"),
        ({"amount": "blood", "duration": 1}, "rate depends on 'blood'"),
    ],
)
def test_what_is_wrong_with_a_dose_is_said(given, message: str) -> None:
    with pytest.raises(DataError, match=message):
        dosed(oral(), [Dose("gut", **given)])


def test_a_dose_into_nowhere_is_refused() -> None:
    with pytest.raises(DataError, match="'bloood' is not a state; did you mean 'blood'"):
        dosed(oral(), [Dose("bloood", 1)])
    with pytest.raises(DataError, match="state must be the name of a state, not 3"):
        Dose(3, 1)  # type: ignore[arg-type]


def test_before_an_unknown_onset_times_may_be_negative() -> None:
    model = dosed(oral().vary(onset="t0"), [Dose("gut", 1, -1)])
    assert said(model.events[0]) == ("-1", {"gut": "gut + 1"})


# --- changes ---


def test_a_constant_that_changes_is_a_level() -> None:
    model = Model.parse(
        "x' = -k*x + half\nhalf = k/2\nx(0) = 2*k",
        ["x"],
        constants={"k": 3},
        quantities={"life": "1/k", "a": "b"},
        parameters=["b"],
    )
    found = changed(model, [Change(5, constants={"k": 0.5}), Change("ts", constants={"k": "k*f"}, add={"x": 1})])
    assert found.levels == {"k": Number(Fraction(3))}
    assert "k" not in found.constants
    assert to_text(found.start[0]) == "2*3"
    assert [said(event) for event in found.events] == [("5", {"k": "0.5"}), ("ts", {"k": "k*f", "x": "x + 1"})]
    assert set(found.parameters) == {"ts", "f", "b"}
    assert list(found.trajectories) == ["life"]
    assert list(found.quantities) == ["a"]


def test_a_varied_constant_and_a_definition_may_change_too() -> None:
    model = oral().vary(constants={"D": "dose_1"})
    found = changed(model, [Change(1, constants={"D": "dose_2"})])
    assert to_text(found.levels["D"]) == "dose_1"
    assert {"dose_1", "dose_2"} <= set(found.parameters)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing that changes"),
        ({"constants": {"dd": 1}}, "'dd' is not a constant that can change"),
        ({"constants": {"conc": 1}}, "'conc' is not a constant: it depends on 'blood'"),
        ({"set": {"gutt": 0}}, "'gutt' is not a state; did you mean 'gut'"),
        ({"set": {"gut": 0}, "add": {"gut": 1}}, "both set and added to"),
        ({"set": {"gut": "1 +"}}, "set, gut, column"),
        ({"set": {"gut": 0}, "first": "yes"}, "first must be true or false, not 'yes'"),
        ({"time": -1, "set": {"gut": 0}}, "negative"),
        ({"time": "blood", "set": {"gut": 0}}, "time depends on 'blood'"),
        ({"time": "D", "constants": {"D": 0}}, "time depends on 'D'"),
    ],
)
def test_what_is_wrong_with_a_change_is_said(given, message: str) -> None:
    with pytest.raises(DataError, match=message):
        changed(oral(), [Change(given.pop("time", 1), **given)])


# --- steady states ---


def test_a_model_at_rest_keeps_what_held_before() -> None:
    model = Model.parse("x' = b*u - d*x\ny = s*x", ["y"], inputs=["u"], constants={"b": 2})
    found = resting(model, constants={"b": 1}, inputs={"u": "basal"})
    assert found.before is not None
    assert to_text(found.before.rhs[0]) == "b*basal - d*x"
    assert found.before.constants == {"b": 1}
    assert not found.before.inputs
    assert set(found.parameters) == {"d", "s", "basal"}  # x_0 means nothing any more
    assert found.constants == {"b": 2}


def test_conditions_on_time_hold_as_long_ago() -> None:
    found = resting(Model.parse("x' = piecewise(1, t < 10, 5) - d*x", ["x"]))
    assert found.before is not None
    assert to_text(found.before.rhs[0]) == "piecewise(1, 1, 5) - d*x"


def test_conserved_sums_must_be_said() -> None:
    text = "R' = -k*R + d*P\nP' = k*R - d*P\nz' = R - z\nz(0) = 0\n"
    with pytest.raises(DataError, match=r"sum of R and P is conserved.*R\(0\) = "):
        resting(Model.parse(text, ["P"]))
    found = resting(Model.parse(text + "R(0) = total\nP(0) = 0", ["P"]))
    assert set(found.parameters) == {"k", "d", "total"}


def test_no_steady_state_under_a_clock() -> None:
    with pytest.raises(DataError, match="no steady state, because the equations contain t"):
        resting(Model.parse("x' = cos(t) - x", ["x"]))
    with pytest.raises(DataError, match="input 'u' before the start is not known"):
        resting(Model.parse("x' = u - x", ["x"], inputs=["u"]))
    with pytest.raises(DataError, match="'w' is not an input"):
        resting(Model.parse("x' = u - x", ["x"], inputs=["u"]), inputs={"u": 1, "w": 1})
    with pytest.raises(DataError, match="'k' is not a constant"):
        resting(Model.parse("x' = k - x", ["x"]), constants={"k": 1})
