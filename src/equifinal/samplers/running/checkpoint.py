"""The state of a run in one file, replaced in one stroke, so that a process killed at any moment leaves a whole one.

Arrays only, and numbers as JSON: nothing in the file is ever executed.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from equifinal.errors import SamplingError
from equifinal.files import replace_file, require_regular

FORMAT = 6


@dataclass(frozen=True, eq=False)
class Saved:
    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]
    bit_generators: Sequence[Mapping[str, Any]]

    def tuple_of(self, kind: type[Any], name: str) -> Any:
        """Give back a NamedTuple that was saved under a name."""
        return _unpacked(kind, self.arrays, name)

    def generators(self) -> list[np.random.Generator]:
        rngs = []
        for state in self.bit_generators:
            rng = np.random.default_rng()
            rng.bit_generator.state = state
            rngs.append(rng)
        return rngs


def _packed(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Go through the arrays of a NamedTuple, and of those in it, by dotted names."""
    if hasattr(value, "_asdict"):
        for key, part in value._asdict().items():
            yield from _packed(f"{name}.{key}", part)
    else:
        yield name, np.asarray(value)


def _unpacked(kind: Any, arrays: Mapping[str, np.ndarray], name: str) -> Any:
    if hasattr(kind, "_fields"):
        kinds = get_type_hints(kind)
        return kind(*(_unpacked(kinds[key], arrays, f"{name}.{key}") for key in kind._fields))
    return kind(arrays[name].item()) if kind in (int, float, str) else arrays[name]


def _write(target: Path, buffer: io.BytesIO) -> None:
    with open(target, "wb") as file:
        file.write(buffer.getbuffer())
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class Checkpoint:
    """A file for the run that ``identity`` describes: the same posterior, the same settings."""

    path: Path
    identity: str

    def save(
        self,
        tuples: Mapping[str, Any],
        rngs: Sequence[np.random.Generator],
        numbers: Mapping[str, Any],
    ) -> None:
        header = {
            "format": FORMAT,
            "identity": self.identity,
            "numbers": dict(numbers),
            "generators": [rng.bit_generator.state for rng in rngs],
        }
        arrays = {key: array for name, value in tuples.items() for key, array in _packed(name, value)}
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        replace_file(self.path, lambda target: _write(target, buffer), "the checkpoint")

    def load(self) -> Saved | None:
        """What was saved, ``None`` if nothing was; an error if the file is of another run or damaged."""
        if not self.path.exists():
            return None
        require_regular(self.path)
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            found = header["format"], header["identity"]
            saved = Saved(arrays, header["numbers"], header["generators"])
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
            raise SamplingError(
                f"the checkpoint {self.path} is damaged or not a checkpoint; remove it to start the run anew"
            ) from None
        if found != (FORMAT, self.identity):
            raise SamplingError(
                f"the checkpoint {self.path} belongs to a run with another model, data, priors, settings or version; "
                "give another folder, or remove it to start anew"
            )
        return saved
