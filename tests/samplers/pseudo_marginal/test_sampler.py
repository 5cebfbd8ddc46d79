"""The pseudo-marginal sampler's place among executors and checkpoints, its options, and what it says of itself."""

from __future__ import annotations

import json
import math
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from equifinal.errors import DataError, IdentifiabilityError, SamplingError
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.results.diagnostics import summarise
from equifinal.samplers.points.estimator import Estimate
from equifinal.samplers.points.law import Moments, PriorLaw
from equifinal.samplers.proposals.quality import is_noticed
from equifinal.samplers.protocol import Kept, NoPlan, Task
from equifinal.samplers.pseudo_marginal import sampler
from equifinal.samplers.pseudo_marginal.settings import PAPER
from equifinal.samplers.running import run as running
from equifinal.samplers.running import under_way
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.settings import run_settings
from equifinal.studies.sample import sample
from equifinal.words.diagnostics import advise, sampler_notes
from tests.support.exact import case
from tests.support.problems import DECAY, EXPERIMENTS, SCALED, TWO_STAGES, decay, scaled, si
from tests.support.running import assert_same_draws, interrupt_after

SETTINGS = RunSettings(sampler="pseudo-marginal", chains=3, warmup=120, draws=120, seed=7, options={"aux": 8})


def settings_of(**options) -> RunSettings:
    return RunSettings(sampler="pseudo-marginal", chains=2, warmup=60, draws=60, seed=3, options=options)


@cache
def several() -> tuple[Posterior, Fibre]:
    problem = loads(SCALED.split("[data]")[0] + EXPERIMENTS, name="several")
    return Posterior(problem), fibre_of(problem)


@cache
def wider() -> tuple[Posterior, Fibre]:
    """s*b*a: fibres of two dimensions."""
    text = SCALED.replace("y = s*x", "y = s*b*x").replace(
        "[noise]", 'b = { prior = "lognormal", meanlog = 0, sdlog = 0.5 }\n[noise]'
    )
    problem = loads(text, name="wider")
    return Posterior(problem), fibre_of(problem)


@cache
def two_stages() -> tuple[Posterior, Fibre]:
    problem = loads(TWO_STAGES, name="two stages")
    return Posterior(problem), fibre_of(problem)


@cache
def bounded() -> tuple[Posterior, Fibre]:
    return si(), case("si").posterior.fibre


# --- the same draws, however they are made ---


def pseudo_marginal_run(**options) -> running.Draws:
    posterior, fibre = scaled()
    return run(posterior, SETTINGS, fibre=fibre, **options)


@pytest.fixture(scope="module")
def plain() -> running.Draws:
    return pseudo_marginal_run()


def test_a_chain_does_not_depend_on_how_many_there_are(plain: running.Draws) -> None:
    posterior, fibre = scaled()
    one = RunSettings(sampler="pseudo-marginal", chains=1, warmup=120, draws=120, seed=7, options={"aux": 8})
    alone = run(posterior, one, fibre=fibre)
    np.testing.assert_array_equal(alone.theta[0], plain.theta[0])
    np.testing.assert_array_equal(alone.tally.solves[0], plain.tally.solves[0])
    assert not np.array_equal(plain.theta[0], plain.theta[1])


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_give_the_same_draws(plain: running.Draws, kind: str) -> None:
    pool = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with pool as executor:
        found = pseudo_marginal_run(executor=executor)
    assert_same_draws(found, plain)
    assert found.findings == plain.findings


@pytest.mark.parametrize("updates", [1, 3, 6])
def test_a_run_is_taken_up_where_it_stopped(
    plain: running.Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: int
) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-2)
    file = tmp_path / "checkpoint.npz"
    assert pseudo_marginal_run(progress=interrupt_after(updates), checkpoint=file).interrupted
    whole = pseudo_marginal_run(checkpoint=file)
    assert whole.resumed_at is not None
    assert_same_draws(whole, plain)
    assert whole.findings == plain.findings


KINDS = [
    (wider, {"law": "learned", "aux": 4}),
    (wider, {"law": "local", "aux": 4}),
    (wider, {"aux": 4, "points": "iid"}),
    (scaled, {"charts": [["s"], ["a"]], "aux": 4}),
    (scaled, {"roots": "one", "aux": 2}),
    (two_stages, {}),
    (bounded, {"aux": 4}),
    (bounded, {"aux": 4, "proposal": "gradient"}),
    (scaled, {"aux": 4, "proposal": "gradient"}),
    (two_stages, {"proposal": "gradient"}),
]


