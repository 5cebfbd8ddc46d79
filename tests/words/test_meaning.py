"""What is said of a parameter follows from its verdict and from how much the data told."""

from __future__ import annotations

import re
from dataclasses import replace
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from equifinal.language.expression import Name
from equifinal.results.information import Information
from equifinal.results.meaning import COMBINATION, NOISE, PARAMETER, QUANTITY, Direction, Finding
from equifinal.words.meaning import direction_text, driven_by, rounded, sentence, weakest_sentence

TOLD = Information(bits=4.0, shrinkage=0.9, lower_edge=0.0, upper_edge=0.0, middle=0.5)
LITTLE = replace(TOLD, bits=0.1, shrinkage=-0.05)
BELOW = replace(TOLD, upper_edge=1.0)
ABOVE = replace(TOLD, lower_edge=1.0)


def finding(kind: str, verdict: str, information: Information, share: float = 0.0, alternatives: int = 0) -> Finding:
    draws = np.linspace(1.0, 3.0, 201)
    return Finding("k", kind, Name("k"), verdict, alternatives, draws, draws, information, share)


def told(found: Finding, complete: bool = True, scope: str = "global") -> str:
    analysis = SimpleNamespace(complete=complete, scope=scope)
    meaning: Any = SimpleNamespace(identifiability=analysis, combinations_with=lambda _: [], tied_to=lambda _: [])
    return sentence(meaning, found)


@pytest.mark.parametrize(
    ("found", "words", "decides"),
    [
        (finding(PARAMETER, "globally", TOLD), "k: identifiable, and determined by the data", "data"),
        (finding(PARAMETER, "globally", LITTLE), "no narrower than your prior .0.1 bits", "data, barely"),
        (finding(PARAMETER, "globally", BELOW), "only bound it: at least 1.10 .*how large it is", "data, a bound only"),
        (finding(PARAMETER, "globally", ABOVE), "only bound it: at most 2.90 .*how small it is", "data, a bound only"),
        (finding(PARAMETER, "unknown", TOLD, nan), "whether it is identifiable is not known", "data and prior"),
        (finding(PARAMETER, "locally", TOLD, 0.2, 2), "up to 2 values that give the same", "data, up to alternatives"),
        (finding(PARAMETER, "locally", TOLD), "several values .or perhaps a single one.", "data, up to alternatives"),
        (finding(PARAMETER, "not", TOLD, 0.7), "No output depends on it", r"prior \(70%\)"),
        (finding(QUANTITY, "not", TOLD, 0.3), "prior alone accounts for 30% of its spread", "data; prior 30%"),
        (finding(QUANTITY, "not", TOLD, nan), "no matter how many data there are.$", "data and prior"),
        (finding(QUANTITY, "not", LITTLE, 0.3), "It can change while every output stays", "prior, data barely"),
        (finding(COMBINATION, "globally", TOLD), "k: determined by the data", "data"),
        (finding(COMBINATION, "globally", LITTLE), "k: identifiable, but barely informed by these", "data, barely"),
        (finding(COMBINATION, "globally", BELOW), "your other priors only bound it: at least", "data, a bound only"),
        (finding(NOISE, "globally", TOLD), "a noise parameter, determined by the residuals", "data"),
        (finding(NOISE, "globally", LITTLE), "a noise parameter, about which these data say little", "data, barely"),
        (finding(NOISE, "globally", ABOVE), "parameter; these data and your other priors only", "data, a bound only"),
    ],
)  # fmt: skip
def test_one_sentence_for_each_case(found: Finding, words: str, decides: str) -> None:

    assert re.search(words, told(found)), told(found)
    assert re.fullmatch(decides, driven_by(found))


def test_an_analysis_that_did_not_finish_claims_less() -> None:
    locally = finding(PARAMETER, "locally", TOLD)
    assert "at least locally; whether globally is not known" in told(locally, complete=False, scope="local")
    unsettled = finding(PARAMETER, "not", TOLD)
    assert "Which combinations containing it are determined is not known" in told(unsettled, complete=False)


def test_the_weakest_direction_is_written_as_it_was_measured() -> None:
    """Powers where logarithms were taken, sums where they could not be."""
    mixed = Direction({"a*b": 1.0, "c": 2.0, "d": -0.5}, 0.1, {"a*b": True, "c": False, "d": False})
    assert direction_text(mixed) == "log(a*b) + 2*c - 0.5*d"
    assert direction_text(Direction({"a": 1.0, "b": -2.0}, 0.1, {"a": True, "b": True})) == "a * b^-2"
    said = weakest_sentence(SimpleNamespace(weakest=mixed))
    assert said.startswith(
        "Of everything identifiable, the data say least about log(a*b) + 2*c - 0.5*d (shrinkage 0.10)"
    )
    assert weakest_sentence(SimpleNamespace(weakest=replace(mixed, shrinkage=0.99))) == ""


def test_numbers_without_a_spread_are_written_as_they_are() -> None:
    assert rounded(1.23456, 0.0) == "1.235"
    assert rounded(1.23456, 0.1) == "1.23"
