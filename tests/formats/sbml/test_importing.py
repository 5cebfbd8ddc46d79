"""SBML models against equations written by hand, and what is refused, by name and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.errors import DataError, ModelError
from equifinal.formats.load import load
from equifinal.language.expression import to_text
from equifinal.language.model import Model
from tests.support.sbml import event, math, parameter, reaction, rule, sbml, species


def model_of(tmp_path: Path, **parts: str) -> Model:
    path = tmp_path / "model.xml"
    path.write_text(sbml(**parts))  # type: ignore[arg-type]
    return load(path).model


def text(expression: object) -> str:
    return to_text(expression, decimals=True)  # type: ignore[arg-type]


DECAY = {"species": species("A"), "parameters": parameter("k", 2), "reactions": reaction("r", "(* k A)", "A")}


def test_parameters_are_unknown_and_their_values_nominal(tmp_path: Path) -> None:
    path = tmp_path / "decay.xml"
    path.write_text(sbml(**DECAY))
    problem = load(path)
    assert problem.parameters == ("k",)
    assert problem.nominal == {"k": 2.0}
    assert problem.model.outputs == ("A",)
    assert problem.name == "decay"


def test_a_concentration_changes_by_the_rate_over_the_size(tmp_path: Path) -> None:
    model = model_of(tmp_path, **{**DECAY, "compartments": '<compartment id="c" size="4" constant="true"/>'})
    assert text(model.equations["A"]) == "-r/c"
    assert model.constants["c"] == 4


def test_an_amount_changes_by_the_rate(tmp_path: Path) -> None:
    amount = species("A", 'initialConcentration="3"', hasOnlySubstanceUnits="true")
    size = '<compartment id="c" size="4" constant="true"/>'
    model = model_of(tmp_path, **{**DECAY, "species": amount, "compartments": size})
    assert text(model.equations["A"]) == "-r"
    assert text(model.initial["A"]) == "3*c"


def test_a_concentration_where_the_size_changes_is_an_amount_over_it(tmp_path: Path) -> None:
    growing = '<compartment id="c" size="4" constant="false"/>'
    model = model_of(tmp_path, **{**DECAY, "compartments": growing, "rules": rule("rate", "c", "(* 0.5 c)")})
    assert model.states == ("c", "A_amount")
    assert text(model.definitions["A"]) == "A_amount/c"
    assert text(model.equations["A_amount"]) == "-r"
    assert text(model.start[1]) == "1*4"


def test_functions_are_put_in_and_local_parameters_are_named_after_their_reaction(tmp_path: Path) -> None:
    function = f'<functionDefinition id="f">{math("(lambda x y (* x (* x y)))")}</functionDefinition>'
    local = '<localParameter id="k" value="7"/>'
    made = reaction("r", "(:f k A)", "A", local=local)
    problem_model = model_of(tmp_path, species=species("A"), functions=function, reactions=made)
    assert text(problem_model.definitions["r"]) == "r_k*(r_k*A)"
    assert problem_model.parameters == ("r_k",)


def test_names_that_mean_something_here_get_an_underscore(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    made = reaction("exp", "(* t and)", "t")
    path.write_text(sbml(species=species("t"), parameters=parameter("and"), reactions=made))
    problem = load(path)
    assert problem.model.states == ("t_",)
    assert problem.parameters == ("and_",)
    assert problem.title("t_") == "t"


def test_a_start_given_by_a_formula_of_other_starts(tmp_path: Path) -> None:
    first = f'<initialAssignment symbol="A">{math("(* 3 B)")}</initialAssignment>'
    model = model_of(
        tmp_path,
        species=species("A") + species("B", 'initialConcentration="5"'),
        parameters=parameter("k"),
        first=first,
        reactions=reaction("r", "(* k A)", "A", "2 B"),
    )
    assert text(model.start[0]) == "3*5"
    assert text(model.equations["B"]) == "2*r/c"


def test_a_condition_on_time_stays_one(tmp_path: Path) -> None:
    made = reaction("r", "(piecewise (* k A) (>= time 3) 0)", "A")
    model = model_of(tmp_path, species=species("A"), parameters=parameter("k"), reactions=made)
    assert text(model.definitions["r"]) == "piecewise(k*A, 1 - (t < 3), 0)"


def test_what_a_constant_decides_is_decided(tmp_path: Path) -> None:
    made = reaction("r", "(piecewise (* k A) (> n 3) 0)", "A")
    model = model_of(tmp_path, species=species("A"), parameters=parameter("k") + parameter("n", 4), reactions=made)
    assert text(model.definitions["r"]) == "k*A"
    assert model.parameters == ("k",)


def test_an_event_at_a_time(tmp_path: Path) -> None:
    happens = event("dose", "(>= time 2)", {"A": "(+ A 10)", "k": "0"})
    varying = parameter("k", constant=False)
    model = model_of(tmp_path, **{**DECAY, "parameters": varying, "events": happens})
    (jump,) = model.events
    assert (text(jump.time), jump.first) == ("2", True)
    assert {name: text(value) for name, value in jump.sets.items()} == {"A": "A + 10", "k": "0"}
    assert set(model.levels) == {"k"}


def test_a_trigger_that_holds_for_a_while_between_times_that_are_constants(tmp_path: Path) -> None:
    happens = event("pulse", "(and (>= time on) (< time off))", {"A": "0"})
    times = parameter("k") + parameter("on", 3) + parameter("off", 5)
    model = model_of(tmp_path, **{**DECAY, "parameters": times, "events": happens})
    assert [text(jump.time) for jump in model.events] == ["3"]


def test_events_at_one_time_use_values_from_before_all_of_them(tmp_path: Path) -> None:
    happens = event("one", "(>= time 2)", {"A": "1"}) + event("two", "(>= time 2)", {"B": "A"})
    both = species("A") + species("B")
    flows = reaction("r", "(* k A)", "A", "B")
    model = model_of(tmp_path, species=both, parameters=parameter("k"), reactions=flows, events=happens)
    (jump,) = model.events
    assert {name: text(value) for name, value in jump.sets.items()} == {"A": "1", "B": "A"}


def test_a_delayed_event_keeps_what_it_saw(tmp_path: Path) -> None:
    delay = f"<delay>{math('3')}</delay>"
    model = model_of(tmp_path, **{**DECAY, "events": event("dose", "(>= time 2)", {"A": "(* 2 A)"}, delay)})
    seen, done = model.jumps
    assert [float(jump.time.value) if hasattr(jump.time, "value") else text(jump.time) for jump in (seen,)] == [2.0]
    assert text(done.time) == "2 + 3"
    (kept,) = seen.sets
    assert text(done.sets["A"]) == kept


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"events": event("e", "(> A 2)", {"A": "0"})}, ["event 'e', trigger", "condition on 'A'"]),
        ({"rules": f"<algebraicRule>{math('(- A 1)')}</algebraicRule>"}, ["algebraic rules"]),
        ({"reactions": reaction("r", "(* k (delay A 1))", "A")}, ["reaction 'r'", "delay", "not supported"]),
        ({"reactions": reaction("r", "(* k Q)", "A")}, ["reaction 'r'", "'Q'"]),
        ({"reactions": '<reaction id="r" reversible="false"/>'}, ["reaction 'r'", "no kinetic law"]),
        ({"reactions": reaction("r", "(* k (factorial A))", "A")}, ["'r'", "'factorial'"]),
        ({"compartments": '<compartment id="c" constant="true"/>'}, ["'c' has no value"]),
        ({"parameters": parameter("k", "INF")}, ["'k'", "not a finite number"]),
        ({"species": species("A", "")}, ["'A' has no value at the start"]),
        (
            {
                "parameters": parameter("k") + parameter("p", 1, constant=False) + parameter("q", 1, constant=False),
                "rules": rule("assignment", "p", "(* 2 q)") + rule("assignment", "q", "(* 2 p)"),
                "reactions": reaction("r", "(* p A)", "A"),
            },
            ["circular", "p", "q"],
        ),
        ({"species": 2 * DECAY["species"]}, ["the identifier 'A' appears twice"]),
        ({"parameters": parameter("k") + parameter("A")}, ["the identifier 'A' appears twice"]),
        ({"reactions": reaction("r", "(* k A)", "Q")}, ["reaction 'r': 'Q' is not a species"]),
        ({"rules": rule("assignment", "k", "2")}, ["a rule for 'k', which is constant"]),
        ({"rules": rule("rate", "A", "2")}, ["reaction 'r' changes 'A'", "a rule as well", "boundaryCondition"]),
        (
            {
                "parameters": parameter("k") + parameter("p", 1, constant=False),
                "rules": rule("assignment", "p", "2") + rule("rate", "p", "3"),
            },
            ["two rules for 'p'"],
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_represented_is_refused_by_name_and_place(
    tmp_path: Path, parts: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(ModelError) as raised:
        model_of(tmp_path, **{**DECAY, **parts})
    assert str(raised.value).startswith("model.xml")
    for word in words:
        assert word in str(raised.value)


BOMB = '<!DOCTYPE s [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9)
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("this is no XML", "not an XML file"),
        ("<sbml><model></sbml>", "not an XML file"),
        (BOMB + "]><sbml>&j;</sbml>", "entities are not read"),
        ('<!DOCTYPE s SYSTEM "file:///etc/passwd"><sbml/>', "entities are not read"),
        ("<a>" * 5000 + "</a>" * 5000, "nested more than"),
        ("<html><body/></html>", "not valid SBML"),
        ('<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2"/>', "no model"),
    ],
)
def test_what_is_not_sbml_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "model.xml"
    path.write_text(content)
    with pytest.raises((ModelError, DataError), match=words):
        load(path)


def test_a_function_that_grows_without_bound_is_refused(tmp_path: Path) -> None:
    text = f'<functionDefinition id="f0">{math("(lambda x (* x (* x x)))")}</functionDefinition>'
    for i in range(1, 12):
        inner = f"(:f{i - 1} (:f{i - 1} x))"
        text += f'<functionDefinition id="f{i}">{math(f"(lambda x {inner})")}</functionDefinition>'
    with pytest.raises(ModelError, match="terms"):
        model_of(tmp_path, **{**DECAY, "functions": text, "reactions": reaction("r", "(:f11 A)", "A")})


def decided_at(tmp_path: Path, first: str, condition: str) -> str:
    """The formula of x' = piecewise(1, condition, 0), with p = first at the start, A' = -A, A(0) = 4 and t from 0."""
    model = model_of(
        tmp_path,
        species=species("A", 'initialConcentration="4"'),
        parameters=parameter("p", None) + parameter("x", 0, constant=False),
        first=f'<initialAssignment symbol="p">{math(first)}</initialAssignment>',
        rules=rule("rate", "x", f"(piecewise 1 {condition} 0)"),
        reactions=reaction("r", "A", "A"),
    )
    return text(model.equations["x"])


def test_a_constant_given_by_states_at_the_start_does_not_move_with_them(tmp_path: Path) -> None:
    assert "A(0)" in decided_at(tmp_path, "(/ A 2)", "(> A p)")
    assert "A(0)" in decided_at(tmp_path, "(/ A 2)", "(> time p)")
    assert decided_at(tmp_path, "(+ time 3)", "(< time p)") == "piecewise(1, t < 3, 0)"


def test_a_constant_that_another_one_decides(tmp_path: Path) -> None:
    first = f'<initialAssignment symbol="p">{math("(piecewise 2 (> q 1) 3)")}</initialAssignment>'
    first += f'<initialAssignment symbol="q">{math("(* 2 4)")}</initialAssignment>'
    model = model_of(
        tmp_path,
        species=species("A"),
        parameters=parameter("p", None) + parameter("q", None),
        first=first,
        reactions=reaction("r", "(* p A)", "A"),
    )
    assert text(model.definitions["p"]) == "2"


def test_what_has_no_formula_says_nothing(tmp_path: Path) -> None:
    varying = parameter("k", constant=False) + parameter("p", 5, constant=False)
    rules = '<assignmentRule variable="p"/><rateRule variable="k"/>'
    happens = '<event id="e" useValuesFromTriggerTime="true"/>'
    model = model_of(tmp_path, **{**DECAY, "parameters": varying, "rules": rules, "events": happens})
    assert model.states == ("A",)
    assert model.parameters == ("k",)
    assert not model.events
