"""Wrong answers that comparisons with independent computations found."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import EquifinalError
from equifinal.formats.toml import loads
from equifinal.language.model import Model
from equifinal.posterior.posterior import Posterior
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem


@pytest.mark.parametrize("family", ["lognormal", "log2-normal", "log10-normal", "log-laplace", "log10-laplace"])
@pytest.mark.parametrize(("output", "side", "expected"), [(0.0, "<", 0.0), (-1e-9, "<", 0.0), (0.0, ">", -np.inf)])
def test_nothing_is_surely_below_a_limit(family: str, output: float, side: str, expected: float) -> None:
    """Before a lagged dose, and where rounding makes a decayed virus negative, `<50` is certain, not impossible."""
    argument = next(iter(Noise(family, **_scale(family)).record.arguments)).name
    model = Model.parse("x' = 0\nx(0) = c - a + a", ["x"], constants={"c": str(output)})
    seen = Observations("x", [1.0], [f"{side}50"], Noise(family, **{argument: 0.5}))
    problem = Problem((Experiment(model, (seen,)),), {"a": Prior("uniform", lower=1, upper=2)})
    assert Posterior(problem).log_likelihood(np.array([[1.5]])).values[0] == expected


def _scale(family: str) -> dict[str, float]:
    return {"scale": 1.0} if "laplace" in family else {"sdlog": 1.0} if family == "lognormal" else {"sd": 1.0}


BASE = """
[model]
equations = "x' = kin*w - k*x"
outputs = ["x"]
{model}
[constants]
w = 1
[[change]]
time = 2
constants = {{ w = 3 }}
[parameters]
k = {{ prior = "uniform", lower = 0.1, upper = 2 }}
kin = {{ prior = "uniform", lower = 0.1, upper = 9 }}
{parameters}
[noise]
x = {{ family = "normal", sd = {sd} }}
[data]
time = [1, 3]
x = [5, 9]
"""


def test_a_constant_that_changes_is_no_parameter_of_the_noise() -> None:
    start = 'x_0 = { prior = "uniform", lower = 0, upper = 9 }\ns = { prior = "uniform", lower = 0.1, upper = 1 }'
    problem = loads(BASE.format(model="", parameters=start, sd='"s*w"'))
    assert problem.parameters == ("k", "kin", "x_0", "s")
    found = Posterior(problem).log_likelihood(np.array([[1.0, 2.0, 2.0, 0.5]])).values[0]
    rest = 6 - 4 * np.exp(-1.0)
    expected = [(5 - 2) / 0.5, (9 - rest) / 1.5]
    assert found == pytest.approx(-sum(0.5 * z * z for z in expected) - np.log(0.5 * 1.5) - np.log(2 * np.pi), rel=1e-5)


@pytest.mark.parametrize("what", ["quantity", "change", "output"])
def test_with_a_steady_state_an_initial_value_is_not_named(what: str) -> None:
    text = BASE.format(model='initial = "steady state"', parameters="", sd=1)
    text = {
        "quantity": text + '[quantities]\nbase = "2*x(0)"\n',
        "change": text + '[[change]]\ntime = 3\nset = { x = "x(0)" }\n',
        "output": text.replace('- k*x"', '- k*x; y = x/x(0)"').replace('outputs = ["x"]', 'outputs = ["x", "y"]'),
    }[what]
    with pytest.raises(EquifinalError, match="cannot be used where the model starts from a steady state"):
        loads(text)
