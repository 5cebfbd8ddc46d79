"""Machine code is taken only from where nobody else can have put it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from equifinal.machine import cache

NAME = cache.key("entry")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(tmp_path / "cache"))
    assert cache.write(NAME, b"code")
    assert cache.read(NAME) == b"code"
    return tmp_path / "cache"


def test_the_folder_is_the_users_own(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_not_used(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert cache.read(NAME) is None
    assert not cache.write(NAME, b"other")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_or_file_of_somebody_else_is_not_used(folder: Path) -> None:
    os.chown(folder / NAME, 12345, 12345)
    assert cache.read(NAME) is None
    os.chown(folder / NAME, 0, 0)
    os.chown(folder, 12345, 12345)
    assert cache.read(NAME) is None
    assert not cache.write(NAME, b"other")


def test_links_are_not_followed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / NAME).rename(tmp_path / "elsewhere")
    (folder / NAME).symlink_to(tmp_path / "elsewhere")
    assert cache.read(NAME) is None
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(tmp_path / "link"))
    assert not cache.write(NAME, b"other")


def test_without_a_home_there_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloned repository with a folder named ~ must not supply machine code."""
    for name in ("EQUIFINAL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where the user is unknown, too
    monkeypatch.chdir(tmp_path)
    assert cache.directory() is None
    assert not cache.write(NAME, b"code")
    assert cache.read(NAME) is None
    assert not any(tmp_path.iterdir())
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", "relative")
    assert not cache.write(NAME, b"code")


def test_damage_is_absence(folder: Path) -> None:
    content = (folder / NAME).read_bytes()
    for damaged in (b"", content[:10], content[:-1], content + b"x", content[:-1] + b"x"):
        (folder / NAME).write_bytes(damaged)
        assert cache.read(NAME) is None


def test_old_entries_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = time.time() - 100 * cache.DAY
    os.utime(folder / NAME, (long_ago, long_ago))
    assert cache.write(cache.key("new"), b"new")
    assert cache.read(NAME) is None
    monkeypatch.setattr(cache, "MOST_ENTRIES", 3)
    for i in range(6):
        cache.write(cache.key(str(i)), b"x")
        os.utime(folder / cache.key(str(i)), (time.time() - 10 + i, time.time() - 10 + i))
    assert len(list(folder.iterdir())) <= 4
    assert cache.read(cache.key("5")) == b"x"


def test_an_entry_in_use_is_not_old(folder: Path) -> None:
    ago = time.time() - 80 * cache.DAY
    os.utime(folder / NAME, (ago, ago))
    assert cache.read(NAME) == b"code"
    assert (folder / NAME).stat().st_mtime > time.time() - cache.DAY
