"""What became of each replicate, a line of JSON each, in a file that a killed calibration goes on with.

The first line says what the replicates belong to. A line is written in one stroke and flushed; one that was cut short
by a kill is dropped, and its replicate is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equifinal.errors import DataError

FORMAT = 1


class ReplicateLog:
    """The file of one calibration; ``found`` holds what is in it, by number."""

    def __init__(self, path: Path, identity: Mapping[str, Any]):
        self.path = path
        self.found: dict[int, dict[str, Any]] = {}
        header = {"format": FORMAT, **identity}
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        whole = lines[:-1]  # what follows the last end of line is empty or was cut short
        if not whole:
            self._write(json.dumps(header) + "\n", "w")
            return
        self._require_same(whole[0], header)
        for line in whole[1:]:
            try:
                entry = json.loads(line)
                self.found[int(entry["number"])] = entry
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{path} is damaged; remove it to start afresh") from None
        if lines[-1]:
            with open(path, "r+b") as file:
                file.truncate(sum(len(line) + 1 for line in whole))

    def append(self, entry: Mapping[str, Any]) -> None:
        self._write(json.dumps(entry) + "\n", "a")
        self.found[int(entry["number"])] = dict(entry)

    def _write(self, text: str, mode: str) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, mode, encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from None

    def _require_same(self, line: bytes, header: Mapping[str, Any]) -> None:
        try:
            stored = json.loads(line)
            other = [name for name in header if stored.get(name) != json.loads(json.dumps(header[name]))]
        except (ValueError, AttributeError):
            raise DataError(
                f"{self.path} is not the record of a calibration; choose another place (`record`)"
            ) from None
        if other:
            raise DataError(
                f"{self.path} belongs to a calibration with another {' and '.join(other)}; choose another place "
                "(`record`), or remove the file to start afresh"
            )
