"""Examples in the documentation do what they say, each page in a folder of its own that holds the bundled problems."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from equifinal.cli import app as cli
from equifinal.examples import EXAMPLES, copy_example
from equifinal.report.rendering import Figures
from tests.support.snippets import PAGES, ROOT, blocks_of, play

TUTORIAL = "docs/tutorial.md"
WITH_EXAMPLES = [page for page in PAGES if {block.kind for block in blocks_of(page)} & {"sh", "python"}]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Callable[[list[str]], str]:
    """A command in this process; of all figures, those of the first report will do."""
    monkeypatch.chdir(tmp_path)
    for name in EXAMPLES:
        copy_example(name, tmp_path)

    def run(command: list[str]) -> str:
        assert command[0] == "equifinal", command
        monkeypatch.setattr("sys.argv", command)
        with pytest.raises(SystemExit) as end:
            cli.main()
        shown = capsys.readouterr()
        assert not end.value.code, f"{command}: {shown.err}"
        if list(tmp_path.glob("*/report.html")):
            monkeypatch.setattr(Figures, "__call__", lambda *_: None)
        return shown.out

    return run


@pytest.mark.parametrize("page", [page for page in WITH_EXAMPLES if page != TUTORIAL])
def test_examples_run(page: str, call: Callable[[list[str]], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figures, "__call__", lambda *_: None)
    play(page, call)


def test_the_tutorial(call: Callable[[list[str]], str], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    shown = play(TUTORIAL, call)
    assert len(shown) == 9
    said = "".join(shown.values())
    for block in blocks_of(TUTORIAL):
        if block.kind == "text":  # words, for numbers of a shorter run differ
            for word in re.findall(r"^[A-Za-z_]+(?=  )|^[A-Z][A-Za-z ]+$", block.body, flags=re.MULTILINE):
                assert word in said, word
    pages = [f"{folder}/report.html" for folder in ("pk-run", "pk-known-run", "pk-compare")]
    for made in (*pages, "pk-48h.csv", "pk-48h.png", "marginals.png"):
        assert (tmp_path / made).stat().st_size > 1000, made
    assert "ka and ke may be exchanged, if V changes accordingly" in shown["equifinal analyse pk.toml"]
    assert "C,output,yes" in (tmp_path / "pk-48h.csv").read_text()
    assert "A,state,no" in (tmp_path / "pk-48h.csv").read_text()
    assert "clearance: identifiable, and determined by the data" in capsys.readouterr().out


def test_a_broken_example_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.support.snippets.ROOT", tmp_path)
    (tmp_path / "page.md").write_text("```python\nimport equifinal\nequifinal.lode('si.toml')\n```\n")
    with pytest.raises(AttributeError, match="lode"):
        play("page.md", lambda command: "")
    (tmp_path / "page.md").write_text("<!-- test: skip -->\n```sh\nequifinal fit si\n```\n")
    with pytest.raises(AssertionError, match="without a reason"):
        play("page.md", lambda command: "")


LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
FILE = re.compile(r"`((?:benchmarks|docs|scripts|src|tests)/[\w./-]+)`")


@pytest.mark.parametrize("page", [*PAGES, "SECURITY.md", "CHANGELOG.md", "tests/statistical/README.md"])
def test_links_and_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [(ROOT / page).parent / link for link in LINK.findall(text)]
    files = [ROOT / name for name in FILE.findall(text)]
    assert not [str(path) for path in (*links, *files) if not path.exists()]


EXTENSION_POINTS = r"equifinal\.(ode|samplers|samplers\.(registry|protocol|searching\..*|points\.law))"


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_pages_import_public_names(page: str) -> None:
    imported = [
        module
        for block in blocks_of(page)
        if block.kind == "python"
        for module in re.findall(r"^\s*(?:from|import) (equifinal\.[\w.]+)", block.body, flags=re.MULTILINE)
    ]
    assert [module for module in imported if not re.fullmatch(EXTENSION_POINTS, module)] == []
