"""Functions in terms of generators: the verdict, and formulas that are right when put back in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.algebra.generators.expressing import express
from equifinal.language.expression import substitute
from equifinal.language.parser import parse_expression
from tests.support.fields import same_field
from tests.support.modulo import modulo, plenty

NAMES = ("a", "b", "c")
AT = {"a": 1234567, "b": 89101112, "c": 131415}


def parsed(*texts: str) -> list:
    return [parse_expression(text) for text in texts]


@pytest.mark.parametrize(
    ("function", "generators", "status"),
    [
        ("a*b", ["a*b"], "globally"),
        ("a", ["a*b"], "not"),
        ("a", ["a^2"], "locally"),
        ("a", ["a^2", "a^3"], "globally"),
        ("a^2 + b^2", ["a + b", "a*b"], "globally"),
        ("a - b", ["a + b", "a*b"], "locally"),
        ("c", ["a + b", "a*b"], "not"),
        ("(a + b)/(a*b)", ["1/a + 1/b"], "globally"),
    ],
)
def test_verdicts(function: str, generators: list[str], status: str) -> None:
    for with_formula in (True, False):
        found = express(parse_expression(function), parsed(*generators), NAMES, {}, plenty(), with_formula=with_formula)
        assert (found.status, found.identifiable) == (status, status == "globally")


GENERATORS = ("a*b", "b/c^2", "a + c")
exponents = st.tuples(*[st.integers(-2, 2)] * 3)
low_degree = st.tuples(*[st.integers(0, 1)] * 3).filter(lambda m: sum(m) <= 2)


def monomial(exponents: tuple[int, ...]) -> str:
    return "*".join(["1", *(f"({g})^({e})" for g, e in zip(GENERATORS, exponents, strict=True))])


def polynomial(terms: dict[tuple[int, ...], int]) -> str:
    return " + ".join(f"{c}*{monomial(m)}" for m, c in terms.items())


@settings(max_examples=30)
@given(exponents.map(monomial) | st.dictionaries(low_degree, st.integers(1, 9), min_size=1).map(polynomial))
def test_formulas_are_right(text: str) -> None:
    """Monomials and polynomials of degree two are found, and with the generators put in are the function."""
    function = parse_expression(text)
    found = express(function, parsed(*GENERATORS), NAMES, {}, plenty())
    assert found.identifiable
    assert found.formula is not None
    put_in = substitute(found.formula, {f"xi{j + 1}": g for j, g in enumerate(parsed(*GENERATORS))})
    assert modulo(put_in, AT) == modulo(function, AT)


def test_fields_are_compared_by_what_they_generate() -> None:
    assert same_field(parsed("a*b", "a/b"), parsed("a^2", "a*b"), NAMES, plenty()) == ([], [])
    assert same_field(parsed("a + b", "a*b"), parsed("a", "b"), NAMES, plenty()) == ([], parsed("a", "b"))
    assert same_field(parsed("a", "c"), parsed("a"), NAMES, plenty()) == (parsed("c"), [])
