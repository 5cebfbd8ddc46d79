"""Rates that may stand in any order, beside the listing of all points, which is another way to the same answer."""

from __future__ import annotations

from math import factorial, inf
from random import Random

import pytest

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.algebra.arithmetic.local_rank import analyse_locally
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.freedoms import AnyOrder, Freedom
from equifinal.identifiability.orders import any_order
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from equifinal.words.identifiability import freedom_sentences
from tests.support.fields import same_field
from tests.support.marks import slow_but


def chain(n: int, rate: str = "k{}", **options: object) -> Model:
    """A dose goes through n compartments, the last of which is observed."""
    lines = [f"x1' = -{rate.format(1)}*x1\nx1(0) = 1"]
    for i in range(2, n + 1):
        lines.append(f"x{i}' = {rate.format(i - 1)}*x{i - 1} - {rate.format(i)}*x{i}\nx{i}(0) = 0")
    return Model.parse("\n".join(lines), [f"x{n}"], **options)


def mammillary(n: int) -> Model:
    """A compartment with a dose, observed, beside n - 1 others that exchange with it alone."""
    others = range(2, n + 1)
    lines = ["x1' = -e*x1 " + " ".join(f"- a{i}*x1 + b{i}*x{i}" for i in others), "x1(0) = 1"]
    lines += [f"x{i}' = a{i}*x1 - b{i}*x{i}\nx{i}(0) = 0" for i in others]
    return Model.parse("\n".join(lines), ["x1"])


def cycle(n: int) -> Model:
    """A dose goes round through n compartments; the first one, with an outlet, is observed."""
    lines = [f"x1' = k{n}*x{n} - k1*x1 - e*x1\nx1(0) = 1"]
    lines += [f"x{i}' = k{i - 1}*x{i - 1} - k{i}*x{i}\nx{i}(0) = 0" for i in range(2, n + 1)]
    return Model.parse("\n".join(lines), ["x1"])


def compartments(seed: int) -> Model:
    """A small chain, mammillary model or cycle that is varied at random: dose, outlets, scale, what is observed."""
    rng = Random(seed)
    n, kind = rng.randint(3, 5), rng.choice(["chain", "mammillary", "cycle"])
    n -= kind != "chain" and n == 5
    flows = {
        "chain": [(i, i + 1, f"k{i}") for i in range(1, n)] + [(n, 0, rng.choice([f"k{n}", "2", "k1"]))],
        "mammillary": [f for i in range(2, n + 1) for f in ((1, i, f"a{i}"), (i, 1, f"b{i}"))],
        "cycle": [(i, i % n + 1, f"k{i}") for i in range(1, n + 1)],
    }[kind]
    if kind != "chain" or rng.random() < 0.2:
        flows.append((rng.choice([1, 1, n]), 0, "e"))
    seen = n if kind == "chain" and rng.random() < 0.8 else rng.choice([1, 1, n])
    dosed, dose = (1, rng.choice(["1", "D", "3"])) if rng.random() < 0.9 else (2, "1")
    lines = []
    for i in range(1, n + 1):
        terms = [f"- {k}*x{i}" for a, _, k in flows if a == i] + [f"+ {k}*x{a}" for a, b, k in flows if b == i]
        lines += [f"x{i}' = {' '.join(terms)}", f"x{i}(0) = {dose if i == dosed else 0}"]
    lines.append(f"y = {rng.choice(['', '', 's*'])}x{seen}")
    return Model.parse("\n".join(lines), rng.choice([["y"], ["y"], ["y"], ["y", "x1"]]))


def same_as_listed(model: Model, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the model has rates in any order; if so, it is asserted that listing all points gives the same answer."""
    monkeypatch.setattr("equifinal.identifiability.orders.FEW", 1)
    found = analyse(model, time_limit=inf)
    if not any(isinstance(freedom, AnyOrder) for freedom in found.freedoms):
        return False
    monkeypatch.setattr("equifinal.identifiability.orders.FEW", 10**9)
    listed = analyse(model, time_limit=inf)
    assert listed.certificate["method"] != found.certificate["method"]
    for answer in ("parameters", "alternatives", "fibre_degree", "fibre_dimension", "scope", "complete"):
        assert getattr(found, answer) == getattr(listed, answer)
    assert same_field(found.combinations, listed.combinations, model.parameters, Budget(30 * SECOND)) == ([], [])
    return True


@pytest.mark.parametrize("model", [chain(4), chain(5), mammillary(4), cycle(4)])
def test_the_answer_is_that_of_listing_all_points(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert same_as_listed(model, monkeypatch)


@pytest.mark.parametrize("fifty", slow_but(0, of=range(8)))
def test_random_compartments_are_as_listed(fifty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(50 * fifty, 50 * fifty + (10 if fifty == 0 else 50))
    compared = sum(same_as_listed(compartments(seed), monkeypatch) for seed in seeds)
    assert compared > len(seeds) / 5


@pytest.mark.parametrize("n", [6, 20])
@pytest.mark.parametrize("kind", [chain, mammillary, cycle])
def test_rates_in_any_order(kind, n: int) -> None:
    model = kind(n)
    result = analyse(model)
    assert (result.scope, result.complete, result.fibre_degree) == ("global", True, factorial(n - 1))
    fixed = {chain: {f"k{n}"}, mammillary: {"e"}, cycle: {"k1", "e"}}[kind]
    assert {name for name, word in result.parameters.items() if word == "globally"} == fixed
    assert set(result.parameters.values()) == {"globally", "locally"}
    assert result.alternatives == dict.fromkeys(set(model.parameters) - fixed, n - 1)
    assert len(result.combinations) == len(model.parameters)
    assert Identifiability.from_json(result.to_json()) == result


def test_quantities_that_permutations_change() -> None:
    names = [f"k{i}" for i in range(1, 7)]
    wanted = {"all": "*".join(names), "some": "k1*k2", "last": "k7^2", "times": " + ".join(f"1/{k}" for k in names)}
    wanted |= {"mean": f"log({wanted['all']})/6", "one": "log(k1)"}
    result = analyse(chain(7, quantities=wanted))
    locally = {"some", "one"}
    assert result.quantities == {name: "locally" if name in locally else "globally" for name in wanted}


@pytest.mark.parametrize(
    "model",
    [
        chain(6, "k{}^2"),  # signs may change as well
        chain(6, "(k{0} + 1/k{0})"),  # so may k into 1/k
        Model.parse(chain(6).to_text() + "\nz' = -b^2*z\nz(0) = 1", ["x6", "z"]),
        Model.parse(chain(6).to_text() + "\ny = x6^2", ["y"]),  # not linear
    ],
)
def test_more_points_than_permutations(model: Model) -> None:
    rng, budget = Random(1), Budget(30 * SECOND)
    local = analyse_locally([model], model.parameters, rng, budget)
    assert any_order([chain(6)], analyse_locally([chain(6)], chain(6).parameters, rng, budget), rng, budget)
    assert any_order([model], local, rng, budget) == ()


def test_words() -> None:
    single, double = AnyOrder((("a",), ("b",), ("c",))), AnyOrder((("a", "b"), ("c", "d")))
    assert freedom_sentences([single, double]) == [
        "a, b and c may be exchanged in any order: nothing observable changes",
        "(a, b) and (c, d) may be exchanged in any order: nothing observable changes",
    ]
    assert Freedom.from_json(double.to_json()) == double
