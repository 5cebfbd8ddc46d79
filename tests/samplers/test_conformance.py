"""Every registered sampler, and the example of the docs, against the contract of `equifinal.samplers.protocol`."""

from __future__ import annotations

import re
import runpy
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import arviz
import numpy as np
import pytest

from equifinal import ode
from equifinal.errors import DataError, SamplingError
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.posterior.study import Study
from equifinal.samplers import registry
from equifinal.samplers.protocol import NoPlan, Sampler
from equifinal.samplers.running import under_way
from equifinal.samplers.running.run import Draws, run
from equifinal.samplers.settings import RunSettings
from tests.support.marks import slow_but

# only the product of rate and share is identifiable; two parameters, so that the posterior can be had by quadrature
TEXT = """
[model]
equations = '''
x' = -rate*share*x
x(0) = 1
'''
outputs = ["x"]

[parameters]
rate = { prior = "uniform", lower = 0.2, upper = 3 }
share = { prior = "uniform", lower = 0.1, upper = 1 }

[noise]
x = { family = "normal", sd = 0.1 }

[data]
time = [0.5, 1, 2, 4]
x = [0.74, 0.62, 0.35, 0.05]
"""
BUILT_IN = tuple(name for name, _ in registry.entries())
EXAMPLE = "hit-and-run"
GUIDE = Path(__file__).parents[2] / "docs" / "add-a-sampler.md"
SETTINGS = {"chains": 3, "warmup": 40, "draws": 60, "seed": 5}


@pytest.fixture(autouse=True)
def example(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The sampler of the docs, registered for one test."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    assert code[1].count("\n") < 100
    module = tmp_path_factory.mktemp("guide") / "hit_and_run.py"
    module.write_text(code[1])
    runpy.run_path(str(module))


@cache
def study() -> Study:
    return Study(loads(TEXT, name="product"))


def draws(name: str, posterior: Posterior | None = None, settings: dict | None = None, **options) -> Draws:
    own = RunSettings(sampler=name, **(SETTINGS | (settings or {})))
    needs = own.sampler_settings().needs_fibre
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(posterior or study().posterior, own, fibre=study().fibre if needs else None, **options)


@cache
def plain(name: str) -> Draws:
    return draws(name)


def assert_same(a: Draws, b: Draws) -> None:
    np.testing.assert_array_equal(a.theta, b.theta)
    for one, other in zip((*a.chunk, *a.tally), (*b.chunk, *b.tally), strict=True):
        np.testing.assert_array_equal(one, other)
    assert dict(a.findings) == dict(b.findings)


samplers = pytest.mark.parametrize("name", [*BUILT_IN, EXAMPLE])


def test_the_registry() -> None:
    assert registry.names() == ("auto", *BUILT_IN, EXAMPLE)
    with pytest.raises(DataError, match="there is a sampler 'geometric' already"):
        registry.register("geometric", registry.sampler("geometric"), help="")
    for _, entry in registry.entries():
        assert entry.help
    with pytest.raises(DataError, match="unknown sampler 'geometrik'; did you mean 'geometric'"):
        registry.sampler("geometrik")


@samplers
def test_what_a_sampler_has(name: str) -> None:
    sampler = registry.sampler(name)
    for part in (key for key in vars(Sampler) if not key.startswith("_")):
        assert hasattr(sampler, part), part
    settings = sampler.Settings()
    assert is_dataclass(settings)
    with pytest.raises(AttributeError):  # frozen
        setattr(settings, fields(settings)[0].name, None)
    assert isinstance(settings.needs_fibre, bool)
    assert sampler.WARMUP >= 0
    assert {*NoPlan._fields} <= {*dir(sampler.Plan)}
    assert sampler.State._fields[:3] == ("position", "log_prior", "log_likelihood")


@samplers
def test_blocks_may_be_cut_anywhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 0.0)  # segments of ever fewer iterations
    assert_same(draws(name), plain(name))


@samplers
def test_threads_change_nothing(name: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert_same(draws(name, executor=pool), plain(name))


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", BUILT_IN)
def test_processes_change_nothing(name: str, processes: ProcessPoolExecutor) -> None:
    assert_same(draws(name, executor=processes), plain(name))


@samplers
def test_an_interrupted_run_ends_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 0.0)
    seen = []

    def stop(update) -> None:
        seen.append(update)
        if len(seen) == 7:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.npz"
    part = draws(name, progress=stop, checkpoint=path)
    assert part.interrupted
    again = draws(name, checkpoint=path)
    assert again.resumed_at
    assert_same(again, plain(name))


@samplers
def test_counts_add_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, solved = Posterior(study().problem), 0
    simulate = ode.simulate

    def counting(system, p, *arguments, **options):
        nonlocal solved
        solved += len(p)
        return simulate(system, p, *arguments, **options)

    monkeypatch.setattr(ode, "simulate", counting)
    made = draws(name, posterior)
    assert int(made.tally.solves.sum()) == solved
    assert made.tally.sampled.tolist() == [60] * 3
    assert (made.tally.accepted <= 60).all()
    assert made.tally.counts.shape == (3, len(registry.sampler(name).COUNTS))
    assert made.theta.shape == (3, 60, 2)
    # what is carried along is what belongs to the draws
    evaluated = posterior.evaluate(made.chunk.position.reshape(-1, 2))
    np.testing.assert_allclose(made.chunk.log_prior.ravel(), evaluated.log_prior, atol=1e-9)
    np.testing.assert_allclose(made.chunk.log_likelihood.ravel(), evaluated.log_likelihood, atol=1e-5)


def marginals() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The distribution functions of both parameters, by quadrature on a grid of midpoints."""
    rate, share = (low + (high - low) * (np.arange(1500) + 0.5) / 1500 for low, high in ((0.2, 3.0), (0.1, 1.0)))
    product = rate[:, None, None] * share[None, :, None]
    times, seen = np.array([0.5, 1, 2, 4]), np.array([0.74, 0.62, 0.35, 0.05])
    density = np.exp(-0.5 * (((seen - np.exp(-product * times)) / 0.1) ** 2).sum(axis=2))
    density /= density.sum()
    return {"rate": (rate, density.sum(axis=1).cumsum()), "share": (share, density.sum(axis=0).cumsum())}


# the longest of them has its own tests of exactness
@pytest.mark.parametrize("name", slow_but(*{*BUILT_IN, EXAMPLE} - {"pseudo-marginal"}, of=[*BUILT_IN, EXAMPLE]))
def test_the_posterior_is_exact(name: str) -> None:
    """Nine quantiles of two parameters against quadrature, |z| < 5: about one false alarm in 100,000 runs."""
    made = draws(name, settings={"chains": 4, "warmup": 2000, "draws": 8000, "seed": 1})
    for column, (grid, cdf) in enumerate(marginals().values()):
        values = made.theta[:, :, column]
        for level in np.arange(1, 10) / 10:
            below = (values < np.interp(level, cdf, grid)).astype(float)
            ess = float(arviz.ess(below))
            assert ess > 100
            assert abs(below.mean() - level) < 5 * np.sqrt(level * (1 - level) / ess)


def test_a_fibre_is_asked_for() -> None:
    with pytest.raises(SamplingError, match="needs to know the fibres"):
        run(study().posterior, RunSettings(sampler="geometric", draws=10))
