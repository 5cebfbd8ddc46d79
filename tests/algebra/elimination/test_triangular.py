"""Solving for some coordinates symbolically."""

from __future__ import annotations

from fractions import Fraction

import pytest

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.algebra.elimination.triangular import NoTriangularForm, Triangular
from equifinal.language.expression import evaluate, to_text
from equifinal.language.parser import parse_expression


def solve(functions: str, names: str, unknowns: str, **constants: int) -> Triangular:
    parsed = [parse_expression(f) for f in functions.split(", ")]
    numbers = {n: Fraction(v) for n, v in constants.items()}
    return Triangular(parsed, numbers, names.split(), unknowns.split(), Budget(20 * SECOND))


def test_si_is_solved_by_division_alone():
    form = solve("beta*N - gamma, beta/rho, rho*I0", "beta rho gamma I0", "beta gamma I0", N=10_000)
    assert form.degree == 1
    values = {"beta": Fraction(1, 4000), "rho": Fraction(1, 4), "gamma": Fraction(3, 5), "I0": Fraction(40)}
    known = {"rho": values["rho"], "c[0]": Fraction(19, 10), "c[1]": Fraction(1, 1000), "c[2]": Fraction(10)}
    for step in form.steps:
        constant, slope = (evaluate(c, known, Fraction) for c in step.coefficients)
        known[step.name] = -constant / slope
        assert known[step.name] == values[step.name]


@pytest.mark.parametrize(
    ("functions", "names", "unknowns", "degree"),
    [
        ("x + y, x*y", "x y", "x y", 2),
        ("x + y + z, x*y + y*z + z*x, x*y*z", "x y z", "x y z", 6),
        ("x^2 + y^2", "x y", "x", 2),
        ("a*b, b/c", "a b c", "a b", 1),
        ("a^2, a*b", "a b", "a b", 2),
        ("(a + b)/(c + d), a*d", "a b c d", "a b", 1),
        ("x^3 + y, x*y", "x y", "x y", 4),
        ("x^2*y, x*y^2", "x y", "x y", 3),
    ],
)
def test_number_of_solutions(functions, names, unknowns, degree):
    assert solve(functions, names, unknowns).degree == degree


def test_extraneous_factors_do_not_survive():
    # a*(b - c) and a*(b + c): eliminating a gives factors that hold nowhere on the fibre
    form = solve("a*(b - c), a*(b + c), a + b", "a b c", "a b c")
    assert form.degree == 2
    assert max(step.degree for step in form.steps) == 2


def test_unknowns_that_are_not_determined():
    with pytest.raises(NoTriangularForm):
        solve("a*b", "a b c", "c")


def test_events_on_a_circle():
    form = solve("x^2 + y^2", "x y", "x")
    crossings, others = form.events("y", [])
    assert list(crossings) == ["x"]
    (crossing,) = crossings["x"]
    assert to_text(form.expression(crossing)) == "y^2 + [bound]^2 - c[0]"
    assert [to_text(form.expression(p)) for p in others] == ["y^2 - c[0]"]
