"""How a run shows itself: a bar in a terminal, a line now and then in a pipe, nothing on request; always on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from equifinal.samplers.running.run import RunSettings, Update

LINE_SECONDS = 5.0


class Display(Protocol):
    def __call__(self, update: Update, /) -> None: ...


def _phase(update: Update) -> str:
    return "warm-up" if update.iteration <= update.settings.warmup else "sampling"


def _facts(update: Update) -> str:
    facts = [] if update.acceptance != update.acceptance else [f"accepted {update.acceptance:.0%}"]
    return ", ".join([*facts, f"{update.failures:,} of {update.solves:,} solves failed"])


@contextmanager
def show_progress(settings: RunSettings, enabled: bool = True) -> Iterator[Display | None]:
    """A callback for `run`, drawn as fits where stderr goes."""
    if not enabled:
        yield None
    elif sys.stderr.isatty():
        with _bar(settings) as display:
            yield display
    else:
        yield _Lines()


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


@contextmanager
def show_stages(enabled: bool = True) -> Iterator[Callable[[str], None]]:
    """A function to be called with each thing that is being done."""
    if not enabled:
        yield lambda text: None
    elif sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        with console.status("") as status:

            def report(text: str) -> None:
                console.print(text, style="dim", highlight=False)
                status.update(text)

            yield report
    else:
        yield _say


@contextmanager
def _bar(settings: RunSettings) -> Iterator[Display]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[facts]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("warm-up", total=settings.iterations, facts="")

        def display(update: Update) -> None:
            bar.update(task, completed=update.iteration, description=_phase(update), facts=_facts(update))

        yield display


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
        done = update.iteration >= update.settings.iterations
        news = _phase(update) != self.phase
        self.phase = _phase(update)
        if done or news or time.perf_counter() - self.last > LINE_SECONDS:
            self.last = time.perf_counter()
            share = update.iteration / update.settings.iterations
            _say(f"{_phase(update)} {share:.0%}: {_facts(update)}")
