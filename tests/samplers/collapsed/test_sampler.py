"""The collapsed sampler's place among executors and checkpoints, its gate, and the choice of a sampler."""

from __future__ import annotations

import json
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import arviz
import numpy as np
import pytest
from scipy import integrate

from equifinal.errors import DataError, SamplingError
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.posterior.study import Study
from equifinal.samplers import choice as auto
from equifinal.samplers.collapsed import plan as proposal
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.proposals import quality
from equifinal.samplers.proposals.log_sums import beside_largest
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.quality import Quality
from equifinal.samplers.protocol import Task
from equifinal.samplers.running import run as running
from equifinal.samplers.running import under_way
from equifinal.samplers.running.beginning import spawn_generators
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.searching import importance, populations, prior_draws
from equifinal.samplers.searching.modes import find_modes
from equifinal.samplers.settings import run_settings
from equifinal.studies.sample import sample
from equifinal.words.diagnostics import sampler_notes
from tests.support.problems import DECAY, TWO_STAGES, decay_log_likelihood, hidden, quick_problem, scaled
from tests.support.running import assert_same_draws, interrupt_after

SETTINGS = RunSettings(sampler="collapsed", chains=3, draws=300, seed=7)
TWO_MODES = '''
[model]
equations = """
x' = -x
x(0) = (a^2 - 1)^2
"""
outputs = ["x"]
[parameters]
a = { prior = "normal", mean = 0.1, sd = 1.5 }
[noise]
x = { family = "normal", sd = 0.05 }
[data]
time = [0, 0.5]
x = [0.02, 0.0]
'''


def collapsed_run(settings: RunSettings = SETTINGS, **options) -> running.Draws:
    posterior, fibre = scaled()
    return run(posterior, settings, fibre=fibre, **options)


@pytest.fixture(scope="module")
def plain() -> running.Draws:
    return collapsed_run()


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_give_the_same_draws(plain: running.Draws, kind: str) -> None:
    pool = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with pool as executor:
        assert_same_draws(collapsed_run(executor=executor), plain)


def test_the_length_of_segments_does_not_matter(plain: running.Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-6)
    assert_same_draws(collapsed_run(), plain)


def test_a_run_is_taken_up_where_it_stopped(
    plain: running.Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-6)
    file = tmp_path / "checkpoint.npz"
    assert collapsed_run(progress=interrupt_after(4), checkpoint=file).interrupted
    whole = collapsed_run(checkpoint=file)
    assert whole.resumed_at is not None
    assert_same_draws(whole, plain)
    assert whole.findings == plain.findings


def test_thinning_keeps_every_so_many(plain: running.Draws) -> None:
    thin = collapsed_run(replace(SETTINGS, draws=100, thin=3))
    np.testing.assert_array_equal(thin.theta, plain.theta[:, 2::3])
    np.testing.assert_array_equal(thin.tally.solves, plain.tally.solves)


def test_solves_are_counted(plain: running.Draws) -> None:
    after = plain.tally.solves - plain.tally.warmup_solves
    assert (after + plain.tally.counts[:, collapsed.COUNTS.index("saved_solves")] == 300).all()
    assert plain.tally.warmup_solves[0] > sum(importance.ROUNDS)
    assert plain.tally.sampled.tolist() == [300] * 3


def test_the_proposal_is_frozen() -> None:
    posterior, fibre = scaled()
    task = Task(posterior, fibre, collapsed.Settings())
    plan = collapsed.prepare(task, 1)
    state = collapsed.init(task, plan, [np.random.default_rng(i) for i in range(2)]).state
    later, _ = collapsed.run_block(task, plan, state, [], 0, 200)
    np.testing.assert_array_equal(later.key, state.key)
    again = collapsed.prepare(task, 1)
    np.testing.assert_equal(plan, again)  # nothing has changed it


