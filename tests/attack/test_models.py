"""Models that are right, and unlike any that people write."""

from __future__ import annotations

import pytest

from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model


@pytest.mark.parametrize("exponent", [2, 1000])
def test_an_input_to_a_large_power(exponent: int) -> None:
    model = Model.parse(f"x' = -k*x + u^{exponent}", ["x"], inputs=["u"])
    assert analyse(model).parameters == {"k": "globally", "x_0": "globally"}
