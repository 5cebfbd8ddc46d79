"""Lanes of a batch on all cores: threads take what is left to do, and no number depends on which of them did it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

_WORTH_A_THREAD = 2e-4  # seconds of work below which handing it to another thread costs more than it saves
_PIECES = 4  # for each thread, so that none waits long for the last

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _forget_pool() -> None:
    """A forked process has none of its parent's threads."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_PROCESSORS = processors()


def run_in_threads(run: Callable[[], None], n_lanes: int, threads: int | None, pace: list[float]) -> None:
    """Run the same work in this thread and possibly others; the work itself deals out lanes among them.

    The clock chooses how many threads there are, and nothing else: a lane is one solve, which only reads its own
    arguments and writes its own row, so that its numbers are the same whoever computes it, and in whatever order.
    """
    if threads is None:
        threads = _threads_for(n_lanes * pace[0])
    threads = min(threads, n_lanes)
    began = time.perf_counter()
    if threads <= 1:
        run()
    else:
        _share(run, threads)
    pace[0] = (time.perf_counter() - began) * max(threads, 1) / n_lanes


def in_pieces(work: Callable[[slice], None], n_lanes: int, seconds: float) -> None:
    """Do work on slices of lanes, which takes about so many seconds in all, in one thread or in several."""
    threads = min(_threads_for(seconds), n_lanes)
    if threads <= 1:
        work(slice(0, n_lanes))
        return
    ends = [n_lanes * i // (_PIECES * threads) for i in range(_PIECES * threads + 1)]
    left = [slice(first, last) for first, last in pairwise(ends) if first < last]

    def run() -> None:
        while left:
            try:
                piece = left.pop()
            except IndexError:  # another thread was quicker
                return
            work(piece)

    _share(run, threads)


def _threads_for(seconds: float) -> int:
    return _PROCESSORS if seconds > _WORTH_A_THREAD else 1


def _share(run: Callable[[], None], threads: int) -> None:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(_PROCESSORS - 1, 1), thread_name_prefix="equifinal-ode")
        shares = [_pool.submit(run) for _ in range(min(threads - 1, _pool._max_workers))]
    try:
        run()
    finally:
        for share in shares:
            if not share.cancel():  # what has not begun by now has nothing left to do
                share.result()
