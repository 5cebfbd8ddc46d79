"""The state of a run in one file, replaced in one stroke, so that a process killed at any moment leaves a whole one.

Arrays only, and numbers as JSON: nothing in the file is ever executed. What is read back must have the types and shapes
that its NamedTuple names, for compiled code trusts them: in ``Annotated[Array, "chains d"]`` the words are sizes, and
the same word is the same size everywhere.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from equifinal.errors import SamplingError
from equifinal.files import replace_file, require_regular

FORMAT = 7
SCALARS: dict[type, str] = {int: "i", float: "f", bool: "b", str: "U"}


@dataclass(frozen=True, eq=False)
class Saved:
    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]
    bit_generators: Sequence[Mapping[str, Any]]

    def tuple_of(self, kind: type[Any], name: str, sizes: dict[str, int]) -> Any:
        """Give back a NamedTuple that was saved under a name; ``sizes`` are those known, and gets those found."""
        return _unpacked(kind, self.arrays, name, sizes)

    def generators(self, number: int) -> list[np.random.Generator]:
        """As many generators as there are chains."""
        if len(self.bit_generators) != number:
            raise ValueError("generators")
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


def _unpacked(kind: Any, arrays: Mapping[str, np.ndarray], name: str, sizes: dict[str, int]) -> Any:
    if hasattr(kind, "_fields"):
        kinds = get_type_hints(kind, include_extras=True)
        return kind(*(_unpacked(kinds[key], arrays, f"{name}.{key}", sizes) for key in kind._fields))
    array, axes = arrays[name], ""
    if get_origin(kind) is Annotated:
        kind, axes = get_args(kind)
    elif kind not in SCALARS:  # of a sampler that does not say
        return array
    if array.ndim != len(axes.split()) or array.dtype.kind != _letter(kind):
        raise ValueError(name)
    for axis, size in zip(axes.split(), array.shape, strict=True):
        if size not in [_size(word, size, sizes) for word in axis.split("|")]:
            raise ValueError(name)
    return kind(array.item()) if kind in SCALARS else np.ascontiguousarray(array)


def _letter(kind: Any) -> str:
    """NumPy's letter for a number, or for the numbers of an array type."""
    if kind in SCALARS:
        return SCALARS[kind]
    (number,) = get_args(get_args(kind)[1])
    return np.dtype(number).kind


def _size(word: str, found: int, sizes: dict[str, int]) -> int:
    """The size that a word stands for; if it was not known, that which was found."""
    return int(word) if word.isdigit() else sizes.setdefault(word, found)


def _write(target: Path, buffer: io.BytesIO) -> None:
    target.write_bytes(buffer.getbuffer())


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

    @property
    def damaged(self) -> SamplingError:
        """What to say of a file that cannot be what was saved."""
        return SamplingError(
            f"the checkpoint {self.path} is damaged or not a checkpoint; remove it to start the run anew"
        )

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
            raise self.damaged from None
        if found != (FORMAT, self.identity):
            raise SamplingError(
                f"the checkpoint {self.path} belongs to a run with another model, data, priors, settings or version; "
                "give another folder, or remove it to start anew"
            )
        return saved
