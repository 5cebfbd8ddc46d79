"""Models that are unlike any that people write: right ones, and wrong ones that were once let in."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.errors import DataError, ModelError
from equifinal.formats.toml import load
from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model


@pytest.mark.parametrize("exponent", [2, 1000])
def test_an_input_to_a_large_power(exponent: int) -> None:
    model = Model.parse(f"x' = -k*x + u^{exponent}", ["x"], inputs=["u"])
    assert analyse(model).parameters == {"k": "globally", "x_0": "globally"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x' = -a*x; x(0) = (t < 2)*a", "initial value of 'x' depends on 't'"),
        ("x' = -a*x; x(0) = y; y = piecewise(a, t < 2, b)", "initial value of 'x' depends on 't'"),
        ("x' = -a*x*(t < (t < 1)*a)", "depends on a condition"),
        ("x' = -a*x*(t < d); d = piecewise(1, t < 1, a)", "depends on a condition"),
        ("x' = -a*x*(t < d); d = x", "with 'x', which changes with time"),  # was solved, as something else
        ("x' = -a*x*(t < d); d = 2*u", "with 'u', which changes with time"),
    ],
)
def test_conditions_whose_border_moves_are_refused(text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Model.parse(text, ["x"], inputs=["u"] if "u" in text else [])


@pytest.mark.parametrize("term", ["c*x/(c + c*x)", "x/c", "c/c", "(x - x)/(c*x)", "1/(c/x)"])
def test_a_constant_that_is_zero_divides_nothing(term: str) -> None:
    with pytest.raises(ModelError, match="divides by zero for all parameters"):
        Model.parse(f"x' = -k*x + {term}", ["x"], constants={"c": 0})


@pytest.mark.parametrize("constant", [2, -1, "0.5", 0])
def test_pow_is_a_power(constant: int | str) -> None:
    """Written with ``^``, it is read again as the same model; with a whole number it was another."""
    model = Model.parse("x' = -k*pow(x, c)", ["x"], constants={"c": constant})
    assert model == Model.parse("x' = -k*x^c", ["x"], constants={"c": constant})
    assert Model.parse(model.to_text(), ["x"], constants=model.constants).equations == model.equations


def test_a_power_that_is_too_large_is_refused_however_it_is_written() -> None:
    for text in ("pow(x, c)", "x^c"):
        with pytest.raises(ModelError, match="powers above 1000"):
            Model.parse(f"x' = -k*{text}", ["x"], constants={"c": 1e300})


def test_a_quantity_with_a_condition_is_a_trajectory() -> None:
    model = Model.parse("x' = -a*x; d = (t < 1)*a", ["x"], quantities={"q": "(t < 2)*a", "r": "d"})
    assert set(model.trajectories) == {"q", "r"}
    assert analyse(model).parameters == {"a": "globally", "x_0": "globally"}


def test_a_problem_without_unknowns_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text(
        '[model]\nequations = "x\' = 2; x(0) = 0"\noutputs = ["x"]\n'
        '[noise]\nx = { family = "normal", sd = 0.5 }\n[data]\ntime = [1, 2]\nx = [2, 4]\n'
    )
    with pytest.raises(DataError, match="something unknown"):
        load(tmp_path / "problem.toml").require_complete()
