"""When terms first show in an output, compared with expansions by hand."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.algebra.arithmetic.lateness import beginnings, is_silent, latest_arrival
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.language.model import Model
from tests.support.modulo import PRIME, plenty

CASCADE = "x1' = k - x1; x2' = x1^4 - x2; x3' = x2^4 - x3; x1(0) = 0; x2(0) = 0; x3(0) = 0"
SQUARES = "x1' = 1; x2' = x1^2; x3' = x2^2; x4' = x3^2; z' = a^2 + a*x4^2; x1(0) = 0; x2(0) = 0; x3(0) = 0; x4(0) = 0"


def series(text: str, outputs: list[str], order: int = 8) -> OutputSeries:
    model = Model.parse(text, outputs)
    point = np.arange(12345, 12345 + len(model.parameters))[None]
    run = OutputSeries(model, model.parameters, point, {}, PRIME)
    run.extend(order, plenty())
    return run


@pytest.mark.parametrize("order", [1, 8, 40])
@pytest.mark.parametrize(
    ("text", "outputs", "latest"),
    [
        ("x' = -k*x", ["x"], 1),
        ("x' = 1; x(0) = 0; z' = 1 + a*x^15", ["z"], 16),
        (CASCADE, ["x3"], 22),  # x1 begins at 1, x2 at 5, x3 at 21, and what each of them loses an order later
        (SQUARES, ["z"], 31),
        ("x' = k; x(0) = 0; z' = m; z(0) = 0; y = x*z", ["y"], 2),
    ],
)
def test_the_latest_term(text: str, outputs: list[str], latest: int, order: int) -> None:
    assert latest_arrival(series(text, outputs, order)) == latest


def test_terms_that_cancel_begin_later() -> None:
    """x stays within t of its equilibrium only because of the last term: the bound is 0, the series knows better."""
    run = series("w' = 1; w(0) = 0; x' = a - d*x + w^3; x(0) = a/d; y = (x - a/d)^2", ["y"], 12)
    output = run.outputs[0]
    assert beginnings(run)[output] == 8
    assert beginnings(run, proved=True)[output] == 0


def test_an_output_that_is_zero_is_only_believed_if_it_must_be() -> None:
    assert is_silent(series("x' = 1; x(0) = 0; z' = a*x^30; z(0) = 0", ["z"]))
    assert not is_silent(series("x' = 1; x(0) = 0; z' = a*x^30; z(0) = 0", ["z"], 40))
    assert not is_silent(series("S' = -b*S*I; I' = b*S*I - g*I; I(0) = 0", ["I"]))
    assert is_silent(series("p' = -k*p; q' = -k*q; p(0) = 1; q(0) = 1; y = p - q", ["y"]))
