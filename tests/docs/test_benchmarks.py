"""Benchmarks are not run by tests, but the names that they import are there."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_imported_names_are_there(script: Path) -> None:
    missing = [
        f"{node.module}.{name.name}"
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "equifinal"
        for name in node.names
        if not hasattr(import_module(str(node.module)), name.name) and find_spec(f"{node.module}.{name.name}") is None
    ]
    assert not missing
