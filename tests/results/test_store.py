from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import arviz
import numpy as np
import pytest

from equifinal.errors import DataError, SamplingError
from equifinal.formats.toml import loads
from equifinal.results import groups
from equifinal.results import store as result
from equifinal.results.arviz_lines import from_groups
from equifinal.results.diagnostics import ConcernKind, summarise, summary_row
from equifinal.samplers.settings import run_settings
from equifinal.studies.sample import sample
from equifinal.words.diagnostics import SENTENCES, advise, sampler_notes
from tests.support.problems import DECAY, decay, quick_problem


@pytest.fixture(scope="module")
def data() -> arviz.InferenceData:
    return sample(quick_problem(), chains=4, warmup=500, draws=600, seed=2, progress=False)


def test_groups_and_values(data: arviz.InferenceData) -> None:
    assert set(data.posterior.data_vars) == {"k", "a", "half_life"}
    np.testing.assert_allclose(data.posterior["half_life"], 0.693147 / data.posterior["k"])
    assert data.log_likelihood["y"].shape == (4, 600, 5)
    np.testing.assert_allclose(
        data.log_likelihood["y"].sum("y time").values, data.sample_stats["log_like"].values, rtol=1e-6, atol=1e-6
    )
    np.testing.assert_array_equal(data.observed_data["y"], [1.9, 1.6, 1.1, 0.8, 0.1])
    np.testing.assert_array_equal(data.observed_data["y time"], [0, 0.5, 1, 2, 4])
    theta = np.stack([data.posterior["k"].values, data.posterior["a"].values], axis=-1).reshape(-1, 2)
    lp = decay().log_prior(theta) + decay().log_likelihood(theta).values
    np.testing.assert_allclose(data.sample_stats["lp"].values.ravel(), lp, rtol=1e-9)


@pytest.mark.parametrize(
    ("limit", "number"), [("MOST_POINTWISE", 4 * 5 * 10), ("MOST_DRAWS", 4 * 10), ("MOST_SOLVED", 4 * 10 * 5 * 2)]
)
def test_of_many_observations_or_draws_some_keep_theirs(
    monkeypatch: pytest.MonkeyPatch, limit: str, number: int
) -> None:
    monkeypatch.setattr(groups, limit, number)
    monkeypatch.setattr(groups, "LEAST_SOLVED", 1)
    monkeypatch.setattr(groups, "POINTWISE_BATCH", 5 * 7)
    data = sample(quick_problem(), sampler="random-walk", chains=4, warmup=50, draws=100, progress=False)
    kept = data.log_likelihood["y"]
    assert kept.shape == (4, 10, 5)
    at = data.sample_stats["log_like"].sel(draw=kept["draw"])
    np.testing.assert_allclose(kept.sum("y time").values, at.values, atol=1e-6)
    assert kept["draw"].values.tolist() == [0, 11, 22, 33, 44, 55, 66, 77, 88, 99]
    assert any("10 of the 100 draws" in note for note in sampler_notes(data))


def test_attributes_tell_how_it_was_made(data: arviz.InferenceData) -> None:
    attributes = data.attrs
    assert attributes["sampler"] == "collapsed"
    assert attributes["seed"] == 2
    assert json.loads(attributes["settings"])["warmup"] == 500
    assert "numba" in json.loads(attributes["versions"])
    assert 0 < attributes["solves"] <= 4 * 1100 + 12000
    for name in ("compile_seconds", "warmup_seconds", "sampling_seconds"):
        assert attributes[name] >= 0


def test_netcdf_round_trip(data: arviz.InferenceData, tmp_path: Path) -> None:
    path = result.save(data, tmp_path / "new" / "results.nc")
    again = result.load(path)
    for group in ("posterior", "sample_stats", "log_likelihood", "observed_data"):
        assert again[group].equals(data[group]), group
    assert again.attrs["settings"] == data.attrs["settings"]
    assert arviz.loo(again, var_name="y").n_samples == 2400
    assert list(tmp_path.glob("new/*")) == [path]


