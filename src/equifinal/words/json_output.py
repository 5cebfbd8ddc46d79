"""One JSON document on standard output, for machines."""

from __future__ import annotations

import json
from typing import Any


def print_json(document: Any) -> None:
    """Print plain data; NaN and infinity, which are not JSON, become null."""
    print(json.dumps(finite(document), indent=2, ensure_ascii=False, allow_nan=False))


def finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
