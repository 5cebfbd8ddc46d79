"""The folder of a fit: its files, and the right of one process at a time to write there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equifinal.errors import DataError, InterruptedRunError

RESULTS, REPORT, CHECKPOINT, LOCK = "results.nc", "report.html", "checkpoint.npz", ".lock"


def claim_folder(name: str) -> Path:
    """The first of NAME-run, NAME-run-2, ... that is new, or that holds an unfinished run nobody is working on."""
    number = 1
    while True:
        folder = Path(f"{name}-run" if number == 1 else f"{name}-run-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            if (folder / CHECKPOINT).exists() and _owner(folder) is None:
                return folder
        except OSError as error:
            raise DataError(f"cannot make the folder {folder}: {error.strerror or error}") from None
        number += 1


@contextmanager
def owned(folder: Path, overwrite: bool) -> Iterator[None]:
    """The folder, for this process alone."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, but `folder` must name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if _owner(folder) is None:
            (folder / LOCK).unlink(missing_ok=True)  # of a process that was killed
        with open(folder / LOCK, "x") as lock:
            lock.write(str(os.getpid()))
    except FileExistsError:
        raise DataError(f"another fit is writing to {folder}; choose another folder (`folder`)") from None
    except OSError as error:
        raise DataError(f"cannot write to the folder {folder}: {error.strerror or error}") from None
    try:
        if overwrite:
            (folder / CHECKPOINT).unlink(missing_ok=True)
        elif (folder / RESULTS).exists() and not (folder / CHECKPOINT).exists():
            raise DataError(
                f"{folder} already holds results; choose another folder (`folder`) or replace them (`overwrite=True`)"
            )
        yield
    finally:
        for leftover in (folder / LOCK, *folder.glob(".*.part")):
            leftover.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


@contextmanager
def to_be_continued(folder: Path) -> Iterator[None]:
    """An interrupt outside of sampling loses nothing either, if there is a checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / CHECKPOINT).exists():
            raise
        raise InterruptedRunError("interrupted") from None


def _owner(folder: Path) -> int | None:
    """The process that is at work in a folder; a killed one has left only its number."""
    try:
        process = int((folder / LOCK).read_text())
        os.kill(process, 0)
    except (OSError, ValueError, OverflowError):
        return None
    return process
