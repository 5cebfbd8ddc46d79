"""Edits of a file of results, made one at a time and systematically: whatever stands in it, several others."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np

Edit = Callable[[Path], None]
VALUES: dict[str, Any] = {
    "nothing": "",
    "words": "no such thing",
    "a list": "[1, [2, {}]]",
    "a table": '{"a": 1e999, "b": null}',
    "null": "null",
    "deep": "[" * 5000,
    "minus one": -1,
    "NaN": float("nan"),
    "huge": 1e308,
    "numbers": np.array([1.0, np.nan, 3.0]),
}
FILLS = {"NaN": np.nan, "infinite": np.inf, "huge": 1e308, "negative": -1e-300}


def edits(path: Path) -> Iterator[tuple[str, Edit]]:
    """Every edit of a file: of each variable of each group, of each attribute, and of each group as a whole."""
    with h5netcdf.File(path, "r") as file:
        groups = {group: list(file[group].variables) for group in file.groups}
        attributes = list(file.attrs)
        texts = {group: [v for v in names if file[group][v].dtype.kind not in "fi"] for group, names in groups.items()}
    for group, names in groups.items():
        yield f"{group} is gone", _changed(lambda f, g=group: f.__delitem__(g))
        for name in names:
            at = f"{group}/{name}"
            yield f"{at} is gone", _changed(lambda f, a=at: f.__delitem__(a))
            yield f"{at} is one number", _changed(lambda f, a=at: _replace(f, a, np.float64(1.0)))
            yield f"{at} is text", _changed(lambda f, a=at: _replace(f, a, "1/0"))
            yield f"{at} has no axes", _changed(lambda f, a=at: _plain(f, a))
            if name in texts[group]:
                for what, value in VALUES.items():
                    if isinstance(value, str):
                        yield f"{at} is {what}", _changed(lambda f, a=at, v=value: _replace(f, a, v))
            else:
                for what, fill in FILLS.items():
                    yield f"{at} is {what}", _changed(lambda f, a=at, v=fill: _fill(f, a, v))
    for name in attributes:
        yield f"attribute {name} is gone", _changed(lambda f, n=name: f.attrs.__delitem__(n))
        for what, value in VALUES.items():
            yield f"attribute {name} is {what}", _changed(lambda f, n=name, v=value: f.attrs.__setitem__(n, v))


def edited(path: Path, target: Path, edit: Edit) -> Path:
    """A copy of the file with one edit."""
    shutil.copyfile(path, target)
    edit(target)
    return target


def _changed(change: Callable[[Any], Any]) -> Edit:
    def edit(path: Path) -> None:
        import h5py

        with h5py.File(path, "r+") as file:
            change(file)

    return edit


def _replace(file: Any, at: str, value: Any) -> None:
    del file[at]
    file[at] = value


def _plain(file: Any, at: str) -> None:
    values = file[at][()]
    del file[at]
    file[at] = values


def _fill(file: Any, at: str, value: float) -> None:
    if file[at].dtype.kind == "f" and file[at].size:
        file[at][...] = value
    else:
        _replace(file, at, np.array([value]))