def test_a_disk_that_is_nearly_full(data: arviz.InferenceData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=50_000))
    with pytest.raises(DataError, match="nearly full"):
        result.save(data, tmp_path / "results.nc")
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_written_or_read(data: arviz.InferenceData, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot write"):
        result.save(data, tmp_path / "file" / "results.nc")
    with pytest.raises(DataError, match="cannot read"):
        result.load(tmp_path / "file")
    with pytest.raises(DataError, match="cannot read"):
        result.load(tmp_path / "none.nc")


def test_a_file_that_was_cut_short_is_not_whole(data: arviz.InferenceData, tmp_path: Path) -> None:
    path = result.save(data, tmp_path / "results.nc")
    result.require_whole(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"results\.nc were not written whole"):
        result.require_whole(path)


def test_settings_come_from_the_file_unless_given() -> None:
    problem = loads(DECAY + "[sampling]\ndraws = 30\nchains = 2\n")
    assert run_settings(problem, {"chains": 3, "draws": None}).draws == 30
    assert run_settings(problem, {"chains": 3}).chains == 3
    with pytest.raises(DataError, match="did you mean 'draws'"):
        run_settings(problem, {"drawz": 3})
    with pytest.raises(DataError, match="options must be a table"):
        run_settings(loads(DECAY + "[sampling]\noptions = 3\n"), {})


def test_experiments_are_told_apart() -> None:
    text = DECAY.split("[data]")[0] + (
        "[[experiment]]\nname = 'one'\ndata = { time = [0, 1], y = [1.9, 1.1] }\n"
        "[[experiment]]\nname = 'two'\ndata = { time = [0.5], y = [1.6] }\n"
    )
    data = sample(loads(text), chains=1, warmup=10, draws=20, progress=False)
    assert set(data.observed_data.data_vars) == {"y [one]", "y [two]"}
    assert set(data.log_likelihood.data_vars) == {"y [one]", "y [two]"}


def test_a_slash_in_a_name_does_not_spoil_the_file(tmp_path: Path) -> None:
    text = DECAY.split("[data]")[0] + "".join(
        f"[[experiment]]\nname = '{dose} mg/kg'\ndata = {{ time = [1], y = [1] }}\n" for dose in (1, 2)
    )
    data = sample(loads(text), chains=1, warmup=10, draws=20, progress=False)
    again = result.load(result.save(data, tmp_path / "r.nc"))
    assert set(again.observed_data.data_vars) == {"y [1 mg%2Fkg]", "y [2 mg%2Fkg]"}


def test_a_constant_quantity_is_not_stuck() -> None:
    data = sample(loads(DECAY.replace("0.693147/k", "7")), chains=4, warmup=500, draws=3000, progress=False)
    assert not any("never moved" in line for line in advise(data))


def test_a_run_stopped_in_warmup_has_no_result() -> None:
    def stop(_) -> None:
        raise KeyboardInterrupt

    with pytest.raises(SamplingError, match="during warm-up"):
        sample(quick_problem(), chains=1, warmup=10_000, draws=20, progress=stop)


# --- diagnostics ---


def ar1(correlation: float, draws: int, chains: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.standard_normal(chains)
    for t in range(1, draws):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * rng.standard_normal(chains)
    return x


def test_iact_of_a_known_process() -> None:
    # an AR(1) process has IACT (1 + r) / (1 - r) = 9
    row = summary_row(ar1(0.8, 20_000), seconds=2.0)
    assert row["iact"] == pytest.approx(9, rel=0.1)
    assert row["mcse_over_sd"] == pytest.approx(np.sqrt(9 / 80_000), rel=0.06)
    assert row["ess_per_second"] == pytest.approx(row["ess_bulk"] / 2)
    assert row["rhat"] == pytest.approx(1, abs=0.01)


def test_draws_that_never_move_have_no_diagnostics() -> None:
    row = summary_row(np.ones((4, 100)))
    assert np.isnan(row["ess_bulk"])
    assert np.isnan(summary_row(np.full((4, 100), np.inf))["rhat"])


def with_draws(draws: np.ndarray, **attributes) -> arviz.InferenceData:
    attributes = {"solves": 1000, "failed_solves": 0} | attributes
    return from_groups({"posterior": {"x": draws}}, dims={}, coords={}, attrs=attributes)


def test_good_draws_need_no_advice() -> None:
    assert advise(with_draws(ar1(0.1, 2000))) == []


@pytest.mark.parametrize(
    ("draws", "attributes", "words"),
    [
        (ar1(0.1, 2000) + np.arange(4)[:, None], {}, "R-hat is above 1.01 for x"),
        (ar1(0.97, 2000), {}, "Fewer than 100 effective draws"),
        (np.ones((4, 100)), {}, "never moved"),
        (ar1(0.1, 3), {}, "too few draws"),
        (1e300 * ar1(0.1, 2000), {}, "values too large"),
        (ar1(0.1, 2000, chains=2), {}, "Only 2 chains"),
        (ar1(0.1, 2000), {"failed_solves": 200}, "20% of the ODE solves failed"),
        (ar1(0.1, 2000), {"interrupted": 1}, "interrupted after 2,000 draws per chain"),
        (ar1(0.1, 2000, chains=1), {}, "Only 1 chain:"),
        (ar1(0.1, 2000), {"acceptance": [0.001] * 4}, "Only 0.10% of the proposals were accepted"),
        (ar1(0.1, 2000), {"misfit": 12.0}, "misses the data by 12 standard deviations"),
        (ar1(0.1, 2000), {"likelihood_gap": 3.0}, "by up to 3): it is not constant on the fibres"),
        (
            ar1(0.1, 2000),
            {"counts": json.dumps({"fibre_ok": 60, "fibre_newton_failed": 40, "fibre_accepted": 50})},
            "40% of the moves along the fibre failed",
        ),
    ],
)
def test_advice(draws: np.ndarray, attributes: dict, words: str) -> None:
    assert any(words in line for line in advise(with_draws(draws, **attributes)))


def test_every_concern_has_a_sentence() -> None:
    assert set(SENTENCES) == set(get_args(ConcernKind))


def test_summary_covers_parameters_and_quantities(data: arviz.InferenceData) -> None:
    rows = summarise(data)
    assert list(rows) == ["k", "a", "half_life"]
    for row in rows.values():
        assert row["q5"] < row["q50"] < row["q95"]
        assert np.isfinite(list(row.values())).all()
