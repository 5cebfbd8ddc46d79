"""Each way in which results are not as a run has left them is told by name."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from arviz import InferenceData

from equifinal.errors import DataError
from equifinal.results.checked import require_ours
from equifinal.results.store import problem_of
from tests.support.runs import run


def changed(**attributes: object) -> InferenceData:
    data = run("decay").copy()
    data.attrs = data.attrs | attributes
    return data


def without(group: str, *names: str) -> Callable[[InferenceData], None]:
    def change(data: InferenceData) -> None:
        setattr(data, group, data[group].drop_vars(names))

    return change


def set_to(group: str, name: str, value: object) -> Callable[[InferenceData], None]:
    def change(data: InferenceData) -> None:
        old = data[group][name]
        setattr(data, group, data[group].assign({name: (old.dims, np.full(old.shape, value))}))

    return change


def shortened(group: str) -> Callable[[InferenceData], None]:
    return lambda data: setattr(data, group, data[group].isel(draw=slice(0, 10)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: delattr(data, "log_prior"), "group 'log_prior' is missing"),
        (lambda data: setattr(data, "posterior", data.posterior.isel(draw=slice(0, 0))), "there are no draws"),
        (set_to("sample_stats", "lp", 1), "'lp' in sample_stats must be numbers by chain and draw"),
        (without("posterior", "k"), "'k' is missing in posterior"),
        (without("log_prior", "k"), "'k' is missing in log_prior"),
        (without("sample_stats", "lp"), "'lp' is missing in sample_stats"),
        (set_to("posterior", "k", np.nan), "the draws of 'k' must be finite, one for each chain and draw"),
        (shortened("sample_stats"), "sample_stats must have as many chains and draws as the posterior"),
    ],
)
def test_groups(change: Callable[[InferenceData], None], words: str) -> None:
    data = run("decay").copy()
    require_ours(data, problem_of(run("decay")))
    change(data)
    with pytest.raises(DataError, match=f"{words}; run the fit again"):
        require_ours(data, problem_of(run("decay")))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"seed": "7"}, "attribute 'seed' cannot be '7'"),
        ({"interrupted": 2}, "attribute 'interrupted' cannot be '2'"),
        ({"source": 3}, "attribute 'source' must be text"),
        ({"parameters": json.dumps(["k", "z"])}, "attribute 'parameters' does not name those of the problem"),
        ({"acceptance": [0.5]}, "attribute 'acceptance' must have a number for each chain"),
        ({"findings": json.dumps({"fresh_draws": 1.0})}, "do not have all that belongs to fresh_draws"),
    ],
)
def test_attributes(attributes: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        require_ours(changed(**attributes), problem_of(run("decay")))


def test_no_attribute_may_be_missing() -> None:
    data = changed()
    del data.attrs["misfit"]
    with pytest.raises(DataError, match="attribute 'misfit' is missing"):
        require_ours(data, problem_of(run("decay")))
