"""The tutorial does what it says: its files are written, its commands run, in their order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from equifinal.cli import app as cli
from equifinal.report.rendering import Figures

TEXT = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"Save this as `([\w.-]+)`:\s*\Z")
FEWER = {"fit": ["--draws", "400"], "compare": ["--chains", "2", "--warmup", "300"]}  # the same commands, sooner done


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)

    def run(line: str) -> str:
        program, name, *rest = shlex.split(line)
        assert program == "equifinal"
        if name == "compare" or "pk-known-run" in rest:
            monkeypatch.setattr(Figures, "__call__", lambda *_: None)  # those of the first report will do
        shorter = [part for part in rest if part != "2000"] if name == "compare" else rest
        if name == "compare":
            shorter[shorter.index("--draws") + 1 : shorter.index("--draws") + 1] = ["300"]
        monkeypatch.setattr("sys.argv", ["equifinal", name, *shorter, *FEWER.get(name, [])])
        with pytest.raises(SystemExit) as end:
            cli.main()
        shown = capsys.readouterr()
        assert not end.value.code, f"{line}: {shown.err}"
        return shown.out

    return run


def test_the_tutorial(call: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    shown: dict[str, str] = {}
    last = ""
    python = ""
    for block in BLOCK.finditer(TEXT):
        kind, body = block[1], block[2]
        name = NAMED.search(TEXT[: block.start()])
        if kind in ("csv", "toml"):
            assert name, f"a file without a name: {body[:60]}"
            (tmp_path / name[1]).write_text(body, encoding="utf-8")
        elif kind == "sh":
            for line in body.splitlines():
                shown[line] = last = call(line)
        elif kind == "text":
            for line in body.splitlines():  # words, for numbers of a shorter run differ
                for word in re.findall(r"^[A-Za-z_]+(?=  )|^[A-Z][A-Za-z ]+$", line):
                    assert word in last, word
        elif kind == "python":
            python += body
    assert len(shown) == 9
    pages = [f"{folder}/report.html" for folder in ("pk-run", "pk-known-run", "pk-compare")]
    for made in (*pages, "pk-48h.csv", "pk-48h.png"):
        assert (tmp_path / made).stat().st_size > 1000, made
    analysed = next(text for line, text in shown.items() if line == "equifinal analyse pk.toml")
    assert "ka and ke may be exchanged, if V changes accordingly" in analysed
    assert "C,output,yes" in (tmp_path / "pk-48h.csv").read_text()
    assert "A,state,no" in (tmp_path / "pk-48h.csv").read_text()
    exec(compile(python, "tutorial", "exec"), {})  # our own page, not a user's text
    assert "clearance: identifiable, and determined by the data" in capsys.readouterr().out
    assert (tmp_path / "marginals.png").exists()
