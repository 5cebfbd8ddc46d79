"""The examples of a page of documentation, done as a reader would: files saved, commands and Python run, in order.

A comment before a block says what a test does differently:

    <!-- test: skip because it takes an hour -->
    <!-- test: append --draws 200 -->                     the same commands, sooner done
    <!-- test: replace draws=10_000 by draws=500 -->      the same Python, sooner done
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "docs/guides")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *(f"{f}/{path.name}" for f in FOLDERS for path in sorted((ROOT / f).glob("*.md"))),
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"<!-- test: (.*?) -->\s*\Z")
NAMED = re.compile(r"Save this as `([\w.-]+)`:\s*\Z")
INSTALLING = re.compile(r"^(pip install uv && )?uv run (?=equifinal )")


class Block(NamedTuple):
    place: str
    kind: str
    body: str
    file: str  # to be saved as, if the page says so
    appended: list[str]

    def commands(self) -> list[list[str]]:
        lines = [INSTALLING.sub("", line) for line in self.body.splitlines() if line.strip()]
        return [[*shlex.split(line, comments=True), *self.appended] for line in lines]


def blocks_of(page: str) -> Iterator[Block]:
    """All but those that are to be skipped, for a reason that is given."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        before, place = text[: block.start()], f"{page}, line {text[: block.start()].count(chr(10)) + 1}"
        marker = MARKER.search(before)
        action, _, rest = marker[1].partition(" ") if marker else ("", "", "")
        assert action in ("", "append", "replace", "skip"), f"{place}: unknown marker '{action}'"
        if action == "skip":
            assert rest.startswith("because "), f"{place}: skipped without a reason"
            continue
        body = block[2]
        if action == "replace":
            old, new = rest.split(" by ")
            assert old in body, f"{place}: there is no '{old}'"
            body = body.replace(old, new)
        name = NAMED.search(before)
        yield Block(place, block[1], body, name[1] if name else "", shlex.split(rest) if action == "append" else [])


def play(page: str, call: Callable[[list[str]], str]) -> dict[str, str]:
    """What each command of the page printed. Files and results go to the current folder."""
    shown: dict[str, str] = {}
    names: dict[str, Any] = {"__name__": page}  # a class in a snippet has a module
    for block in blocks_of(page):
        if block.file:
            Path(block.file).write_text(block.body, encoding="utf-8")
        elif block.kind == "sh":
            for command in block.commands():
                shown[shlex.join(command)] = call(command)
        elif block.kind == "python":
            exec(compile(block.body, block.place, "exec"), names)  # our own page, not a user's text
    return shown
