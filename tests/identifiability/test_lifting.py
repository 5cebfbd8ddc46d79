"""Models with doses, switches, functions and steady states: known answers, and random models against numbers."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import pytest

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.errors import IdentifiabilityError
from equifinal.formats.toml import loads
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.constancy import require_constant_output
from equifinal.identifiability.freedoms import Exchange, Scaling, Shift
from equifinal.identifiability.lifting.functions import NotLiftable
from equifinal.identifiability.lifting.lift import lift
from equifinal.identifiability.trajectories import judge_trajectories
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language import steady
from equifinal.language.expression import Number, is_rational, substitute, to_text
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression as e
from tests.support.analysed import said
from tests.support.fields import same_field
from tests.support.happening_models import drawn, happening_model
from tests.support.marks import slow_but
from tests.support.real_design import numeric_rank

ORAL = Model.parse(
    "depot' = -ka*depot\nc' = ka*depot - ke*c\ndepot(0) = 0\nc(0) = 0\ny = c/V", ["y"], constants={"D": 320}
)
MRNA = Model.parse("m' = -delta*m\np' = k*m - beta*p\nm(0) = m0\np(0) = 0\ny = scale*p", ["y"])
HIV = Model.parse(
    """T' = lambda - rho*T - (1 - eps*(t >= 10))*beta*T*V
       I' = (1 - eps*(t >= 10))*beta*T*V - delta*I
       V' = N*delta*I - c*V
       T(0) = lambda/rho; I(0) = 0; V(0) = 50""",
    ["V"],
)


def dose(time: str, into: str = "depot", amount: str = "F*D", first: bool = False) -> Event:
    return Event(e(time), {into: e(f"{into} + {amount}")}, first)


def found(model: Model) -> Identifiability:
    return analyse(model, time_limit=inf, effort=0.3)


def assert_generate(result: Identifiability, model: Model, functions: list[str]) -> None:
    """The combinations generate the same field as the functions."""
    assert result.complete
    values = {name: Number(value) for name, value in model.constants.items()}
    mine = [substitute(c, values) for c in result.combinations]
    extra, missing = same_field(mine, [e(f) for f in functions], model.parameters, Budget(30 * SECOND))
    assert (list(map(to_text, extra)), list(map(to_text, missing))) == ([], [])


# --- doses, infusions, switches, moments ---


def test_one_oral_dose_is_an_initial_value() -> None:
    model = ORAL.vary(events=[dose("0")])
    result = found(model)
    assert result.assumptions == ()
    assert_generate(result, model, ["ka*ke", "ka + ke", "F*ka/V"])
    assert (result.fibre_dimension, result.fibre_degree) == (1, 2)
    assert result.parameters == {"ka": "locally", "ke": "locally", "V": "not", "F": "not"}
    assert any(isinstance(f, Exchange) and set(f.pair) == {"ka", "ke"} for f in result.freedoms)


def test_repeated_doses_with_a_lag() -> None:
    model = ORAL.vary(events=[dose("lag"), dose("12 + lag"), dose("24 + lag", amount="2*F*D")])
    result = found(model)
    assert set(result.assumptions) == {"rich inputs", "seen moments"}
    assert_generate(result, model, ["ka*ke", "ka + ke", "F*ka/V", "lag"])
    assert result.parameters["lag"] == "globally"
    assert "if the inputs, doses and switches are rich enough" in said(result)


def test_only_the_sum_of_two_delays_is_seen() -> None:
    model = ORAL.vary(events=[dose("lag + delay")])
    result = found(model)
    assert_generate(result, model, ["ka*ke", "ka + ke", "F*ka/V", "lag + delay"])
    assert result.parameters["lag"] == "not"


def test_a_lag_that_nothing_shows_is_not_identifiable() -> None:
    model = Model.parse("x' = -k*x\nz' = -l*z\nx(0) = 1\nz(0) = 0", ["x"]).vary(events=[dose("lag", "z", "1")])
    assert found(model).parameters == {"k": "globally", "l": "not", "lag": "not"}


def test_an_infusion_at_a_known_rate() -> None:
    rates = [Event(e("1"), {"rate": e("R")}), Event(e("3"), {"rate": e("0")})]
    model = Model.parse("c' = -ke*c + inflow/V\nc(0) = 0\ninflow = rate", ["c"], parameters=None)
    model = Model(**{**vars_of(model), "parameters": ("ke", "V"), "levels": {"rate": e("0")}, "events": ()})
    known = Model(**{**vars_of(model), "constants": {"R": Fraction(10)}, "events": tuple(rates)})
    assert_generate(found(known), known, ["ke", "V"])
    unknown = Model(**{**vars_of(model), "parameters": ("ke", "V", "R"), "events": tuple(rates)})
    assert_generate(found(unknown), unknown, ["ke", "R/V"])


def vars_of(model: Model) -> dict:
    return {name: getattr(model, name) for name in Model.__dataclass_fields__}


def test_therapy_of_unknown_efficacy_from_a_known_day_on() -> None:
    result = found(HIV)
    assert_generate(result, HIV, ["rho", "eps", "beta", "delta", "c", "lambda*N"])
    assert result.assumptions == ("rich inputs",)


def test_a_switch_between_unknown_values_keeps_both() -> None:
    model = Model.parse("x' = -piecewise(a, t < 1, b)*x\nx(0) = 1\ny = s*x", ["y"])
    assert_generate(found(model), model, ["a", "b", "s"])


@pytest.mark.parametrize(
    ("value", "functions"),
    [("c/2", ["ka", "ke", "F/V"]), ("f*c", ["ka", "ke", "F/V", "f"]), ("r", ["ka", "ke", "F/V", "r/V"])],
)
def test_states_that_are_set(value: str, functions: list[str]) -> None:
    model = ORAL.vary(events=[dose("0"), dose("10"), Event(e("20"), {"c": e(value)})])
    result = found(model)
    truth = numeric_rank([model], lambda rng: drawn(model, rng), 30.0)
    assert truth.identifiable == {n for n, word in result.parameters.items() if word != "not"}
    assert_generate(result, model, functions)


def test_an_unknown_onset() -> None:
    model = MRNA.vary(onset="t0")
    result = found(model)
    assert_generate(result, model, ["t0", "delta*beta", "delta + beta", "k*m0*scale"])
    assert (result.fibre_dimension, result.fibre_degree) == (2, 2)


def test_an_observation_before_a_dose_at_time_0_is_seen() -> None:
    model = Model.parse("x' = -k*x\ny = x/V", ["y"])
    after = model.vary(events=[Event(e("0"), {"x": e("x + 100")})])
    assert_generate(found(after), after, ["k", "x_0", "V"])  # x_0/V before, (x_0 + 100)/V after
    reset = model.vary(events=[Event(e("0"), {"x": e("100")})])
    assert_generate(found(reset), reset, ["k", "x_0", "V"])


# --- functions ---


@pytest.mark.parametrize(
    ("text", "functions", "exactly"),
    [
        ("x' = -k*exp(-b*t)*x\ny = x", ["k", "b", "x_0"], True),
        ("x' = -exp(lk)*exp(lv)*x + exp(la)\nx(0) = 1\ny = x*10^ls", ["lk + lv", "la", "ls"], True),
        ("x' = -exp(lk)*x\nx(0) = 1\ny = exp(2*ls)*x/exp(lv)", ["lk", "2*ls - lv"], True),
        ("x' = -k*x\nx(0) = 1\ny = A*exp(-B*exp(-c*t)) + x", ["k", "A", "B", "c"], True),
        ("x' = -k*x^n\nx(0) = 1\ny = x", ["k", "n"], True),
        ("x' = a - d*x\nx(0) = 2\ny = log(x)", ["a", "d"], True),
        ("x' = -k*x\nx(0) = 1\ny = log(s*x)", ["k", "s"], True),
        ("x' = -k*sqrt(x)\ny = x", ["k", "x_0"], True),
        ("x' = -k*sqrt(x)\ny = a*x", ["k", "x_0", "a"], False),  # only k^2*a and a*x_0, of which roots are found
        ("s' = -e*s\nx' = V*s^n/(K^n + s^n) - d*x\ns(0) = 3\nx(0) = 0\ny = x", ["d", "V", "n*e", "n", "K"], False),
    ],
)
def test_functions(text: str, functions: list[str], exactly: bool) -> None:
    model = Model.parse(text, ["y"])
    result = found(model)
    assert_generate(result, model, functions)
    assert result.finer == (not exactly)
    truth = numeric_rank([model], lambda rng: drawn(model, rng), 0.6)
    assert truth.rank == len(model.parameters) - result.fibre_dimension
    assert truth.identifiable == {n for n, word in result.parameters.items() if word != "not"}


def test_combinations_with_functions_are_shown() -> None:
    model = Model.parse("s' = -e*s\nx' = V*s^n/(K^n + s^n) - d*x\ns(0) = 3\nx(0) = 0\ny = x", ["y"])
    result = found(model)
    shown = {text.replace("e*n", "n*e") for text in result.functions}
    assert shown == {"d", "V", "n*e", "K^n/(3^n)"}
    assert {to_text(c).replace("e*n", "n*e") for c in result.determined} == {"d", "V", "n*e"}
    assert "finer than what data determine" in said(result)
    with pytest.raises(IdentifiabilityError, match="finer"):
        result.expresses("n*e")


def test_logarithmic_parameters_shift_where_others_scale() -> None:
    plain = found(Model.parse("x' = -k*v*x\nx(0) = 1\ny = x", ["y"]))
    logarithmic = found(Model.parse("x' = -exp(lk)*exp(lv)*x\nx(0) = 1\ny = x", ["y"]))
    assert plain.freedoms == (Scaling({"k": 1, "v": -1}, "s"),)
    assert logarithmic.freedoms == (Shift({"lk": 1, "lv": -1}, "s"),)


def test_rates_that_may_be_exchanged_in_logarithms() -> None:
    text = "m' = -exp(ld)*m\np' = m - exp(lb)*p\nm(0) = 1\np(0) = 0\ny = p"
    result = found(Model.parse(text, ["y"]))
    assert result.parameters == {"ld": "locally", "lb": "locally"}
    assert result.alternatives == {"ld": 2, "lb": 2}
    assert_generate(result, Model.parse(text, ["y"]), ["ld + lb", "ld*lb"])
    assert not result.finer
    require_constant_output(Model.parse(text, ["y"]), ["ld", "lb"])


def test_seasonal_forcing() -> None:
    model = Model.parse("x' = b*(1 + a*cos(2*3.14159265*t/52 + phi)) - g*x\nx(0) = 1\ny = x", ["y"])
    result = found(model)
    assert result.parameters == {"b": "globally", "a": "locally", "phi": "locally", "g": "globally"}
    # a -> -a with half a turn more; and whole turns of phi


def test_a_power_that_begins_at_zero() -> None:
    model = Model.parse("x' = b - d*x + V*x^n/(K^n + x^n)\nx(0) = 0\ny = x", ["y"])
    result = found(model)
    assert result.assumptions == ("late start",)
    assert set(map(to_text, result.combinations)) == set(model.parameters)  # sound whatever the start


def test_a_function_of_time_alone_is_a_known_input() -> None:
    model = Model.parse("x' = -k*x + a*max(0, t - 5)\nx(0) = 1\ny = x", ["y"])
    assert_generate(found(model), model, ["k", "a"])


def test_functions_without_derivatives_are_refused() -> None:
    with pytest.raises(NotLiftable, match=r"max\(x - 1, 0\) has no derivative everywhere"):
        analyse(Model.parse("x' = -k*max(x - 1, 0)", ["x"]))


def test_a_quantity_that_calls_a_function() -> None:
    model = Model.parse("x' = -exp(lk)*x\nx(0) = 1\ny = s*v*x", ["y"], quantities={"half": "log(2)/exp(lk)", "r": "s"})
    assert found(model).quantities == {"half": "globally", "r": "not"}


# --- steady states ---


def test_michaelis_menten_at_rest_before_a_stimulus() -> None:
    model = Model.parse("S' = k - u*V*S/(K + S)\nS(0) = 1\ny = S", ["y"], constants={"u": 1})
    model = model.vary(constants={"u": 2}, before=model)
    assert_generate(found(model), model, ["k", "V", "K"])


def test_two_outputs_with_unknown_scale_and_offset() -> None:
    text = "a' = k1*u*(1 - a) - k2*a\nb' = k3*a*(1 - b) - k4*b\na(0) = 0\nb(0) = 0\ny1 = o1 + s1*a\ny2 = o2 + s2*b"
    model = Model.parse(text, ["y1", "y2"], constants={"u": "0.1"})
    model = model.vary(constants={"u": 5}, before=model)
    result = found(model)
    truth = numeric_rank([model], lambda rng: drawn(model, rng), 8.0)
    assert truth.clear
    assert truth.rank == len(model.parameters) - result.fibre_dimension == 7
    assert truth.identifiable == {n for n, word in result.parameters.items() if word != "not"}


def test_a_steady_state_that_is_not_rational() -> None:
    text = "r' = -a*u*r*l + b*c\nl' = -a*u*r*l + b*c\nc' = a*u*r*l - b*c\nr(0) = r0\nl(0) = l0\nc(0) = 0\ny = c"
    model = Model.parse(text, ["y"], constants={"u": 1})
    result = found(model.vary(constants={"u": 2}, before=model))
    assert result.parameters == {"a": "globally", "b": "globally", "r0": "locally", "l0": "locally"}  # r0 and l0 swap
    assert set(map(to_text, result.combinations)) == {"a", "b", "r0", "l0"}


# --- what is lifted is rational, and checks of given combinations use it ---


def test_lifted_models_are_plain() -> None:
    model = HIV.vary(events=[Event(e("t1"), {"V": e("V*exp(-q)"), "T": e("T + V")})], onset="t0")
    lifted = lift([model])
    assert all(m.is_plain for m in lifted.models)
    assert all(is_rational(part) for m in lifted.models for part in (*m.rhs, *m.start, *m.observed))


def test_exponentials_that_depend_on_each_other_are_written_in_few() -> None:
    lifted = lift([Model.parse("x' = -exp(a)*exp(2*a + b)*x + exp(b/2)\nx(0) = 1", ["x"])])
    assert len(lifted.ties) == 2  # exp(a) and exp(a + b/2)
    assert lifted.is_exact is False


@pytest.mark.parametrize("combinations", [["lk + lv", "la"], ["lk", "lv", "la"]])
def test_right_combinations_by_hand(combinations: list[str]) -> None:
    require_constant_output(Model.parse("x' = -exp(lk)*exp(lv)*x + exp(la)\nx(0) = 1", ["x"]), combinations)


def test_wrong_combinations_by_hand() -> None:
    model = Model.parse("x' = -exp(lk)*exp(lv)*x + exp(la)\nx(0) = 1", ["x"])
    with pytest.raises(IdentifiabilityError, match=r"it changes when .*exp\(la\)"):
        require_constant_output(model, ["lk + lv"])
    dosed = ORAL.vary(events=[dose("lag")])
    require_constant_output(dosed, ["lag", "ka*ke", "ka + ke", "F*ka/V"])
    with pytest.raises(IdentifiabilityError, match="lag"):
        require_constant_output(dosed, ["ka*ke", "ka + ke", "F*ka/V"])
    with pytest.raises(IdentifiabilityError, match="several branches"):
        require_constant_output(dosed, ["lag", "ka*ke", "ka + ke", "F/V"])


def test_states_of_a_dosed_model() -> None:
    model = ORAL.vary(events=[dose("lag"), dose("lag + 12")])
    assert judge_trajectories(model, found(model)) == ({"depot": "not", "c": "not"},)


# --- random models ---


@pytest.mark.parametrize("seed", slow_but(0, 7, 9, 16, of=[*range(40)]))
def test_random_models_agree_with_numbers(seed: int) -> None:
    objections(seed)


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(30))
def test_many_random_models_agree_with_numbers(tens: int) -> None:
    for seed in range(1000 + 10 * tens, 1010 + 10 * tens):
        objections(seed)


def objections(seed: int) -> None:
    """A wrong verdict fails: what is called not identifiable but is, and, inputs being rich, the reverse."""
    model, end = happening_model(seed)
    result = analyse(model, time_limit=inf, effort=0.1)
    try:
        truth = numeric_rank([model], lambda rng: drawn(model, rng), end, seed=seed)
    except FloatingPointError:
        return
    judged = {name: word for name, word in result.parameters.items() if word != "unknown"}
    if truth.clear:
        assert {n for n, word in judged.items() if word != "not"} == truth.identifiable & set(judged), model.to_text()
        if "unknown" not in result.parameters.values():
            assert len(model.parameters) - result.fibre_dimension == truth.rank, model.to_text()


DILUTED = """
[model]
equations = '''
x' = q*d*(1 - x) - a*x + b*y
y' = a*x - b*y - q*d*y - c*y + e*z
z' = c*y - e*z - q*d*z
x(0) = 0.3
y(0) = 0.2
z(0) = 0.1
u = x/(x + y + z)
v = y/(x + y + z)
w = z/(x + y + z)
'''
outputs = ["u", "v", "w"]
initial = "steady state"
before = { constants = { d = 1 } }
[constants]
d = 0
"""


@pytest.mark.parametrize("formula", [True, False])
def test_equations_of_rest_are_divided_by_what_is_not_zero(formula: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of all is at rest where q*(1 - x - y - z) = 0: as q is not zero, it is one.

    With q = 0 nothing would happen when dilution ends, and hardly anything could be known.
    """
    if not formula:
        monkeypatch.setattr(steady, "MAX_GROWN", 0)
    found = analyse([experiment.analysed for experiment in loads(DILUTED).experiments])
    assert set(found.parameters.values()) == {"globally"}


