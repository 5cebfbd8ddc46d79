"""What every format does, tested for all that are registered, and how `load` finds the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

import equifinal
from equifinal.errors import DataError, ModelError
from equifinal.examples import EXAMPLES, example_path
from equifinal.formats import json, petab, sbml, toml
from equifinal.formats.json import problem_to_json
from equifinal.formats.load import FORMATS, Format, load
from equifinal.problem.problem import Problem
from tests.support.petab import FILES_1, write
from tests.support.problems import DECAY

# for each format, how a problem is written, and under what name
WRITTEN = {
    toml: lambda folder: _write(folder / "decay.toml", DECAY),
    json: lambda folder: _write(folder / "decay.json", problem_to_json(toml.loads(DECAY, name="decay"))),
    petab: lambda folder: write(folder, FILES_1),
    sbml: lambda folder: _write(folder / "model.xml", FILES_1["model.xml"]),
}
every_format = pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.KIND)


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_every_format_is_covered() -> None:
    assert set(WRITTEN) == set(FORMATS)


@every_format
def test_a_format_recognises_and_loads_its_own(known: Format, tmp_path: Path) -> None:
    path = WRITTEN[known](tmp_path)
    assert [other for other in FORMATS if other.recognises(path)] == [known]
    problem = known.load(path)
    assert isinstance(problem, Problem)
    assert problem.name == path.stem
    assert problem.fingerprint() == load(path).fingerprint()
    if known in (toml, json):
        assert problem.fingerprint() == toml.loads(DECAY, name="decay").fingerprint()
    assert known.load(path, data=False).priors == problem.priors


@every_format
def test_recognising_never_fails(known: Format, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_bytes(bytes(range(256)))
    for path in (tmp_path, tmp_path / "none", junk, Path("\0"), Path("")):
        assert known.recognises(path) is False


@every_format
def test_damaged_files_are_the_users_errors(known: Format, tmp_path: Path) -> None:
    path = WRITTEN[known](tmp_path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 3], bytes(range(128, 256)), b"[" * 100_000):
        path.write_bytes(damaged)
        with pytest.raises((DataError, ModelError), match=path.name):
            known.load(path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    assert equifinal.load(str(example_path(name))).name == name


def test_a_problem_file_by_any_name(tmp_path: Path) -> None:
    for name in ("decay", "decay.txt", "DECAY.TOML"):
        assert load(_write(tmp_path / name, DECAY)).parameters == ("k", "a")


def test_unknown_kinds(tmp_path: Path) -> None:
    path = _write(tmp_path / "data.csv", "time,y\n0,1\n")
    with pytest.raises(DataError, match=r"data\.csv is not a problem of a known kind.*TOML.*JSON"):
        load(path)
    with pytest.raises(DataError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"cannot read .*none"):
        load(tmp_path / "none")


def test_constants_that_would_take_forever(tmp_path: Path) -> None:
    text = problem_to_json(
        toml.loads(DECAY.replace("[noise]", "[constants]\nc = 2\n[noise]").replace("= x\n", "= c*x\n"))
    )
    assert '"c": "2"' in text
    path = _write(tmp_path / "p.json", text.replace('"c": "2"', '"c": "1e999999999"'))
    with pytest.raises(DataError, match="not a stored problem"):
        load(path)
