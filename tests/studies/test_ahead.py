"""What a first run compiles ahead: the functions are there, take such arguments, and are compiled once each."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from equifinal.studies.ahead import AHEAD, claimed, types_of


@pytest.mark.parametrize(("function", "letters"), AHEAD)
def test_functions_take_these_arguments(function, letters):
    module, name = function.rsplit(".", 1)
    parameters = inspect.signature(getattr(import_module(f"equifinal.{module}"), name).function).parameters
    assert len(types_of(letters)) == len(parameters)


def test_a_function_is_claimed_once(tmp_path):
    assert [claimed(str(tmp_path), name) for name in ("a.b", "a.c", "a.b")] == [True, True, False]
