"""Machine code kept on disk between runs, by content.

A cache may be missing, read-only, full, truncated, edited or written by two processes at once; none of that
is ever an error. An entry is one file: a checksum, then the code. What does not match its checksum, or is
not the user's own file, is treated as absent. Entries are written to a temporary name and moved into place,
so that a reader sees all of an entry or nothing.

``EQUIFINAL_CACHE_DIR`` says where; the default is the user's cache directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path

_CHECKSUM_BYTES = hashlib.sha256().digest_size


def directory() -> Path:
    """Where entries are kept."""
    chosen = os.environ.get("EQUIFINAL_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "equifinal"  # expanduser leaves "~" where there is no home


def key(*parts: str | bytes) -> str:
    """A name for an entry that depends on every part and on where one part ends and the next begins."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


def read(name: str) -> bytes | None:
    """The entry, or None if there is none that can be trusted."""
    try:
        with open(directory() / name, "rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            content = file.read()
    except OSError:
        return None
    checksum, data = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    return data if data and hashlib.sha256(data).digest() == checksum else None


def write(name: str, data: bytes) -> bool:
    """Store the entry; False where that is not possible."""
    temporary = None
    try:
        where = directory()
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(prefix=f".{name[:12]}-", dir=where)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, where / name)
        return True
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return False
