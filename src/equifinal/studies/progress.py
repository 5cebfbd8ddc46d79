"""How a run shows itself: a bar in a terminal, a line now and then in a pipe, nothing on request; always on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from equifinal.ode.integrator import is_compiled
from equifinal.samplers.running.run import Update

LINE_SECONDS = 5.0


class Display(Protocol):
    def __call__(self, update: Update, /) -> None: ...


def _phase(update: Update) -> str:
    return "warm-up" if update.iteration <= update.settings.warmup else "sampling"


def _facts(update: Update) -> str:
    facts = [] if update.acceptance != update.acceptance else [f"accepted {update.acceptance:.0%}"]
    if update.mixing is not None:
        facts.append(f"{update.mixing.ess:,.0f} of {update.settings.ess:,} effective draws at the last look")
    return ", ".join([*facts, f"{update.failures:,} of {update.solves:,} solves failed"])


@contextmanager
def show_run(enabled: bool = True) -> Iterator[tuple[Callable[[str], None], Display | None]]:
    """Give two functions for `run`: one to be told what is being prepared, one for each update of the sampling."""
    if not enabled:
        yield (lambda text: None), None
    elif sys.stderr.isatty():
        terminal = _Terminal()
        try:
            yield terminal.prepare, terminal.update
        finally:
            terminal.stop()
    else:
        yield _say, _Lines()


@contextmanager
def show_stage(text: str, enabled: bool = True) -> Iterator[None]:
    """Say what takes a while besides sampling."""
    if not enabled:
        yield
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield
    else:
        _say(text)
        yield


def show_compiling(enabled: bool = True) -> AbstractContextManager[None]:
    what = "model" if is_compiled() else "solvers (first run on this machine only)"
    return show_stage(f"compiling the {what}", enabled)


class _Terminal:
    """A line that spins while a run is prepared, then a bar."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.status: Any = None
        self.bar: Any = None

    def prepare(self, text: str) -> None:
        self.console.print(text, style="dim", highlight=False)
        if self.status is None:
            self.status = self.console.status(text)
            self.status.start()
        self.status.update(text)

    def update(self, update: Update) -> None:
        if self.bar is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.stop()
            columns = (
                TextColumn("{task.description:<9}"),
                BarColumn(bar_width=20),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[facts]}"),
                TimeRemainingColumn(compact=True),
            )
            self.bar = Progress(*columns, console=self.console)
            self.bar.add_task("warm-up", total=update.goal, facts="")
            self.bar.start()
        self.bar.update(
            self.bar.task_ids[0],
            completed=update.iteration,
            total=update.goal,
            description=_phase(update),
            facts=_facts(update),
        )

    def stop(self) -> None:
        for live in (self.status, self.bar):
            if live is not None:
                live.stop()
        self.status = None


@contextmanager
def show_count(what: str, total: int, enabled: bool = True) -> Iterator[Callable[[int], None]]:
    """A function to be called with how many of so many are done."""
    if not enabled:
        yield lambda done: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(what), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        last = -math.inf

        def tell(done: int) -> None:
            nonlocal last
            if done == total or time.perf_counter() - last > LINE_SECONDS:
                last = time.perf_counter()
                _say(f"{what} {done} of {total}")

        yield tell


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads it any more: no reason to end a run
        print(text, file=sys.stderr, flush=True)


class _Lines:
    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.phase = ""

    def __call__(self, update: Update) -> None:
        done = update.iteration >= update.goal
        news = _phase(update) != self.phase
        self.phase = _phase(update)
        if done or news or time.perf_counter() - self.last > LINE_SECONDS:
            self.last = time.perf_counter()
            share = update.iteration / update.goal
            _say(f"{_phase(update)} {share:.0%}: {_facts(update)}")
