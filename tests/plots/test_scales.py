"""One rule says which axis is logarithmic, and numbers are written without factors at the end of an axis."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.formats.toml import loads
from equifinal.plots import scales
from equifinal.plots.chains import plot_traces
from equifinal.plots.marginals import density, density_grid
from equifinal.plots.pairs import plot_pairs
from equifinal.plots.trajectories import plot_fit
from equifinal.prediction.predict import predict
from tests.support.runs import run

TEXT = """
[model]
equations = "x' = -k*x; x(0) = a"
outputs = ["x"]
[parameters]
k = { prior = "loguniform", lower = 0.1, upper = 2 }
a = { prior = "uniform", lower = 0, upper = 9000 }
[noise]
x = { family = "NOISE", ARGUMENT = 0.1 }
[data]
time = [1, 2, 3]
x = DATA
"""


@pytest.mark.parametrize(
    ("noise", "data", "logarithmic"),
    [
        ("lognormal", [3, 2, 1], True),  # by its noise
        ("normal", [3, 2, 1], False),
        ("normal", [301, 2, 1], True),  # by its data
        ("normal", [300, 2, 0], False),  # zero has no logarithm
    ],
)
def test_outputs(noise: str, data: list[float], logarithmic: bool) -> None:
    text = TEXT.replace("NOISE", noise).replace("ARGUMENT", "sdlog" if noise == "lognormal" else "sd")
    problem = loads(text.replace("DATA", str(data)))
    (band,) = predict(problem, np.array([[0.5, 3.0], [0.6, 3.1]])).bands
    assert scales.trajectory_is_logarithmic(problem, band) is logarithmic


def test_parameters() -> None:
    problem = loads(TEXT.replace("NOISE", "normal").replace("ARGUMENT", "sd").replace("DATA", "[3, 2, 1]"))
    narrow, wide = np.linspace(1, 2, 99), np.geomspace(1e-3, 10, 99)
    assert scales.quantity_is_logarithmic(problem, "k", narrow)  # by its prior
    assert not scales.quantity_is_logarithmic(problem, "a", narrow)
    assert scales.quantity_is_logarithmic(problem, "a", wide)  # by its draws
    assert not scales.quantity_is_logarithmic(problem, "a", np.append(wide, -1.0))


def test_the_same_scale_in_every_figure() -> None:
    """Rates have lognormal priors: so the axes of traces and of pairs are logarithmic, in both directions."""
    data = run("awkward")
    assert all(axes.get_yscale() == "log" for axes in plot_traces(data, names=["k1", "k2"]).axes)
    _, below, _ = plot_pairs(data, names=["k1", "k2"]).axes
    assert (below.get_xscale(), below.get_yscale()) == ("log", "log")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1e5, "10⁵"),
        (2.5e6, "2.5×10⁶"),
        (-3e-7, "−3×10⁻⁷"),
        (12345.0, "12345"),
        (0.25, "0.25"),
        (99999.99, "10⁵"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert scales.number_text(value) == text


def test_ticks_are_inside_and_few() -> None:
    for low, high in [(1, 1.2), (0.15, 0.17), (1, 9), (3, 40), (1e-9, 1e9), (7e-4, 2e3), (40, 1e5)]:
        ticks = scales.log_ticks(low, high)
        assert 2 <= len(ticks) <= 7
        assert all(low * 0.999 <= t <= high * 1.001 for t in ticks)


def test_no_axis_has_a_factor_at_its_end() -> None:
    figure = plot_fit(run("si"))
    figure.draw_without_rendering()
    assert not any(axis.get_offset_text().get_text() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis))


def test_a_density_at_a_hard_bound_keeps_its_height() -> None:
    """Exponential draws above 0: without reflection the estimate at 0 is half of what it is."""
    draws = np.random.default_rng(4).exponential(size=20_000)
    grid = density_grid(draws, False, (0.0, np.inf))
    height = density(draws, grid, False, (0.0, np.inf))
    assert grid[0] == 0
    assert height[0] > 0.93
    np.testing.assert_allclose(height / height[0], np.exp(-grid), atol=0.1)
