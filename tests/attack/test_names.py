"""Names that could collide, or play tricks on a terminal."""

from __future__ import annotations

import pytest

from equifinal.errors import DataError
from equifinal.language.model import Model
from equifinal.posterior.posterior import Posterior
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem
from equifinal.results.groups import _observed

MODEL = Model.parse("x' = -k*x\nx(0) = 1", ["x"])


def _problem(*names: str, title: str = "problem") -> Problem:
    seen = Observations("x", [1.0], [0.5], Noise("normal", sd=0.1))
    experiments = tuple(Experiment(MODEL, (seen,), name=name) for name in names)
    return Problem(experiments, {"k": Prior("uniform", lower=0, upper=1)}, name=title)


@pytest.mark.parametrize("names", [("a per c", "a/c"), ("a%2Fc", "a/c"), ("a", "a/"), ("a [b", "a"), ("%", "%25")])
def test_no_two_experiments_share_their_results(names: tuple[str, str]) -> None:
    values, dims, coords = _observed(_problem(*names))
    assert len(values) == len(dims) == len(coords) == 2
    assert not any("/" in label for label in values)


@pytest.mark.parametrize("name", ["a\x00b", "a\x1b[31m", "a\nb", "a\u202eb"])
def test_control_characters_are_refused_in_names(name: str) -> None:
    with pytest.raises(DataError, match="control characters") as caught:
        _problem(name, "other")
    assert name not in str(caught.value)


def test_a_title_from_a_file_name_is_made_printable() -> None:
    assert _problem("", title="a\x1b]0;b\x07").name == "a\ufffd]0;b\ufffd"
    Posterior(_problem("", title="a\x1bb"))