def test_of_equations_that_are_products_nobody_knows_which_factor_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "MAX_GROWN", 0)
    text = """
    [model]
    equations = '''
    x' = (a - b*x)*(c - x)*k + s*g
    x(0) = 0.1
    '''
    outputs = ["x"]
    initial = "steady state"
    before = { constants = { s = 0 } }
    [constants]
    s = 1
    """
    found = analyse([experiment.analysed for experiment in loads(text).experiments])
    assert "not" not in found.parameters.values()


@pytest.mark.parametrize(
    ("written", "otherwise", "lost", "dimension"),
    [
        ("A*tanh(k*x)", "A*(exp(2*k*x) - 1)/(exp(2*k*x) + 1)", {"k", "x0"}, 1),
        ("exp(n*log(b) + k*x)", "b^n*exp(k*x)", {"n", "b", "k", "x0"}, 2),
        ("(2*a)^n*x", "2^n*a^n*x", {"a", "n", "x0"}, 2),
        ("tanh(log(b))*x + k", "(b^2 - 1)/(b^2 + 1)*x + k", {"b", "x0"}, 1),
        ("tan(2)*A*sin(k*x)", "A*sin(2)/cos(2)*sin(k*x)", {"k", "x0"}, 1),
    ],
)
def test_a_function_is_analysed_however_it_is_written(
    written: str, otherwise: str, lost: set[str], dimension: int
) -> None:
    for output in (written, otherwise):
        result = found(Model.parse(f"x' = -d*x\nx(0) = x0\ny = {output}", ["y"]))
        assert {name for name, verdict in result.parameters.items() if verdict == "not"} == lost
        assert result.parameters["d"] == "globally"
        assert (result.fibre_dimension, result.is_exact) == (dimension, True)
