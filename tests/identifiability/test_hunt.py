"""Random models, judged by power series and by counts of solutions that are computed in another way."""

from __future__ import annotations

import pytest

from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model
from tests.support.hunting import objections
from tests.support.marks import slow_but
from tests.support.random_models import random_model
from tests.support.series_oracle import local_truth
from tests.support.solution_count import solution_counts
from tests.support.zoo import ZOO


@pytest.mark.parametrize("seed", slow_but(6, 15, 22, of=[6, 8, 15, 18, 22, 32]))
def test_a_few_random_models(seed: int) -> None:
    assert objections(random_model(seed))[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(100))
def test_many_random_models(tens: int) -> None:
    wrong = {seed: objections(random_model(seed))[0] for seed in range(10_000 + 10 * tens, 10_010 + 10 * tens)}
    assert not {seed: found for seed, found in wrong.items() if found}


# --- the judge judged: it knows what is known, and sees what is wrong ---


@pytest.mark.parametrize("entry", [e for e in ZOO if not e.inputs][::3], ids=lambda e: e.name)
def test_the_judge_knows_the_zoo(entry) -> None:
    truth = local_truth(entry.model, 20)
    assert {f for f in entry.functions if f in entry.model.parameters} <= truth.identifiable
    assert truth.rank == len(entry.functions)


@pytest.mark.parametrize("entry", [e for e in ZOO if not e.inputs][::3], ids=lambda e: e.name)
def test_the_judge_counts(entry) -> None:
    counts = solution_counts(entry.model, local_truth(entry.model, 20).fixed)
    if counts is not None:
        assert all(counts.values[f] == 1 for f in entry.functions if f in entry.model.parameters)
        assert counts.points == entry.degree or len(entry.functions) < len(entry.model.parameters)


@pytest.mark.parametrize(
    ("text", "fixed", "points", "values"),
    [
        ("x' = -a^2*x; x(0) = 1", [], 2, {"a": 2}),
        ("x' = -a*b*x", ["b"], 1, {"a": 1, "x_0": 1}),
        ("x' = -a*x/(b + x); x(0) = 1/a", [], 1, {"a": 1, "b": 1}),
        ("x1' = -a*x1; x' = a*x1 - b*x; x1(0) = 1; x(0) = 0", [], 1, {"a": 1, "b": 1}),
        ("x1' = -a*x1; x' = x1 - b*x; x1(0) = 1; x(0) = 0", [], 2, {"a": 2, "b": 2}),
        ("x' = (a^3 + b)*x + b^2*x^2; x(0) = 1", [], 6, {"a": 6, "b": 2}),
        ("x' = 1; x(0) = 0; z' = x^3; z(0) = 0; w' = z^3*a^2; w(0) = 0; y = w", [], 2, {"a": 2}),  # late
    ],
)
def test_the_judge_can_count(text: str, fixed: list[str], points: int, values: dict[str, int]) -> None:
    counts = solution_counts(Model.parse(text.replace("; ", "\n"), ["y" if "y =" in text else "x"]), fixed)
    assert counts is not None
    assert (counts.points, counts.values) == (points, values)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("x' = -a*x; x(0) = 1", "x' = -a^2*x; x(0) = 1"),  # globally, called locally
        ("x' = -a^2*x; x(0) = 1", "x' = -a*x; x(0) = 1"),  # locally, called globally
        ("x' = -a*x; x(0) = 1", "x' = -a*x; x(0) = 0"),  # globally, called not
    ],
)
def test_the_judge_objects(asked: str, answered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Model.parse(answered, ["x"])
    monkeypatch.setattr("tests.support.hunting.analyse", lambda model, **options: analyse(other, **options))
    assert objections(Model.parse(asked, ["x"]))[0]
