"""A problem as a LaTeX document: equations, outputs, priors, what is identifiable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

from equifinal.language.expression import TIME, Call, Expression, Name, Number, Power, Product, Sum, number_text
from equifinal.language.happening import happening_lines
from equifinal.language.lookalikes import looks_like_another, names_in, told_apart
from equifinal.language.model import Model
from equifinal.problem.problem import Problem

_LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
GREEK = frozenset(_LETTERS.split())
_SPECIAL = {char: f"\\{char}" for char in "#$%&_{}"} | {
    "<": "$<$",
    ">": "$>$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "tanh", "min", "max")


def problem_to_latex(
    problem: Problem,
    values: Mapping[str, float],
    combinations: Mapping[str, Expression] | None = None,
    reduced: Model | None = None,
) -> str:
    """A whole document.

    Parameters
    ----------
    values
        Of the parameters, such as the most probable ones; they stand in the table of parameters.
    combinations
        What the data can determine, each with a name.
    reduced
        The same model in these combinations.
    """
    models = [problem.model, *([reduced] if reduced is not None else [])]
    with told_apart([*names_in(models), *problem.priors, *(combinations or ())], name_to_latex):
        parts = _sections(problem, values, combinations, reduced)
    body = "\n\n".join(parts)
    return rf"""\documentclass{{article}}
\usepackage{{amsmath}}
\title{{{escaped(problem.name)}}}
\begin{{document}}
{body}
\end{{document}}
"""


def _sections(
    problem: Problem,
    values: Mapping[str, float],
    combinations: Mapping[str, Expression] | None,
    reduced: Model | None,
) -> list[str]:
    parts = [r"\section*{Model}", model_to_latex(problem.model)]
    if happening := happening_lines(problem.model):
        items = "\n".join(rf"\item {escaped(line)}" for line in happening)
        parts.append(r"\section*{What happens}" + f"\n\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
    if problem.priors:
        rows = [
            rf"${name_to_latex(name)}$ & {escaped(str(prior))} & {_shown(values.get(name))} \\"
            for name, prior in problem.priors.items()
        ]
        body = "\n".join(rows)
        parts.append(
            rf"""\section*{{Parameters}}
