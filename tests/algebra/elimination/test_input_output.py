"""Input-output equations hold along every solution, and what follows from them holds on the fibre."""

from __future__ import annotations

import random

import flint
import pytest

from equifinal.algebra.arithmetic.polynomials import ring, value_at
from equifinal.algebra.elimination.fibre_points import Experiment
from equifinal.algebra.elimination.input_output import Signals, reduced_ratios, relation_rows
from equifinal.algebra.elimination.state_elimination import Elimination
from equifinal.algebra.elimination.taylor import taylor_equations
from equifinal.language.model import Model
from tests.support.modulo import PRIME, local_of, plenty

SI = "S' = -b*S*I + g*I\nI' = b*S*I - g*I\nS(0) = N - I0\nI(0) = I0\ny = r*I"
MODELS = {
    "SI": Model.parse(SI, ["y"], constants={"N": 100}),
    "two compartments": Model.parse("x' = -(k + e)*x + m*z\nz' = k*x - m*z\ny = x/V\nz(0) = 0", ["y"]),
    "a square": Model.parse("x' = -k*x^2 + a\ny = x^2\nx(0) = 0", ["y"]),
    "a quotient": Model.parse("x' = V*x/(K + x)", ["x"]),
    "an input": Model.parse("x' = -k*x + b*u\nx(0) = 0\ny = c*x", ["y"], inputs=["u"]),
}


def experiment(name: str) -> Experiment:
    model = MODELS[name]
    local = local_of(model)
    return Experiment(model, local, 0, list(model.parameters), {}, random.Random(1))


def eliminated(work: Experiment) -> tuple[Elimination, Signals]:
    return work.eliminate(plenty()), work.signals_to(30, plenty())


@pytest.mark.parametrize("name", MODELS)
def test_equations_hold_along_the_solution(name: str) -> None:
    work = experiment(name)
    found, signals = eliminated(work)
    assert found.complete
    assert len(found.equations) == len(work.model.outputs)
    values = [0] * len(found.names)  # at time 0; states do not occur
    for position, parameter in zip(found.parameters, work.free, strict=True):
        values[position] = work.local.point[parameter]
    for (signal, order), position in found.jets.items():
        values[position] = signals.at_zero(signal, order)
    for equation in found.equations:
        assert not {i for i, d in enumerate(equation.degrees()) if d} & set(found.states)
        assert value_at(equation, values) == 0
        position = found.jets[work.model.outputs[0], 1]
        wrong = [v + (i == position) for i, v in enumerate(values)]
        assert value_at(equation, wrong) != 0  # so that it says something about y'


@pytest.mark.parametrize("name", MODELS)
def test_relations_hold_at_the_point_and_not_elsewhere(name: str) -> None:
    work = experiment(name)
    work.collect(work.eliminate(plenty()), plenty())
    point = [work.local.point[n] for n in work.free]
    equations = [e for e in work.equations if not e.is_zero()]
    assert equations
    assert not [e for e in equations if value_at(e, point)]
    other = [v + 1 for v in point]
    assert [e for e in equations if value_at(e, other)]


@pytest.mark.parametrize("name", MODELS)
def test_taylor_coefficients_hold_at_the_point(name: str) -> None:
    work = experiment(name)
    target = work.target(5, plenty())
    equations, denominators = taylor_equations(work.model, work.free, {}, work.signals, target, work.into, plenty())
    point = [work.local.point[n] for n in work.free]
    assert equations
    assert not [e for e in equations if value_at(e, point)]
    assert [e for e in equations if value_at(e, [v + 1 for v in point])]
    assert all(value_at(d, point) for d in denominators)


def test_long_coefficients_do_not_end_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """x is a quadratic polynomial of its start at order 1 already, z begins with d*x(0)*t^3/6."""
    monkeypatch.setattr("equifinal.algebra.elimination.taylor.MOST_TERMS", 2)
    text = "x' = a + b*x + c*x^2\nz' = w*x\nw' = v\nv' = d\nz(0) = 0\nw(0) = 0\nv(0) = 0"
    model = Model.parse(text, ["x", "z"])
    work = Experiment(model, local_of(model), 0, list(model.parameters), {}, random.Random(1))
    target = work.target(5, plenty())
    equations, _ = taylor_equations(work.model, work.free, {}, work.signals, target, work.into, plenty())
    point = [work.local.point[n] for n in work.free]
    assert not [e for e in equations if value_at(e, point)]
    assert sorted(map(len, equations)) == [2, 2]


def test_si_has_the_equation_of_the_paper() -> None:
    """y' = (b N - g) y - (b/r) y^2: three monomials, of which one relation is left."""
    work = experiment("SI")
    found, signals = eliminated(work)
    rows, monomials, rank = relation_rows(found, found.equations[0], signals, 20, plenty())
    assert (monomials, rank) == (3, 2)
    assert len(rows) == 2


def test_derivatives_of_signals() -> None:
    signals = Signals({"y": [5, 7, 11, 13]}, PRIME)  # 5 + 7 t + 11 t^2 + 13 t^3
    assert [signals.at_zero("y", k) for k in range(4)] == [5, 7, 22, 78]


def test_common_factors_of_coefficients_are_cancelled() -> None:
    """c = (a (a + b), a b) in the ratio 3 : 2 says b/(a + b) = 2/3."""
    into = ring("ab", PRIME)
    a, b = into.gens()
    coefficients = [{m: int(c) for m, c in f.to_dict().items()} for f in (a * (a + b), a * b)]
    (relation,) = reduced_ratios(coefficients, [3, 2], PRIME, plenty())
    found = into.from_dict(relation)
    assert int(found.total_degree()) == 1
    assert value_at(found, [1, 2]) == 0
    assert value_at(found, [2, 3]) != 0


def test_few_combinations_say_the_same_as_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an equation has more monomials in the jets than in the parameters, the same space of equations results."""
    model = Model.parse("x' = a*x^2*z + z\nz' = x*z + b\ny = x*z", ["y"])
    work = Experiment(model, local_of(model), 0, list(model.parameters), {}, random.Random(1))
    found, signals = work.eliminate(plenty()), work.signals_to(400, plenty())
    (equation,) = found.equations
    rows, keys, _ = relation_rows(found, equation, signals, 400, plenty())
    monkeypatch.setattr("equifinal.algebra.elimination.input_output.SPARE", 10**6)
    others, *_ = relation_rows(found, equation, signals, 400, plenty())
    assert keys > len({m for row in others for m in row}) + 4
    columns = sorted({m for row in (*rows, *others) for m in row})

    def rank(equations: list[dict]) -> int:
        return flint.nmod_mat(
            len(equations), len(columns), [e.get(m, 0) for e in equations for m in columns], work.local.prime
        ).rank()

    assert rank(rows) == rank(others) == rank([*rows, *others]) == len(rows)
