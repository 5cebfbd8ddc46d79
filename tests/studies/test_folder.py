"""The folder of a fit belongs to one fit at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.studies.folder import claim_folder, owned


def test_folders_claimed_at_once_are_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(claim_folder, ["decay"] * 40))
    assert {folder.name for folder in found} == {"decay-run", *(f"decay-run-{n}" for n in range(2, 41))}


def test_nobody_else_may_write_there(tmp_path: Path) -> None:
    with owned(tmp_path / "out", overwrite=False):
        with pytest.raises(DataError, match="another fit is writing"), owned(tmp_path / "out", overwrite=True):
            pass
        (tmp_path / "out" / "results.nc").touch()
    with pytest.raises(DataError, match="already holds results"), owned(tmp_path / "out", overwrite=False):
        pass
