"""The folder of a fit: its files, and the right of one process at a time to write there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from warnings import warn

from equifinal.errors import DataError, InterruptedRunError
from equifinal.results.store import RESULTS

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

REPORT, CHECKPOINT, LOCK = "report.html", "checkpoint.npz", ".lock"


def claim_folder(name: str) -> Path:
    """The first of NAME-run, NAME-run-2, ... that is new, or that holds an unfinished run nobody is working on."""
    number = 1
    while True:
        folder = Path(f"{name}-run" if number == 1 else f"{name}-run-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            if (folder / CHECKPOINT).exists() and _is_free(folder):
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
        lock = _locked(folder)
    except OSError as error:
        raise DataError(f"cannot write to the folder {folder}: {error.strerror or error}") from None
    if lock is None:
        raise DataError(f"another fit is writing to {folder}; choose another folder (`folder`)")
    try:
        if overwrite:
            (folder / CHECKPOINT).unlink(missing_ok=True)
        elif (folder / RESULTS).exists() and not (folder / CHECKPOINT).exists():
            raise DataError(
                f"{folder} already holds results; choose another folder (`folder`) or replace them (`overwrite=True`)"
            )
        yield
    finally:
        with suppress(OSError):  # whatever is wrong with the disk by now, the error that ended the fit says more
            for leftover in (folder / LOCK, *folder.glob(".*.part")):
                leftover.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
        os.close(lock)


@contextmanager
def to_be_continued(folder: Path) -> Iterator[None]:
    """An interrupt outside of sampling loses nothing either, if there is a checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / CHECKPOINT).exists():
            raise
        raise InterruptedRunError("interrupted") from None


def _locked(folder: Path) -> int | None:
    """Lock the folder: the lock file, open, or None if another process has it.

    The kernel holds the lock and lets it go when the process ends, however that happens. The file is removed by its
    owner while it is locked, so one that is no longer in the folder when the lock is had was another owner's.
    """
    while True:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        if not _lock(lock, folder):
            os.close(lock)
            return None
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), os.stat(folder / LOCK)):
                return lock
        os.close(lock)


def _lock(file: int, folder: Path) -> bool:
    try:
        if fcntl is None:
            raise OSError(errno.ENOTSUP, "no locks")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS):
            raise
        warn(f"files cannot be locked here: make sure that no other fit writes to {folder}", stacklevel=4)
    return True


def _is_free(folder: Path) -> bool:
    """Whether no process is at work in a folder."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return _lock(lock, folder)
    finally:
        os.close(lock)
