"""Settings and fixtures shared by all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.shared_folder import SHARED

# tests start many processes: whatever the environment says, each module is compiled once for all of them
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest test, so that nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_same_draws.py")


@pytest.fixture
def shared_data() -> Path:
    """Public data sets that live beside the repository, not in it."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not at {folder} (set EQUIFINAL_SHARED to their parent)")
    return folder


@pytest.fixture
def petab() -> Path:
    """Published problems in PEtab's format, likewise."""
    folder = SHARED / "petab"
    if not folder.is_dir():
        pytest.skip(f"the PEtab problems are not at {folder} (set EQUIFINAL_SHARED to their parent)")
    return folder
