"""The report as text: whole, safe, small, and the same again."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from equifinal.formats.toml import loads
from equifinal.prediction.predict import Check
from equifinal.report.page import report_page, write_report
from equifinal.report.rendering import Figures
from equifinal.report.running import again
from equifinal.report.trajectories import _check_words
from equifinal.results.store import identifiability_of, load, save, store_identifiability
from equifinal.studies.sample import sample
from tests.support.runs import page, problem_named, run

SECTIONS = ["short", "fit", "model", "identifiability", "given", "said", "posterior"]
SECTIONS += ["predictions", "pairs", "sampler", "again", "terms"]


@pytest.fixture
def pages() -> dict[str, str]:
    return {name: page(name) for name in ("si", "decay", "awkward")}


def test_every_section_is_there(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert re.findall(r'<section[^>]* id="(\w+)"', text) == SECTIONS
        listed = re.findall(r'<li><a href="#(\w+)"', text)
        assert listed == SECTIONS  # the table of contents


def test_every_term_leads_to_its_explanation(pages: dict[str, str]) -> None:
    for text in pages.values():
        links, places = re.findall(r'class="term" href="#([\w-]+)"', text), re.findall(r'<dt id="([\w-]+)"', text)
        assert sorted(links) == sorted(places)  # each once, where it first appears
        assert {"term-identifiable", "term-r-hat", "term-shrinkage", "term-effective-draws"} <= set(links)


def test_the_fit_is_the_first_figure(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert re.search(r'aria-label="([^"]*)"', text[text.index("<svg") :])[1].startswith("Fit of")  # type: ignore[index]


def test_on_a_narrow_screen_every_cell_says_its_column(pages: dict[str, str]) -> None:
    for text in pages.values():
        for table in re.findall(r'<table class="[^"]*stack[^"]*">(.*?)</table>', text, flags=re.S):
            titles = re.findall(r"<th[^>]*>(.*?)</th>", table)
            for row in re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1], flags=re.S):
                assert not titles or len(re.findall(r"<td[^>]*data-label", row)) == len(titles)


def test_it_says_what_matters(pages: dict[str, str]) -> None:
    text = re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", pages["si"])
    for words in (
        "None of the 4 parameters can be identified, but 3 combinations of them can.",
        "Its posterior is your prior restricted to what the other bounds allow",
        "depends on your prior",
        "Parameters that give the same output form a curve",
        "uniform on (0.01, 1)",
        "normal(sd = 5)",
        "in 90% band",
        "Knowing gamma would make everything identifiable.",
        "effective draws at least",
        "numpy",
        "seed = 3",
        "S&#39; = -beta*S*I + gamma*I",
    ):
        assert words in text, words
    assert "Everything is identifiable" in pages["decay"]
    assert "Every state is an output" not in pages["decay"]  # x is one, y another


def test_figures_are_there_and_named(pages: dict[str, str]) -> None:
    labels = re.findall(r'<svg role="img" aria-label="([^"]*)"', pages["si"])
    for words in (
        "Which parameters and quantities can be identified",
        "What the prior alone predicts for cases",
        "Prior and posterior of gamma",
        "Prior and posterior of beta*N - gamma",
        "Fit of cases",
        "Residuals of cases",
        "Prediction of S, depends on your prior",
        "Pairs of parameters with the fibre",
        "Trace of ",
        "Ranks of ",
        "Autocorrelation of ",
    ):
        assert any(label.startswith(words) for label in labels), words


def test_nothing_is_fetched_and_nothing_runs(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert "<script" not in text
        addresses = re.findall(r'(?:href|src)="([^"#][^"]*)"', text)
        assert all(a.startswith("data:") for a in addresses), addresses
        assert not re.search(r"@import|url\((?!#f\d)", text)
        assert len(text.encode()) < 3_000_000


def test_what_users_wrote_is_escaped(pages: dict[str, str]) -> None:
    text = pages["awkward"]
    assert "<b>first" not in text
    assert "&lt;b&gt;first&lt;/b&gt; &amp; $a_b$" in text


def test_the_same_seed_gives_the_same_bytes(pages: dict[str, str], tmp_path) -> None:
    run.cache_clear()
    repeated = load(save(run("decay"), tmp_path / "r.nc"))  # another run, and by way of a file
    path = write_report(repeated, tmp_path / "deep" / "report.html")
    assert path.read_text(encoding="utf-8") == pages["decay"]


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({}, ""),
        ({"draws": 50, "chains": 2, "thin": 3}, " --chains 2 --draws 50 --thin 3"),
        (
            {"ess": 100, "max_solves": 10**6, "sampler": "collapsed"},
            " --sampler collapsed --ess 100 --max-solves 1000000",
        ),
        ({"sampler": "pseudo-marginal", "draws": 20, "warmup": 30, "options": {"aux": 8}}, None),
    ],
)
def test_the_command_repeats_what_was_asked_for(asked: dict, options: str | None) -> None:
    """What the run decided by itself, such as how many draws it needs, is not asked for: that would be another run."""
    data = sample(problem_named("decay"), seed=5, progress=False, **asked)
    if options is None:
        options = " --sampler pseudo-marginal --warmup 30 --draws 20 --aux 8"
    assert again(data)["command"] == f"equifinal fit decay.toml --seed 5{options}"


def test_bad_draws_are_not_praised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figures, "__call__", lambda *_: None)  # the words matter here
    text = report_page(run("si", "random-walk"))
    assert "do not use" in text
    assert "the chains disagree" in text
    assert "nothing wrong" not in text


ONE = """
[model]
equations = "x' = -k*x\\nx(0) = 1"
outputs = ["x"]
[quantities]
infinite = "1/(k - k*1.0000000000000000001)"
[parameters]
k = { prior = "halfcauchy", scale = 1 }
[noise]
x = { family = "negative-binomial", overdispersion = 1e6 }
[data]
time = [1, 2]
x = [1, 0]
"""


def test_a_single_parameter_and_nothing_that_scatters() -> None:
    problem = loads(ONE, name="my model")
    data = sample(problem, sampler="random-walk", warmup=100, draws=100, progress=False)
    text = report_page(data)
    assert "There is only one parameter." in text
    assert "Every state is an output" in text
    assert "equifinal fit &#39;my model.toml&#39;" in text


def test_an_analysis_that_did_not_come_to_an_end() -> None:
    data = run("product").copy()
    found = identifiability_of(data)
    store_identifiability(data, replace(found, complete=False, scope="local", combinations=()))
    text = report_page(data)
    assert "The global question was not settled." in text
    assert "not known whether identifiable" in text


def test_chains_that_never_moved() -> None:
    data = run("decay").copy()
    for name in data.posterior.data_vars:
        data.posterior[name] = 0 * data.posterior[name] + 1.0
    text = report_page(data)
    assert "never moved" in text
    assert "do not use" in text


@pytest.mark.parametrize(
    ("size", "trend", "told"),
    [(0.4, 0.2, "as expected"), (0.004, 0.2, "residuals too large"), (0.4, 0.002, "the model misses a trend")],
)
def test_the_table_of_checks_says_what_its_p_values_say(size: float, trend: float, told: str) -> None:
    values = np.linspace(0.1, 0.9, 15)
    checked = SimpleNamespace(p_size=size, p_trend=trend, values=values, inside_50=8 / 15, inside_90=14 / 15)
    assert told in _check_words(cast(Check, checked))
