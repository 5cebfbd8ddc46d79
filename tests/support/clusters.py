"""A scheduler of dask and its workers, processes of their own on the loopback address, that tests may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the optional dependency 'cluster' is not installed")

ROOT = Path(__file__).parents[2]
HANGING = 600.0  # seconds: no limit on how slow a machine may be, but an end to what would never end


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens in another process."""
    end = time.monotonic() + HANGING
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


class Machines:
    """The processes; all of them end with the test."""

    def __init__(self, folder: Path):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen] = []
        self.started = 0
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file))
        until(self._written)
        self.address = str(json.loads(self.file.read_text())["address"])

    def _written(self) -> bool:
        assert self.scheduler.poll() is None, "the scheduler ended"
        try:
            return "address" in json.loads(self.file.read_text())
        except (OSError, ValueError):
            return False

    def add_worker(self, name: str = "", threads: int = 1, **environment: str) -> subprocess.Popen:
        """Start a worker without a nanny that would start another in its place."""
        self.started += 1
        arguments = ["--no-nanny", "--nthreads", str(threads), "--name", name or f"w{self.started}", "--no-dashboard"]
        worker = self._start("worker", self.address, *arguments, "--local-directory", str(self.folder), **environment)
        self.workers.append(worker)
        return worker

    def kill_worker(self) -> None:
        """Kill the oldest worker in the midst of what it does."""
        worker = self.workers.pop(0)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def _start(self, what: str, *arguments: str, **environment: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "distributed.cli.dask_" + what, "--host", "127.0.0.1", *arguments]
        command += ["--no-dashboard"] if what == "scheduler" else []
        own = os.environ | {"PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0"} | environment
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=own, cwd=self.folder, stdout=quiet, stderr=quiet)

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def machines(folder: Path, workers: int = 1, threads: int = 1) -> Iterator[Machines]:
    """A scheduler and so many workers."""
    made = Machines(folder)
    try:
        for _ in range(workers):
            made.add_worker(threads=threads)
        yield made
    finally:
        made.end()
