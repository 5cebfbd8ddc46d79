"""Random rational expressions, and SymPy's opinion on them."""

from __future__ import annotations

import sympy
from hypothesis import strategies as st

from equifinal.language.expression import evaluate, names
from equifinal.language.parser import parse_expression

NAMES = ("a", "b", "c")


def as_sympy(text: str) -> sympy.Expr:
    tree = parse_expression(text)
    symbols = {name: sympy.Symbol(name) for name in names(tree)}
    return evaluate(tree, symbols, lambda v: sympy.Rational(v.numerator, v.denominator))


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda p: f"({p[0]} + {p[1]})"),
        pairs.map(lambda p: f"({p[0]} - {p[1]})"),
        pairs.map(lambda p: f"{p[0]}*{p[1]}"),
        pairs.map(lambda p: f"{p[0]}/({p[1]} + 5/7)"),  # hardly ever zero
        st.tuples(parts, st.integers(2, 3)).map(lambda p: f"({p[0]})^{p[1]}"),
    )


rational_texts = st.recursive(st.sampled_from([*NAMES, "2", "3/2", "-1"]), _combined, max_leaves=8)
