"""The folder of a fit belongs to one fit at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from equifinal.errors import DataError, InterruptedRunError
from equifinal.studies.folder import CHECKPOINT, claim_folder, owned, to_be_continued


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


_HOLD = """
import sys, time
from pathlib import Path
from equifinal.studies.folder import owned
with owned(Path(sys.argv[1]), overwrite=False):
    print("mine", flush=True)
    time.sleep(120)
"""


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    """The lock dies with its process, whatever process has its number afterwards."""
    folder = tmp_path / "out"
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "mine\n"
    with pytest.raises(DataError, match="another fit is writing"), owned(folder, overwrite=False):
        pass
    holder.kill()
    holder.communicate()
    (folder / ".lock").write_text(str(os.getpid()))  # as a recycled number would look
    with owned(folder, overwrite=False):
        assert (folder / ".lock").exists()
    assert not folder.exists()


def test_a_stale_lock_has_one_heir(tmp_path: Path) -> None:
    """Of many who find the lock of a killed process, one at a time gets it."""
    folder, owners, most = tmp_path / "out", 0, 0
    folder.mkdir()
    guard = threading.Lock()

    def attempt(_: int) -> bool:
        nonlocal owners, most
        try:
            with owned(folder, overwrite=False):
                with guard:
                    owners += 1
                    most = max(most, owners)
                (folder / "kept").touch()
                with guard:
                    owners -= 1
        except DataError:
            return False
        return True

    (folder / ".lock").write_text("1")
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(attempt, range(400)))
    assert any(got)
    assert most == 1


def test_where_files_cannot_be_locked_the_user_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.warns(UserWarning, match="make sure that no other fit writes"), owned(tmp_path / "o", overwrite=False):
        pass


def test_an_unfinished_run_is_gone_on_with_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = claim_folder("decay")
    (first / CHECKPOINT).touch()
    assert claim_folder("decay") == first
    with owned(first, overwrite=False):
        assert claim_folder("decay").name == "decay-run-2"  # where nothing is yet
    (first / ".lock").touch()  # left by a process that was killed
    assert claim_folder("decay") == first
    (first / CHECKPOINT).unlink()
    assert claim_folder("decay").name == "decay-run-3"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot make the folder .*file/decay-run: Not a directory"):
        claim_folder(str(tmp_path / "file" / "decay"))
    with pytest.raises(DataError, match="file is a file, but"), owned(tmp_path / "file", overwrite=False):
        pass


def test_an_interrupt_loses_nothing_that_a_checkpoint_has(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), to_be_continued(tmp_path):
        raise KeyboardInterrupt
    (tmp_path / CHECKPOINT).touch()
    with pytest.raises(InterruptedRunError, match="interrupted"), to_be_continued(tmp_path):
        raise KeyboardInterrupt
