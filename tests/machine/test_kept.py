"""Code that is shipped: found under its name, made for this machine, and nothing where it is damaged."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from equifinal.machine import cache, kept, native
from equifinal.machine.kept import Code


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "SHIPPED", tmp_path)
    monkeypatch.setattr(native, "emit_object", lambda bitcode: b"for this machine: " + bitcode)
    return tmp_path


def test_what_is_shipped_is_found_made_and_kept(shipped: Path) -> None:
    assert not kept.is_there("name")
    kept.ship("name", Code(b"bitcode", b"what is known of it"), shipped)
    assert kept.is_there("name")
    made = Code(b"for this machine: bitcode", b"what is known of it")
    assert kept.find("name") == made
    (shipped / "name").unlink()
    assert kept.find("name") == made  # from the cache


@pytest.mark.parametrize("content", [b"", b"not compressed", zlib.compress(b"12345678bitcode")[:-3]])
def test_what_is_damaged_is_not_there(content: bytes, shipped: Path) -> None:
    (shipped / "name").write_bytes(content)
    assert kept.find("name") is None
    assert cache.read("name") is None


def test_a_name_depends_on_where_parts_end() -> None:
    assert len({kept.entry_name("ab", "c"), kept.entry_name("a", "bc"), kept.entry_name("abc")}) == 3
