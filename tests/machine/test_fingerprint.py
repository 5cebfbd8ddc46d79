"""Kept machine code is found by what it was made from: every edit that changes it is seen, wherever it is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CALLER = """
from equifinal.machine.compiled import by_code, compiled
from called import FACTOR, inner, table, triple

chosen = by_code([inner, triple])

@compiled
def outer(x):
    return inner(x) + FACTOR + table[1] + chosen(1, x)
"""
CALLED = """
import numpy as np
from equifinal.machine.compiled import compiled

FACTOR = 10.0
table = (1.0, 100.0)

@compiled
def inner(x):
    return 2.0 * x

@compiled
def triple(x):
    return 3.0 * x
"""
RUN = "from caller import outer; print(outer(1.0), outer.dispatcher._cache.fingerprint)"


def run(folder: Path, called: str) -> tuple[float, str]:
    (folder / "caller.py").write_text(CALLER)
    (folder / "called.py").write_text(called)
    environment = {"PYTHONPATH": str(folder), "EQUIFINAL_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-B", "-c", RUN], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, name = done.stdout.split()
    return float(value), name


EDITS = [
    ("2.0 * x", "4.0 * x", 117.0),  # a function that is called
    ("3.0 * x", "5.0 * x", 117.0),  # one of several, chosen by a code
    ("FACTOR = 10.0", "FACTOR = 20.0", 125.0),
    ("(1.0, 100.0)", "(1.0, 200.0)", 215.0),
]


def test_edits_in_another_module_are_seen(tmp_path: Path) -> None:
    assert run(tmp_path, CALLED) == run(tmp_path, CALLED)
    first, name = run(tmp_path, CALLED)
    assert first == 115.0
    for before, after, expected in EDITS:
        value, changed = run(tmp_path, CALLED.replace(before, after))
        assert value == expected
        assert changed != name


def test_comments_and_other_functions_are_not(tmp_path: Path) -> None:
    _, name = run(tmp_path, CALLED)
    other = "# a comment\n" + CALLED + "\n\ndef unused(x):\n    return x\n"
    assert run(tmp_path, other) == (115.0, name)


def test_what_has_no_source_is_an_error() -> None:
    from equifinal.machine.fingerprint import fingerprint

    namespace = {"strange": object()}
    exec("def f():\n    return strange", namespace)
    with pytest.raises(ValueError, match="no source is known"):
        fingerprint(namespace["f"])
