"""Work in a process of its own, which can be ended at any time, and what it told until then.

A single call of flint cannot be interrupted, neither by a clock nor by Ctrl-C; a process can. Where processes cannot be
forked the work is done here, and only its own looks at the clock end it.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any, NoReturn

GRACE = 0.5  # seconds beyond the limit, in which work may end by itself
LENGTH = struct.Struct("<Q")

Tell = Callable[[Any], None]


class Ended(Exception):
    """The process ended without an answer."""


def in_child(work: Callable[[Tell], Any], seconds: float) -> tuple[Any, bool]:
    """What `work` returns, or the last it told if it took too long (None if nothing); and whether it came to its end.

    What it raises is raised here.
    """
    if not hasattr(os, "fork"):
        return work(lambda _: None), True
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, none of which the child needs
        child = os.fork()
    if child == 0:
        _serve(work, writing)
    os.close(writing)
    kind = "told"
    try:
        kind, found = _followed(reading, inf if seconds == inf else time.monotonic() + seconds + GRACE)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError, ChildProcessError):  # somebody else may wait for all children
            if kind == "told":
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if kind == "error":
        raise found
    return found, kind == "answer"


def _serve(work: Callable[[Tell], Any], writing: int) -> NoReturn:
    """In the child: work, tell, and leave without a trace."""

    def send(kind: str, value: Any) -> None:
        data = pickle.dumps((kind, value))
        data = LENGTH.pack(len(data)) + data
        while data:
            data = data[os.write(writing, data) :]

    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            send("answer", work(lambda value: send("told", value)))
        except Exception as error:
            error.add_note(traceback.format_exc())
            send("error", error)
    finally:
        os._exit(0)


def _followed(reading: int, end: float) -> tuple[str, Any]:
    """Its last message: an answer, an error, or what it told until the end."""
    received, told = bytearray(), None
    while True:
        left = end - time.monotonic() if end < inf else None
        if not select.select([reading], [], [], left if left is None else max(left, 0))[0]:
            return "told", told
        piece = os.read(reading, 1 << 20)
        if not piece:
            raise Ended
        received += piece
        while len(received) >= LENGTH.size:
            whole = LENGTH.size + LENGTH.unpack_from(received)[0]
            if len(received) < whole:
                break
            kind, value = pickle.loads(received[LENGTH.size : whole])
            del received[:whole]
            if kind != "told":
                return kind, value
            told = value
