"""How a run shows itself: a bar in a terminal or a notebook, a line now and then in a pipe, nothing on request.

In terminals and pipes that is on stderr. A bar says the stage, how far it is, how long it takes yet, and how many
effective draws there are and come in a second; in a narrow terminal it says less.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from html import escape
from typing import Any, Protocol

from equifinal.ode.integrator import is_compiled
from equifinal.samplers.protocol import Partly
from equifinal.samplers.running.under_way import Update

LINE_SECONDS = 5.0


class Display(Protocol):
    def __call__(self, update: Update, /) -> None: ...


def _phase(update: Update) -> str:
    return "warm-up" if update.iteration <= update.settings.warmup else "sampling"


def _facts(update: Update, pace: float = math.nan, room: int = 200) -> str:
    """What is known of a run, as much as there is room for; ``pace`` is effective draws per second."""
    facts = []
    if update.effective is not None:
        speed = f" ({pace:,.3g}/s)" if pace > 0 else ""
        facts.append(f"some {update.effective:,.0f} of {update.wanted:,} effective draws{speed}")
    if update.acceptance == update.acceptance:
        facts.append(f"accepted {update.acceptance:.0%}")
    if update.failures or room > 60:
        facts.append(f"{update.failures:,} of {update.solves:,} solves failed")
    while len(facts) > 1 and len(", ".join(facts)) > room:
        facts.pop()
    return ", ".join(facts)


class _Pace:
    """Effective draws per second, since the sampling began."""

    def __init__(self) -> None:
        self.began: float | None = None

    def __call__(self, update: Update) -> float:
        now = time.perf_counter()
        if _phase(update) != "sampling":
            self.began = None
            return math.nan
        self.began = now if self.began is None else self.began
        seconds = now - self.began
        return math.nan if update.effective is None or seconds < 0.5 else update.effective / seconds


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def show_run(enabled: bool = True) -> Iterator[tuple[Callable[[str], None], Display | None]]:
    """Give two functions for `run`: one to be told what is being prepared, one for each update of the sampling."""
    if not enabled:
        yield (lambda text: None), None
    elif in_notebook():
        cell = _Cell()
        try:
            yield cell.prepare, cell
        finally:
            cell.stop()
    elif sys.stderr.isatty():
        terminal = _Terminal()
        try:
            yield terminal.prepare, terminal.update
        finally:
            terminal.stop()
    else:
        lines = _Lines()
        yield lines.prepare, lines


@contextmanager
def show_stage(text: str, enabled: bool = True) -> Iterator[None]:
    """Say what takes a while besides sampling."""
    if not enabled or in_notebook():  # a run has its own line in a notebook
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
    """A line that spins while a run is prepared, a bar for what takes long; then a bar for the sampling."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.status: Any = None
        self.bar: Any = None
        self.sampling = False
        self.pace = _Pace()

    def prepare(self, text: str) -> None:
        if isinstance(text, Partly):
            if self.bar is None or self.sampling:
                self.stop()
                self._begin("preparing", 1.0)
            room = max(10, self.console.width - 46)
            self._show("preparing", text.done, 1.0, text if len(text) <= room else f"{text[: room - 1]}…")
            return
        self._stop_bar()
        self.console.print(text, style="dim", highlight=False)
        if self.status is None:
            self.status = self.console.status(text)
            self.status.start()
        self.status.update(text)

    def update(self, update: Update) -> None:
        if self.bar is None or not self.sampling:
            self.stop()
            self._begin("warm-up", update.end)
            self.sampling = True
        room = self.console.width - 46  # beside stage, bar, share and time to go
        self._show(_phase(update), update.iteration, update.end, _facts(update, self.pace(update), room))

    def _begin(self, what: str, total: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column

        columns = (
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[facts]}", table_column=Column(no_wrap=True)),
        )
        self.bar = Progress(*columns, console=self.console)
        self.bar.add_task(what, total=total, facts="")
        self.bar.start()

    def _show(self, what: str, done: float, total: float, facts: str) -> None:
        self.bar.update(self.bar.task_ids[0], completed=done, total=total, description=what, facts=facts)

    def _stop_bar(self) -> None:
        if self.bar is not None:
            self.bar.stop()
        self.bar, self.sampling = None, False

    def stop(self) -> None:
        if self.status is not None:
            self.status.stop()
        self.status = None
        self._stop_bar()


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


class _Cell:
    """One bar in a notebook, which changes in place and says at the end what was done."""

    OFTEN = 0.2  # seconds

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self.html, self.pace, self.last, self.ended = HTML, _Pace(), 0.0, ""
        self.handle = display(HTML(_bar("preparing", 0.0, "")), display_id=True)

    def prepare(self, text: str) -> None:
        self._show("preparing", text.done if isinstance(text, Partly) else 0.0, text)

    def __call__(self, update: Update) -> None:
        facts = _facts(update, self.pace(update))
        self.ended = f"{update.iteration:,} iterations, {facts}"
        self._show(_phase(update), update.iteration / update.end, facts)

    def _show(self, stage: str, share: float, facts: str) -> None:
        if time.perf_counter() - self.last > self.OFTEN:
            self.last = time.perf_counter()
            self.handle.update(self.html(_bar(stage, share, facts)))

    def stop(self) -> None:
        self.handle.update(self.html(_bar("sampled", 1.0, self.ended) if self.ended else ""))


def _bar(stage: str, share: float, facts: str) -> str:
    return (
        f'<div style="font-size: .9em"><progress value="{share:.3f}" max="1"></progress> '
        f'{escape(stage)} {share:.0%} &ensp;<span style="opacity: .7">{escape(facts)}</span></div>'
    )


class _Lines:
    """A line now and then."""

    def __init__(self) -> None:
        self.last = -math.inf
        self.phase = ""
        self.began, self.first = 0.0, 0
        self.pace = _Pace()

    def prepare(self, text: str) -> None:
        if not isinstance(text, Partly):
            _say(text)
        elif self._is_time():
            _say(f"preparing {text.done:.0%}: {text}")

    def __call__(self, update: Update) -> None:
        done, news = update.iteration >= update.end, _phase(update) != self.phase
        if news or update.iteration < self.first:  # also where a run begins again
            self.began, self.first = time.perf_counter(), update.iteration
        self.phase = _phase(update)
        pace = self.pace(update)
        if self._is_time(done or news):
            share = update.iteration / update.end
            _say(f"{self.phase} {share:.0%}: {_facts(update, pace)}{self._to_go(update)}")

    def _is_time(self, certainly: bool = False) -> bool:
        now = time.perf_counter()
        if not certainly and now - self.last <= LINE_SECONDS:
            return False
        self.last = now
        return True

    def _to_go(self, update: Update) -> str:
        """The time to go, once there is a pace to tell it from."""
        made, seconds = update.iteration - self.first, time.perf_counter() - self.began
        if not made or seconds < 1 or update.iteration >= update.end:
            return ""
        return f", about {_duration(seconds * (update.end - update.iteration) / made)} to go"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
