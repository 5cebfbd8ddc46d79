"""The command line as a user meets it: in a process of its own."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import arviz
import numpy as np
import pytest

from equifinal.cli import app as cli
from equifinal.errors import InterruptedRunError
from equifinal.formats.load import load
from tests.support.problems import DECAY

QUICK = ["--chains", "2", "--warmup", "200", "--draws", "300", "--seed", "5", "--no-report"]
COMMAND = [sys.executable, "-m", "equifinal"]
HANGING = 1800  # seconds: no limit on how slow a machine may be, but an end to what would never end


def equifinal(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANGING,
        env=os.environ | {"COLUMNS": "200"} | environment,
    )


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Callable[..., Done]:
    """The same in this process, in an empty folder: quicker, for what does not touch processes and signals."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["equifinal", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return Done(int(caught.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "decay.toml"
    path.write_text(DECAY)
    return path


def test_help_and_version(command: Callable[..., Done]) -> None:
    done = command("--help")
    assert done.returncode == 0
    for word in ("analyse", "fit", "predict", "report", "compare", "simulate", "check", "examples"):
        assert word in done.stdout
    assert command("--version").stdout.startswith("equifinal 0.")


def test_help_imports_nothing_heavy() -> None:
    heavy = "('numpy', 'numba', 'scipy', 'arviz', 'rich.table')"
    code = f"import sys, equifinal.cli.app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fit_writes_results_that_arviz_opens(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    done = command("fit", str(problem), *QUICK)
    assert done.returncode == 0, done.stderr
    for word in (
        "What can be known",
        "half_life",
        "ESS bulk",
        "R-hat",
        "accepted",
        "ODE solves",
        "decay-run/results.nc",
    ):
        assert word in done.stdout
    assert "sampling 100%" in done.stderr
    data = arviz.from_netcdf(tmp_path / "decay-run" / "results.nc")
    assert data.posterior.sizes == {"chain": 2, "draw": 300}
    assert [p.name for p in (tmp_path / "decay-run").iterdir()] == ["results.nc"]
    again = equifinal("fit", str(problem), *QUICK, "--quiet", cwd=tmp_path)
    assert "decay-run-2/results.nc" in again.stdout
    assert again.stderr == ""


@pytest.mark.parametrize(("width", "shown"), [(80, "R-hat"), (40, "R-hat"), (160, "MCSE/SD")])
def test_numbers_are_never_cut(
    problem: Path, command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, width: int, shown: str
) -> None:
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    done = command("fit", str(problem), *QUICK, "--quiet", "--verbose")
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert "driven by" in done.stdout
    assert "…" not in done.stdout


@pytest.mark.slow
def test_progress_that_nobody_reads_does_not_end_a_run(problem: Path, tmp_path: Path) -> None:
    fit = f"{' '.join(COMMAND)} fit {problem} {' '.join(QUICK)} --out out"
    line = f"{fit} 2>&1 >/dev/null | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=HANGING)
    assert done.stdout.splitlines()[-1] == "0"
    assert (tmp_path / "out" / "results.nc").exists()


def test_closed_streams(tmp_path: Path) -> None:
    for closed in (">&-", "2>&-"):
        done = subprocess.run(
            ["bash", "-c", f"{' '.join(COMMAND)} examples {closed}"], capture_output=True, timeout=HANGING
        )
        assert done.returncode == 0


def test_fit_along_the_fibre(command: Callable[..., Done]) -> None:
    done = command("fit", "si", *QUICK, "--sampler", "geometric", "--quiet", "--no-analysis")
    assert done.returncode == 0, done.stderr
    assert "geometric: 2 x 300 draws" in done.stdout
    assert "along the fibre: 2,400 moves" in done.stdout
    assert "left support" in done.stdout


