"""Reading text, with errors that say what is wrong; writing files so that they are either whole or as they were."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from equifinal.errors import DataError


def read_text(path: Path, most: int | None = None) -> str:
    """A text file in UTF-8, of so many bytes at the most."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder; give the name of a file inside it")
        if most is not None and path.stat().st_size > most:
            raise DataError(f"{path} is larger than {most // 1_000_000} MB; put large data in a CSV file")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def replace_file(path: Path, write: Callable[[Path], object], what: str) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then put it in its place; folders are made as needed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # HDF5 reports a full disk in its own way
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot write {what} {path}: {reason}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path