\begin{{tabular}}{{lll}}
parameter & prior & value \\\hline
{body}
\end{{tabular}}"""
        )
    if combinations:
        lines = [rf"{name_to_latex(name)} &= {to_latex(e)}" for name, e in combinations.items() if e != Name(name)]
        parts.append(r"\section*{Identifiable combinations}" + "\n" + _aligned(lines))
    if reduced is not None:
        parts.append(r"\section*{The same model in identifiable combinations}" + "\n" + model_to_latex(reduced))
    return parts


def model_to_latex(model: Model) -> str:
    """The equations of a model, aligned."""
    lines = [rf"\frac{{d{name_to_latex(x)}}}{{dt}} &= {to_latex(e)}" for x, e in model.equations.items()]
    lines += [rf"{name_to_latex(n)} &= {to_latex(e)}" for n, e in model.definitions.items()]
    if model.before is None:
        lines += [rf"{name_to_latex(x)}(0) &= {to_latex(e)}" for x, e in model.initial.items()]
    lines += [rf"{name_to_latex(n)} &= {to_latex(Number(v))}" for n, v in model.constants.items()]
    return _aligned(lines)


def _aligned(lines: Sequence[str]) -> str:
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"


def _shown(value: float | None) -> str:
    return "" if value is None else f"${_exponent(f'{value:.4g}')}$"


def _exponent(text: str) -> str:
    return re.sub(r"e([-+])0*(\d+)", lambda m: rf" \cdot 10^{{{'-' if m[1] == '-' else ''}{m[2]}}}", text)


def escaped(text: str) -> str:
    """Text outside formulas."""
    return "".join(_SPECIAL.get(char, char) for char in text.replace("\\", "/"))


def name_to_latex(name: str) -> str:
    """A name as a modeller would write it: Greek letters, and what follows the first underscore as an index."""
    if name.endswith("(0)"):
        return f"{name_to_latex(name[:-3])}(0)"
    if looks_like_another(name):
        return rf"\mathtt{{{escaped(name)}}}"
    head, _, index = name.strip("_").partition("_")
    if not head:
        return rf"\mathit{{{escaped(name)}}}"
    if digits := re.fullmatch(r"([^\W\d_]+)(\d+)", head):
        head, index = digits[1], f"{digits[2]}{',' + index if index else ''}"
    shown = f"\\{head}" if head in GREEK else head if len(head) == 1 else rf"\mathit{{{escaped(head)}}}"
    if not index:
        return shown
    plain = len(index) == 1 or index.isdigit()
    below = index if plain else "\\mathrm{" + escaped(index) + "}"
    return shown + "_{" + below + "}"


def to_latex(expression: Expression) -> str:
    return _latex(expression)[0]


# how tightly a piece binds: 1 sum, 2 product, 3 power, 4 atom
def _latex(expression: Expression) -> tuple[str, int]:
    match expression:
        case Number(value):
            if value.denominator != 1 and "/" in number_text(value):
                sign = "-" if value < 0 else ""
                return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}", 2 if sign else 4
            return _exponent(number_text(value)), 1 if value < 0 else 4
        case Name(name):
            return "t" if name == TIME else name_to_latex(name), 4
        case Sum(terms):
            text = ""
            for term in terms:
                piece = _wrapped(term, 1 if not text else 2) if not _is_negative(term) else _latex(term)[0]
                text += piece if not text or piece.startswith("-") else f" + {piece}"
            return text, 1
        case Product(factors):
            return _product(factors)
        case Power(base, exponent):
            if exponent < 0:
                return _product((expression,))
            return rf"{_wrapped(base, 4)}^{{{exponent}}}", 3
        case Call():
            return _call(expression)


def _is_negative(term: Expression) -> bool:
    match term:
        case Number(value) | Product((Number(value), *_)):
            return value < 0
    return False


def _wrapped(expression: Expression, least: int) -> str:
    text, binding = _latex(expression)
    return text if binding >= least else rf"\left({text}\right)"


def _flat(factors: tuple[Expression, ...]) -> list[Expression]:
    """Factors with those of inner products, and one number for all of them."""
    parts = [
        part for factor in factors for part in (_flat(factor.factors) if isinstance(factor, Product) else [factor])
    ]
    number = prod((part.value for part in parts if isinstance(part, Number)), start=Fraction(1))
    others = [part for part in parts if not isinstance(part, Number)]
    return [*([Number(number)] if number != 1 or not others else []), *others]


def _product(given: tuple[Expression, ...]) -> tuple[str, int]:
    factors = _flat(given)
    over = [f for f in factors if not (isinstance(f, Power) and f.exponent < 0)]
    under = [Power(f.base, -f.exponent) for f in factors if isinstance(f, Power) and f.exponent < 0]
    sign = ""
    if over and isinstance(over[0], Number) and over[0].value < 0:
        sign = "-"
        over = [*([] if over[0].value == -1 and len(over) > 1 else [Number(-over[0].value)]), *over[1:]]
    top = r" \, ".join(_wrapped(f, 2 if under and len(over) == 1 else 3) for f in over) or "1"
    if not under:
        return sign + top, 2
    bottom = r" \, ".join(_wrapped(f.base if f.exponent == 1 else f, 1 if len(under) == 1 else 3) for f in under)
    return rf"{sign}\frac{{{top}}}{{{bottom}}}", 2 if sign else 3


def _call(call: Call) -> tuple[str, int]:
    match call:
        case Call("power", (base, exponent)):
            return rf"{_wrapped(base, 4)}^{{{to_latex(exponent)}}}", 3
        case Call("abs", (inner,)):
            return rf"\left|{to_latex(inner)}\right|", 4
        case Call("before" | "until" as function, (border,)):
            below = "<" if function == "before" else r"\le"
            return rf"\mathbf{{1}}_{{t {below} {to_latex(border)}}}", 4
        case Call("piecewise", (*pieces, rest)):
            rows = [
                rf"{to_latex(value)} & {_condition(condition)}"
                for value, condition in zip(pieces[::2], pieces[1::2], strict=True)
            ]
            rows.append(rf"{to_latex(rest)} & \text{{otherwise}}")
            return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}", 4
    arguments = ", ".join(map(to_latex, call.arguments))
    word = f"\\{call.function}" if call.function in _FUNCTIONS else rf"\mathrm{{{call.function}}}"
    return rf"{word}\left({arguments}\right)", 4


def _condition(expression: Expression) -> str:
    match expression:
        case Call("before" | "until" as function, (border,)):
            below = "<" if function == "before" else r"\le"
            return rf"t {below} {to_latex(border)}"
        case Sum((Number(one), Product((Number(minus), Call("before" | "until" as function, (border,)))))) if (
            one == 1 and minus == -1
        ):
            above = r"\ge" if function == "before" else ">"
            return rf"t {above} {to_latex(border)}"
    return rf"{to_latex(expression)} \ne 0"
