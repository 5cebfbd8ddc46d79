"""Processes that work for this one, and end with it."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context

from equifinal.errors import DataError


def workers(number: int, what: str = "processes") -> AbstractContextManager[Executor | None]:
    """So many spawned processes; none if zero, for work in this process."""
    if number < 0:
        raise DataError(f"the number of {what} cannot be {number}")
    if number == 0:
        return nullcontext(None)
    # forking after threads have started can deadlock
    context = get_context("spawn")
    return ProcessPoolExecutor(number, mp_context=context, initializer=_follow, initargs=(os.getpid(),))


def _follow(parent: int) -> None:
    """Leave interrupts to the parent, and end when it is gone, killed perhaps."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
