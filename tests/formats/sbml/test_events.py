"""What SBML events do to a solution, against values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equifinal import ode
from equifinal.errors import ModelError
from equifinal.formats.sbml.importing import read_network
from equifinal.formats.sbml.modelling import Experiment, model_of
from equifinal.language.expression import Name
from tests.support.sbml import event, math, parameter, reaction, rule, sbml, species

VARYING = '<compartment id="c" size="0.5" constant="false"/>'
BOUNDARY = species("S", 'initialConcentration="2"', boundaryCondition="true")
STILL = rule("rate", "S", "0")  # makes the concentration itself a state, and not the amount


def values_at(tmp_path: Path, time: float, *seen: str, **parts: str) -> list[float]:
    """Species, sizes and parameters at a time."""
    path = tmp_path / "model.xml"
    path.write_text(sbml(**parts))  # type: ignore[arg-type]
    model = model_of(read_network(path), Experiment(), {f"seen_{name}": Name(name) for name in seen}).model
    constants = [float(value) for value in model.constants.values()]
    found = ode.simulate(ode.compile_system(model, ()), [constants], [0, time], rtol=1e-9, atol=1e-12)
    assert found.status[0] == ode.Status.ok
    return [float(value) for value in found.outputs[0, -1]]


def numbers(*names: str, value: float = 0) -> str:
    return "".join(parameter(name, value, constant=False) for name in names)


def delay(formula: str) -> str:
    return f"<delay>{math(formula)}</delay>"


def priority(number: int) -> str:
    return f"<priority>{math(str(number))}</priority>"


@pytest.mark.parametrize("rules", ["", STILL], ids=["amount", "concentration"])
def test_a_concentration_and_the_size_at_once(tmp_path: Path, rules: str) -> None:
    both = event("e", "(>= time 1)", {"S": "0.2", "c": "0.2"})
    found = values_at(tmp_path, 2, "S", compartments=VARYING, species=BOUNDARY, rules=rules, events=both)
    assert found == pytest.approx([0.2 * 0.5 / 0.2])  # the amount is the new concentration times the old size


@pytest.mark.parametrize("rules", ["", STILL], ids=["amount", "concentration"])
@pytest.mark.parametrize(("size_first", "expected"), [(True, 0.2), (False, 0.2 * 0.5 / 0.25)])
def test_a_concentration_and_the_size_in_order(
    tmp_path: Path, rules: str, *, size_first: bool, expected: float
) -> None:
    events = event("size", "(>= time 1)", {"c": "0.25"}, priority(2 if size_first else 0))
    events += event("set", "(>= time 1)", {"S": "0.2"}, priority(1))
    found = values_at(tmp_path, 2, "S", compartments=VARYING, species=BOUNDARY, rules=rules, events=events)
    assert found == pytest.approx([expected])


@pytest.mark.parametrize("rules", ["", rule("rate", "S", "1")], ids=["amount", "concentration"])
def test_a_delayed_change_of_size_dilutes_what_is_there_then(tmp_path: Path, rules: str) -> None:
    events = event("size", "(>= time 1)", {"c": "2"}, delay("1"))
    found = values_at(tmp_path, 2, "S", compartments=VARYING, species=BOUNDARY, rules=rules, events=events)
    assert found == pytest.approx([(4 if rules else 2) * 0.5 / 2])


def test_a_delayed_concentration_is_of_the_size_then(tmp_path: Path) -> None:
    events = event("set", "(>= time 1)", {"S": "(* 3 S)"}, delay("2")) + event("size", "(>= time 2)", {"c": "1"})
    assert values_at(tmp_path, 4, "S", compartments=VARYING, species=BOUNDARY, events=events) == pytest.approx([6])


def test_values_from_the_trigger_do_not_see_what_another_event_computes_late(tmp_path: Path) -> None:
    events = event("one", "(>= time 1)", {"p": "(+ q 1)"}, priority(3))
    events += event("late", "(>= time 1)", {"q": "(+ p 10)"}, priority(2), trigger_values=False)
    events += event("two", "(>= time 1)", {"r": "(+ p q)"}, priority(1))
    found = values_at(tmp_path, 2, "p", "q", "r", parameters=numbers("p", "q", "r", value=5), events=events)
    assert found == [6, 16, 10]


@pytest.mark.parametrize(
    "trigger",
    [
        "(>= time (root 4))",
        "(and (>= time (root 4)) (< time (exp 2)))",
        "(> (- time 2) (- (arcsin 1) (/ pi 2)))",
        "(>= clock (+ 1 (ln exponentiale)))",
    ],
)
def test_a_trigger_at_a_time_that_a_function_gives(tmp_path: Path, trigger: str) -> None:
    parts = {
        "parameters": numbers("p", "clock"),
        "rules": rule("rate", "clock", "1"),
        "events": event("e", trigger, {"p": "1"}),
    }
    assert values_at(tmp_path, 1.99, "p", **parts) == [0]
    assert values_at(tmp_path, 2.01, "p", **parts) == [1]


def test_the_rate_of_a_state_as_a_new_value_and_as_a_priority(tmp_path: Path) -> None:
    events = event("one", "(>= time 1)", {"p": "(rateOf x)"}) + event("two", "(>= time 1)", {"q": "1"}, priority(4))
    events += event("three", "(>= time 1)", {"q": "2"}, f"<priority>{math('(rateOf y)')}</priority>")
    rules = rule("rate", "x", "(* 2 x)") + rule("rate", "y", "3")
    found = values_at(
        tmp_path, 1.5, "p", "q", parameters=numbers("p", "q", "y") + numbers("x", value=1), rules=rules, events=events
    )
    assert found == pytest.approx([2 * np.exp(2), 2])


def test_a_state_that_passes_zero_when_an_event_happens(tmp_path: Path) -> None:
    """Rounding leaves it so close to zero that a step to match would be none."""
    parameters = parameter("x", -5.3, constant=False) + numbers("p")
    happens = event("e", "(> x 0)", {"p": "1"})
    found = values_at(tmp_path, 11, "x", "p", parameters=parameters, rules=rule("rate", "x", "1"), events=happens)
    assert found == pytest.approx([5.7, 1])


@pytest.mark.parametrize("start", ["(/ 3 2)", "1.5"])
def test_a_trigger_on_what_an_event_changes_is_refused(tmp_path: Path, start: str) -> None:
    first = f'<initialAssignment symbol="p">{math(start)}</initialAssignment>'
    happens = event("e", "(> p 1)", {"p": "0"}, delay("1"))
    with pytest.raises(ModelError, match="event 'e', trigger: a condition on 'p' is not supported"):
        values_at(tmp_path, 1, "p", parameters=numbers("p"), first=first, events=happens)


def test_a_negative_delay_is_refused(tmp_path: Path) -> None:
    happens = event("e", "(>= time 1)", {"p": "0"}, delay("-1"))
    with pytest.raises(ModelError, match="event 'e': its delay is negative"):
        values_at(tmp_path, 1, "p", parameters=numbers("p"), events=happens)


def test_a_steady_state_with_a_condition_on_a_time_that_has_no_value_at_zero(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    changing = rule("rate", "x", "(piecewise 1 (< time (/ 1 k)) 0)")
    path.write_text(sbml(parameters=parameter("k") + numbers("x"), rules=changing))
    with pytest.raises(ModelError, match="changes with time"):
        model_of(read_network(path), Experiment(unknown=("k",), at_rest=True), {"x": Name("x")})


@pytest.mark.parametrize(
    ("parts", "sets", "expected"),
    [
        ({"rules": rule("rate", "S", "1")}, {"c": "2"}, 0.25 + 0.75),
        ({"rules": rule("rate", "S", "1")}, {"S": "0"}, 0.25 + 0.25),
        ({"reactions": reaction("r", "0.5", "", "S")}, {"c": "2", "S": "0"}, 0.25),
    ],
)
def test_a_concentration_that_an_event_changes_does_not_grow_evenly(
    tmp_path: Path, parts: dict[str, str], sets: dict[str, str], expected: float
) -> None:
    """It is t until 2, when it becomes 0.5 or 0; x is how long it has been above 1.75 by time 4."""
    own = species("S", 'initialConcentration="0"', boundaryCondition=str("rules" in parts).lower())
    rules = parts.get("rules", "") + rule("rate", "x", "(piecewise 1 (> S 1.75) 0)")
    happens = event("e", "(>= time 2)", sets)
    found = values_at(
        tmp_path,
        4,
        "x",
        **{**parts, "rules": rules},
        compartments=VARYING,
        species=own,
        parameters=numbers("x"),
        events=happens,
    )
    assert found == pytest.approx([expected], abs=1e-6)
