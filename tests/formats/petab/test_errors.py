"""Whatever is wrong with a PEtab problem is said with file and row, soon, and nothing outside its folder is read."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from equifinal.errors import DataError, EquifinalError
from equifinal.formats.load import load
from tests.support.petab import FILES_1, FILES_2, YAML_1, YAML_2, table, write


def test_both_versions_are_read(tmp_path: Path) -> None:
    one, two = load(write(tmp_path / "1", FILES_1)), load(write(tmp_path / "2", FILES_2))
    assert one.parameters == two.parameters == ("k1", "k2")
    assert one.nominal == two.nominal == {"k1": 0.8, "k2": 0.6}
    assert [prior.family for prior in one.priors.values()] == ["uniform", "loguniform"]
    assert [prior.family for prior in two.priors.values()] == ["uniform", "uniform"]
    assert one.experiments[0].name == "c0"
    assert two.experiments[0].observations[0].values.tolist() == [0.7, 0.1]


LONG = "+".join(["A"] * 600_000)
OR = "piecewise(A, " + " || time > 1 && ".join(["time > 2"] * 2000) + ", "
DEEP = "(" * 40_000 + "A" + ")" * 40_000
PARAMETERS = FILES_1["parameters.tsv"]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("problem.yaml", "format_version: 3\n", ["problem.yaml", "format_version"]),
        ("problem.yaml", "just words", ["problem.yaml", "format_version"]),
        ("problem.yaml", "a: [1, 2", ["problem.yaml", "line", "YAML"]),
        ("problem.yaml", "a: &x [1]\nb: [*x, *x]\n", ["problem.yaml", "aliases"]),
        ("problem.yaml", "[" * 900, ["problem.yaml", "YAML"]),
        ("problem.yaml", YAML_1.replace("model.xml", "absent.xml"), ["problem.yaml", "absent.xml", "does not exist"]),
        ("problem.yaml", YAML_1.replace("model.xml", "../model.xml"), ["problem.yaml", "outside"]),
        ("problem.yaml", YAML_1.replace("model.xml", "/etc/passwd"), ["problem.yaml", "outside"]),
        ("problem.yaml", YAML_1.replace("model.xml", "https://example.org/m.xml"), ["problem.yaml", "address"]),
        (
            "problem.yaml",
            YAML_1.replace("parameter_file:", "parameters:"),
            ["problem.yaml", "'parameter_file' is missing"],
        ),
        ("parameters.tsv", PARAMETERS.replace("estimate", "estimated"), ["parameters.tsv", "no column 'estimate'"]),
        (
            "parameters.tsv",
            PARAMETERS.replace("0.1\t2\t0.8", "\t\t0.8"),
            ["parameters.tsv, row 2", "'k1'", "lowerBound"],
        ),
        (
            "parameters.tsv",
            PARAMETERS.replace("0.1\t2\t0.8", "0\t0\t0.8"),
            ["parameters.tsv, row 2", "below upperBound"],
        ),
        ("parameters.tsv", PARAMETERS.replace("log10\t0.1", "log10\t0"), ["parameters.tsv, row 3", "positive"]),
        ("parameters.tsv", PARAMETERS.replace("log10", "log11"), ["parameters.tsv, row 3", "did you mean 'log10'"]),
        (
            "parameters.tsv",
            PARAMETERS.replace("0.8\t1", "?\t1"),
            ["parameters.tsv, row 2", "nominalValue", "not a number"],
        ),
        ("parameters.tsv", "", ["parameters.tsv", "empty"]),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": "A*", "noiseFormula": 1}]),
            ["observables.tsv, row 2", "observableFormula", "column 3"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": "Q", "noiseFormula": 1}]),
            ["observables.tsv, row 2: unknown name 'Q'"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": "A", "noiseFormula": "s"}]),
            ["observables.tsv, row 2: unknown name 's'"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": "__import__('os')", "noiseFormula": 1}]),
            ["observables.tsv, row 2"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": LONG, "noiseFormula": 1}]),
            ["observables.tsv"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": DEEP, "noiseFormula": 1}]),
            ["observables.tsv, row 2", "nested"],
        ),
        ("conditions.tsv", table([{"conditionId": "c0", "Aa": 1}]), ["conditions.tsv", "column 'Aa'"]),
        ("conditions.tsv", table([{"conditionId": "c1", "A": 1}]), ["measurements.tsv, row 2", "condition 'c0'"]),
        (
            "conditions.tsv",
            table([{"conditionId": "c0", "A": "k3"}]),
            ["conditions.tsv, row 2", "'k3'"],
        ),
        (
            "measurements.tsv",
            FILES_1["measurements.tsv"].replace("obs_a", "obs_b"),
            ["measurements.tsv, row 2", "'obs_b'", "obs_a"],
        ),
        (
            "measurements.tsv",
            FILES_1["measurements.tsv"].replace("0.7", "x"),
            ["measurements.tsv, row 2", "'x' is not a number"],
        ),
        (
            "measurements.tsv",
            FILES_1["measurements.tsv"].replace("\t0\t", "\t-1\t"),
            ["measurements.tsv, row 2", "-1 is before the start"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": "A", "noiseFormula": -1}]),
            ["observables.tsv, row 2", "positive"],
        ),
        ("problem.yaml", YAML_1.replace("[model.xml]", "{a: 1}"), ["problem.yaml", "sbml_files", "{'a': 1}"]),
        ("model.xml", "no model", ["model.xml", "not an XML file"]),
        (
            "problem.yaml",
            YAML_1 + "parameter_file: other.tsv\n",
            ["problem.yaml, line", "'parameter_file' appears twice"],
        ),
        (
            "problem.yaml",
            YAML_1.replace("parameters.tsv", "a" * 5000),
            ["problem.yaml", "cannot be the name of a file"],
        ),
        ("problem.yaml", YAML_1.replace("[conditions.tsv]", ""), ["problem.yaml: 'condition_files' is empty"]),
        ("parameters.tsv", PARAMETERS.replace("0.8\t1", "0.8\t2"), ["parameters.tsv, row 2", "expected 0 or 1, not 2"]),
        ("parameters.tsv", PARAMETERS.replace("k1", "k 1"), ["parameters.tsv, row 2", "'k 1' is not an identifier"]),
        ("parameters.tsv", PARAMETERS + "A\tlin\t0.1\t2\t1\t1\n", ["problem.yaml: 'A'", "changes with time"]),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": OR + "1,A)", "noiseFormula": 1}]),
            ["nested"],
        ),
        (
            "observables.tsv",
            table([{"observableId": "obs_a", "observableFormula": "A < 1" + " < 1" * 20_000, "noiseFormula": 1}]),
            ["observables.tsv, row 2", "nested"],
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, file: str, content: str, words: list[str]) -> None:
    path = write(tmp_path, {**FILES_1, file: content})
    with pytest.raises(EquifinalError) as raised:
        load(path)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (
            "conditions.tsv",
            table([{"conditionId": "c0", "targetId": "Aa", "targetValue": 1}]),
            ["conditions.tsv, row 2: unknown name 'Aa'"],
        ),
        (
            "conditions.tsv",
            table([{"conditionId": "c0", "targetId": "A", "targetValue": "2*k3"}]),
            ["conditions.tsv, row 2: unknown name 'k3'"],
        ),
        ("problem.yaml", YAML_2 + "extensions: [a]\n", ["problem.yaml: 'extensions'"]),
        (
            "conditions.tsv",
            table([{"conditionId": "c0", "targetId": "k1", "targetValue": 1}]),
            ["conditions.tsv, row 2: 'k1' is in the parameter table"],
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_mistakes_of_version_2(tmp_path: Path, file: str, content: str, words: list[str]) -> None:
    path = write(tmp_path, {**FILES_2, file: content})
    with pytest.raises(EquifinalError) as raised:
        load(path)
    for word in words:
        assert word in str(raised.value)


def test_a_condition_may_set_what_only_an_observable_names(tmp_path: Path) -> None:
    observables = table([{"observableId": "obs_a", "observableFormula": "factor*A", "noiseFormula": 0.5}])
    conditions = table([{"conditionId": "c0", "factor": 3}])
    path = write(tmp_path, {**FILES_1, "observables.tsv": observables, "conditions.tsv": conditions})
    assert load(path).parameters == ("k1", "k2")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    path = write(tmp_path / "problem", FILES_1)
    (tmp_path / "secret.xml").write_text(FILES_1["model.xml"])
    (path.parent / "model.xml").unlink()
    (path.parent / "model.xml").symlink_to(tmp_path / "secret.xml")
    with pytest.raises(DataError, match="outside the problem's folder"):
        load(path)


def test_an_unused_parameter_keeps_its_prior_and_is_noted(tmp_path: Path) -> None:
    path = write(tmp_path, {**FILES_1, "parameters.tsv": PARAMETERS + "idle\tlin\t0\t1\t0.5\t1\n"})
    problem = load(path)
    assert problem.parameters == ("k1", "k2", "idle")
    assert any("'idle'" in note for note in problem.notes)
    assert math.isfinite(problem.nominal["k1"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("kk", "zork")], "map.tsv, row 2: 'zork' is not in the model"),
        ([("kk", "k1"), ("kk", "k2")], "map.tsv, row 3: 'kk' appears twice"),
        ([("k2", "k1")], "map.tsv, row 2: 'k2' is in the model already"),
    ],
)
def test_a_mapping_that_would_mean_two_things(tmp_path: Path, rows: list[tuple[str, str]], words: str) -> None:
    mapping = table([{"petabEntityId": ours, "modelEntityId": its} for ours, its in rows])
    files = {**FILES_2, "problem.yaml": YAML_2 + "mapping_files: [map.tsv]\n", "map.tsv": mapping}
    with pytest.raises(EquifinalError, match=words):
        load(write(tmp_path, files))


def test_a_long_chain_of_alternatives_is_read(tmp_path: Path) -> None:
    """One operator after the other, which needs no nesting."""
    formula = "piecewise(A, " + " || ".join(f"time > {i}" for i in range(2, 200)) + ", 2*A)"
    observables = table([{"observableId": "obs_a", "observableFormula": formula, "noiseFormula": 1}])
    problem = load(write(tmp_path, {**FILES_1, "observables.tsv": observables}))
    assert problem.experiments[0].size == 2