@pytest.mark.parametrize(("made", "options"), KINDS)
def test_grouping_changes_nothing_whatever_the_options(made, options: dict) -> None:
    posterior, fibre = made()
    together = run(posterior, settings_of(**options), fibre=fibre)
    with ThreadPoolExecutor(1) as executor:
        assert_same_draws(run(posterior, settings_of(**options), fibre=fibre, executor=executor), together)
    assert np.isfinite(together.theta).all()
    assert (together.acceptance > 0).all()


def test_charts_with_different_numbers_of_roots() -> None:
    """x + y^3 - y: with x free there are three roots, with y free one; the chart depends on c."""
    known = case("cubic").posterior
    settings = sampler.Settings(partition="by c", aux=3)

    def chain(rows: list[int]) -> list[np.ndarray]:
        start = known.to_coordinates(known.sample_prior(np.random.default_rng(0), 4))[rows]
        state = sampler.begin(Task(known, known.fibre, settings), start).state
        rngs, found = [np.random.default_rng(i) for i in rows], []
        for iteration in range(60):
            state, _ = sampler.step(Task(known, known.fibre, settings, 30), state, rngs, iteration)
            found.append(state.position)
        assert state.theta.shape[1] == state.log_weight.shape[1]
        return found

    whole = np.array(chain([0, 1, 2, 3]))
    tool = sampler.estimator(known.fibre, settings)
    assert {part.charts[0].chart.degree for part in tool._made.values()} == {1, 3}
    for i in range(4):
        np.testing.assert_array_equal(np.array(chain([i]))[:, 0], whole[:, i])
    narrow, wide = (
        sampler.State(**dict.fromkeys(sampler.State._fields, np.zeros(1)))._replace(
            theta=np.zeros((1, n, 2)), log_weight=np.zeros((1, n))
        )
        for n in (3, 9)
    )
    joined = sampler.join([narrow, wide])
    assert joined.theta.shape == (2, 9, 2)
    assert np.isneginf(joined.log_weight[0, 3:]).all()
    assert not joined.log_weight[1].any()


# --- early rejection and solves ---


@pytest.mark.parametrize("made", [scaled, several, wider])
def test_early_rejection_changes_no_draw(made, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, fibre = made()
    settings = RunSettings(sampler="pseudo-marginal", chains=3, warmup=60, draws=150, options={"aux": 4})
    early = run(posterior, settings, fibre=fibre)
    monkeypatch.setattr(sampler, "EARLY", False)
    plain = run(posterior, settings, fibre=fibre)
    np.testing.assert_array_equal(early.theta, plain.theta)
    np.testing.assert_array_equal(early.chunk.log_likelihood, plain.chunk.log_likelihood)
    np.testing.assert_array_equal(early.tally.accepted, plain.tally.accepted)
    np.testing.assert_array_equal(early.tally.warmup_solves, plain.tally.warmup_solves)
    assert early.tally.solves.sum() < plain.tally.solves.sum()
    experiments = len(posterior.likelihoods)
    for found in (early, plain):
        spent = (found.tally.solves - found.tally.warmup_solves).sum()
        assert spent + found.counts["saved_solves"] == 3 * 150 * experiments
    assert early.counts["saved_solves"] > plain.counts["saved_solves"]
    # without early rejection only impossible c are spared
    assert plain.counts["saved_solves"] == experiments * plain.counts["impossible"]


def test_at_most_one_solve_an_experiment_and_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, fibre = several()
    settings = sampler.Settings(aux=4)
    start = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 3))
    state = sampler.begin(Task(posterior, fibre, settings), start).state
    rngs = [np.random.default_rng(i) for i in range(3)]
    calls: list[int] = []
    solve = type(posterior.likelihoods[0]).outputs

    def counted(self, theta):
        calls.append(len(theta))
        return solve(self, theta)

    monkeypatch.setattr(type(posterior.likelihoods[0]), "outputs", counted)
    for iteration in range(80):
        calls.clear()
        state, info = sampler.step(Task(posterior, fibre, settings, 40), state, rngs, iteration)
        assert info.solves.sum() == sum(calls)
        assert (info.solves <= 3).all()
        assert len(calls) <= 3


