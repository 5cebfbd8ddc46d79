"""What a calibration is said to have found: how posteriors err, and what limits the verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equifinal.studies.calibrate.findings import Calibration
from equifinal.words.calibration import calibration_json, departure_words, verdict_sentence, warning_sentences

MOST = 99
EVEN = np.arange(200) % (MOST + 1)  # each rank twice
ENTRY = {"least_ess": 500.0, "passed_over": 0, "sampler": "collapsed", "seconds": 1.0, "solves": 10}


def calibration(*columns: np.ndarray, failures: int = 0, **entry: Any) -> Calibration:
    names = tuple(f"p{k}" for k in range(len(columns)))
    return Calibration(
        problem="decay",
        sampler="auto",
        names=names,
        kinds=("parameter",) * len(names),
        ranks=np.column_stack(columns),
        most=MOST,
        seed=1,
        failures=tuple((k, "no start") for k in range(failures)),
        entries=[ENTRY | entry] * len(columns[0]),
    )


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (EVEN, ""),
        (90 + EVEN // 10, "posterior too low"),  # the truth is above nearly all draws
        (EVEN // 10, "posterior too high"),
        (np.where(EVEN < 50, EVEN // 10, 90 + EVEN // 10), "posterior too narrow"),
        (45 + EVEN // 10, "posterior too wide"),
        (np.where(EVEN % 10 < 5, 21, 78), "departs in another way"),  # mean and spread are those of even ranks
    ],
)
def test_how_a_posterior_errs(ranks: np.ndarray, words: str) -> None:
    found = calibration(EVEN, ranks)
    assert departure_words(found, "p1") == words
    assert departure_words(found, "p0") == ""
    assert ("NOT calibrated: the ranks of p1 depart from uniform" in verdict_sentence(found)) == bool(words)
    assert calibration_json(found)["quantities"]["p1"]["shape"] == words
    assert ("p1" in repr(found)) == bool(words)
    assert words in str(found)


def test_only_some_of_many_are_named() -> None:
    assert "p0, p1, p2, p3 and 2 more depart" in verdict_sentence(calibration(*[EVEN // 10] * 6))


def test_what_limits_the_verdict() -> None:
    assert warning_sentences(calibration(EVEN)) == []
    few, missing, passed, *rest = warning_sentences(
        calibration(np.where(np.arange(20) < 3, -1, np.arange(20)), failures=7, passed_over=2)
    )
    assert few == "20 replicates reveal gross errors only; 200 or more are usual"
    assert missing == "p0: not a number in 3 replicates, which are left out of its test"
    assert passed.startswith("40 prior draws were passed over")
    assert rest == [f"replicate {k} failed: no start" for k in range(5)] + ["and 2 more replicates failed"]
    short = calibration(EVEN, least_ess=50.0)
    assert "200 of 200 replicates had fewer than 99 effective draws" in warning_sentences(short)[0]


def test_a_quantity_that_never_was_a_number_has_no_histogram() -> None:
    found = calibration(EVEN, np.full(200, -1))
    assert found.departure("p1") == ""
    assert "p1: not a number in 200 replicates" in str(found)
    assert verdict_sentence(found).startswith("calibrated")
