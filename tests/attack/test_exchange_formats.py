"""PEtab and SBML files that mean harm, or that a slip has made so: a clear error, soon, with nothing else read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from equifinal.cli import app as cli
from equifinal.errors import EquifinalError
from equifinal.formats.load import load
from tests.support.petab import FILES_1, YAML_1, table, write
from tests.support.sbml import math, parameter, reaction, rule, sbml, species

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)
ENTITIES = '<?xml version="1.0"?><!DOCTYPE s [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9)
)
DECAY = {"species": species("A", 'initialConcentration="1"'), "parameters": parameter("k1", 0.8) + parameter("k2", 0.6)}


def formula(text: str) -> str:
    return table([{"observableId": "obs_a", "observableFormula": text, "noiseFormula": 1}])


def model(**parts: str) -> str:
    return sbml(**{**DECAY, "reactions": reaction("r", "(* k1 A)", "A"), **parts})


def circle(length: int) -> dict[str, str]:
    """Assignment rules of which each names the next, and the last one the first."""
    names = [f"p{i}" for i in range(length)]
    return {
        "parameters": DECAY["parameters"] + "".join(parameter(name, 1, constant=False) for name in names),
        "rules": "".join(
            rule("assignment", name, f"(* 2 {after})") for name, after in zip(names, names[1:] + names[:1], strict=True)
        ),
    }


def tower(height: int) -> dict[str, str]:
    """Assignment rules that would have 2^height terms, put into each other."""
    names = [f"p{i}" for i in range(height)]
    rules = [rule("assignment", "p0", "(+ A A)")]
    rules += [rule("assignment", name, f"(+ {one} {one})") for one, name in pairwise(names)]
    return {
        "parameters": DECAY["parameters"] + "".join(parameter(name, 1, constant=False) for name in names),
        "rules": "".join(rules),
        "reactions": reaction("r", f"(* k1 {names[-1]})", "A"),
    }


HARM = {
    "an alias bomb": ("problem.yaml", YAML_1 + LAUGHS, "aliases"),
    "a tag that makes objects": ("problem.yaml", "x: !!python/object/apply:os.system ['true']\n", "problem.yaml"),
    "a merge key": ("problem.yaml", "a: &a {b: 1}\nc: {<<: *a}\n", "aliases"),
    "an entity bomb": ("model.xml", ENTITIES + "]><sbml>&j;</sbml>", "entities are not read"),
    "an entity from a file": (
        "model.xml",
        '<!DOCTYPE s [<!ENTITY e SYSTEM "file:///etc/passwd">]><sbml>&e;</sbml>',
        "entities are not read",
    ),
    "an entity from the network": (
        "model.xml",
        '<!DOCTYPE s SYSTEM "http://example.org/s.dtd"><sbml/>',
        "entities are not read",
    ),
    "a formula of a megabyte": ("observables.tsv", formula("A+" * 500_000 + "A"), "observables.tsv"),
    "a name of a megabyte": ("observables.tsv", formula("A" * 1_000_000), "observables.tsv"),
    "a number of a megabyte": ("observables.tsv", formula("A*" + "9" * 1_000_000), "observables.tsv"),
    "brackets": ("observables.tsv", formula("(" * 40_000 + "A" + ")" * 40_000), "nested"),
    "minus signs": ("observables.tsv", formula("-" * 100_000 + "A"), "observables.tsv"),
    "a power of a power": ("observables.tsv", formula("A" + "^9" * 5000), "observables.tsv"),
    "code": ("observables.tsv", formula("__import__('os').system('true')"), "observables.tsv, row 2"),
    "code in a condition": (
        "conditions.tsv",
        table([{"conditionId": "c0", "A": "exec('1')"}]),
        "conditions.tsv, row 2",
    ),
    "a file above the folder": ("problem.yaml", YAML_1.replace("model.xml", "../../model.xml"), "outside"),
    "a file of the system": ("problem.yaml", YAML_1.replace("parameters.tsv", "/etc/passwd"), "outside"),
    "an address": ("problem.yaml", YAML_1.replace("model.xml", "https://example.org/model.xml"), "address"),
    "the folder itself": ("problem.yaml", YAML_1.replace("model.xml", "."), "problem.yaml"),
    "a missing file": ("problem.yaml", YAML_1.replace("conditions.tsv", "absent.tsv"), "absent.tsv"),
    "a column too few": ("measurements.tsv", "observableId\ttime\nobs_a\t0\n", "measurements.tsv"),
    "a cell too many": ("measurements.tsv", FILES_1["measurements.tsv"] + "obs_a\tc0\t1\t2\t3\t4\n", "row 4"),
    "nulls": ("measurements.tsv", "\0" * 1000, "measurements.tsv"),
    "a circle of rules": ("model.xml", model(**circle(2)), "circular"),
    "a long circle of rules": ("model.xml", model(**circle(300)), "circular"),
    "a tower of rules": ("model.xml", model(**tower(40)), "terms"),
    "a product of 20,000 factors": (
        "model.xml",
        model(reactions=reaction("r", "(* k1 " + "(* A A) " * 10_000 + ")", "A")),
        "model.xml",
    ),
    "a million times deep": ("model.xml", "<a>" * 1_000_000, "nested more than"),
    "a piece of text": ("model.xml", model().replace("</sbml>", "")[:-200], "not an XML file"),
    "a function of itself": (
        "model.xml",
        model(
            functions=f'<functionDefinition id="f">{math("(lambda x (:f x))")}</functionDefinition>',
            reactions=reaction("r", "(:f A)", "A"),
        ),
        "model.xml",
    ),
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Whoever opens a connection is caught."""
    opened: list[str] = []

    def refused(*arguments: object, **_: object) -> None:
        opened.append(str(arguments))
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    yield opened
    assert not opened


@pytest.mark.parametrize("harm", HARM)
def test_a_clear_error(tmp_path: Path, harm: str) -> None:
    file, content, words = HARM[harm]
    path = write(tmp_path / "inside", {**FILES_1, file: content})
    with pytest.raises(EquifinalError, match=words) as raised:
        load(path)
    assert len(str(raised.value)) < 1000
    assert "root:" not in str(raised.value)


@pytest.mark.parametrize("harm", ["an alias bomb", "an entity bomb", "brackets", "a circle of rules", "code"])
def test_the_command_line_says_it_in_a_line(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content, _ = HARM[harm]
    path = write(tmp_path / "inside", {**FILES_1, file: content})
    monkeypatch.setattr("sys.argv", ["equifinal", "check", str(path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert shown.startswith("error: ")
    assert "Traceback" not in shown


def test_what_a_terminal_would_obey_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = FILES_1["measurements.tsv"].replace("c0", "c\x1b[31m0")
    path = write(tmp_path / "inside", {**FILES_1, "measurements.tsv": cells})
    monkeypatch.setattr("sys.argv", ["equifinal", "check", str(path)])
    with pytest.raises(SystemExit):
        cli.main()
    shown = capsys.readouterr().err
    assert "unknown condition" in shown
    assert "\x1b" not in shown