def test_nothing_adapts_after_warmup_and_points_are_kept() -> None:
    posterior, fibre = scaled()
    settings = sampler.Settings(aux=4)
    start = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 3))
    state = sampler.begin(Task(posterior, fibre, settings), start).state
    rngs = [np.random.default_rng(i) for i in range(3)]
    for iteration in range(60):
        state, _ = sampler.step(Task(posterior, fibre, settings, 60), state, rngs, iteration)
    frozen = state
    for iteration in range(60, 120):
        before = state
        state, info = sampler.step(Task(posterior, fibre, settings, 60), state, rngs, iteration)
        if iteration > 60:
            stay = ~info.accepted
            for name in ("h", "log_estimate", "theta", "log_weight", "log_likelihood"):
                np.testing.assert_array_equal(getattr(state, name)[stay], getattr(before, name)[stay])
            c = fibre.xi(fibre.to_theta(state.position))
            np.testing.assert_allclose(c, sampler.combination_coordinates(fibre).backward(state.h)[0], rtol=1e-8)
    for name in ("factor", "log_scale", "mean", "covariance"):
        np.testing.assert_array_equal(getattr(state, name), getattr(frozen, name))
    assert not np.array_equal(state.position, frozen.position)


# --- options ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"aux": 0}, "'aux' must be a whole number between 1 and 100,000, not 0"),
        ({"aux": -3}, "'aux' must be a whole number"),
        ({"aux": 2.5}, "'aux' must be a whole number"),
        ({"aux": True}, "'aux' must be a whole number"),
        ({"aux": "many"}, "'aux' must be a whole number"),
        ({"aux": 10**7}, "100,000"),
        ({"points": "latice"}, "'points' must be lattice or iid, not 'latice'.*did you mean 'lattice'"),
        ({"points": None}, "'points' must be lattice or iid"),
        ({"law": "intervall"}, "'law' must be auto or interval or .* or a class, .*did you mean 'interval'"),
        ({"law": 3}, "'law' must be"),
        ({"roots": "all"}, "'roots' must be sum or one"),
        ({"partition": "QR"}, "'partition' must be volume or qr or by c or a list of names"),
        ({"partition": []}, "'partition' must be"),
        ({"partition": [1, 2]}, "'partition' must be"),
        ({"charts": [["a"]]}, r"'charts' must be several lists .*such as \[\['a'\], \['b'\]\]"),
        ({"charts": ["a", "b"]}, "'charts' must be several lists"),
        ({"charts": "a"}, "'charts' must be several lists"),
        ({"charts": [["a"], []]}, "'charts' must be several lists"),
        ({"charts": [["a"], ["s"]], "partition": "qr"}, "'partition' and 'charts' exclude each other"),
        ({"charts": [["a"], ["s"]], "roots": "one"}, "'roots' must be 'sum' with several charts"),
        ({"target": 0}, "'target' must lie between 0 and 1"),
        ({"target": 1.0}, "'target' must lie between 0 and 1"),
        ({"target": math.nan}, "'target' must lie between 0 and 1"),
        ({"target": True}, "'target' must lie between 0 and 1"),
        ({"proposal": "gradiant"}, "'proposal' must be walk or gradient, not 'gradiant'.*did you mean 'gradient'"),
        ({"proposal": None}, "'proposal' must be walk or gradient"),
        ({"number": 5}, "no option 'number'.*it has: aux, points, law"),
        ({"auxx": 5}, "did you mean 'aux'"),
    ],
)
def test_bad_options(options: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        RunSettings(sampler="pseudo-marginal", options=options)


def test_options_that_only_the_fibre_can_refuse() -> None:
    posterior, fibre = scaled()
    for options, words in (
        ({"partition": ["k"]}, "cannot be the free coordinates"),
        ({"partition": ["q"]}, "unknown parameter 'q'"),
        ({"charts": [["s"], ["s", "a"]]}, "cannot be the free coordinates"),
    ):
        with pytest.raises(IdentifiabilityError, match=words):
            run(posterior, settings_of(**options), fibre=fibre)
    with pytest.raises(SamplingError, match="use law 'prior'"):
        run(posterior, settings_of(law="uniform"), fibre=fibre)
    with pytest.raises(SamplingError, match="needs to know the fibres"):
        run(posterior, SETTINGS)


@pytest.mark.parametrize(
    "options",
    [
        dict(PAPER) | {"aux": 16},
        {"aux": 1},
        {"aux": 1, "points": "iid", "law": "prior"},
        {"aux": np.int64(4), "partition": ["gamma"]},
        {"aux": 4, "partition": ("beta",)},
        {"aux": 4, "charts": [["rho"], ["gamma"]]},
        {"aux": 4, "partition": "qr", "law": "local"},
        {"aux": 4, "target": 0.4, "law": "learned"},
    ],
)
def test_options_run(options: dict) -> None:
    posterior, fibre = bounded()
    found = run(posterior, settings_of(**options), fibre=fibre)
    assert np.isfinite(posterior.log_prior(found.theta.reshape(-1, 4))).all()
    np.testing.assert_allclose(
        found.chunk.log_likelihood.ravel(), posterior.log_likelihood(found.theta.reshape(-1, 4)).values, atol=1e-2
    )
    assert found.counts["points"] == 2 * 60 * int(options["aux"])


def test_laws_of_one_name_are_told_apart() -> None:
    fibre = case("product").posterior.fibre

    def made() -> type:
        class Mine(PriorLaw):
            pass

        return Mine

    first, second = (sampler.estimator(fibre, sampler.Settings(law=made())) for _ in range(2))
    assert type(first.laws[0]) is not type(second.laws[0])
    settings = sampler.Settings(law="prior")
    assert sampler.estimator(fibre, settings) is sampler.estimator(fibre, sampler.Settings(law="prior"))


# --- every kind of fibre ---


def test_two_roots_and_no_continuum() -> None:
    """k and s of two stages may be exchanged: both are visited."""
    posterior, fibre = two_stages()
    assert fibre.dimension == 0
    settings = RunSettings(sampler="pseudo-marginal", chains=2, warmup=300, draws=300)
    found = run(posterior, settings, fibre=fibre)
    larger = (found.theta[..., 0] > found.theta[..., 1]).mean(axis=1)
    assert ((larger > 0.02) & (larger < 0.98)).all()
    assert found.counts["points"] == 600
    assert found.counts["roots"] > 600
    assert found.findings["log_estimate_variance"] < 1e-20
    # for each c the best chart: there is only one
    for options in ({"partition": "by c"}, {"roots": "one"}, {"partition": "qr", "law": "prior"}):
        assert np.isfinite(run(posterior, settings_of(**options), fibre=fibre).theta).all()


def test_one_root_and_no_continuum() -> None:
    posterior = decay()
    fibre = fibre_of(posterior.problem)
    assert (fibre.dimension, fibre.chart.degree) == (0, 1)
    found = run(posterior, settings_of(), fibre=fibre)
    assert found.counts["roots"] + found.counts["impossible"] == 120
    assert (found.acceptance > 0.05).all()


def test_fibres_of_two_dimensions() -> None:
    posterior, fibre = wider()
    assert fibre.dimension == 2
    found = run(posterior, settings_of(aux=32), fibre=fibre)
    assert (found.acceptance > 0.05).all()


def test_a_likelihood_that_sees_no_parameter() -> None:
    """Its posterior is the prior, and all of theta is one fibre."""
    text = DECAY.replace("x' = -k*x", "x' = -x\nw' = -k*w\nw(0) = a").replace("x(0) = a", "x(0) = 2")
    problem = loads(text, name="blind")
    fibre = fibre_of(problem)
    assert fibre.rank == 0
    posterior = Posterior(problem)
    found = run(posterior, settings_of(aux=2), fibre=fibre)
    assert found.acceptance.min() == 1.0
    k = found.theta[..., 0].ravel()
    assert k.mean() == pytest.approx(1.05, abs=0.25)
    assert len(np.unique(k)) == 120


def test_branches_are_told_apart_by_labels() -> None:
    fibre = case("labelled").posterior.fibre
    theta = np.array([[0.5, 0.6], [0.5, -0.6], [0.5, 0.6]])
    roots = np.array([[0.25, 1.2], [0.25, -1.2], [-0.5, -0.6], [np.nan, np.nan]])
    log_weight = np.tile([0.0, -1.0, -2.0, -np.inf], (3, 1))
    log_weight[2, 0] = -np.inf
    none = np.zeros(3, int)
    found = Estimate(np.zeros(3), np.tile(roots, (3, 1, 1)), log_weight, none, none, none)
    weights = sampler.on_branch(fibre, found, theta)
    infinite = -np.inf
    expected = [[0.0, infinite, -2.0, infinite], [infinite, -1.0, infinite, infinite]]
    np.testing.assert_array_equal(weights, [*expected, [infinite, infinite, -2.0, infinite]])
    plain = case("product").posterior.fibre
    assert sampler.on_branch(plain, found, theta) is found.log_weight


# --- afterwards ---


@pytest.mark.parametrize(
    ("values", "longest"), [([1.0], 1), ([1, 1, 1], 3), ([1, 2, 3], 1), ([1, 2, 2, 3, 3, 3, 1], 3), ([1, 1, 2], 2)]
)
def test_the_longest_stretch(values: list, longest: int) -> None:
    assert sampler.longest_stretch(np.array(values, float)) == longest


def examined(name: str, log_likelihood: np.ndarray, **options) -> dict[str, float]:
    known = case(name).posterior
    fibre = known.fibre
    theta = fibre.prior_draws[: log_likelihood.size].reshape(*log_likelihood.shape, -1)
    q, d = fibre.rank, len(fibre.names)
    chains = len(log_likelihood)
    moments = Moments(np.zeros((chains, q + d)), np.tile(np.eye(q + d), (chains, 1, 1)))
    task = Task(known, fibre, sampler.Settings(**options))
    return sampler.examine(task, NoPlan(), SimpleNamespace(moments=moments), Kept(theta, log_likelihood))


def test_what_a_run_is_examined_for() -> None:
    quiet = examined("product of three", np.array([[0.0, 1.0, 1.0], [0.5, 0.5, 0.5]]), aux=64)
    assert quiet["longest_stay"] == 3
    assert quiet["zero_estimates"] == 0
    assert quiet["log_estimate_variance"] < 0.1
    noisy = examined("product of three", np.zeros((1, 2)), aux=1, law="prior", points="iid")
    assert noisy["zero_estimates"] > 0.1
    none = examined("product", np.zeros((1, 1)), aux=1, law=_Nowhere)
    assert none["log_estimate_variance"] == math.inf
    assert none["zero_estimates"] == 1


class _Nowhere(PriorLaw):
    """Points that no fibre has."""

    def draw(self, c, uniforms, moments):
        return uniforms * 0 + 1e6, np.zeros(uniforms.shape[:2])

    def log_density(self, c, free, moments):
        return np.zeros(free.shape[:2])


@pytest.fixture(scope="module")
def data():
    posterior, fibre = scaled()
    options = {"chains": 4, "warmup": 200, "draws": 300, "progress": False, "options": {"aux": 16}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(posterior.problem, sampler="pseudo-marginal", fibre=fibre, **options)


def on_estimates(data, findings: dict | None = None, counts: dict | None = None) -> list[str]:
    other = data.copy()
    other.attrs.update(data.attrs)
    for key, changes in (("findings", findings), ("counts", counts)):
        other.attrs[key] = json.dumps(json.loads(data.attrs[key]) | (changes or {}))
    usual = advise(data)
    return [line for line in advise(other) if line not in usual and not line.startswith("next: ")]


def test_advice_on_estimates(data) -> None:
    assert set(json.loads(data.attrs["findings"])) == {"log_estimate_variance", "zero_estimates", "longest_stay"}
    assert json.loads(data.attrs["counts"])["points"] == 4 * 300 * 16
    assert not any("option aux" in line for line in advise(data))
    (noisy,) = on_estimates(data, {"log_estimate_variance": 4.2})
    assert "variance of their logarithm is 4.2" in noisy
    assert "Use about 68 points (option aux)" in noisy
    (hopeless,) = on_estimates(data, {"log_estimate_variance": math.inf})
    assert "many more points (option aux)" in hopeless
    (empty,) = on_estimates(data, counts={"empty_points": int(0.97 * 4 * 300 * 16)})
    assert "97% of the points on fibres lie outside the prior's bounds" in empty
    assert "option law" in empty
    assert "option partition" in empty
    (zero,) = on_estimates(data, {"zero_estimates": 0.5})
    assert zero.startswith("50% of the estimates of p(c) at the best draw are zero")
    (stuck,) = on_estimates(data, {"longest_stay": 250.0})
    assert "stood still for 250 steps" in stuck
    assert on_estimates(data, {"longest_stay": 49.0}) == []


def test_a_stay_of_one_lane_among_many_is_judged_as_a_share_of_the_run(data) -> None:
    draws = data.posterior.sizes["chain"] * data.posterior.sizes["draw"]
    least = min(row["ess_bulk"] for row in summarise(data).values())
    limit = 0.06 / math.sqrt(least) * draws
    assert limit < 250
    assert on_estimates(data, {"longest_stay": 250.0, "lanes": 61.0})
    assert is_noticed(limit + 1, draws, least)
    assert not is_noticed(limit - 1, draws, least)
    assert not is_noticed(250.0, 100 * draws, least)


def test_words_on_points_and_solves(data) -> None:
    lines = "\n".join(sampler_notes(data))
    assert "on each fibre: 16 points" in lines
    assert "variance of log p(c)" in lines
    assert "ODE solves saved" in lines


# --- settings of a file and of a command ---

FILE = '\n[sampling]\nsampler = "geometric"\ndraws = 50\noptions = { steps = 3 }\n'


def test_options_of_another_sampler_are_left_out() -> None:
    problem = loads(SCALED + FILE)
    own = run_settings(problem, {})
    assert (own.sampler, dict(own.options), own.draws) == ("geometric", {"steps": 3}, 50)
    other = run_settings(problem, {"sampler": "pseudo-marginal"})
    assert (other.sampler, dict(other.options), other.draws) == ("pseudo-marginal", {}, 50)
    given = run_settings(problem, {"sampler": "pseudo-marginal", "options": {"aux": 5}})
    assert dict(given.options) == {"aux": 5}
    same = run_settings(problem, {"sampler": "geometric", "options": {"step_size": 0.1}})
    assert dict(same.options) == {"steps": 3, "step_size": 0.1}
    with pytest.raises(DataError, match="sampler 'geometric' has no option 'aux'"):
        run_settings(problem, {"options": {"aux": 5}})


def test_options_without_a_sampler_are_for_the_usual_one() -> None:
    problem = loads(DECAY + "\n[sampling]\noptions = { target = 0.3 }\n")
    assert dict(run_settings(problem, {}).options) == {"target": 0.3}
    assert dict(run_settings(problem, {"sampler": "auto"}).options) == {"target": 0.3}
    assert dict(run_settings(problem, {"sampler": "random-walk"}).options) == {}
    assert dict(run_settings(problem, {"sampler": "pseudo-marginal"}).options) == {}


def test_names_of_coordinates_from_a_file() -> None:
    table = '\n[sampling]\nsampler = "pseudo-marginal"\noptions = { aux = 4, charts = [["s"], ["a"]] }\n'
    settings = run_settings(loads(SCALED + table), {})
    assert settings.sampler_settings().charts == [["s"], ["a"]]


# --- a law of one's own is tried before it is trusted ---


class WrongDensity(PriorLaw):
    def log_density(self, c, free, moments):
        return super().log_density(c, free, moments) + free[..., 0]


class WrongShape(PriorLaw):
    def draw(self, c, uniforms, moments):
        free, log_density = super().draw(c, uniforms, moments)
        return free[:, 1:], log_density


class NoDensity(PriorLaw):
    def draw(self, c, uniforms, moments):
        free, log_density = super().draw(c, uniforms, moments)
        return free, np.full_like(log_density, np.nan)


class Fails(PriorLaw):
    def draw(self, c, uniforms, moments):
        raise ZeroDivisionError("one over nothing")


class NoWidth(PriorLaw):
    def __init__(self, fibre):
        super().__init__(fibre)
        self.width = "two"


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (WrongDensity, "law WrongDensity: log_density disagrees with what draw returns for its own points"),
        (WrongShape, r"law WrongShape: draw's points must have the shape \(\d+, 5, 1\), not \(\d+, 4, 1\)"),
        (NoDensity, "law NoDensity: draw must return finite log densities"),
        (Fails, "law Fails fails: ZeroDivisionError: one over nothing"),
        (NoWidth, "law NoWidth: 'width' must be the number of uniforms that each point takes, not 'two'"),
    ],
)
def test_broken_laws_are_refused(law, words: str) -> None:
    posterior, fibre = scaled()
    with pytest.raises(SamplingError, match=words):
        run(posterior, settings_of(law=law), fibre=fibre)
