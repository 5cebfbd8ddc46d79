"""Commands about results: report, predict, compare, and what a fit prints and writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from equifinal.cli import app as cli
from equifinal.report.rendering import Figures
from equifinal.results.store import save
from tests.support.problems import DECAY
from tests.support.runs import run

SHORT = ["--chains", "4", "--draws", "300", "--seed", "5", "--quiet"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Callable[..., tuple]:
    """The command line in this process, in a folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["equifinal", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        shown = capsys.readouterr()
        return int(end.value.code or 0), shown.out, shown.err

    return call


@pytest.fixture
def si(tmp_path: Path) -> Path:
    return save(run("si"), tmp_path / "si-run" / "results.nc").parent


def test_fit_says_what_the_data_said_and_writes_a_page(tmp_path: Path, command: Callable[..., tuple]) -> None:
    code, shown, errors = command("fit", "si", *SHORT, "--no-analysis", "--out", "out")
    assert code == 0, errors
    for words in (
        "What the data said: si",
        "The data determine",
        "beta*N - gamma  = 1.8",
        "driven by",
        "prior (over 99%)",
        "ESS bulk",
        "the diagnostics show nothing wrong",
        "out/report.html",
        "out/results.nc",
    ):
        assert words in shown, words
    assert "MCSE/SD" not in shown  # with --verbose
    first = (tmp_path / "out" / "report.html").read_bytes()
    assert b"What the data said" in first
    code, shown, _ = command("report", "out")
    assert (code, shown) == (0, "wrote out/report.html\n")
    assert (tmp_path / "out" / "report.html").read_bytes() == first
    # a page of other results must not stay
    assert command("fit", "si", *SHORT, "--no-report", "--no-analysis", "--out", "out", "--overwrite")[0] == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["results.nc"]


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without them are sooner made; others look at the figures."""
    monkeypatch.setattr(Figures, "__call__", lambda *_: None)


@pytest.mark.usefixtures("no_figures")
def test_fit_json_tells_where_the_page_is(tmp_path: Path, command: Callable[..., tuple]) -> None:
    (tmp_path / "decay.toml").write_text(DECAY)
    code, shown, _ = command("fit", "decay.toml", *SHORT, "--json", "--out", "out")
    assert code == 0
    assert Path(json.loads(shown)["report"]).exists()
    assert json.loads(command("report", "out", "--out", "page.html", "--json")[1]) == {"report": "page.html"}
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "out" / "report.html").read_bytes()


def test_predict(si: Path, tmp_path: Path, command: Callable[..., tuple]) -> None:
    arguments = ("predict", str(si), "--until", "20", "--states", "S", "--draws", "100")
    code, shown, told = command(*arguments, "--plot", "p.svg")
    assert code == 0, told
    table = list(csv.DictReader(shown.splitlines()))
    assert {row["name"] for row in table} == {"cases", "S"}
    assert float(table[-1]["time"]) == 20
    for row in table:
        assert float(row["5%"]) <= float(row["50%"]) <= float(row["95%"])
    assert "S (state): depends on your prior, 90% band" in told
    assert "inside the 90% band" in told
    assert "wrote p.svg" in told
    assert (tmp_path / "p.svg").exists()
    code, shown, _ = command(*arguments, "--out", "p.csv", "--json")
    assert (tmp_path / "p.csv").read_text().splitlines()[0].startswith("name,kind")
    assert json.loads(shown)["from"] == "posterior"
    code, shown, _ = command("predict", str(si / "results.nc"), "--times", "1,2", "--states", "none", "--prior")
    assert [row["time"] for row in csv.DictReader(shown.splitlines())] == ["1", "2"]


@pytest.mark.usefixtures("no_figures")
def test_compare(tmp_path: Path, command: Callable[..., tuple]) -> None:
    arguments = ("compare", "si", "--samplers", "collapsed,random-walk", *SHORT, "--warmup", "300", "--out", "both")
    code, shown, errors = command(*arguments)
    assert code == 0, errors
    assert "collapsed: " in shown
    assert "random-walk: " in shown
    assert "chains disagree" in shown
    page = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert "samplers side by side" in page
    assert "Only one of these runs can be used" in page
    for name in ("collapsed", "random-walk"):
        assert (tmp_path / "both" / name / "report.html").exists()
    assert command(*arguments)[0] == 2  # results are not overwritten unasked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "nowhere"], "no results at nowhere"),
        (["predict", "nowhere"], "no results at nowhere"),
        (["report", "junk.nc"], "cannot read results from junk.nc"),
        (["predict", "si-run", "--until", "-1"], "must be a positive number"),
        (["predict", "si-run", "--times", "x"], "--times x"),
        (["predict", "si-run", "--times", "1", "--until", "2"], "not both"),
        (["predict", "si-run", "--states", "X"], "'X' is not a state"),
        (["predict", "si-run", "--draws", "0"], "positive whole number"),
        (["predict", "si-run", "--seed", "-1"], "seed"),
        (["predict", "si-run", "--plot", "p.bmp"], "must end in"),
        (["report", "si-run", "--out", "."], "is a folder"),
        (["compare", "si", "--samplers", "collapsed"], "at least two"),
        (["compare", "si", "--samplers", "collapsed,colapsed"], "did you mean 'collapsed'"),
        (["compare", "si", "--samplers", "geometric,geometric"], "named twice"),
    ],
)
def test_user_errors(arguments: list[str], words: str, si: Path, tmp_path: Path, command: Callable[..., tuple]) -> None:
    (tmp_path / "junk.nc").write_text("not netCDF")
    code, shown, errors = command(*arguments)
    assert code == 2, errors
    assert words in errors
    assert shown == ""
    assert "Traceback" not in errors


def test_results_of_others_are_refused_clearly(tmp_path: Path, command: Callable[..., tuple]) -> None:
    foreign = run("decay").copy()
    del foreign["constant_data"]
    save(foreign, tmp_path / "foreign.nc")
    code, _, errors = command("report", "foreign.nc")
    assert code == 2
    assert "do not contain their problem" in errors