def test_the_marginal_likelihood_of_decay() -> None:
    """Two parameters, by quadrature."""
    data = sample(quick_problem(), seed=2, progress=False)
    assert data.attrs["sampler"] == "collapsed"
    normal = 1 / (1 - 0.022750131948179195)  # the prior of a is a normal cut at two standard deviations

    def density(a: float, k: float) -> float:
        prior = normal * np.exp(-0.5 * (a - 2) ** 2) / np.sqrt(2 * np.pi) / 1.9
        return float(np.exp(decay_log_likelihood(np.array([[k, a]]))[0]) * prior)

    exact = np.log(integrate.dblquad(density, 0.1, 2, 0, 5, epsrel=1e-6)[0])
    found = json.loads(data.attrs["findings"])
    assert found["log_evidence_error"] < 0.02
    assert abs(found["log_evidence"] - exact) < 5 * found["log_evidence_error"]
    assert any(line.startswith("log marginal likelihood: ") for line in sampler_notes(data))


def test_two_modes_have_the_right_shares() -> None:
    """a near 1 and near -1; the quantity a is itself the combination here, as each parameter stands for itself."""
    problem = loads(TWO_MODES, name="modes")
    posterior = Posterior(problem)
    fibre = Fibre(["a"], problem.priors)
    assert len(find_modes(posterior, fibre, np.random.default_rng(0)).h) == 2
    data = sample(problem, sampler="collapsed", fibre=fibre, seed=1, draws=20_000, progress=False)
    a = data.posterior["a"].values

    def density(x: float) -> float:
        y = (x * x - 1) ** 2
        residual = np.array([0.02 - y, -y * np.exp(-0.5)]) / 0.05
        return float(np.exp(-0.5 * residual @ residual - 0.5 * ((x - 0.1) / 1.5) ** 2))

    above, below = (integrate.quad(density, *ends, points=(np.sign(ends[1]),))[0] for ends in ((0, 3), (-3, -0.0001)))
    share = above / (above + below)
    assert (a > 0).mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 10_000))


def test_a_narrow_mode_has_the_right_share() -> None:
    """A broad mode and one a twentieth as wide, both found; shares by quadrature."""
    posterior, fibre = hidden()
    plan = next(
        p for s in range(20) if (p := collapsed.prepare(Task(posterior, fibre, collapsed.Settings()), s)).modes == 2
    )
    assert not plan.refusal
    settings = RunSettings(sampler="collapsed", chains=4, draws=5000, seed=3)
    theta = run(posterior, settings, fibre=fibre, plan=plan).theta.reshape(-1, 2)

    def density(q: float, p: float) -> float:
        broad = (p - 2) ** 4 / ((p - 2) ** 4 + (p + 2) ** 4)
        x, v, z = (p + 2) / 0.6 * broad, (p - 2) / 0.03 * (1 - broad), 3.85 * broad
        y = q / 0.6 * broad + q / 0.03 * (1 - broad)
        return float(np.exp(-0.5 * (x * x + v * v + y * y + z * z)))

    def mass(left: float, right: float, reach: float) -> float:
        return float(integrate.dblquad(density, left, right, -reach, reach, epsabs=1e-9, epsrel=1e-6)[0])

    narrow, broad = mass(1.7, 2.3, 0.3), mass(-4, 1.7, 4)
    share = narrow / (narrow + broad)
    assert (theta[:, 0] > 1.7).mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 5000))


def test_populations_see_what_climbers_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two modes is withheld, and with it the climbers' disagreement; the gate refuses whatever it is shown."""

    def one_mode(*arguments):
        found = find_modes(*arguments)
        withheld = {name: getattr(found, name)[:1] for name in ("h", "covariance", "position", "log_density")}
        return found._replace(agreed=True, **withheld)

    monkeypatch.setattr(proposal, "find_modes", one_mode)
    close_the_gate(monkeypatch)
    problem = loads(TWO_MODES, name="modes")
    task = Task(Posterior(problem), Fibre(["a"], problem.priors), collapsed.Settings())
    said: list[str] = []
    plan = collapsed.prepare(task, 0, said.append)
    assert "two populations of 200 tempered particles" in said
    assert 0.2 < (plan.start < 0).mean() < 0.8
    assert plan.lanes == proposal.LANES[0]
    assert plan.solves > sum(importance.ROUNDS) + 4000 + 5000


