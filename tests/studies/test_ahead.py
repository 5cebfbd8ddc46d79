"""What a first run compiles ahead: the functions are there, take such arguments, and are compiled once each."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import import_module

import pytest

from equifinal.machine import kept
from equifinal.ode.integrator import entry_name
from equifinal.studies.ahead import AHEAD, claimed, types_of

FIT = """
import equifinal
from equifinal.examples import example_path
from equifinal.machine import kept

def compiled(overloads, signature, result):
    print("compiled", overloads.function.__module__, overloads.function.__qualname__)

kept.KeptOverloads.save_overload = compiled
equifinal.sample(equifinal.load(example_path("si")), draws=200, progress=False)
print("sampled")
"""


@pytest.mark.parametrize(("function", "letters"), AHEAD)
def test_functions_take_these_arguments(function, letters):
    module, name = function.rsplit(".", 1)
    parameters = inspect.signature(getattr(import_module(f"equifinal.{module}"), name).function).parameters
    assert len(types_of(letters)) == len(parameters)


def test_a_function_is_claimed_once(tmp_path):
    assert [claimed(str(tmp_path), name) for name in ("a.b", "a.c", "a.b")] == [True, True, False]


@pytest.fixture
def shipped():
    """A build whose sources were not edited since."""
    if os.environ.get("EQUIFINAL_BUILD_AHEAD") == "0":
        pytest.skip("built without compiled code, as asked for")
    assert kept.SHIPPED.is_dir(), "the build compiled nothing: uv sync --reinstall-package equifinal -v says why"
    names = [kept_name(function, letters) for function, letters in AHEAD]
    missing = [name for name in [entry_name(), *names] if not (kept.SHIPPED / name).is_file()]
    if missing:
        pytest.skip(f"{len(missing)} functions were edited since this was built: uv sync --reinstall-package equifinal")


def kept_name(function: str, letters: str) -> str:
    module, name = function.rsplit(".", 1)
    return getattr(import_module(f"equifinal.{module}"), name).dispatcher._cache.name(types_of(letters))


def test_a_first_fit_compiles_nothing(shipped, tmp_path):
    environment = os.environ | {"EQUIFINAL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["sampled"]
    assert len(list(tmp_path.iterdir())) > 10  # the cache was empty before
