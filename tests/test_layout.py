"""Tests stand where what they test stands, and share through `tests/support` alone."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
ROOMS = TESTS.parent / "src" / "equifinal"
OF_ALL_ROOMS = {"attack", "docs", "statistical", "support"}


def test_every_folder_is_a_room() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    inside = {folder for folder in folders if folder.parts and folder.parts[0] not in OF_ALL_ROOMS}
    assert inside
    assert not [str(folder) for folder in inside if not (ROOMS / folder).is_dir()]


def test_no_test_module_imports_another() -> None:
    imported = {
        (str(path), node.module)
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
    }
    assert imported
    assert not [pair for pair in imported if not f"{pair[1]}.".startswith("tests.support.")]
