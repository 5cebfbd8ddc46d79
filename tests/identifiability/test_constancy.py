"""Combinations supplied by hand: is the output constant where they are?"""

from __future__ import annotations

import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.identifiability.constancy import require_constant_output
from equifinal.language.model import Model

SI = Model.parse(
    "S' = -beta*S*I + gamma*I\nI' = beta*S*I - gamma*I\nS(0) = N - I0\nI(0) = I0\ny = rho*I",
    ["y"],
    constants={"N": 10_000},
)
TWO_EXPONENTIALS = Model.parse("x' = -a*x\nz' = -b*z\ny = x + z", ["y"])


@pytest.mark.parametrize(
    ("model", "combinations"),
    [
        (SI, ["beta*N - gamma", "beta/rho", "rho*I0"]),
        (SI, ["beta*N - gamma", "beta/rho", "rho*I0", "gamma"]),  # finer than needed is allowed
        (SI, ["beta", "rho", "gamma", "I0"]),
        (TWO_EXPONENTIALS, ["a + b", "a*b", "x_0 + z_0", "b*x_0 + a*z_0"]),
    ],
)
def test_good_combinations_are_accepted(model, combinations):
    require_constant_output(model, combinations)


@pytest.mark.parametrize(
    ("model", "combinations", "message"),
    [
        (SI, ["beta/rho", "rho*I0"], "changes when gamma changes"),
        (SI, ["beta*N - gamma", "beta/rho", "rho^2*I0^2"], "several branches"),
        (TWO_EXPONENTIALS, ["a + b", "a*b", "x_0 + z_0", "x_0*z_0"], "several branches"),
        (SI, ["beta*M - gamma"], "'M', which is neither"),
        (SI, [], "not constant"),
    ],
)
def test_bad_combinations_are_refused(model, combinations, message):
    with pytest.raises(IdentifiabilityError, match=message):
        require_constant_output(model, combinations)
