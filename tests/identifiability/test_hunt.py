"""Random models, judged by power series that are computed in another way."""

from __future__ import annotations

from random import Random

import pytest

from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model
from tests.support.hunting import objections
from tests.support.marks import slow_but
from tests.support.random_models import random_model
from tests.support.series_oracle import alternatives, local_truth
from tests.support.zoo import ZOO, known


@pytest.mark.parametrize("seed", slow_but(6, 15, 22, of=[6, 8, 15, 18, 22, 32]))
def test_a_few_random_models(seed: int) -> None:
    assert objections(random_model(seed))[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(20))
def test_many_random_models(tens: int) -> None:
    wrong = {seed: objections(random_model(seed))[0] for seed in range(10_000 + 10 * tens, 10_010 + 10 * tens)}
    assert not {seed: found for seed, found in wrong.items() if found}


# --- the judge judged: it knows what is known, and sees what is wrong ---


@pytest.mark.parametrize("entry", [e for e in ZOO if not e.inputs][::3], ids=lambda e: e.name)
def test_the_judge_knows_the_zoo(entry) -> None:
    truth = local_truth(entry.model, 20)
    assert {f for f in entry.functions if f in entry.model.parameters} <= truth.identifiable
    assert truth.rank == len(entry.functions)


def test_the_judge_sees_other_values() -> None:
    assert alternatives(known("square of a rate").model, [], 12, 61, Random(1)) == {"a"}
    assert alternatives(known("logistic growth").model, [], 12, 61, Random(1)) == set()
    assert alternatives(Model.parse("x' = -a*b*x", ["x"]), ["b"], 12, 61, Random(1)) == set()


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
