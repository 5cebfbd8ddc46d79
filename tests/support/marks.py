"""Which of a test's parameters are tried in every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(*quick: Any, of: Iterable[Any]) -> list[Any]:
    """Mark all parameters slow except ``quick``, which cover what the test is about."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in of]
