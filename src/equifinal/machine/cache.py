"""Machine code kept on disk between runs, by content.

A cache may be missing, read-only, full, truncated, edited or written by two processes at once; none of that
is ever an error. An entry is one file: a checksum, then the code. What does not match its checksum is treated as
absent. Entries are written to a temporary name and moved into place, so that a reader sees all of an entry or nothing.

A checksum beside the code protects against damage, not against people: code is only taken from, and written to, a
folder that has an absolute path, belongs to this user and can be written by nobody else, and links are not followed.
Otherwise there is no cache. Entries that have not been used for long are removed.

``EQUIFINAL_CACHE_DIR`` says where; the default is the user's cache directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from pathlib import Path

_CHECKSUM_BYTES = hashlib.sha256().digest_size
DAY, UNUSED_DAYS, MOST_ENTRIES = 86_400.0, 90, 2000


def directory() -> Path | None:
    """Where entries are kept; None where there is no such place."""
    chosen = os.environ.get("EQUIFINAL_CACHE_DIR")
    if not chosen:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
        elif sys.platform == "darwin":
            base = "~/Library/Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        chosen = os.path.join(os.path.expanduser(base), "equifinal")
    # a relative path, as is left of "~" where there is no home, would be a folder of whatever is being worked on
    return Path(chosen) if os.path.isabs(chosen) else None


def _own_folder(*, make: bool) -> Path | None:
    """The folder of the cache, if it is this user's alone."""
    where = directory()
    if where is None:
        return None
    if make:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = os.lstat(where)
    if not stat.S_ISDIR(found.st_mode):
        return None
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return where


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
        where = _own_folder(make=False)
        if where is None:
            return None
        handle = os.open(where / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
                return None
            content = file.read()
            if time.time() - found.st_mtime > DAY:
                os.utime(where / name)  # used, so not old
    except OSError:
        return None
    checksum, data = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    return data if data and hashlib.sha256(data).digest() == checksum else None


def write(name: str, data: bytes) -> bool:
    """Store the entry; False where that is not possible."""
    temporary = None
    try:
        where = _own_folder(make=True)
        if where is None:
            return False
        handle, temporary = tempfile.mkstemp(prefix=f".{name[:12]}-", dir=where)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, where / name)
        temporary = None
        _prune(where)
        return True
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return False


def _prune(where: Path) -> None:
    """Remove entries that have not been used for long, and the longest unused of too many."""
    found: list[tuple[float, str]] = []
    with os.scandir(where) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # others write and remove theirs at the same time
                found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
    found.sort()
    oldest = time.time() - UNUSED_DAYS * DAY
    surplus = len(found) - MOST_ENTRIES
    for place, (used, path) in enumerate(found):
        if used < oldest or place < surplus:
            with contextlib.suppress(OSError):
                os.unlink(path)
