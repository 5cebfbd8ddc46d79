"""What a run says of itself in a pipe."""

from __future__ import annotations

import pytest

from equifinal.samplers.protocol import Partly
from equifinal.samplers.running.under_way import Mixing, Update
from equifinal.samplers.settings import RunSettings
from equifinal.studies import progress
from equifinal.studies.progress import show_run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def _update(iteration: int, **given: object) -> Update:
    facts = {"mixing": None, "end": 1000, "effective": None, "wanted": 400} | given
    return Update(iteration, 1000, RunSettings(warmup=100), 0.5, 2 * iteration, 0, **facts)


def test_lines_tell_stage_effective_draws_and_time_to_go(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with show_run() as (_, display):
        assert display is not None
        for second, update in enumerate((_update(50), _update(200), _update(300), _update(400))):
            clock[0] = 3.0 * second
            display(update)
        clock[0] = 20.0
        display(_update(600, mixing=Mixing(100.0, 1.0), end=2000, effective=123.4))
    assert capsys.readouterr().err.splitlines() == [
        "warm-up 5%: accepted 50%, 0 of 100 solves failed",
        "sampling 20%: accepted 50%, 0 of 400 solves failed",
        "sampling 40%: accepted 50%, 0 of 800 solves failed, about 18 s to go",
        "sampling 30%: some 123 of 400 effective draws (7.26/s), accepted 50%, 0 of 1,200 solves failed, "
        "about 60 s to go",
    ]


def test_lines_of_what_takes_long_come_now_and_then(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with show_run() as (report, _):
        report("two populations")
        for second in range(12):
            clock[0] = float(second)
            report(Partly(f"power {second}", second / 12))
        report("a proposal")
    told = capsys.readouterr().err.splitlines()
    assert told == ["two populations", "preparing 0%: power 0", "preparing 50%: power 6", "a proposal"]


@pytest.mark.parametrize(("seconds", "told"), [(12.3, "12 s"), (300.0, "5 min"), (9000.0, "2.5 h")])
def test_durations(seconds: float, told: str) -> None:
    assert progress._duration(seconds) == told


def test_a_terminal_shows_one_bar_for_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """And another for the sampling, also where a run begins again between them."""
    terminal = progress._Terminal()
    for _ in range(2):
        terminal.prepare("two populations")
        terminal.prepare(Partly("power 0.1", 0.3))
        bar = terminal.bar
        terminal.prepare(Partly("power 0.5", 0.6))
        assert terminal.bar is bar
        assert terminal.bar.tasks[0].completed == 0.6
        terminal.update(_update(500))
        assert terminal.bar is not bar
        assert terminal.bar.tasks[0].percentage == 50
    terminal.stop()
    assert terminal.bar is None