def test_fit_pseudo_marginal(command: Callable[..., Done]) -> None:
    done = command("fit", "si", *QUICK, "--sampler", "pseudo-marginal", "--aux", "16", "--quiet", "--no-analysis")
    assert done.returncode == 0, done.stderr
    assert "pseudo-marginal: 2 x 300 draws" in done.stdout
    assert "on each fibre: 16 points" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sampler", "pseudo-marginal", "--aux", "0"], "'aux' must be a whole number between 1 and 100,000, not 0"),
        (["--sampler", "geometric", "--aux", "8"], "sampler 'geometric' has no option 'aux'"),
        (["--sampler", "random-walk", "--aux", "8"], "sampler 'random-walk' has no option 'aux'"),
        (["--sampler", "pseudomarginal"], "did you mean 'pseudo-marginal'"),
    ],
)
def test_points_that_make_no_sense(arguments: list[str], words: str, command: Callable[..., Done]) -> None:
    done = command("fit", "si", *arguments, "--quiet", "--no-analysis")
    assert done.returncode == 2
    assert words in done.stderr


def test_options_in_a_file_for_another_sampler(tmp_path: Path, command: Callable[..., Done]) -> None:
    path = tmp_path / "decay.toml"
    path.write_text(DECAY + '\n[sampling]\nsampler = "random-walk"\noptions = { target = 0.3 }\n')
    arguments = ("fit", str(path), "--chains", "2", "--warmup", "30", "--draws", "30", "--json", "--aux", "4")
    done = command(*arguments, "--sampler", "pseudo-marginal", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sampler"] == "pseudo-marginal"
    assert command(*arguments, "--out", "other").returncode == 2


def test_fit_json(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    done = command("fit", str(problem), *QUICK, "--json", "--out", "out")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sampler"] == "collapsed"
    assert found["notes"][0].startswith("collapsed: one mode")
    assert (found["chains"], found["draws"], found["seed"]) == (2, 300, 5)
    assert 0 < found["solves"] <= 14000
    assert found["failed_solves"] == 0
    assert 0 < found["acceptance"] < 1
    for key in ("compile_seconds", "warmup_seconds", "sampling_seconds"):
        assert found[key] >= 0
    assert set(found["summary"]) == {"k", "a", "half_life"}
    wanted = {"mean", "sd", "q5", "q50", "q95", "ess_bulk", "ess_tail", "iact", "mcse_over_sd", "rhat"}
    assert wanted <= set(found["summary"]["k"])
    assert Path(tmp_path / found["results"]).exists()
    assert any("Only 2 chains" in line for line in found["warnings"])


def test_processes_give_the_same_draws(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    one = command("fit", str(problem), *QUICK, "--out", "one", "--quiet")
    two = command("fit", str(problem), *QUICK, "--out", "two", "--quiet", "--processes", "2")
    assert one.returncode == two.returncode == 0, two.stderr
    a, b = (arviz.from_netcdf(tmp_path / name / "results.nc").posterior for name in ("one", "two"))
    np.testing.assert_array_equal(a["k"], b["k"])


def test_results_are_not_overwritten_unasked(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    arguments = ("fit", str(problem), *QUICK, "--out", "out", "--quiet")
    assert command(*arguments).returncode == 0
    refused = command(*arguments)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert command(*arguments, "--overwrite").returncode == 0


# a signal in the middle of sampling, whatever the speed of the machine
INTERRUPTED = """
import os, signal, sys
from equifinal.cli import main
from equifinal.samplers.running import under_way

advance = under_way.advance

def interrupted(work, state, rngs, iteration, count):
    if iteration >= 600:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    return advance(work, state, rngs, iteration, count)

under_way.advance, under_way.SEGMENT_SECONDS = interrupted, 1e-3
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_what_was_drawn_is_saved_and_the_same_command_goes_on(
    number: signal.Signals, problem: Path, tmp_path: Path, command: Callable[..., Done]
) -> None:
    """After a polite end, by Ctrl-C or at a shutdown."""
    settings = ["--chains", "2", "--warmup", "500", "--draws", "5000", "--no-report"]
    arguments = ["fit", str(problem), *settings, "--out", "out"]
    stopped = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *arguments],
        cwd=tmp_path,
        env=os.environ | {"SIGNAL": str(int(number))},
        capture_output=True,
        text=True,
        timeout=HANGING,
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "interrupted" in stopped.stdout
    assert "Traceback" not in stopped.stderr
    part = arviz.from_netcdf(tmp_path / "out" / "results.nc").posterior.load()
    assert 0 < part.sizes["draw"] < 5000
    resumed = command(*arguments)
    assert resumed.returncode == 0, resumed.stderr
    whole = arviz.from_netcdf(tmp_path / "out" / "results.nc").posterior
    assert whole.sizes["draw"] == 5000
    np.testing.assert_array_equal(whole["k"][:, : part.sizes["draw"]], part["k"])


def test_analyse(command: Callable[..., Done]) -> None:
    shown = command("analyse", "si").stdout
    for words in ("beta*N - gamma", "What no data can show", "Knowing gamma would make everything identifiable"):
        assert words in shown
    found = json.loads(command("analyse", "hiv", "--json").stdout)
    assert found["parameters"]["lambda"] == "not"
    assert found["parameters"]["delta"] == "globally"
    assert found["quantities"] == {"R0": "globally"}
    assert "lambda*N" in found["combinations"]
    assert (found["fibre_dimension"], found["fibre_degree"], found["scope"]) == (1, 1, "global")
    assert 0 < found["error_probability"] < 1e-6
    assert found["advice"]
    assert found["seconds"] > 0
    assert command("analyse", "none.toml").returncode == 2
    assert command("analyse", "si", "--time-limit", "-1").returncode == 2


def test_analyse_needs_only_a_model(tmp_path: Path, command: Callable[..., Done]) -> None:
    (tmp_path / "m.toml").write_text("[model]\nequations = \"x' = -k*x\"\noutputs = ['x']\n")
    found = json.loads(command("analyse", "m.toml", "--json").stdout)
    assert found["parameters"] == {"k": "globally", "x_0": "globally"}


def test_check(problem: Path, command: Callable[..., Done]) -> None:
    done = command("check", str(problem))
    assert done.returncode == 0
    for word in ("states: x", "parameters: k, a", "half_life", "ready to fit", "5 values, at times 0 to 4"):
        assert word in done.stdout
    facts = json.loads(command("check", "si", "--json").stdout)
    assert facts["ready_to_fit"] is True
    assert facts["outputs"] == ["cases"]


def test_check_says_what_a_fit_would_miss(tmp_path: Path, command: Callable[..., Done]) -> None:
    (tmp_path / "m.toml").write_text("[model]\nequations = \"x' = -k*x\"\noutputs = ['x']\n")
    done = command("check", str(tmp_path / "m.toml"))
    assert done.returncode == 0
    assert "a prior for 'k'" in done.stdout
    fit = command("fit", str(tmp_path / "m.toml"))
    assert fit.returncode == 2
    assert "initial value of x" in fit.stderr


def test_simulate(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    done = command("simulate", str(problem), "--at", "k=1", "--at", "a=2", "--times", "0:2:1", "--states")
    rows = [line.split(",") for line in done.stdout.splitlines()]
    assert rows[0] == ["time", "y", "x"]
    np.testing.assert_allclose(np.array(rows[1:], float)[:, 1], 2 * np.exp([0, -1, -2]), rtol=1e-4)
    median = command("simulate", str(problem), "--at", "k=1")
    assert "prior's median: a = 2." in median.stderr
    noisy = command("simulate", str(problem), "--noise", "--seed", "3", "--out", "d.csv")
    assert noisy.returncode == 0, noisy.stderr
    (tmp_path / "again.toml").write_text(DECAY.split("[data]")[0] + '[data]\nfile = "d.csv"\n')
    assert "ready to fit" in command("check", "again.toml").stdout
    found = json.loads(command("simulate", str(problem), "--json").stdout)
    assert len(found["experiments"][0]["columns"]["y"]) == 5


def test_equivalents(tmp_path: Path, command: Callable[..., Done]) -> None:
    truth = [f"--at={v}" for v in ("beta=2.5e-4", "rho=0.25", "gamma=0.6", "I0=40")]
    done = command("equivalents", "si", *truth, "-n", "4")
    assert done.returncode == 0
    assert (
        "These 4 parameter vectors give the same output; all such vectors form a curve, called a fibre." in done.stdout
    )
    assert "beta*N - gamma" in done.stdout
    assert (tmp_path / "si-equivalents.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(command("equivalents", "si", *truth, "-n", "4", "--json", "--no-plot").stdout)
    assert told["largest_difference"] < 1e-7
    assert told["vectors"][0] == [2.5e-4, 0.25, 0.6, 40.0]
    assert len(told["vectors"]) == 4
    by_hand = [f"--combination={c}" for c in ("beta*N - gamma", "beta/rho", "rho*I0")]
    done = command("equivalents", "si", *truth, *by_hand, "--times", "0:20:1", "--plot", "a/b.svg")
    assert done.returncode == 0
    assert (tmp_path / "a" / "b.svg").read_text().lstrip().startswith("<?xml")
    assert "rho*I0" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "gama=1"], "did you mean 'gamma'"),
        (["--at", "gamma=7"], "outside its prior's support"),
        (["--at", "gamma=nan"], "must be a finite number"),
        (["-n", "0"], "positive whole number"),
        (["--plot", "figure.bmp"], "must end in .png, .svg, .pdf"),
        (["--combination", "beta/rho"], "not constant"),
        (["--combination", "__import__('os')"], "combination '__import__('os')': line 1"),
        (["--seed", "-1"], "seed must be"),
        (["--times", "0"], "times must be finite"),
        (["--plot", "a.png", "--no-plot"], "contradict"),
    ],
)
def test_equivalents_refuses(arguments: list[str], message: str, command: Callable[..., Done]) -> None:
    done = command("equivalents", "si", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_equivalents_of_an_identifiable_model(command: Callable[..., Done]) -> None:
    done = command("equivalents", "influenza", "--no-plot")
    assert "There are no other parameters inside the priors' support with the same output." in done.stdout


def test_simulated_increments_can_be_read_back(tmp_path: Path, command: Callable[..., Done]) -> None:
    text = (
        DECAY.replace("y = x", "y = a - x")
        .replace("[data]", '[data]\nincrements = ["y"]')
        .replace("[0, 0.5", "[0.2, 0.5")
    )
    (tmp_path / "one.toml").write_text(text)
    assert command("simulate", "one.toml", "--noise", "--out", "d.csv").returncode == 0
    (tmp_path / "two.toml").write_text(text.split("time =")[0] + 'file = "d.csv"\n')
    shown = command("check", "two.toml").stdout
    assert "5 increments over 0.2 to 2 time units, at times 0.2 to 4" in shown


def test_data_can_be_made_before_there_are_any(tmp_path: Path, command: Callable[..., Done]) -> None:
    (tmp_path / "p.toml").write_text(DECAY.split("[data]")[0] + '[data]\nfile = "d.csv"\n')
    assert command("check", "p.toml").returncode == 2
    assert command("simulate", "p.toml", "--noise", "--times", "1:4:1", "--out", "d.csv").returncode == 0
    assert "ready to fit" in command("check", "p.toml").stdout


def test_mistakes_under_sampling_are_found_by_check(tmp_path: Path, command: Callable[..., Done]) -> None:
    (tmp_path / "p.toml").write_text(DECAY + "[sampling]\ndraws = 'many'\n")
    assert command("check", "p.toml").returncode == 2


@pytest.mark.slow
def test_two_fits_at_once_do_not_share_a_folder(problem: Path, tmp_path: Path) -> None:
    arguments = [*COMMAND, "fit", str(problem), *QUICK, "--quiet", "--json"]
    both = [subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=HANGING)[0] for process in both]
    done = [json.loads(text)["results"] for text in outputs if text]
    assert len(done) == len(set(done)) >= 1
    for path in done:
        assert (tmp_path / path).exists()


def test_examples(tmp_path: Path, command: Callable[..., Done]) -> None:
    assert {"si", "hiv", "influenza"} <= set(json.loads(command("examples", "--json").stdout))
    done = command("examples", "si", "--to", "copy")
    assert done.returncode == 0
    assert command("check", "copy/si.toml").returncode == 0
    assert command("examples", "si", "--to", "copy").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "sii"], "did you mean 'si'"),
        (["fit", "none.toml"], "cannot read none.toml"),
        (["fit", "si", "--sampler", "rndom-walk"], "did you mean 'random-walk'"),
        (["fit", "si", "--chains", "0"], "'chains'"),
        (["fit", "si", "--draws", "x"], "--draws"),
        (["fit", "si", "--processes", "-1"], "processes"),
        (["fit", "si", "--bogus"], "--bogus"),
        (["fit", "si", "--draws", "1000000000000"], "cannot be kept"),
        (["simulate", "si", "--out", "."], "is a folder"),
        (["simulate", "si", "--times", "0:1e9:1e-3"], "at most 1000000"),
        (["simulate", "si", "--at", "bet=1"], "did you mean 'beta'"),
        (["simulate", "si", "--at", "beta"], "name=value"),
        (["simulate", "si", "--at", "beta=x"], "not a number"),
        (["simulate", "si", "--at", "beta=nan"], "finite"),
        (["fit", "si", "--cluster", "x:1", "--processes", "2"], "--processes are of this machine"),
        (["fit", "si", "hiv", "--processes", "0"], "at least one process"),
        (["fit", "si", "hiv", "--out", "/dev/null"], "is a file, but --out must name a folder"),
        (["fit", "si", "--out", "/dev/null"], "is a file, but --out must name a folder"),
        (["calibrate", "si", "--out", "/dev/null"], "is a file, but --out must name a folder"),
        (["export", "si", "--to", "stn"], "did you mean 'stan'"),
        (["simulate", "si", "--times", "3:1:1"], "start:stop:step"),
        (["simulate", "si", "--times", "-1"], "not negative"),
        (["simulate", "si", "--out", "/proc/none/x.csv"], "cannot write"),
        (["examples", "hvi"], "did you mean 'hiv'"),
        (["examples", "hiv", "--to", "/proc/none"], "cannot write"),
        (["fit", "si", "--out", "/proc/none"], "cannot write to the folder"),
        (["nonsense"], "nonsense"),
    ],
)
def test_user_errors(arguments: list[str], words: str, tmp_path: Path, command: Callable[..., Done]) -> None:
    done = command(*arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_our_own_faults_are_owned_up_to(problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("equifinal.formats.load.load", broken)
    monkeypatch.setattr(sys, "argv", ["equifinal", "check", str(problem)])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    shown = capsys.readouterr().err
    assert "internal error: RuntimeError: boom" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (InterruptedRunError("stopped after 3 draws"), 130, "stopped after 3 draws; run the same command to resume\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "error: No space left on device\n"),
    ],
)
def test_how_a_command_may_end(
    error: BaseException, code: int, shown: str, command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("equifinal.formats.load.load", ends)
    assert command("check", "si") == (code, "", shown)


def test_a_reader_that_goes_away_is_no_error() -> None:
    """As `head` does."""
    with subprocess.Popen([*COMMAND, "examples"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(HANGING), process.stderr.read()) == (0, b"")


def test_analyse_says_what_is_asked(command: Callable[..., Done]) -> None:
    """States, a quantity and technical terms; the data of SI determine none of the three in its own units."""
    done = command("analyse", "si", "--states", "--quantity", "gamma", "--explain")
    assert done.returncode == 0
    states = done.stdout[done.stdout.index("What the outputs say about the states") : done.stdout.index("Terms")]
    assert re.search(r"^I +not identifiable$", states, flags=re.MULTILINE)
    assert re.search(r"Knowing .* would make gamma identifiable", done.stdout)
    assert re.search(r"^ *fibre", done.stdout[done.stdout.index("Terms") :], flags=re.MULTILINE)


def test_examples_and_imports_for_scripts(tmp_path: Path, command: Callable[..., Done]) -> None:
    written = json.loads(command("examples", "si", "--to", "copy", "--json").stdout)["written"]
    assert [Path(path).name for path in written] == ["si.toml", "si.csv"]
    (tmp_path / "model.toml").write_text(DECAY)
    (tmp_path / "again.toml").write_text(command("import", "model.toml").stdout)
    assert load(tmp_path / "again.toml").fingerprint() == load(tmp_path / "model.toml").fingerprint()


CALIBRATE = ["--replicates", "4", "--chains", "2", "--draws", "40", "--ranked", "19", "--seed", "2"]


def test_calibrate_writes_and_goes_on(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    done = command("calibrate", str(problem), *CALIBRATE)
    assert done.returncode == 0, done.stderr
    for word in (
        "half_life",
        "quantity",
        "log likelihood",
        "calibrated: the ranks of all 4",
        "4 replicates reveal gross",
    ):
        assert word in done.stdout.replace("\n", " ")
    assert "replicate 4 of 4" in done.stderr
    folder = tmp_path / "decay-calibration"
    assert {p.name for p in folder.iterdir()} == {"replicates.jsonl", "calibration.json", "ranks.svg", "ranks.png"}
    again = command("calibrate", str(problem), *CALIBRATE, "--json")
    found = json.loads(again.stdout)
    assert found == json.loads((folder / "calibration.json").read_text())
    assert found["quantities"]["k"]["kind"] == "parameter"
    assert found["calibrated"] is True
    other = command("calibrate", str(problem), *CALIBRATE[:-1], "3")
    assert other.returncode == 2
    assert "another seed" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--replicates", "0"], "'replicates' must be a whole number from 1"),
        (["--workers", "-1"], "the number of workers cannot be -1"),
        (["--sampler", "gibbs"], "unknown sampler 'gibbs'"),
        (["--sampler", "collapsed", "--swap"], "no option 'swap'"),
        (["--draws", "3"], "fewer than the 99"),
    ],
)
def test_calibrate_refuses(problem: Path, command: Callable[..., Done], arguments: list[str], words: str) -> None:
    done = command("calibrate", str(problem), *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_calibrate_survives_a_kill(problem: Path, tmp_path: Path, command: Callable[..., Done]) -> None:
    arguments = ["calibrate", str(problem), *CALIBRATE[2:], "--replicates", "400", "--quiet"]
    record = tmp_path / "decay-calibration" / "replicates.jsonl"
    process = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while process.poll() is None and (not record.exists() or record.read_bytes().count(b"\n") < 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = record.read_bytes().count(b"\n") - 1
    assert 2 <= done < 400
    arguments[arguments.index("400")] = str(done + 2)
    again = command(*arguments)
    assert again.returncode == 0, again.stderr
    numbers = [json.loads(line)["number"] for line in record.read_text().splitlines()[1:]]
    assert numbers == list(range(done + 2))


def test_paper_refuses(command: Callable[..., Done], tmp_path: Path) -> None:
    done = command("paper", "sir")
    assert done.returncode == 2
    assert "there is no case study 'sir'" in done.stderr
    (tmp_path / "file").write_text("")
    assert "is a file" in command("paper", "si", "--out", str(tmp_path / "file")).stderr


def test_several_problems_of_which_some_cannot_be_read(tmp_path: Path, command: Callable[..., Done]) -> None:
    """Each is told about, none keeps another from being fitted, and the page names them all."""
    (tmp_path / "good.toml").write_text(DECAY)
    (tmp_path / "bad.toml").write_text(DECAY.replace("uniform", "unifrom"))
    files = [str(tmp_path / name) for name in ("good.toml", "bad.toml", "missing.toml")]
    done = command("fit", *files, "--out", str(tmp_path / "fits"), "--draws", "50", "--processes", "1", "--no-report")
    assert done.returncode == 2
    assert "did you mean 'uniform'" in done.stdout + done.stderr
    assert "missing.toml" in done.stdout + done.stderr
    assert (tmp_path / "fits" / "good" / "results.nc").exists()
    page = (tmp_path / "fits" / "index.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("good", "bad", "missing"))
