"""Processes that work for this one, and end with it; what one was doing when it died is done again."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from equifinal.errors import DataError, SamplingError

TRIES = 4  # deaths over one piece of work are no accident any more: dask's schedulers give up after as many


def workers(number: int, what: str = "processes") -> AbstractContextManager[Executor | None]:
    """So many spawned processes; none if zero, for work in this process."""
    if number < 0:
        raise DataError(f"the number of {what} cannot be {number}")
    return nullcontext(None) if number == 0 else Processes(number)


class Processes(ThreadPoolExecutor):
    """An executor for pure functions, whose work can be done again where a process died over it: a thread a process."""

    def __init__(self, number: int):
        super().__init__(number)
        self._own = threading.local()
        self._all: list[_Helper] = []
        self._ending = False

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have it done in one of the processes."""
        return super().submit(self._apart, work, args, kwargs)

    def _apart(self, *task: Any) -> Any:
        packed, died = ForkingPickler.dumps(task), ""
        for _ in range(TRIES):
            helper = self._helper()
            try:
                answer, error = helper.do(packed)
            except (EOFError, OSError):
                died = helper.death()
                self._own.helper = None
                if self._ending:
                    break
                continue
            if error is not None:
                raise error
            return answer
        raise SamplingError(f"{TRIES} processes died over the same work, the last one {died}")

    def _helper(self) -> _Helper:
        if getattr(self._own, "helper", None) is None:
            self._own.helper = _Helper()
            self._all.append(self._own.helper)
            if self._ending:  # meanwhile
                self._own.helper.process.terminate()
        return self._own.helper

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """What is under way is waited for, unless this ends with an error or an interrupt."""
        if kind is not None:
            self._ending = True
            for helper in self._all:
                helper.process.terminate()
        self.shutdown(wait=True, cancel_futures=kind is not None)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for helper in self._all:
                helper.end()


class _Helper:
    """A spawned process that does one thing after another; forking after threads have started can deadlock."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()

    def do(self, packed: Any) -> tuple[Any, Exception | None]:
        """What came of it, or what went wrong; EOFError or OSError if the process is gone."""
        self.pipe.send_bytes(packed)
        return pickle.loads(self.pipe.recv_bytes())

    def death(self) -> str:
        self.process.kill()  # it may have closed its pipe a little before its end
        self.process.join()
        code = self.process.exitcode or 0
        if code >= 0:
            return f"with exit code {code}"
        with suppress(ValueError):
            return f"by {signal.Signals(-code).name}" + " (out of memory?)" * (-code == signal.SIGKILL)
        return f"by signal {-code}"

    def end(self) -> None:
        self.pipe.close()
        self.process.join()


def _serve(pipe: Connection, parent: int) -> None:
    """In the process: do what is asked for, until the parent asks no more."""
    _follow(parent)
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(packed: bytes) -> Any:
    try:
        work, args, kwargs = pickle.loads(packed)
        return ForkingPickler.dumps((work(*args, **kwargs), None))
    except Exception as error:
        error.add_note(traceback.format_exc())
        with suppress(Exception):  # some errors cannot be pickled, some cannot be made again from what was
            answer = ForkingPickler.dumps((None, error))
            pickle.loads(answer)
            return answer
        return ForkingPickler.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))


def _follow(parent: int) -> None:
    """Leave interrupts to the parent, and end when it is gone, killed perhaps."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
