"""Results have the groups that ArviZ's own tools need, under either of its lines."""

from __future__ import annotations

import arviz
import matplotlib as mpl
import numpy as np
import pytest

import equifinal
from equifinal.errors import DataError
from equifinal.results.arviz_lines import autocorrelation, datasets, has_trees
from equifinal.results.store import load, save
from tests.support.runs import run

mpl.use("agg")
GROUPS = {
    "posterior", "posterior_predictive", "prior", "prior_predictive", "log_likelihood", "log_prior", "observed_data",
    "sample_stats", "constant_data",
}  # fmt: skip


@pytest.mark.parametrize("name", ["si", "awkward"])
def test_groups(name: str, tmp_path) -> None:
    found = datasets(load(save(run(name), tmp_path / "r.nc")))
    assert set(found) == GROUPS
    observed = found["observed_data"]
    for group in ("posterior_predictive", "prior_predictive", "log_likelihood"):
        assert set(found[group].data_vars) == set(observed.data_vars)
        for label, values in observed.data_vars.items():
            assert found[group][label].dims == ("chain", "draw", *values.dims)
    assert set(found["prior"].data_vars) == set(found["posterior"].data_vars)


def test_new_observations_scatter_as_the_model_says() -> None:
    """Normal noise of 5: their variance is that of the output, plus 25 (1,600 draws, 8 standard errors)."""
    data = run("si")
    made = datasets(data)["posterior_predictive"]["cases"].values.reshape(-1, 10)
    assert made.var(axis=0).mean() == pytest.approx(25, rel=0.5)
    assert np.abs(made.mean(axis=0) - data.observed_data["cases"].values).max() < 15


def test_prior_draws_have_the_priors_law() -> None:
    gamma = datasets(run("si"))["prior"]["gamma"].values.ravel()  # uniform on (0.01, 1)
    assert gamma.min() > 0.01
    assert gamma.max() < 1
    assert gamma.mean() == pytest.approx(0.505, abs=5 * 0.286 / gamma.size**0.5)


def test_log_prior_adds_up() -> None:
    data = run("awkward")
    total = sum(values.values for values in datasets(data)["log_prior"].data_vars.values())
    np.testing.assert_allclose(total + data.sample_stats["log_like"].values, data.sample_stats["lp"].values, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_arviz_can_use_them() -> None:
    data = run("si")
    assert np.isfinite(arviz.loo(data, var_name="cases").elpd if has_trees() else arviz.loo(data).elpd_loo)
    assert (arviz.plot_ppc_dist(data) if has_trees() else arviz.plot_ppc(data, num_pp_samples=20)) is not None
    if has_trees():
        assert "slow" in arviz.psense_summary(run("awkward")).index
    else:
        assert float(arviz.psens(run("awkward"), component="prior")["slow"]) > 0


def test_autocorrelation() -> None:
    rng = np.random.default_rng(0)
    x = np.zeros(50_000)
    for i in range(1, x.size):
        x[i] = 0.8 * x[i - 1] + rng.standard_normal()
    np.testing.assert_allclose(autocorrelation(x)[:4], [1, 0.8, 0.64, 0.512], atol=0.03)


def test_rng_beside_seed() -> None:
    problem = equifinal.load("si")
    settings = {"sampler": "random-walk", "draws": 20, "warmup": 20, "progress": False, "predictive": False}
    same = [
        equifinal.sample(problem, **settings, **given).posterior["gamma"].values for given in ({"seed": 7}, {"rng": 7})
    ]
    np.testing.assert_array_equal(*same)
    drawn = [equifinal.sample(problem, **settings, rng=np.random.default_rng(3)).attrs["seed"] for _ in range(2)]
    assert drawn[0] == drawn[1]
    found = [equifinal.equivalents(problem, n=3, **given).theta for given in ({"seed": 7}, {"rng": 7})]
    np.testing.assert_array_equal(*found)
    for function in (equifinal.sample, equifinal.calibrate):
        with pytest.raises(DataError, match="either seed or rng"):
            function(problem, seed=1, rng=2, progress=False)
    with pytest.raises(DataError, match="rng must be a seed"):
        equifinal.sample(problem, rng="x", **settings)
