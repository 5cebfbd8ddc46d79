"""Every figure can be drawn from results alone, says what it shows, and is the same again."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.plots import style
from equifinal.plots.agreement import plot_agreement
from equifinal.plots.chains import plot_autocorrelation, plot_ranks, plot_traces
from equifinal.plots.efficiency import efficiency, plot_efficiency
from equifinal.plots.identifiability import plot_identifiability
from equifinal.plots.marginals import density, plot_marginals
from equifinal.plots.pairs import fibre_through_mean, plot_pairs
from equifinal.plots.trajectories import plot_fit, plot_residuals, plot_states
from equifinal.results.store import load, save
from tests.support.runs import meaning, run


def labels(figure) -> list[str]:
    return [t for axes in figure.axes for t in (axes.get_xlabel(), axes.get_ylabel())]


def texts(figure) -> list[str]:
    return [t.get_text() for axes in figure.axes for t in axes.texts]


@pytest.mark.parametrize(
    ("plot", "panels", "shown"),
    [
        (plot_fit, 1, "cases"),
        (plot_states, 2, "S"),
        (plot_residuals, 1, "cases, residual (sd)"),
        (plot_traces, 5, "gamma"),
        (plot_ranks, 5, "gamma, frequency"),
        (plot_autocorrelation, 5, "gamma, autocorr."),
        (plot_marginals, 8, "beta*N - gamma"),
        (plot_pairs, 10, "gamma"),
        (plot_identifiability, 1, None),
    ],
)
def test_figures_from_results_alone(plot, panels: int, shown: str | None, tmp_path) -> None:
    data = load(save(run("si"), tmp_path / "r.nc"))  # nothing but the file
    figure = plot(data)
    assert len(figure.axes) == panels
    assert shown is None or shown in labels(figure)
    style.save(figure, tmp_path / "one.svg")
    style.save(plot(data), tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.svg").stat().st_size < 700_000


def test_names_that_look_like_formulas_are_written_as_they_are(tmp_path) -> None:
    figure = plot_fit(run("awkward"))
    style.save(figure, tmp_path / "f.svg")
    assert "&lt;b&gt;first&lt;/b&gt; &amp; $a_b$</text>" in (tmp_path / "f.svg").read_text()


def test_the_fit_shows_the_data_and_bands() -> None:
    (axes,) = plot_fit(run("decay")).axes
    points = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_array_equal(points.get_xdata(), [0, 0.5, 1, 2, 4])
    np.testing.assert_array_equal(points.get_ydata(), [1.9, 1.6, 1.1, 0.8, 0.1])
    assert len(axes.collections) == 2  # 50% and 90%
    assert axes.get_xlim()[1] > 4.9  # beyond the data
    assert plot_fit(run("decay"), until=8).axes[0].get_xlim()[1] > 7.9


def test_states_carry_their_verdict() -> None:
    assert texts(plot_states(run("si"))) == ["depends on your prior"] * 2
    assert texts(plot_states(run("product"))) == ["identifiable", "depends on your prior"]


@pytest.mark.parametrize("name", ["si", "product", "swap"])
def test_the_fibre_that_is_drawn_is_a_fibre(name: str) -> None:
    found = meaning(name)
    assert found.fibre is not None
    parameters = found.problem.parameters
    theta = np.column_stack([run(name).posterior[n].values.reshape(-1) for n in parameters])
    pieces = fibre_through_mean(found.fibre, parameters, theta)
    assert pieces
    every = np.vstack(pieces)[:, [parameters.index(n) for n in found.fibre.names]]
    c = found.fibre.xi(every)
    np.testing.assert_allclose(c, np.broadcast_to(c[0], c.shape), rtol=1e-6)
    if found.fibre.dimension:  # it reaches across the posterior, and well beyond a single draw
        moved = np.ptp(every, axis=0) / np.ptp(theta[:, [parameters.index(n) for n in found.fibre.names]], axis=0)
        assert moved.max() > 0.9
    else:
        assert len(every) == 2  # the two that swap


def test_no_fibre_is_drawn_where_there_is_no_freedom() -> None:
    found = meaning("decay")
    assert fibre_through_mean(found.fibre, found.problem.parameters, np.ones((4, 2))) == []
    assert len(plot_pairs(run("decay")).axes) == 3


def test_the_diagram_joins_parameters_with_their_combinations() -> None:
    (axes,) = plot_identifiability(run("si")).axes
    assert {"beta", "gamma", "rho", "I0", "R0", "beta/rho", "beta*N - gamma", "beta*I0"} <= set(texts(axes.figure))
    joined = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert len(joined) == 6  # beta in three of them, rho, gamma and I0 in one each


def test_samplers_side_by_side() -> None:
    runs = {"collapsed": run("si"), "random-walk": run("si", "random-walk")}
    assert efficiency(runs["collapsed"]).per_solve > 20 * efficiency(runs["random-walk"]).per_solve
    assert not efficiency(runs["random-walk"]).trusted
    figure = plot_efficiency(runs)
    assert any("chains disagree" in text for text in texts(figure))
    assert len(plot_agreement(runs, names=["gamma"]).axes[0].lines) == 2
    for plot in (plot_efficiency, plot_agreement):
        with pytest.raises(DataError, match="no runs"):
            plot({})
    with pytest.raises(DataError, match=r"no 'gama'; did you mean 'gamma'"):
        plot_agreement(runs, names=["gama"])


@pytest.mark.parametrize("plot", [plot_traces, plot_ranks, plot_autocorrelation, plot_marginals, plot_pairs])
def test_unknown_names_are_refused(plot) -> None:
    with pytest.raises(DataError, match=r"'gama'.*; did you mean 'gamma'"):
        plot(run("si"), names=["gama", "beta"])


def test_figures_that_make_no_sense_are_refused(tmp_path) -> None:
    with pytest.raises(DataError, match="a pair plot needs at least two parameters"):
        plot_pairs(run("si"), names=["gamma"])
    for lags in (0, True, 2.5):
        with pytest.raises(DataError, match="the number of lags must be a positive whole number"):
            plot_autocorrelation(run("si"), lags=lags)  # type: ignore[arg-type]
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(DataError, match="is a folder; give the name of a file"):
        style.check_path(tmp_path / "a.svg")


@pytest.mark.parametrize(("plot", "name"), [(plot_fit, "case"), (plot_residuals, "case"), (plot_states, "s")])
def test_unknown_trajectories_are_refused(plot, name: str) -> None:
    with pytest.raises(DataError, match=r"there is no .*; did you mean"):
        plot(run("si"), names=[name])


def test_a_density_integrates_to_its_shape() -> None:
    draws = np.random.default_rng(1).random(40_000)
    flat = density(draws, np.linspace(0.01, 0.99, 50))
    assert flat.min() > 0.93  # an edge stays an edge
    assert density(draws, np.array([-0.1, 0.5, 1.1])).tolist()[::2] == [0, 0]
    z = np.random.default_rng(2).standard_normal(100_000)
    np.testing.assert_allclose(
        density(z, np.linspace(-2, 2, 41)), np.exp(-0.5 * np.linspace(-2, 2, 41) ** 2), atol=0.04
    )
