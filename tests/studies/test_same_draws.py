"""The same seed gives the same draws, bit for bit, whatever state the machine is in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.marks import slow_but

ROOT = Path(__file__).parents[2]
CODE = """
import os, sys
from pathlib import Path
sampler, factor = sys.argv[1], float(sys.argv[2])
if "NOTHING_SHIPPED" in os.environ:
    from equifinal.machine import kept
    kept.SHIPPED = Path(os.devnull)
from tests.support.clocks import hurry
hurry(setattr, factor)
import equifinal
from equifinal.examples import example_path
found = equifinal.sample(
    equifinal.load(example_path("si")), sampler=sampler, chains=2, warmup=20, draws=10, seed=3, progress=False
)
assert found.attrs["sampler"] == sampler
print([found.posterior[name].values.tobytes().hex() for name in sorted(found.posterior.data_vars)])
"""


def draws(sampler: str, clock: float, **environment: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", CODE, sampler, str(clock)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, cwd=ROOT, timeout=1800)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def busy_machine() -> Iterator[None]:
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])  # beside the other tests
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["geometric", "collapsed"])
def test_a_clock_too_fast_and_a_busy_machine(sampler: str) -> None:
    quiet = draws(sampler, clock=1)
    with busy_machine():
        assert draws(sampler, clock=50) == quiet


@pytest.mark.parametrize("sampler", slow_but("random-walk", of=["random-walk", "geometric", "collapsed"]))
def test_nothing_kept(sampler: str, tmp_path: Path) -> None:
    """Machine code from a cache and made anew, from what was shipped or by compiling, give the same draws."""
    fresh = draws(sampler, clock=1, EQUIFINAL_CACHE_DIR=str(tmp_path))
    assert any(tmp_path.iterdir())  # the cache was empty indeed
    assert fresh == draws(sampler, clock=1)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["random-walk", "geometric", "collapsed"])
def test_nothing_kept_and_nothing_shipped(sampler: str, tmp_path: Path) -> None:
    fresh = draws(sampler, clock=1, EQUIFINAL_CACHE_DIR=str(tmp_path), NOTHING_SHIPPED="1")
    assert fresh == draws(sampler, clock=1)
