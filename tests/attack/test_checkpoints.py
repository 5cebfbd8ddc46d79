"""Checkpoints that somebody edited: arrays of other shapes and types, numbers that cannot be, parts that are not there.

Compiled code trusts shapes, so none of that may reach it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import numpy as np
import pytest

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.samplers import registry
from equifinal.samplers.running.checkpoint import SCALARS
from equifinal.samplers.running.run import run
from equifinal.samplers.running.segment import Chunk, Tally
from equifinal.samplers.settings import RunSettings

SAMPLERS = ("collapsed", "pseudo-marginal", "geometric", "random-walk")
# a and b enter as a product only; sigma is integrated out by the collapsed sampler
PRODUCT = """
[model]
equations = "x' = -k*x; x(0) = a*b; y = x"
outputs = ["y"]
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 2 }
a = { prior = "uniform", lower = 1, upper = 2 }
b = { prior = "uniform", lower = 1, upper = 2 }
sigma = { prior = "loguniform", lower = 0.01, upper = 1 }
[noise]
y = { family = "normal", sd = "sigma" }
[data]
time = [0, 0.5, 1, 2, 4]
y = [1.9, 1.6, 1.1, 0.8, 0.1]
"""


@cache
def posterior() -> tuple[Posterior, Fibre]:
    problem = loads(PRODUCT, name="product")
    return Posterior(problem), fibre_of(problem)


def settings(sampler: str) -> RunSettings:
    return RunSettings(sampler=sampler, chains=2, warmup=20, draws=60, seed=3)


@cache
def saved(sampler: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and header of a run that was interrupted after some draws."""

    def interrupt(update: Any) -> None:
        if update.iteration > 30:
            raise KeyboardInterrupt

    made, fibre = posterior()
    with pytest.MonkeyPatch.context() as patch:
        written: list[bytes] = []
        patch.setattr(
            "equifinal.samplers.running.checkpoint.replace_file", lambda *given: given[1](Sink(written)) or given[0]
        )
        patch.setattr(
            "equifinal.samplers.running.checkpoint._write", lambda target, buffer: target.written.append(buffer)
        )
        run(made, settings(sampler), fibre=fibre, progress=interrupt, checkpoint=Path("nowhere.npz"))
    with np.load(io.BytesIO(written[-1].getvalue())) as file:  # type: ignore[attr-defined]
        arrays = {name: file[name] for name in file.files}
    return arrays, json.loads(arrays.pop("header").tobytes())


class Sink:
    """In place of a file."""

    def __init__(self, written: list[bytes]):
        self.written = written


def resumed(sampler: str, arrays: dict[str, np.ndarray], header: dict[str, Any], folder: Path) -> Any:
    file = folder / "checkpoint.npz"
    np.savez(file, allow_pickle=False, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    made, fibre = posterior()
    return run(made, settings(sampler), fibre=fibre, checkpoint=file)


def edits(array: np.ndarray) -> Iterator[np.ndarray]:
    """Other types, more and fewer axes, and each axis longer, shorter and empty."""
    yield array.astype(str if array.dtype.kind != "U" else float if not array.size else "S3")
    yield array[None]
    for axis in range(array.ndim):
        yield np.concatenate([array, array.take([0] if array.shape[axis] else [], axis=axis)], axis=axis)
        yield array.take(range(array.shape[axis] - 1), axis=axis)
        yield array.take(0, axis=axis) if array.shape[axis] else array.sum(axis=axis)


@pytest.mark.slow
def test_what_was_saved_goes_on(tmp_path: Path) -> None:
    made, fibre = posterior()
    for sampler in SAMPLERS:
        again = resumed(sampler, *saved(sampler), tmp_path)
        whole = run(made, settings(sampler), fibre=fibre)
        np.testing.assert_array_equal(again.theta, whole.theta)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_other_shapes_and_types_are_refused(sampler: str, tmp_path: Path) -> None:
    arrays, header = saved(sampler)
    tried = 0
    for name, array in arrays.items():
        for other in edits(array):
            if other.shape == array.shape and other.dtype == array.dtype:
                continue  # nothing to lose on that axis
            with pytest.raises(SamplingError, match="damaged"):
                resumed(sampler, arrays | {name: other}, header, tmp_path)
            tried += 1
        with pytest.raises(SamplingError, match="damaged"):
            resumed(sampler, {other: kept for other, kept in arrays.items() if other != name}, header, tmp_path)
    assert tried > 40


HOSTILE = [
    {"iteration": -5},
    {"iteration": 1e300},
    {"iteration": 79},
    {"iteration": "31"},
    {"thin": 0},
    {"thin": 2},
    {"looked": 10**30},
    {"sampler": "../../etc"},
    {"sampler": None},
    {"notes": 7},
    {"more": 1},
]


@pytest.mark.parametrize("edit", HOSTILE, ids=str)
def test_hostile_numbers_are_refused(edit: dict[str, Any], tmp_path: Path) -> None:
    arrays, header = saved("collapsed")
    with pytest.raises(SamplingError, match="damaged"):
        resumed("collapsed", arrays, header | {"numbers": header["numbers"] | edit}, tmp_path)


@pytest.mark.parametrize("generators", [[], [{}] * 2, ["x", "y"], [{"bit_generator": "MT19937"}] * 2, None])
def test_hostile_generators_are_refused(generators: Any, tmp_path: Path) -> None:
    arrays, header = saved("collapsed")
    with pytest.raises(SamplingError, match="damaged"):
        resumed("collapsed", arrays, header | {"generators": generators}, tmp_path)


@pytest.mark.parametrize(("name", "value"), [("way", 99), ("way", -1), ("number", 0), ("number", 10**9), ("lanes", 0)])
def test_a_plan_that_cannot_be_is_refused(name: str, value: int, tmp_path: Path) -> None:
    arrays, header = saved("collapsed")
    with pytest.raises(SamplingError, match="damaged"):
        resumed("collapsed", arrays | {f"plan.{name}": np.array(value)}, header, tmp_path)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_array_of_a_sampler_says_its_shape(sampler: str) -> None:
    own = registry.sampler(sampler)

    def kinds(kind: Any) -> Iterator[Any]:
        for one in get_type_hints(kind, include_extras=True).values():
            yield from kinds(one) if hasattr(one, "_fields") else [one]

    for kind in [one for part in (own.Plan, own.State, Chunk, Tally) for one in kinds(part)]:
        assert kind in SCALARS or get_origin(kind) is Annotated, kind
