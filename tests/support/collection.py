"""The shared collection of models with known identifiability."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.identifiability import judge, model_of
from equifinal.identifiability.analysis import Identifiability
from tests.support.analysed import analysed
from tests.support.marks import slow_but
from tests.support.shared_folder import SHARED

__all__ = ["ENTRIES", "analysed_entry", "judge", "model_of", "needs_collection", "slow_if_long"]

PATH = SHARED / "identifiability" / "models.json"
ENTRIES: list[dict[str, Any]] = json.loads(PATH.read_text())["models"] if PATH.exists() else []
needs_collection = pytest.mark.skipif(not ENTRIES, reason=f"{PATH} is not there (set EQUIFINAL_SHARED)")

# two minutes of algebra together
LONG_BENCH = """
    Akt_pathway CGV1990 Fujita HIV2_io KD1999 Pivastatin SEAIJRC_Covid_model SEIR_34 SEIR_36_ref SEIR_1_io SLIQR
    Treatment_io
"""
LONG = {
    *(f"sijl_idfuncs_{n}" for n in (15, 19, 30, 48, 49)),
    *(f"sijl_bench_{n}" for n in LONG_BENCH.split()),
}


def slow_if_long(entries: list[dict[str, Any]]) -> list[Any]:
    return slow_but(*(e for e in entries if e["name"] not in LONG), of=entries)


def analysed_entry(entry: dict[str, Any]) -> Identifiability:
    """With a generous limit, because this is no test of speed: `benchmarks/identifiability.py` is."""
    return analysed(model_of(entry), effort=15 if entry["family"] == "extended" else 3)
