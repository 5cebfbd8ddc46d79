"""What the data said and what the prior said."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from equifinal.formats.toml import loads
from equifinal.language.expression import Name
from equifinal.results.meaning import COMBINATION, MOST_CROSSED, NOISE, _features, _prior_share, interpret
from equifinal.results.store import identifiability_of, store_identifiability
from equifinal.studies.sample import sample
from equifinal.words.meaning import (
    direction_text,
    driven_by,
    estimate,
    rounded,
    sentence,
    shrinkage_text,
    verdict_word,
    weakest_sentence,
)
from tests.support.problems import DECAY
from tests.support.runs import meaning, run


def words(name: str, item: str) -> str:
    found = meaning(name)
    return sentence(found, found.named(item))


def test_one_draw_has_no_spread() -> None:
    assert estimate(1.25, float("nan")) == "1.25"
    assert estimate(float("nan"), 1.0) == "not a finite number"


def test_a_parameter_that_is_its_prior_is_said_to_be() -> None:
    assert re.fullmatch(
        r"gamma: not identifiable\. Its posterior is your prior restricted to what the other bounds allow; the data "
        r"determine beta\*N - gamma = 1\.8\d\d \(sd 0\.01\d\)\.",
        words("si", "gamma"),
    )
    gamma = meaning("si").named("gamma")
    assert abs(gamma.shrinkage) < 0.1
    assert gamma.prior_share > 0.95
    assert driven_by(gamma).startswith("prior")


def test_a_parameter_that_is_tied_to_others_says_to_which() -> None:
    said = words("si", "rho")
    assert said.startswith("rho: not identifiable. The data determine beta/rho = ")
    assert "ties it to beta" in said
    assert re.search(r"depends on your priors, which alone account for (9\d|over 99)% of its spread", said)
    rho = meaning("si").named("rho")
    assert rho.shrinkage > 0.9  # narrower than its prior by far, and yet the prior's
    assert rho.prior_share > 0.9


@pytest.mark.parametrize("number", [2, MOST_CROSSED, MOST_CROSSED + 1, 40])
def test_any_number_of_combinations_explains_what_depends_on_them(number: int) -> None:
    rng = np.random.default_rng(1)
    columns = {f"c{i}": rng.normal(size=4000) for i in range(number)}
    analysis = SimpleNamespace(complete=True, finer=False, combinations=[Name(name) for name in columns])
    features = _features(analysis, columns, None)
    assert _prior_share(columns["c0"] + columns[f"c{number - 1}"], features) < 0.01
    assert _prior_share(rng.normal(size=4000), features) > 0.95


def test_combinations_carry_what_the_data_said() -> None:
    known = meaning("si").of_kind(COMBINATION)
    assert {f.name for f in known} == {"beta/rho", "beta*N - gamma", "beta*I0"}
    for finding in known:
        assert finding.shrinkage > 0.99
        assert finding.prior_share == 0
        assert verdict_word(finding) == "identifiable"
        assert sentence(meaning("si"), finding).startswith(f"{finding.name}: determined by the data: ")
    assert "R0: not identifiable" in words("si", "R0")


def test_a_combination_is_what_its_draws_give() -> None:
    found, draws = meaning("si"), run("si").posterior
    values = (draws["beta"] * 10_000 - draws["gamma"]).values.reshape(-1)
    np.testing.assert_allclose(found.named("beta*N - gamma").posterior, values, rtol=1e-12)
    prior = found.named("beta*N - gamma").prior
    np.testing.assert_allclose(prior.mean(), 10_000 * 5.05e-4 - 0.505, rtol=0.03)


def test_identifiable_parameters() -> None:
    assert re.fullmatch(r"k: identifiable, and determined by the data: 0\.\d\d+ \(sd 0\.\d\d+\)\.", words("decay", "k"))
    assert meaning("decay").of_kind(COMBINATION) == []  # the parameters themselves, told once
    assert driven_by(meaning("decay").named("k")) == "data"


def test_up_to_alternatives() -> None:
    said = words("swap", "k1")
    assert "identifiable up to alternatives. The data allow up to 2 values" in said
    assert verdict_word(meaning("swap").named("k1")) == "up to 2 values"
    assert {f.name for f in meaning("swap").of_kind(COMBINATION)} == {"k1*k2", "k2 + k1"}


def test_a_parameter_of_the_noise_is_not_judged_by_the_model() -> None:
    found = meaning("influenza")
    (phi,) = found.of_kind(NOISE)
    assert phi.name == "phi"
    assert "a noise parameter" in sentence(found, phi)
    assert verdict_word(phi) == "noise"


def test_a_tie_of_which_little_is_known_is_not_called_determined() -> None:
    # y = a exp(-k t)/b, seen through noise far larger than any prior draw
    text = DECAY.split("[data]")[0].replace("sd = 0.2", "sd = 1000") + "[data]\ntime = [0, 1]\ny = [1.9, 1.5]\n"
    text = text.replace("y = x", "y = x/b").replace(
        "[parameters]", '[parameters]\nb = { prior = "uniform", lower = 1, upper = 2 }'
    )
    data = sample(loads(text, name="blind"), chains=4, draws=500, seed=1, progress=False)
    found = interpret(data)
    b = found.named("b")
    assert b.verdict == "not"
    assert "about which these data say little" in sentence(found, b)
    assert driven_by(b).startswith("prior")


def test_weakness_in_practice_is_told_apart_from_structure() -> None:
    # two early points: the decay rate is identifiable, and these data hardly see it
    text = DECAY.split("[data]")[0] + "[data]\ntime = [0, 0.01]\ny = [1.9, 1.95]\n"
    data = sample(loads(text, name="weak"), chains=4, draws=500, seed=1, progress=False)
    store_identifiability(data, identifiability_of(data))
    found = interpret(data)
    k, a = found.named("k"), found.named("a")
    assert (k.weak, a.weak) == (True, False)
    assert k.verdict == "globally"
    assert "k: identifiable, but barely informed. Better data could determine it" in sentence(found, k)
    assert driven_by(k) == "data, barely"
    assert found.weakest is not None
    assert found.weakest.shrinkage < 0.2
    assert max(found.weakest.weights, key=lambda n: abs(found.weakest.weights[n])) == "k"
    assert weakest_sentence(found) == ""  # it would only repeat what was said of k


def test_the_worst_direction_is_the_worst() -> None:
    """No other direction in the logarithms of the combinations shrinks less; every single one shrinks more."""
    found = meaning("influenza")
    worst = found.weakest
    assert worst is not None
    assert worst.shrinkage <= 1e-9 + min(
        1 - np.var(np.log(f.posterior)) / np.var(np.log(f.prior)) for f in found.findings if f.name in worst.weights
    )


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (1.8799, 0.0149, "1.880 (sd 0.015)"),
        (10174.6, 196.9, "10175 (sd 197)"),
        (9.885e-4, 8.5e-6, "9.885e-4 (sd 8.5e-6)"),
        (0.2412, 0.0289, "0.241 (sd 0.029)"),
        (3.2e9, 4.1e7, "3.200e+9 (sd 4.1e+7)"),
        (-0.5, 2.0, "-0.500 (sd 2.0)"),
        (7.0, 0.0, "7"),
        (math.inf, 1.0, "not a finite number"),
    ],
)
def test_as_many_digits_as_the_spread_deserves(mean: float, sd: float, text: str) -> None:
    assert estimate(mean, sd) == text


def test_numbers_of_one_row_are_written_alike() -> None:
    assert rounded(0.00100251, 8.5e-6, 9.885e-4) == "1.0025e-3"
    assert rounded(2.98, 17.0) == "2.98"


def test_what_is_not_known_is_not_shown() -> None:
    shown = [shrinkage_text(x) for x in (math.nan, 0.999, 0.42, -0.001, -0.2)]
    assert shown == ["", "over 0.99", "0.42", "0.00", "-0.20"]
    worst = meaning("si").weakest
    assert worst is not None
    assert "+ -" not in direction_text(worst)
