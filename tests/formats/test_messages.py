"""What a user did wrong is said with where, what, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.errors import DataError, ModelError
from equifinal.formats.load import load
from equifinal.formats.toml import loads

TEXT = """
[model]
equations = "x' = -k*x; x(0) = 1"
outputs = ["x"]
[parameters]
k = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[noise]
x = { family = "lognormal", sdlog = 0.1 }
[data]
file = "d.csv"
columns = { time = "day", x = "level" }
"""


def written(folder: Path, data: str, text: str = TEXT) -> Path:
    (folder / "d.csv").write_text(data)
    (folder / "p.toml").write_text(text)
    return folder / "p.toml"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("day,levle\n1,2\n", r"no column 'level' for x; did you mean 'levle'\? \(its columns: 'day', 'levle'\)"),
        ("days,level\n1,2\n", r"no column 'day' for the times; did you mean 'days'\? \(its columns: .*'level'\)"),
        ("day,level\n1,2\n# note\n2,-3\n", r"d.csv, line 4: output 'x' has lognormal noise, .* positive; found -3"),
        ("day,level,extra\n1,2,3\n", r"column 'extra' is not an output; to skip it, add it to ignore"),
    ],
)  # fmt: skip
def test_columns_and_values(data: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        load(written(tmp_path, data))


def test_times_out_of_order_get_a_note(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="d.csv: the times are not in order"):
        problem = load(written(tmp_path, "day,level\n2,1\n1,3\n"))
    assert problem.experiments[0].observations[0].times.tolist() == [1, 2]


def test_a_missing_prior(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"g has no prior: add it to \[parameters\] or give it a value in \[constants\]"
    ):
        load(written(tmp_path, "day,level\n1,2\n", TEXT.replace("-k*x", "-k*g*x")))


def test_a_key_that_is_given_twice() -> None:
    with pytest.raises(DataError, match=r"problem, line 7: 'k' is given twice in this table"):
        loads(TEXT.replace("[noise]", "k = 3\n[noise]"))


def test_an_example_by_its_name_although_a_folder_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "si").mkdir()
    assert load("si").name == "si"
    with pytest.raises(DataError, match="neither a file nor an example; did you mean 'si'"):
        load("sii")
