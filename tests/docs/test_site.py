"""What the site is made of, without building it: every page and every public name has its place."""

from __future__ import annotations

import re

import pytest

import equifinal
from equifinal.examples import EXAMPLES, example_path
from tests.support.snippets import PAGES, ROOT

DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def listed() -> list[str]:
    """Pages in tables of contents, as they are listed."""
    tables = [table for path in DOCS.rglob("*.md") for table in TOCTREE.findall(path.read_text(encoding="utf-8"))]
    return [line for table in tables for line in table.splitlines() if line and not line.startswith(":")]


def test_every_page_that_is_listed_is_there_and_listed_once() -> None:
    """One that is not listed fails the build of the site."""
    pages = {page.removeprefix("docs/").removesuffix(".md") for page in PAGES if page.startswith("docs/")}
    notebooks = {f"notebooks/{path.stem}" for path in (DOCS / "notebooks").glob("*.ipynb")}
    assert len(listed()) == len(set(listed())) > 30
    assert set(listed()) <= pages | notebooks


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", text, flags=re.MULTILINE)
    assert sorted(named) == sorted(equifinal.__all__)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_bundled_data_have_a_source(name: str) -> None:
    head = example_path(name).read_text(encoding="utf-8").split("\n[", 1)[0]
    assert "# Data: " in head or "imulated with" in head
    assert "licence" in head


def test_one_version_everywhere() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'set version = "{version[1]}"' in (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert re.search(
        rf"^## {re.escape(version[1])} \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
