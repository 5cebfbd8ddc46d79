"""Processes that die: what they were doing is done again, and only work that kills one after another is given up."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path

import pytest

from equifinal.errors import DataError, SamplingError
from equifinal.samplers.running import executors
from equifinal.samplers.running.executors import TRIES, workers
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.running.under_way import Update
from tests.support.problems import decay
from tests.support.running import assert_same_draws


def dying(times: int, folder: Path) -> int:
    """Give how many processes died over it before, so many at the most."""
    before = len(list(folder.iterdir()))
    if before < times:
        (folder / str(before)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return before


def leaving(code: int) -> None:
    os._exit(code)  # os._exit itself cannot be pickled while coverage is measured


class CannotBeMadeAgain(Exception):
    def __init__(self, first: int, second: int):
        super().__init__(f"{first} and {second}")


def failing(kind: str) -> Callable[[], int]:
    if kind == "made":
        raise CannotBeMadeAgain(1, 2)
    return lambda: 1


def test_work_that_kills_every_process_is_given_up() -> None:
    with workers(1) as pool:
        assert pool is not None
        with pytest.raises(
            SamplingError, match=f"{TRIES} processes died over the same work, the last one with exit code 3"
        ):
            pool.submit(leaving, 3).result()
        with pytest.raises(FileNotFoundError):  # an error of the work, not of the pipe
            pool.submit(os.stat, "/no such file").result()
        assert pool.submit(abs, -3).result() == 3


@pytest.mark.slow
def test_work_is_done_again_and_errors_come_home(tmp_path: Path) -> None:
    for name in ("some", "many"):
        (tmp_path / name).mkdir()
    with workers(2) as pool:
        assert pool is not None
        first = pool.submit(dying, TRIES - 1, tmp_path / "some")
        second = pool.submit(dying, TRIES, tmp_path / "many")
        assert first.result() == TRIES - 1
        with pytest.raises(SamplingError, match=f"{TRIES} processes died over the same work, the last one by SIGKILL"):
            second.result()
        with pytest.raises(RuntimeError, match="CannotBeMadeAgain: 1 and 2"):
            pool.submit(failing, "made").result()
        with pytest.raises((AttributeError, pickle.PicklingError, RuntimeError)):  # an answer that cannot be sent
            pool.submit(failing, "answer").result()
        with pytest.raises((AttributeError, pickle.PicklingError, TypeError)):  # a question
            pool.submit(threading.Lock).result()
        assert pool.submit(abs, -3).result() == 3


@pytest.mark.slow
def test_a_fit_whose_processes_are_killed_has_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = RunSettings(chains=2, warmup=100, draws=300, seed=4)
    monkeypatch.setattr("equifinal.samplers.running.under_way.SEGMENT_SECONDS", 0.02)
    with workers(2) as pool:
        assert isinstance(pool, executors.Processes)
        killed: list[int] = []

        def kill(update: Update) -> None:
            if len(killed) < 4:
                helper = next(helper for helper in pool._all if helper.process.is_alive())
                killed.append(helper.process.pid or 0)
                helper.process.kill()
                helper.process.join()

        found = run(decay(), settings, executor=pool, progress=kill)
    assert len(set(killed)) == 4
    assert_same_draws(found, run(decay(), settings))


def test_an_interrupt_does_not_wait_for_what_is_under_way() -> None:
    futures: list[Future] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted(futures)
    for future in futures:
        with pytest.raises((SamplingError, CancelledError)):
            future.result()


def _interrupted(futures: list[Future]) -> None:
    with workers(1) as pool:
        assert isinstance(pool, executors.Processes)
        futures.append(pool.submit(signal.pause))
        futures.append(pool.submit(abs, -1))  # waits, and is never done
        while not pool._all:
            time.sleep(0.01)
        raise KeyboardInterrupt


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(DataError, match="the number of workers cannot be -1"):
        workers(-1, "workers")
