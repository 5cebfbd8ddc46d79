"""Verdicts, combinations and everything else `analyse` returns."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.errors import EquifinalError, IdentifiabilityError
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.freedoms import (
    Exchange,
    Freedom,
    JointMotion,
    Scaling,
    SeveralValues,
    Shift,
    assemble,
)
from equifinal.identifiability.quantity_advice import advise_on
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.expression import Number, substitute, to_text
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression
from equifinal.words.identifiability import advice_sentence, freedom_sentences
from tests.support.analysed import said
from tests.support.collection import ENTRIES, analysed_entry, judge, model_of, needs_collection, slow_if_long
from tests.support.fields import same_field
from tests.support.marks import slow_but
from tests.support.shared_folder import SHARED
from tests.support.zoo import HIV, ZOO, known


def assert_field(result: Identifiability, model: Model, functions: list[str]) -> None:
    """The combinations generate the same field as the functions, and are proved to be complete."""
    assert result.scope == "global"
    assert result.complete
    values = {name: Number(value) for name, value in model.constants.items()}
    found = [substitute(c, values) for c in result.combinations]
    expected = [parse_expression(f) for f in functions]
    extra, missing = same_field(found, expected, model.parameters, Budget(30 * SECOND))
    assert not extra, f"not identifiable: {[to_text(f) for f in extra]}"
    assert not missing, f"not found: {[to_text(f) for f in missing]}"


# --- the zoo
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ZOO, ids=lambda e: e.name)
def test_zoo(entry):
    model = entry.model
    result = analyse(model)
    assert_field(result, model, entry.functions)
    assert result.fibre_degree == entry.degree
    assert all(
        (word == "globally") == (name in entry.functions) or word == "globally"
        for name, word in result.parameters.items()
    )
    assert result.certificate["moved_along_fibre"] in (True, None)
    if result.fibre_dimension or result.fibre_degree > 1:
        assert result.certificate["moved_along_fibre"] is True
        assert result.freedoms


def test_zoo_is_large():
    assert len({entry.name for entry in ZOO}) == len(ZOO) >= 30


# --- named cases
# ------------------------------------------------------------------------------------------------------


def test_si_reads_like_the_paper():
    model = known("SI of the paper").model
    result = analyse(model)
    assert {to_text(c) for c in result.combinations} >= {"beta*N - gamma", "beta/rho"}
    assert set(result.parameters.values()) == {"not"}
    assert (result.fibre_dimension, result.fibre_degree) == (1, 1)
    text = said(result)
    for piece in ("beta*N - gamma", "beta/rho", "N = 10000", "Measuring S", "nothing observable changes"):
        assert piece in text


def test_hiv_combination_of_the_erratum():
    result = analyse(known("HIV from the uninfected steady state").model)
    assert result.expresses("lam*c/N").status == "not"
    assert result.expresses("lam*N/c").identifiable
    assert result.parameters["lam"] == result.parameters["N"] == "not"
    assert result.freedoms == (Scaling({"lam": 1, "N": -1}, "s"),)
    assert freedom_sentences(result.freedoms) == ["multiply lam by s and divide N by s: nothing observable changes"]


def test_hiv_swap():
    result = analyse(known("HIV, all initial values unknown").model)
    assert result.parameters["c"] == result.parameters["delta"] == "locally"
    assert result.alternatives["c"] == 2
    assert any(
        "may be exchanged" in sentence and "delta" in sentence for sentence in freedom_sentences(result.freedoms)
    )


def test_quantities_of_interest():
    model = Model.parse(
        HIV.replace(";", "\n"),
        ["V"],
        quantities={"burst": "N*lam*delta", "virions": "N", "rate": "c", "both": "c + delta"},
    )
    result = analyse(model)
    assert result.quantities == {"burst": "globally", "virions": "not", "rate": "locally", "both": "globally"}
    assert result.alternatives["rate"] == 2


CALLING = {
    "log(2)/g": "globally",
    "exp(-g)*b/r": "globally",
    "sqrt(h^2)": "globally",
    "tanh(h)": "locally",
    "exp(h*b/r)": "locally",
    "h*log(g)": "locally",
    "b*log(g)": "not",
    "log(b)": "not",
    "g*log(1 + exp(b)) + sqrt(g)": "not",
    "log(b) - log(r)": "unknown",  # identifiable in truth: two calls that move together
    "exp(b) - exp(b) + g": "unknown",
    "max(b, 1)": "unknown",  # where b is small
    "b*log(1) + g": "globally",
    "b*exp(0)": "not",
}


def test_quantities_that_call_functions():
    """The model itself is rational: b and r may be scaled, and h has a sign that nothing shows."""
    text = "S' = -b*S*I\nI' = b*S*I - g*I\ny = r*I\nz' = -h^2*z\nz(0) = 1"
    quantities = {f"q{i}": expression for i, expression in enumerate(CALLING)}
    result = analyse(Model.parse(text, ["y", "z"], quantities=quantities))
    assert result.parameters["h"] == "locally"
    assert result.quantities == dict(zip(quantities, CALLING.values(), strict=True))
    assert any("multiply b" in sentence for sentence in freedom_sentences(result.freedoms))


def test_unidentifiable_quantity_in_the_output_map():
    model = Model.parse("x' = -k*x\ny = (a + b)*x", ["y"])
    result = analyse(model)
    assert_field(result, model, ["k", "(a + b)*x_0"])


# --- several experiments
# ----------------------------------------------------------------------------------------------


def test_two_experiments_determine_more_than_one():
    model = known("SI of the paper").model
    result = analyse([model, model.vary(constants={"N": 20000})])
    assert set(result.parameters.values()) == {"globally"}
    assert result.fibre_dimension == 0


def test_an_experiment_that_tells_points_apart():
    """The rank of the first experiment is that of both, its fibre is not."""
    first = Model.parse("x' = -a^2*x\nx(0) = 1", ["x"])
    second = Model.parse("x' = -a^2*x\nx(0) = 1\ny = x + a", ["y"])
    assert analyse(first).alternatives == {"a": 2}
    assert analyse([first, second]).parameters == {"a": "globally"}
    assert analyse([first, first.vary(initial={"x": "2"})]).alternatives == {"a": 2}


def test_experiments_that_add_nothing():
    model = known("flip-flop absorption").model
    result = analyse([model, model.vary(constants={"D": 200})])
    assert result.parameters == {"ka": "locally", "ke": "locally", "V": "locally"}
    assert result.fibre_degree == 2


def test_experiments_with_their_own_initial_values():
    model = Model.parse("x' = -k*x\ny = s*x", ["y"])
    result = analyse([model, model.vary(initial={"x": "1"})])
    assert tuple(result.parameters) == ("k", "s", "x_0")
    assert set(result.parameters.values()) == {"globally"}


# --- expressing
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "status"),
    [
        ("beta*rho*I0^2", "globally"),
        ("gamma/beta - N", "not"),
        ("beta*N - gamma + beta*I0", "globally"),
        ("7", "globally"),
    ],
)
def test_expresses(function, status):
    model = known("SI of the paper").model
    result = analyse(model)
    answer = result.expresses(function)
    assert answer.status == status
    if status == "globally":
        assert answer.formula is not None
        labels = {f"xi{j + 1}": c for j, c in enumerate(result.combinations)}
        constants = {name: Number(value) for name, value in model.constants.items()}
        written = substitute(substitute(answer.formula, labels), constants)
        difference = parse_expression(
            f"({to_text(written)}) - ({to_text(substitute(parse_expression(function), constants))})"
        )
        extra, missing = same_field([difference], [], model.parameters, Budget(5 * SECOND))
        assert not extra  # the difference is a constant ...
        assert not missing


def test_expresses_refuses_unknown_names():
    with pytest.raises(IdentifiabilityError, match="'x'"):
        analyse(known("product of rates").model).expresses("a*x")


def test_expresses_says_locally():
    assert analyse(known("square of a rate").model).expresses("a").status == "locally"


# --- advice
# -----------------------------------------------------------------------------------------------------------


def test_advice_single_additions():
    result = analyse(known("SI of the paper").model)
    advised = {(a.kind, a.names) for a in result.advice}
    assert {("know", ("rho",)), ("know", ("I0",)), ("measure", ("S",)), ("measure", ("I",))} <= advised
    for a in result.advice:
        assert a.leads_to == "globally"
    assert "Knowing rho would make everything identifiable." in map(advice_sentence, result.advice)


def test_advice_is_true():
    """Following the advice has the promised effect."""
    entry = known("SIR, a share of I observed")
    for advice in analyse(entry.model).advice:
        if advice.kind == "know":
            model = Model.parse(
                entry.equations.replace(";", "\n"),
                ["y"],
                constants={n: 3 for n in advice.names if not n.endswith("_0")},
            ).vary(initial={n[:-2]: "3" for n in advice.names if n.endswith("_0")})
        else:
            model = Model.parse(entry.equations.replace(";", "\n"), ["y", *advice.names])
        assert set(analyse(model).parameters.values()) == {"globally"}


def test_no_advice_where_none_is_needed():
    assert analyse(known("van der Pol").model).advice == ()


# --- seeds, storage, time, errors
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", slow_but(*ZOO[:40:4], of=ZOO[:40:2]), ids=lambda e: e.name)
def test_verdicts_do_not_depend_on_the_seed(entry):
    model = entry.model
    results = [analyse(model, seed=seed) for seed in range(4)]
    for result in results:
        assert result.parameters == results[0].parameters
        assert result.fibre_degree == results[0].fibre_degree
        assert (result.scope, result.complete) == ("global", True)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ZOO, ids=lambda e: e.name)
def test_verdicts_do_not_depend_on_many_seeds(entry):
    model = entry.model
    results = [analyse(model, seed=seed) for seed in range(6)]
    assert len({json.dumps([r.parameters, r.fibre_dimension, r.fibre_degree, r.complete]) for r in results}) == 1


def test_json_round_trip():
    result = analyse(known("HIV, all initial values unknown").model)
    data = json.loads(json.dumps(result.to_json()))
    assert Identifiability.from_json(data) == result
    assert {
        "parameters",
        "quantities",
        "combinations",
        "fibre_dimension",
        "fibre_degree",
        "scope",
    } <= data.keys()
    assert {"error_probability", "seconds", "advice"} <= data.keys()
    with pytest.raises(IdentifiabilityError):
        Identifiability.from_json({"parameters": {}})


@pytest.fixture
def ticks(monkeypatch):
    """Of a clock that moves a millisecond when it is looked at, so that time is over at the same place everywhere."""
    ticks = count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) / 1000)
    monkeypatch.setattr("equifinal.algebra.arithmetic.budget.time", clock)
    monkeypatch.setattr("equifinal.identifiability.analysis.time", clock)
    monkeypatch.delattr("os.fork")  # as where there is none: then the looks at the clock must do
    return ticks


def test_time_limit_is_honoured_and_labelled(ticks):
    model = Model.parse(
        """x0' = a1*(x1 - x0) - ka*n*x0/u
        x1' = a2*(x0 - x1)
        x2' = b1*(x3 - x2) - kc*n*x2/u
        x3' = b2*(x2 - x3)
        u = ka*kc + ka*x0 + kc*x2""",
        ["x0"],
    )
    result = analyse(model, time_limit=2.0)
    assert 2000 < next(ticks) < 2100
    assert result.scope == "local"
    assert not result.complete
    assert result.fibre_dimension == 0
    assert set(result.parameters.values()) == {"locally"}
    assert result.unfinished == "out of time"
    assert "The global question was not settled. The analysis ran out of time." in said(result)
    with pytest.raises(IdentifiabilityError, match="more time"):
        result.expresses("ka")


def test_error_probability_is_small():
    assert 0 < analyse(known("Lorenz, first coordinate observed").model).error_probability < 1e-8


@pytest.mark.parametrize("wrong", [None, [], "x' = x", [1], {"a": 1}])
def test_wrong_arguments(wrong):
    with pytest.raises(IdentifiabilityError):
        analyse(wrong)
    with pytest.raises(IdentifiabilityError):
        analyse(known("van der Pol").model, time_limit=0)


def test_division_by_zero_at_the_start():
    model = Model.parse("x' = 1/x\nx(0) = 0", ["x"])
    with pytest.raises(IdentifiabilityError, match="divides by zero"):
        analyse(model)


def test_model_without_parameters():
    result = analyse(Model.parse("x' = -x\nx(0) = 1", ["x"]))
    assert result.parameters == {}
    assert (result.fibre_dimension, result.fibre_degree, result.complete) == (0, 1, True)
    assert "Everything is identifiable" in said(result)


def test_names_in_any_script():
    model = Model.parse("ξ' = -λ*ξ\ny = ρ*ξ", ["y"])
    assert_field(analyse(model), model, ["λ", "ρ*ξ_0"])


# --- the shared collection
# ----------------------------------------------------------------------------------------------

QUICK = [e for e in ENTRIES if e["family"] in ("ic", "core")]


@needs_collection
@pytest.mark.parametrize("entry", slow_if_long(QUICK), ids=lambda e: e["name"])
def test_shared_models(entry):
    model = model_of(entry)
    result = analysed_entry(entry)
    verdict, reason = judge(entry, model, result)
    assert verdict == "right", reason
    assert entry["fibre_degree"] in (None, result.fibre_degree)


@pytest.mark.slow
@needs_collection
@pytest.mark.parametrize("entry", [e for e in ENTRIES if e["family"] == "extended"], ids=lambda entry: entry["name"])
def test_shared_models_extended(entry):
    model = model_of(entry)
    verdict, reason = judge(entry, model, analysed_entry(entry))
    assert verdict == "right", reason


def delay(stages: int, start: str = "1") -> str:
    """A chain of equal stages, as delays are made of: the last one knows of its parameter only late."""
    lines = [f"x1' = -k*x1\nx1(0) = {start}"]
    lines += [f"x{i}' = k*x{i - 1} - k*x{i}\nx{i}(0) = 0" for i in range(2, stages + 1)]
    return "\n".join(lines)


LATE = {
    "17 stages": (delay(17), ["x17"], {"k": "globally"}),
    "40 stages": (delay(40), ["x40"], {"k": "globally"}),
    "two outputs": (delay(18) + "\nz = s*x18", ["x1", "z"], {"k": "globally", "s": "globally"}),
    "absorption": (
        delay(18, "D") + "\nc' = k*x18 - ke*c\nc(0) = 0\ny = c/V",
        ["y"],
        {"k": "globally", "ke": "globally", "V": "not", "D": "not"},
    ),
    "a high power": ("x' = 1\nx(0) = 0\nz' = 1 + a*x^15\nz(0) = 0", ["z"], {"a": "globally"}),
}


@pytest.mark.parametrize(("text", "outputs", "expected"), LATE.values(), ids=LATE)
def test_parameters_that_enter_late(text, outputs, expected):
    result = analyse(Model.parse(text, outputs))
    assert result.parameters == expected
    assert result.scope == "global"


# links between states and outputs that say nothing at time 0, where the states in their leading coefficients are zero
SILENT = {
    "HIV from its equilibrium": (
        "x' = lm - d*x - beta*x*v; y' = beta*x*v - a*y; v' = k*y - u*v; w' = (c*x*y - c*q*y - b)*w; z' = c*q*y*w - h*z;"
        "x(0) = lm/d; y(0) = 0; w(0) = 1; z(0) = 0",
        ["w", "z"],
        "d, a, u, b, h, lm/q, lm*c*q, beta*k*q, beta*v_0",  # x, y, lm and q, or v, may be measured in other units
    ),
    "Akt before phosphorylation": (
        "C' = (k1 - k2 - k9)*C; E' = k9*C + k3*EA - k4*E - bind; EA' = bind - k3*EA; A' = k7*P - bind;"
        "P' = k3*EA - k7*P - join + k6*PS; PS' = join - k6*PS; S' = k8*Q - join; Q' = k6*PS - k8*Q;"
        "bind = m*E*A - n*EA; join = p*P*S - o*PS; E(0) = 0; EA(0) = 0; P(0) = 0; PS(0) = 0; Q(0) = 0;"
        "y1 = a1*(E + EA); y2 = a2*(P + PS); y3 = a3*Q",
        ["y1", "y2", "y3"],
        "k3, k4, k6, k7, k8, n, o, k1 - k2 - k9, m/a1, p/a1, a2/a1, a3/a1, m*A_0, m*S_0, m*k9*C_0",
    ),
}


@pytest.mark.parametrize(("text", "outputs", "functions"), SILENT.values(), ids=SILENT)
def test_links_that_say_nothing_at_the_start(text, outputs, functions):
    model = Model.parse(text.replace(";", "\n"), outputs)
    assert_field(analyse(model), model, functions.split(", "))


LATE_FOLDER = SHARED / "identifiability" / "late"
LATE_ANSWERS = json.loads((LATE_FOLDER / "answers.json").read_text()) if LATE_FOLDER.exists() else {}


@pytest.mark.skipif(not LATE_ANSWERS, reason=f"{LATE_FOLDER} is not there (set EQUIFINAL_SHARED)")
@pytest.mark.parametrize(("name", "answer"), LATE_ANSWERS.items(), ids=LATE_ANSWERS)
def test_shared_models_that_start_late(name, answer):
    written = tomllib.loads((LATE_FOLDER / f"{name}.toml").read_text())["model"]
    result = analyse(Model.parse(written["equations"], written["outputs"]))
    words = {"globally": {"globally"}, "identifiable": {"globally", "locally"}, "not": {"not"}}
    for verdict, allowed in words.items():
        assert {result.parameters[n] for n in answer.get(verdict, ())} <= allowed
    assert len(result.parameters) - result.fibre_dimension == answer.get("rank", len(result.parameters))


def test_not_is_never_said_of_an_output_that_is_zero():
    with pytest.raises(IdentifiabilityError, match="all outputs are zero"):
        analyse(Model.parse("p' = -k*p\nq' = -k*q\np(0) = 1\nq(0) = 1\ny = p - q", ["y"]))


def test_a_degree_that_may_not_be_the_least_is_a_bound():
    found = analyse(Model.parse("x' = -a^2*x\nx(0) = b*c\ny = x", ["y"]))
    assert (found.fibre_dimension, found.fibre_degree, found.complete) == (1, 2, True)
    for shown in (found, replace(found, complete=False)):  # complex values count, so that fewer may be real
        assert "form a curve with up to 2 branches" in said(shown)
    values = {"continuous": [], "moving": ["b"], "pairs": [], "swapped": ["a"], "changing": []}
    assert assemble(1, **values, degree=2)[-1] == SeveralValues(("a",), 2)
    assert assemble(1, **values, degree=2, exact=False)[-1] == SeveralValues(("a",), 0)


def test_a_declared_parameter_that_nothing_shows_is_not_identifiable():
    model = Model.parse("x' = -k*x", ["x"], parameters=["k", "unseen"])
    assert analyse(model).parameters == {"k": "globally", "x_0": "globally", "unseen": "not"}
    assert analyse(model.vary(initial={"x": "1"})).parameters == {"k": "globally", "unseen": "not"}


@pytest.mark.parametrize("right", ["a*x^2/x + 1", "(a*x + x^2)/x + 1 - x - a + a*x", "a*(x^2 - x*b)/(x - b) + 1"])
def test_a_removable_division_by_zero_at_the_start(right):
    model = Model.parse(f"x' = {right}\nx(0) = {'b' if 'b' in right else 0}", ["x"], parameters=["a", "b"])
    assert analyse(model).parameters["a"] == "globally"


def test_a_constant_in_an_exponent():
    written = analyse(Model.parse("x' = -k*x^3/(m^3 + x^3)", ["x"]))
    named = analyse(Model.parse("x' = -k*x^n/(m^n + x^n)", ["x"], constants={"n": 3}))
    assert named.parameters == written.parameters == {"k": "globally", "m": "locally", "x_0": "globally"}
    assert named.alternatives == {"m": 3}


def test_what_a_check_contradicts_is_not_claimed(monkeypatch):
    monkeypatch.setattr("equifinal.identifiability.analysis.moves_along_fibre", lambda *_: False)
    result = analyse(Model.parse("x' = -a*b*x\nx(0) = 1", ["x"]))
    assert result.scope == "local"
    assert not result.complete


TWO_PAIRS = "p' = -a*p\nq' = -b*q\nw' = -c*w\nv' = -d*v\np(0) = 1\nq(0) = 1\nw(0) = 1\nv(0) = 1\ny = p + q\nz = w + v"


def test_swaps_do_not_drag_along_what_need_not_move():
    result = analyse(Model.parse(TWO_PAIRS, ["y", "z"]))
    assert result.fibre_degree == 4
    assert len(result.freedoms) == 2
    assert {freedom.pair for freedom in result.freedoms} == {("a", "b"), ("c", "d")}
    assert not any("accordingly" in sentence for sentence in freedom_sentences(result.freedoms))


def test_a_swap_beside_a_sign_mentions_both():
    text = "p' = -a*p\nq' = -b*q\np(0) = 1\nq(0) = 1\nw' = -c^2*w\nw(0) = 1\ny = p + q"
    swap, sign = freedom_sentences(analyse(Model.parse(text, ["y", "w"])).freedoms)
    assert swap.startswith("a and b may be exchanged")
    assert sign.startswith("c has several values")


def test_the_letter_of_a_scaling_is_not_a_parameter():
    result = analyse(Model.parse("x' = a - s*x\nx(0) = a/s", ["x"]))
    assert result.freedoms == (Scaling({"a": 1, "s": 1}, "q"),)
    assert freedom_sentences(result.freedoms) == ["multiply a and s by q: nothing observable changes"]


@pytest.mark.parametrize(
    ("freedom", "sentence"),
    [
        (Scaling({"a": 1, "b": -2}), "multiply a by s and divide b by s^2: nothing observable changes"),
        (Scaling({"a": 3}), "a can have any value: nothing observable changes"),
        (Shift({"a": 1, "b": -2}, "q"), "add q to a and subtract 2*q from b: nothing observable changes"),
        (JointMotion(("a", "b"), 1), "a and b can move together along a curve: nothing observable changes"),
        (
            Exchange(("a", "b"), ("c",)),
            "a and b may be exchanged, if c changes accordingly: nothing observable changes",
        ),
        (
            Exchange(("a", "b"), None),
            "a and b may be exchanged, others adjusted where needed: nothing observable changes",
        ),
        (
            SeveralValues(("a", "b"), 4),
            "a and b have several values each that give the same output (in up to 4 parameter sets)",
        ),
    ],
)
def test_every_freedom_has_its_words_and_can_be_stored(freedom, sentence):
    assert freedom_sentences([freedom]) == [sentence]
    assert Freedom.from_json(json.loads(json.dumps(freedom.to_json()))) == freedom


def test_an_unsettled_question_is_not_told_as_a_freedom(ticks):
    result = analyse(Model.parse("\n".join(_ring(5)), ["x0"]), time_limit=0.2)
    assert result.scope == "local"
    assert result.freedoms == ()


def _ring(n: int) -> list[str]:
    return [f"x{i}' = -k{i}*x{i}*x{(i + 1) % n}/(m{i} + x{i}) + x{(i + 2) % n}" for i in range(n)]


def test_a_quantity_that_differs_between_experiments_is_refused():
    one = Model.parse("x' = -k*x\nx(0) = a", ["x"], quantities={"q": "k"})
    two = Model.parse("x' = -k*x\nx(0) = a", ["x"], quantities={"q": "a"})
    with pytest.raises(IdentifiabilityError, match="differs between experiments"):
        analyse([one, two])


@pytest.mark.parametrize("wrong", [None, "x", True, float("nan"), 0])
def test_time_limits_that_are_none(wrong):
    with pytest.raises(IdentifiabilityError, match="time_limit"):
        analyse(Model.parse("x' = -k*x", ["x"]), time_limit=wrong)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("1/(k*x_0 - x_0*k)", "divides by zero for all parameters"),
        ("exp(k)", "calls a function"),
        ("k*l", "'l' is neither a parameter"),
    ],
)
def test_functions_that_cannot_be_expressed(function, reason):
    with pytest.raises(IdentifiabilityError, match=reason):
        analyse(Model.parse("x' = -k*x", ["x"])).expresses(function)


@pytest.mark.parametrize("wrong", [None, 3, ["k"]])
def test_functions_that_are_none(wrong):
    with pytest.raises(IdentifiabilityError, match="function"):
        analyse(Model.parse("x' = -k*x", ["x"])).expresses(wrong)


def test_advice_on_a_quantity_that_calls_a_function():
    model = Model.parse("x' = -k*x\ny = s*x", ["y"], quantities={"log_dose": "log(x_0)", "half_life": "log(2)/k"})
    assert advise_on(model, "half_life") == []
    assert [a.names for a in advise_on(model, "log_dose")] == [("s",), ("x_0",), ("x",)]


def test_advice_on_one_quantity():
    text = "S' = -beta*S*I + gamma*I\nI' = beta*S*I - gamma*I\ny = rho*I\nS(0) = N - I0\nI(0) = I0"
    text += "\nw' = -c*d*w\nw(0) = 1"
    model = Model.parse(text, ["y", "w"], constants={"N": 1000}, quantities={"R0": "beta*N/gamma"})
    known = {advice.names for advice in advise_on(model, "R0") if advice.kind == "know"}
    assert known == {("beta",), ("gamma",), ("rho",), ("I0",)}  # not c or d, which are another freedom
    assert {advice.names for advice in advise_on(model, "c/(c + 1)") if advice.kind == "know"} == {("c",), ("d",)}
    assert advise_on(model, "c*d") == []
    with pytest.raises(EquifinalError, match="nonsense"):
        advise_on(model, "nonsense*2")


def test_advice_names_smallest_sets():
    products = "\n".join(f"x{i}' = -a{i}*b{i}*x{i}\nx{i}(0) = 1" for i in range(4))
    result = analyse(Model.parse(products, [f"x{i}" for i in range(4)]))
    assert result.fibre_dimension == 4
    assert result.advice
    assert all(len(advice.names) == 4 for advice in result.advice if advice.kind == "know")
    pairs = analyse(Model.parse(TWO_PAIRS, ["y", "z"])).advice
    assert {frozenset(advice.names) for advice in pairs if advice.kind == "know"} <= {
        frozenset(pair) for pair in ("ac", "ad", "bc", "bd")
    }
    assert any(advice.kind == "know" for advice in pairs)


def test_a_defined_combination_may_be_what_to_measure():
    text = "x' = -k*x\nx(0) = a\nw' = -k*w\nw(0) = b\ny = s*x\ntotal = x + w"
    model = Model.parse(text, ["y", "w"])
    measured = {advice.names for advice in analyse(model).advice if advice.kind == "measure"}
    assert measured == {("x",), ("total",)}
