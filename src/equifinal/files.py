"""Writing files so that they are either whole or as they were before, whatever interrupts it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from equifinal.errors import DataError


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
