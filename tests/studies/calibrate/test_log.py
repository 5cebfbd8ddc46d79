"""The record of a calibration: what was cut short is done again, and what is not its own is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.studies.calibrate.log import ReplicateLog

IDENTITY = {"problem": "decay", "seed": 3}


def test_entries_are_found_again_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "new" / "record.jsonl"
    log = ReplicateLog(path, IDENTITY)
    for number in (4, 1):
        log.append({"number": number, "ranks": {"k": number}})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"number": 2, "ra')
    again = ReplicateLog(path, IDENTITY)
    assert again.found == log.found == {4: {"number": 4, "ranks": {"k": 4}}, 1: {"number": 1, "ranks": {"k": 1}}}
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["{}", "nonsense", "[1]", '{"number": "many"}'])
def test_a_damaged_line_is_told(line: str, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    ReplicateLog(path, IDENTITY)
    with path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=r"record\.jsonl is damaged; remove it to start afresh"):
        ReplicateLog(path, IDENTITY)


def test_places_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        ReplicateLog(tmp_path, IDENTITY)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*: (Not a directory|File exists)"):
        ReplicateLog(tmp_path / "file" / "record.jsonl", IDENTITY)
