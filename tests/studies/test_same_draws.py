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
import sys
sampler, factor = sys.argv[1], float(sys.argv[2])
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
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@pytest.mark.parametrize("sampler", slow_but("geometric", of=["geometric", "collapsed"]))
def test_a_clock_too_fast_and_a_busy_machine(sampler: str) -> None:
    quiet = draws(sampler, clock=1)
    with busy_machine():
        assert draws(sampler, clock=50) == quiet


CACHES = ("NUMBA_CACHE_DIR", "EQUIFINAL_CACHE_DIR")


# the solver, which is in the second, is compiled anew in every run by a test of that cache
@pytest.mark.parametrize("emptied", slow_but(CACHES[:1], of=[CACHES[:1], CACHES]))
@pytest.mark.parametrize("sampler", slow_but("random-walk", of=["random-walk", "geometric", "collapsed"]))
def test_nothing_compiled(sampler: str, emptied: tuple[str, ...], tmp_path: Path) -> None:
    fresh = draws(sampler, clock=1, **dict.fromkeys(emptied, str(tmp_path)))
    assert any(tmp_path.rglob("*"))  # the caches were empty indeed
    assert fresh == draws(sampler, clock=1)
