"""Kept machine code is found by what it was made from: every edit that changes it is seen, wherever it is made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from equifinal.machine.fingerprint import fingerprint

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
RUN = """
import sys
from caller import outer
from equifinal.machine.fingerprint import fingerprint
print(fingerprint(outer.function), outer(1.0) if sys.argv[1] == "call" else "")
"""


def run(folder: Path, called: str, *, call: bool) -> list[str]:
    """The fingerprint of `outer`, and its value at 1 if it is called."""
    (folder / "caller.py").write_text(CALLER)
    (folder / "called.py").write_text(called)
    environment = {"PYTHONPATH": str(folder), "EQUIFINAL_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-B", "-c", RUN, "call" if call else ""]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


EDITS = [
    ("2.0 * x", "4.0 * x"),  # a function that is called
    ("3.0 * x", "5.0 * x"),  # one of several, chosen by a code
    ("FACTOR = 10.0", "FACTOR = 20.0"),
    ("(1.0, 100.0)", "(1.0, 200.0)"),
]


def test_edits_in_another_module_are_seen(tmp_path: Path) -> None:
    names = [run(tmp_path, CALLED.replace(*edit), call=False)[0] for edit in EDITS]
    assert len({*names, run(tmp_path, CALLED, call=False)[0]}) == 1 + len(EDITS)


def test_code_that_was_kept_is_not_used_after_an_edit(tmp_path: Path) -> None:
    assert run(tmp_path, CALLED, call=True)[1] == "115.0"
    assert run(tmp_path, CALLED.replace(*EDITS[0]), call=True)[1] == "117.0"
    assert run(tmp_path, CALLED, call=True)[1] == "115.0"


def test_comments_and_other_functions_are_not_seen(tmp_path: Path) -> None:
    other = "# a comment\n" + CALLED + "\n\ndef unused(x):\n    return x\n"
    assert run(tmp_path, other, call=False) == run(tmp_path, CALLED, call=False)


def test_what_has_no_source_is_an_error() -> None:
    from equifinal.machine.fingerprint import fingerprint

    namespace = {"strange": object()}
    exec("def f():\n    return strange", namespace)
    with pytest.raises(ValueError, match="no source is known"):
        fingerprint(namespace["f"])


def compiles_to_the_same(one: object, other: object) -> bool:
    def made(constant: object) -> Callable[[], object]:
        return lambda: constant

    return fingerprint(made(one)) == fingerprint(made(other))


def test_what_a_function_closes_over_is_seen() -> None:
    assert compiles_to_the_same(1.0, 1.0)
    assert not compiles_to_the_same(1.0, 2.0)
    assert compiles_to_the_same((1, "a"), (1, "a"))
    assert not compiles_to_the_same((1, "a"), (1, "b"))
    assert compiles_to_the_same(np.arange(3.0), np.arange(3.0))
    assert not compiles_to_the_same(np.arange(3.0), np.arange(3.0)[::-1])
    assert not compiles_to_the_same(np.arange(4.0), np.arange(4.0).reshape(2, 2))
    assert not compiles_to_the_same(np.zeros(2), np.zeros(2, np.int64))


def test_what_stands_inside_a_function_is_seen() -> None:
    def one(x: float) -> list[float]:
        return [y + 1.0 for y in [x]]

    def other(x: float) -> list[float]:
        return [y + 2.0 for y in [x]]

    other.__name__, other.__qualname__ = one.__name__, one.__qualname__
    assert fingerprint(one) != fingerprint(other)