def test_data_that_inform_nothing() -> None:
    text = '[model]\nequations = """\nx\' = -x\nz\' = -m*z\nx(0) = 1\nz(0) = 1\n"""\noutputs = [\'x\']\n'
    text += "[parameters]\nm = { prior = 'uniform', lower = 1, upper = 2 }\n"
    text += "[noise]\nx = { family = 'normal', sd = 0.1 }\n[data]\ntime = [1, 2]\nx = [0.4, 0.1]\n"
    data = sample(loads(text), seed=1, draws=5000, progress=False)
    assert json.loads(data.attrs["findings"])["longest_stay"] < 10  # the likelihood is one number, but chains move
    m = data.posterior["m"].values
    assert m.mean() == pytest.approx(1.5, abs=5 * 0.29 / np.sqrt(10_000))


# --- the choice ---


def choice(problem, fibre=None, **options) -> auto.Choice:
    known = Posterior(problem)
    settings = RunSettings(sampler="auto", options=options)
    return auto.choose(known, settings, fibre or Study(problem).coarsest_fibre[0])


def test_identifiable_models_are_sampled_as_they_are() -> None:
    fibre, note = Study(quick_problem()).coarsest_fibre
    assert (fibre.dimension, fibre.chart.degree, fibre.names, note) == (0, 1, ("k", "a"), "")
    made = choice(quick_problem())
    assert made.settings.sampler == "collapsed"
    assert made.reason.startswith("collapsed: one mode, and a proposal that fits (k-hat ")


def test_an_analysis_that_does_not_end_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    from equifinal.errors import IdentifiabilityError
    from equifinal.posterior import study

    def fails(*_, **__):
        raise IdentifiabilityError("the analysis did not find all identifiable combinations")

    monkeypatch.setattr(study, "fibre_of", fails)
    fibre, note = Study(quick_problem()).coarsest_fibre
    assert fibre.dimension == 0
    assert "sampled as they are" in note
    data = sample(quick_problem(), draws=200, progress=False)
    assert json.loads(data.attrs["notes"])[0] == note


def close_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("K_LIMIT", "LOOSE_K_LIMIT"):
        monkeypatch.setattr(quality, limit, -100.0)
    monkeypatch.setattr(importance, "MORE_ROUNDS", ())
    monkeypatch.setattr(populations, "LEAST_NUMBER", 200)
    monkeypatch.setattr(populations, "LEAST_ROUNDS", 1)
    monkeypatch.setattr(prior_draws, "LEAST", 4000)
    monkeypatch.setattr(prior_draws, "MOST", 4000)


def test_the_gate() -> None:
    assert not quality.refusal(Quality(0.4, 0.66))
    assert "tails (k-hat 0.55)" in quality.refusal(Quality(0.55, 0.66))
    assert not quality.refusal(Quality(0.55, 0.71))
    assert "tails (k-hat 0.55)" in quality.refusal(Quality(0.55, 0.71), settled=True)
    assert "acceptance 60%" in quality.refusal(Quality(0.4, 0.6))
    assert not quality.refusal(Quality(0.4, 0.6), settled=True)
    assert "acceptance 40%" in quality.refusal(Quality(0.4, 0.4), settled=True)
    assert quality.judged(np.full(100, -np.inf)) == quality.NONE


def test_more_rounds_where_a_weight_is_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may help; if not, what has passed the gate is good enough."""
    posterior, fibre = Posterior(quick_problem()), Study(quick_problem()).coarsest_fibre[0]
    for highest, rounds in ((importance.HIGHEST, 3), (0.0, 4)):
        monkeypatch.setattr(importance, "HIGHEST", highest)
        said: list[str] = []
        plan = collapsed.prepare(Task(posterior, fibre, collapsed.Settings()), 2, said.append)
        assert sum("proposal k-hat" in line for line in said) == rounds
        assert not plan.refusal
        assert plan.lanes == 1


def test_weights_without_a_target() -> None:
    nothing = np.array([-np.inf, np.nan])
    np.testing.assert_array_equal(beside_largest(nothing), [0.0, 0.0])
    np.testing.assert_allclose(beside_largest(np.array([-1000.0, np.nan, -1001.0])), [1.0, 0.0, np.exp(-1)])


def test_acceptance_is_that_of_an_independence_sampler() -> None:
    """Weights 1 and 3 with equal shares: the chain is at 3 in three of four steps."""
    log_weights = np.log(np.tile([1.0, 3.0], 5000))
    assert quality.judged(log_weights).acceptance == pytest.approx(0.25 + 0.75 * (0.5 + 0.5 / 3), abs=1e-3)


@pytest.fixture(scope="module")
def in_lanes() -> running.Draws:
    """Populations, and steps of all lengths, where neither would be needed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        close_the_gate(monkeypatch)
        return _decay_run(draws=1000)


