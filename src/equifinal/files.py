"""Reading text, with errors that say what is wrong; writing files so that they are either whole or as they were."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from equifinal.errors import DataError

MAX_TEXT_BYTES = 500_000_000
MAX_QUOTED = 40  # characters of a file that an error shows


def read_text(path: Path, most: int = MAX_TEXT_BYTES, *, advice: str = "") -> str:
    """A text file in UTF-8, of so many bytes at the most."""
    try:
        require_regular(path)
        with open(path, "rb") as file:
            content = file.read(most + 1)  # what a file says of its own size need not be so
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > most:
        raise DataError(f"{path} is larger than {most // 1_000_000} MB, the most that is read{advice}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file in UTF-8") from None


def require_regular(path: Path) -> None:
    """Refuse what is not a file of its own: folders, devices and pipes, some of which never end."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file inside it")
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is not a regular file, but a device or a pipe")


def quoted(text: str) -> str:
    """A piece of a file for an error message, not more of it than that needs."""
    shown = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 3] + "..."
    return "'" + "".join(c if c.isprintable() else "\ufffd" for c in shown) + "'"


def replace_file(path: Path, write: Callable[[Path], object], what: str) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then put it in its place; folders are made as needed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        _to_disk(temporary)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # HDF5 reports a full disk in its own way
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot write {what} {path}: {reason}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def _to_disk(path: Path) -> None:
    """Wait until the file is on the disk: else a power cut could leave its name with nothing in it."""
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)
