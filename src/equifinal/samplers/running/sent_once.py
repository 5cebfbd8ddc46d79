"""Things that are costly to make, sent to workers again and again and made there once."""

from __future__ import annotations

import hashlib
import pickle
import threading
from functools import cached_property
from typing import Any, Generic, TypeVar

Content = TypeVar("Content")

_received: dict[str, SentOnce[Any]] = {}
_receiving = threading.RLock()  # threads of a worker receive the same at the same time
KEPT = 8


class SentOnce(Generic[Content]):
    """Something that can be pickled; in a process that has received it before, it is the same object as then."""

    def __init__(self, content: Content):
        self.content = content

    @cached_property
    def _packed(self) -> tuple[str, bytes]:
        packed = pickle.dumps(self.content)
        return hashlib.sha256(packed).hexdigest(), packed

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, self._packed


def _receive(key: str, packed: bytes) -> SentOnce[Any]:
    with _receiving:
        if key not in _received:
            while len(_received) >= KEPT:
                _received.pop(next(iter(_received)), None)
            received = SentOnce(pickle.loads(packed))
            received.__dict__["_packed"] = key, packed
            _received[key] = received
        return _received[key]