def _decay_run(**options) -> running.Draws:
    problem = quick_problem()
    own = {name: options.pop(name) for name in ("draws", "ess", "max_solves") if name in options}
    settings = RunSettings(sampler="collapsed", chains=4, seed=2, **own)
    return run(Posterior(problem), settings, fibre=Study(problem).coarsest_fibre[0], **options)


def test_lanes_give_the_posterior(in_lanes: running.Draws) -> None:
    """Means by quadrature, and the marginal likelihood, of which steps are no part."""
    assert in_lanes.findings["lanes"] == proposal.LANES[0]
    k, a = (part.ravel() for part in np.meshgrid(np.linspace(0.1, 2, 400), np.linspace(0, 5, 400)))
    weights = np.exp(decay_log_likelihood(np.column_stack([k, a])) - 0.5 * (a - 2) ** 2)
    for column, exact in enumerate((k @ weights / weights.sum(), a @ weights / weights.sum())):
        draws = in_lanes.theta[..., column]
        assert draws.mean() == pytest.approx(exact, abs=5 * draws.std() / np.sqrt(arviz.ess(draws)))
    plain = _decay_run(draws=1000)
    assert plain.findings["lanes"] == 1
    error = np.hypot(in_lanes.findings["log_evidence_error"], plain.findings["log_evidence_error"])
    assert in_lanes.findings["log_evidence"] == pytest.approx(plain.findings["log_evidence"], abs=5 * error)


def test_draws_of_a_lane_stand_together(in_lanes: running.Draws) -> None:
    """Neighbours are alike then, and an effective sample size means what it says."""
    draws = in_lanes.theta[0, :, 0]
    moved = np.mean(draws[1:] != draws[:-1])
    assert 1 - moved > 0.05  # in the order of iterations, hardly two neighbours would be the same
    assert arviz.ess(in_lanes.theta[..., 0]) < 0.9 * in_lanes.theta[..., 0].size


