"""The shared collection of models with known identifiability."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.identifiability import judge, model_of
from equifinal.identifiability.analysis import Identifiability
from tests.support.analysed import analysed
from tests.support.shared_folder import SHARED

__all__ = ["ENTRIES", "analysed_entry", "judge", "model_of", "needs_collection"]

PATH = SHARED / "identifiability" / "models.json"
ENTRIES: list[dict[str, Any]] = json.loads(PATH.read_text())["models"] if PATH.exists() else []
needs_collection = pytest.mark.skipif(not ENTRIES, reason=f"{PATH} is not there (set EQUIFINAL_SHARED)")


def analysed_entry(entry: dict[str, Any]) -> Identifiability:
    """With a generous limit, because this is no test of speed: `benchmarks/identifiability.py` is."""
    return analysed(model_of(entry), effort=15 if entry["family"] == "extended" else 3)
