"""The cache of compiled functions may be anything; what is computed stays the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import numpy as np
from equifinal.problem.prior import Prior, log_prior, prior_table
print(float(log_prior(np.array([[0.5]]), prior_table([Prior("uniform", lower=0, upper=4)]))[0]))
"""
EXPECTED = "-1.3862943611198906"


def run(**environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_damaged_cache_is_no_error(tmp_path: Path) -> None:
    assert run(EQUIFINAL_CACHE_DIR=str(tmp_path)) == EXPECTED
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert entries
    for path in entries:
        path.write_bytes(b"garbage")
    assert run(EQUIFINAL_CACHE_DIR=str(tmp_path)) == EXPECTED
    for path in entries:
        path.write_bytes(path.read_bytes()[:50])
    assert run(EQUIFINAL_CACHE_DIR=str(tmp_path)) == EXPECTED


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_nowhere_to_put_a_cache_is_no_error() -> None:
    assert run(EQUIFINAL_CACHE_DIR="/proc/self/nowhere") == EXPECTED