def test_lanes_show_no_more_draws_than_their_starts_allow(
    in_lanes: running.Draws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 16 of each lane, and none of the first quarter, unless a number of draws was asked for."""
    close_the_gate(monkeypatch)
    monkeypatch.setattr(under_way, "LANES_SOLVES", 0)
    monkeypatch.setattr(under_way, "FIRST_LOOK", 2000)
    shown: list[int] = []

    def enough(theta: np.ndarray) -> under_way.Mixing:
        shown.append(theta.shape[1])
        return under_way.Mixing(np.inf, 1.0)

    made = _decay_run(draws=None, measure=enough)
    assert shown == [750]  # every second of the last 1500, for 61 lanes
    assert (made.theta.shape[1], made.settings.draws, made.settings.thin) == (750, 750, 2)
    whole = _decay_run(draws=2000)
    assert whole.theta.shape[1] == 2000
    of_lanes = np.argsort((made.settings.warmup + np.arange(2000)) % proposal.LANES[0], kind="stable")
    np.testing.assert_array_equal(made.theta, whole.theta[:, of_lanes >= 500][:, ::2])
    assert in_lanes.theta.shape[1] == 1000


def test_lanes_go_on_while_one_stay_is_a_part_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws would be enough at the first look; the stays of lanes are not short enough before the third."""
    close_the_gate(monkeypatch)
    monkeypatch.setattr(under_way, "LANES_SOLVES", 0)
    monkeypatch.setattr(under_way, "FIRST_LOOK", 800)
    longest: list[float] = []

    def noticed(stay: float, iterations: int, effective: float) -> bool:
        longest.append(stay / iterations)
        return len(longest) < 3

    monkeypatch.setattr(under_way, "is_noticed", noticed)
    made = _decay_run(draws=None, measure=lambda theta: under_way.Mixing(np.inf, 1.0))
    assert made.tally.sampled.tolist() == [1250] * 4
    assert len(longest) == 3
    assert 0 < longest[-1] < 1
    monkeypatch.setattr(under_way, "is_noticed", lambda *stay: True)
    short = _decay_run(draws=None, max_solves=1, measure=lambda theta: under_way.Mixing(np.inf, 1.0))
    assert "one lane stood still for" in short.notes[-1]


def test_many_draws_are_halved_until_few_are_kept_unless_many_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    close_the_gate(monkeypatch)
    monkeypatch.setattr(under_way, "LANES_SOLVES", 0)
    monkeypatch.setattr(under_way, "FIRST_LOOK", 3000)
    monkeypatch.setattr(under_way, "MOST_KEPT", 1000)
    for ess, thin in ((400, 4), (10_000, 1)):
        looks: list[int] = []

        def looked(theta: np.ndarray, looks: list[int] = looks) -> under_way.Mixing:
            looks.append(theta.shape[1])
            return under_way.Mixing(np.inf if len(looks) == 2 else 0.0, 1.0)

        made = _decay_run(draws=None, ess=ess, measure=looked)
        kept = int(made.tally.sampled[0]) // thin
        assert made.settings.thin == thin * max(1, math.ceil(4 * (kept - kept // 4) / (5 * max(ess, 732))))


def test_lanes_are_looked_at_before_a_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    close_the_gate(monkeypatch)
    monkeypatch.setattr(under_way, "LANES_SOLVES", 1e9)
    monkeypatch.setattr(under_way, "FIRST_LOOK", 100)
    made = _decay_run(draws=None, max_solves=500_000, measure=lambda theta: under_way.Mixing(0.0, 2.0))
    assert "max_solves" in made.notes[-1]
    assert 0.95 * 500_000 < made.tally.solves.sum() < 1.05 * 500_000


def test_lanes_start_at_different_draws() -> None:
    """Those of chains of one population, too; and by their weights, where these differ."""
    posterior, fibre = Posterior(quick_problem()), Study(quick_problem()).coarsest_fibre[0]
    plan = collapsed.prepare(Task(posterior, fibre, collapsed.Settings()), 2)
    equal = plan._replace(start=np.zeros((2, 500, 2)), weights=np.full((2, 500), 1 / 500), lanes=61)
    rows = collapsed._rows_to_start_from(equal, spawn_generators(1, 5))
    assert [len(own) for own in rows] == [61] * 5
    for population, chains in ((0, (0, 2, 4)), (1, (1, 3))):
        taken = np.concatenate([rows[i] for i in chains])
        assert len(np.unique(taken)) == 61 * len(chains), population
    few = equal._replace(start=np.zeros((1, 3, 2)), weights=np.array([[0.5, 0.0, 0.5]]))
    taken = np.concatenate(collapsed._rows_to_start_from(few, spawn_generators(1, 2)))
    assert np.bincount(taken, minlength=3).tolist() == [61, 0, 61]


@pytest.mark.parametrize("kind", ["threads", "segments", "interrupted"])
def test_lanes_do_not_depend_on_how_they_are_run(
    in_lanes: running.Draws, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    close_the_gate(monkeypatch)
    if kind == "threads":
        with ThreadPoolExecutor(2) as executor:
            made = _decay_run(draws=1000, executor=executor)
    else:
        monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-3)
        file = tmp_path / "checkpoint.npz"
        if kind == "interrupted":
            assert _decay_run(draws=1000, progress=interrupt_after(9), checkpoint=file).interrupted
        made = _decay_run(draws=1000, checkpoint=file)
    assert_same_draws(made, in_lanes)


def test_a_proposal_that_misses_a_tail_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow proposal is shown to be wrong by its own draws; then populations are asked."""
    posterior, fibre = Posterior(quick_problem()), Study(quick_problem()).coarsest_fibre[0]
    task = Task(posterior, fibre, collapsed.Settings())
    plan = collapsed.prepare(task, 2)
    one = Mixture(*(part[:1] for part in plan.mixture))
    narrow = plan._replace(mixture=one._replace(share=np.ones(1), factor=0.5 * one.factor, df=np.full(1, 50.0)))
    said: list[str] = []
    settings = RunSettings(sampler="collapsed", chains=2, draws=3000, seed=1)
    made = run(posterior, settings, fibre=fibre, plan=narrow, report=said.append)
    assert any(line.startswith("the proposal misses a tail: one of") for line in said)
    assert "two populations of 500 tempered particles" in said
    assert made.notes[-1].startswith("collapsed: begun again, with ")
    assert made.findings["k_hat"] < 0.7
    assert made.tally.warmup_solves.sum() > 6000 + 10_000  # what was done in vain counts
    assert made.theta.shape[1] == 3000
    good = run(posterior, settings, fibre=fibre, plan=plan)
    assert not any("begun again" in note for note in good.notes)


@pytest.mark.parametrize("kind", ["raises", "refused"])
def test_a_run_goes_on_where_nothing_better_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for once, its cost is counted, and the draws are there."""
    posterior, fibre = Posterior(quick_problem()), Study(quick_problem()).coarsest_fibre[0]
    plan = collapsed.prepare(Task(posterior, fibre, collapsed.Settings()), 2)
    monkeypatch.setattr(collapsed, "misses_tails", lambda *weights, settled: True)
    asked = []

    def nothing_better(*arguments) -> proposal.Plan:
        asked.append(1)
        if kind == "raises":
            raise SamplingError("no particles")
        return plan._replace(arrived=False, solves=5000)

    monkeypatch.setattr(proposal, "prepare_again", nothing_better)
    said: list[str] = []
    settings = RunSettings(sampler="collapsed", chains=2, draws=800, seed=1)
    made = run(posterior, settings, fibre=fibre, plan=plan, report=said.append)
    assert made.theta.shape == (2, 800, 2)
    assert len(asked) == 1
    assert any(line.startswith("nothing better was found: ") for line in said)
    assert made.tally.solves.sum() > plan.solves + 2 * 1600 + 5000 * (kind == "refused")


def test_a_run_too_short_for_a_fresh_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    close_the_gate(monkeypatch)
    problem, found = quick_problem(), []
    fibre = Study(problem).coarsest_fibre[0]
    plan = collapsed.prepare(Task(Posterior(problem), fibre, collapsed.Settings()), 2)
    for seed in range(6):
        settings = RunSettings(sampler="collapsed", chains=1, warmup=0, draws=1, seed=seed)
        found.append(run(Posterior(problem), settings, fibre=fibre, plan=plan).findings)
    assert any("log_evidence" not in one for one in found)


def test_populations_that_do_not_arrive_lead_to_another_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    close_the_gate(monkeypatch)
    monkeypatch.setattr(populations, "MOST", -1)
    problem = scaled()[0].problem
    made = choice(problem, fibre_of(problem), aux=16)
    assert made.plan is None
    assert (made.settings.sampler, made.settings.options) == ("pseudo-marginal", {"aux": 16})
    assert made.settings.warmup == 5000
    assert made.reason.startswith("pseudo-marginal: populations of particles did not come")


def test_estimates_that_are_too_noisy_lead_along_fibres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "TOO_NOISY", -1.0)
    monkeypatch.setattr(auto, "TOO_NOISY", -1.0)
    problem = scaled()[0].problem
    made = choice(problem, fibre_of(problem))
    assert made.settings.sampler == "geometric"
    assert "cannot be estimated well" in made.reason


def test_folds_lead_to_swaps_in_theta(monkeypatch: pytest.MonkeyPatch) -> None:
    close_the_gate(monkeypatch)
    monkeypatch.setattr(populations, "MOST", -1)
    problem = loads(TWO_STAGES, name="stages")
    fibre = fibre_of(problem)
    assert (fibre.dimension, fibre.chart.degree) == (0, 2)
    made = choice(problem, fibre)
    assert (made.settings.sampler, made.settings.options) == ("random-walk", {"swap": True})
    assert "where roots meet" in made.reason


def test_the_user_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    data = sample(quick_problem(), draws=100)
    said = capsys.readouterr().err
    for text in ("screening 500 prior draws", "10 starts, 1 mode", "proposal k-hat", "collapsed: one mode"):
        assert text in said
    assert json.loads(data.attrs["notes"])[-1].startswith("collapsed: one mode")


def test_settings() -> None:
    assert run_settings(quick_problem(), {}).sampler == "auto"
    assert RunSettings(sampler="collapsed").warmup == collapsed.WARMUP
    assert RunSettings(sampler="collapsed", warmup=7).warmup == 7
    with pytest.raises(DataError, match="'aux' must be a whole number"):
        RunSettings(sampler="collapsed", options={"aux": 0})
    with pytest.raises(DataError, match="'law' must be"):
        RunSettings(sampler="collapsed", options={"law": "gauss"})
    with pytest.raises(DataError, match="one partition for all c"):
        RunSettings(sampler="collapsed", options={"partition": "by c"})


def test_priors_that_exclude_the_data() -> None:
    text = DECAY.replace('family = "normal", sd = 0.2', 'family = "lognormal", sdlog = 1').replace("y = x", "y = 0 - x")
    with pytest.raises(SamplingError, match="no starting point"):
        sample(loads(text), sampler="collapsed", progress=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_data_far_beyond_what_the_noise_allows() -> None:
    """Log densities of -1e300, beside which their differences vanish: nothing breaks."""
    text = DECAY.replace("mean = 2, sd = 1, lower = 0", "mean = 1e150, sd = 1e150, lower = 0")
    problem = loads(text.replace("[1.9, 1.6, 1.1, 0.8, 0.1]", "[1.9e150, 1.6e150, 1.1e150, 0.8e150, 0.1e150]"))
    made = choice(problem)
    assert made.plan is None or np.isfinite(made.plan.start).all()


def test_thinned_draws_come_from_all_lanes() -> None:
    assert [proposal.lanes_beside(thin) for thin in (1, 60, 61, 122, 59)] == [61, 61, 59, 59, 61]


def test_a_chain_that_stands_still_for_long_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has found a place where the proposal hardly ever goes."""
    problem = quick_problem()
    posterior, fibre = Posterior(problem), Study(problem).coarsest_fibre[0]
    task = Task(posterior, fibre, collapsed.Settings())
    plan = collapsed.prepare(task, 2)
    state = collapsed.init(task, plan, spawn_generators(2, 4)).state
    state, _ = collapsed.run_block(task, plan, state, [], 0, 1000)
    said: list[str] = []
    assert collapsed.review(task, plan, state, 2, said.append) is None
    state.stood[1, 0, 1] = 500
    monkeypatch.setattr(proposal, "prepare_again", lambda *given: plan._replace(modes=17))
    better = collapsed.review(task, plan, state, 2, said.append)
    assert better is not None
    assert better.modes == 17
    assert said == ["the proposal misses a place: a chain stood still there for 500 iterations"]


def test_a_heavy_tail_of_weights_is_looked_at_for_longer() -> None:
    """Unless populations have been there, or there are so many draws that it would have been seen."""
    problem = quick_problem()
    posterior, fibre = Posterior(problem), Study(problem).coarsest_fibre[0]
    task = Task(posterior, fibre, collapsed.Settings())
    plan = collapsed.prepare(task, 2)
    state = collapsed.init(task, plan, spawn_generators(2, 4)).state
    state, _ = collapsed.run_block(task, plan, state, [], 0, 1000)
    assert not plan.steps.any()
    assert not plan.wants_more(state)
    n = state.highest.size
    heavy = state._replace(highest=-0.65 * np.log((np.arange(n) + 0.5) / 4000).reshape(state.highest.shape))
    assert plan.wants_more(heavy)
    assert not plan._replace(steps=np.ones_like(plan.steps)).wants_more(heavy)
    assert not plan.wants_more(heavy._replace(fresh=100 * heavy.fresh))
