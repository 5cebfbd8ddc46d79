"""The library names arguments, the command line flags."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer

import equifinal
from equifinal.cli.app import app
from equifinal.cli.common import with_flags

SOURCE = Path(equifinal.__file__).parent
ARGUMENT = re.compile(r"`\w+(?:=True)?`")


def messages() -> list[str]:
    """Texts in all calls that make an error or a warning, outside the command line."""
    found = []
    for path in SOURCE.rglob("*.py"):
        if "cli" in path.relative_to(SOURCE).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Error", "warn")):
                parts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                found.append(" ".join(parts))
    return found


def test_no_message_of_the_library_names_a_flag() -> None:
    assert len(messages()) > 200
    assert [text for text in messages() if re.search(r"--[a-z]|-[a-z] \d", text)] == []


def test_every_argument_in_a_message_has_a_flag() -> None:
    flags = {
        flag for command in typer.main.get_command(app).commands.values() for p in command.params for flag in p.opts
    }
    named = {argument for text in messages() for argument in ARGUMENT.findall(text)}
    assert len(named) > 8
    assert {with_flags(argument) for argument in named} <= flags


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("choose another folder (`folder`)", "choose another folder (--out)"),
        ("replace them (`overwrite=True`)", "replace them (--overwrite)"),
        ("`time_limit` must be positive", "--time-limit must be positive"),
        ("let `equifinal analyse` find them", "let `equifinal analyse` find them"),
    ],
)
def test_flags_take_the_place_of_arguments(message: str, shown: str) -> None:
    assert with_flags(message) == shown
