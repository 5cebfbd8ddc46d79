"""What a study makes of an analysis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.formats.toml import loads
from equifinal.identifiability.verdicts import Design
from equifinal.posterior.study import Study


def chain(n: int) -> Study:
    """A chain of compartments, of which the last is observed: its rates may stand in any order."""
    rates = "\n".join(f'k{i} = {{ prior = "lognormal", meanlog = 0, sdlog = 0.5 }}' for i in range(1, n + 1))
    inflow = ["", *(f"k{i}*x{i} " for i in range(1, n))]
    equations = "\n".join(f"x{i}' = {inflow[i - 1]}- k{i}*x{i}\nx{i}(0) = {int(i == 1)}" for i in range(1, n + 1))
    text = f"[model]\nequations = '''\n{equations}\n'''\noutputs = ['x{n}']\n[parameters]\n{rates}\n"
    noise = f"[noise]\nx{n} = {{ family = 'normal', sd = 0.1 }}\n"
    return Study(loads(f"{text}{noise}[data]\ntime = [1, 2, 4]\nx{n} = [0.1, 0.3, 0.2]\n"))


def test_rates_in_any_order_are_sampled_as_they_are() -> None:
    study = chain(7)
    assert study.analysis.fibre_degree == 720  # one rate is told by the scale of the outlet
    with pytest.raises(IdentifiabilityError, match="720 sets of parameters have the same"):
        _ = study.fibre
    fibre, note = study.coarsest_fibre
    assert (fibre.dimension, fibre.chart.degree, fibre.rank) == (0, 1, 7)
    assert note.startswith("the parameters are sampled as they are: 720 sets")


def test_a_few_orders_are_found() -> None:
    fibre, note = chain(3).coarsest_fibre
    assert (fibre.dimension, fibre.chart.degree, note) == (0, 2, "")


def test_an_analysis_that_solutions_contradict_is_not_used() -> None:
    """One of the two must be wrong: the parameters are sampled as they are, which is right in any case."""
    study = chain(3)
    design = Design(expected=2, rank=3, gap=1e6, points=10, excess=1e6, unseen=(), combinations=())
    assert design.contradicts
    doubted = Study(study.problem, analysis=replace(study.analysis, design=design))
    with pytest.warns(UserWarning, match="ANALYSIS AND SOLUTIONS CONTRADICT EACH OTHER: 2 comb.* have rank 3"):
        fibre, note = doubted.coarsest_fibre
    assert (fibre.dimension, fibre.rank) == (0, 3)
    assert "CONTRADICT" in note


def test_a_model_that_cannot_be_analysed_is_sampled_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refusing(*_: Any, **__: Any) -> Any:
        asked.append(1)
        raise IdentifiabilityError("too hard")

    monkeypatch.setattr("equifinal.posterior.study.analysed", refusing)
    study = chain(3)
    fibre, note = study.coarsest_fibre
    assert (fibre.dimension, fibre.rank) == (0, 3)
    assert note == "the parameters are sampled as they are: too hard"
    with pytest.raises(IdentifiabilityError, match="too hard"):
        _ = study.analysis
    assert asked == [1]  # once is enough
