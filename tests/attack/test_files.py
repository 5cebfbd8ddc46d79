"""Files that are not what they seem: endless, huge, of another kind, or not meant to be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.files import read_text
from equifinal.formats.csv import read_csv
from equifinal.formats.load import load
from equifinal.results.store import load as load_results

PROBLEM = """
[model]
equations = "x' = -k*x"
outputs = ["x"]
[parameters]
k = { prior = "uniform", lower = 0, upper = 1 }
x_0 = { prior = "uniform", lower = 0, upper = 1 }
[noise]
x = { family = "normal", sd = 1 }
[data]
file = "FILE"
"""

ENDLESS = [path for path in ("/dev/zero", "/dev/urandom", "/dev/stdin") if Path(path).exists()]


@pytest.mark.parametrize("path", [*ENDLESS, "pipe"])
def test_what_never_ends_is_not_read(path: str, tmp_path: Path) -> None:
    if path == "pipe":
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
    (tmp_path / "problem.toml").write_text(PROBLEM.replace("FILE", path))
    for read in (
        lambda: load(tmp_path / "problem.toml"),
        lambda: load(path),
        lambda: read_csv(Path(path), {"time": "time"}),
        lambda: load_results(path),
    ):
        with pytest.raises(DataError, match=r"not a regular file|not a problem"):
            read()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "large.toml", "wb") as file:
        file.truncate(30_000_000)
    with pytest.raises(DataError, match="larger than 20 MB, the most that is read; put large data in a CSV file"):
        load(tmp_path / "large.toml")
    with pytest.raises(DataError, match="larger than 1 MB"):
        read_text(tmp_path / "large.toml", 1_000_000)


def test_little_of_a_file_is_shown(tmp_path: Path) -> None:
    """An error says what is wrong, but does not print a file that was never meant to be data."""
    secret = "SECRET" + "x" * 300 + "END"
    headers = (f"{secret},b\n1,2\n", f"time,{secret}\n1,2\n")
    cells = (f"time,x\n1,{secret}\n", f"time,x\n{secret},1\n", f"time,x\n1,<{secret}\n")
    for text in (*headers, *cells):
        (tmp_path / "data.csv").write_text(text)
        with pytest.raises(DataError) as caught:
            read_csv(tmp_path / "data.csv", {"time": "time", "x": "x"})
        assert "END" not in str(caught.value)
        assert len(str(caught.value)) < 250
    (tmp_path / "problem.toml").write_text(PROBLEM.replace('file = "FILE"', f'time = [1]\nx = ["<{secret}"]'))
    with pytest.raises(DataError, match="is not a limit") as caught:
        load(tmp_path / "problem.toml")
    assert "END" not in str(caught.value)
