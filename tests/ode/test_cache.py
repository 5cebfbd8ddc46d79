"""The cache of machine code: found again, and never a reason to fail."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from equifinal.machine import cache, kept, native
from equifinal.ode import integrator

SOLVE = """
import sys
from equifinal.language.model import Model
from equifinal.ode import compile_system, simulate
system = compile_system(Model.parse("x' = -k*x\\nx(0) = 1", ["x"]), ("k",))
found = simulate(system, [[1.0]], [1.0], sensitivities=True)
print(repr(float(found.outputs[0, 0, 0])), "numba" in sys.modules, "sympy" in sys.modules)
"""


def solve_in_new_process(directory: Path) -> tuple[str, bool, bool]:
    """The solution, and whether Numba and SymPy had to be imported for it."""
    environment = os.environ | {"EQUIFINAL_CACHE_DIR": str(directory)}
    done = subprocess.run([sys.executable, "-c", SOLVE], env=environment, capture_output=True, text=True, check=True)
    solution, numba, sympy = done.stdout.split()
    return solution, numba == "True", sympy == "True"


@pytest.fixture(scope="module")
def entry() -> tuple[str, kept.Code]:
    """The integrator's entry as this process found or made it."""
    integrator.integrator()
    found = kept.find(integrator.entry_name())
    if found is None:
        pytest.skip("the cache directory of this machine cannot be written")
    return integrator.entry_name(), found


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_round_trip(directory):
    assert cache.read("name") is None
    assert cache.write("name", b"some code")
    assert cache.read("name") == b"some code"
    assert [path.name for path in directory.iterdir()] == ["name"]  # nothing temporary is left


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: content[:10],
        lambda content: b"",
        lambda content: content[:40] + b"X" + content[41:],
        lambda content: content + b"more",
        lambda content: os.urandom(100),
    ],
    ids=["truncated", "only a part of the checksum", "empty", "edited", "appended", "garbage"],
)
def test_spoilt_entries_count_as_absent(directory, spoil):
    cache.write("name", b"some code that is longer than that")
    path = directory / "name"
    path.write_bytes(spoil(path.read_bytes()))
    assert cache.read("name") is None
    assert cache.write("name", b"again")
    assert cache.read("name") == b"again"


def test_a_directory_that_cannot_be_used(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(blocked / "below"))
    assert not cache.write("name", b"code")
    assert cache.read("name") is None
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(tmp_path))
    (tmp_path / "name").mkdir()
    assert not cache.write("name", b"code")
    assert cache.read("name") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "name"]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="permissions do not bind this user")
def test_read_only_directory(directory):
    directory.mkdir()
    directory.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert not cache.write("name", b"code")


def test_writers_at_the_same_time(directory):
    """A reader never sees half an entry."""
    contents = [bytes([i]) * 200_000 for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(cache.write, "name", content) for content in contents * 4]
        reads = [pool.submit(cache.read, "name") for _ in range(64)]
        assert all(write.result() for write in writes)
        assert {read.result() for read in reads} <= {None, *contents}
    assert cache.read("name") in contents


def test_keys_tell_parts_apart():
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("ab") == cache.key(b"ab")


def test_default_directory_without_variables(monkeypatch):
    for name in ("EQUIFINAL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache.directory().name == "equifinal"


def test_a_known_machine_needs_neither_numba_nor_sympy(directory, entry):
    kept.keep(*entry)
    solution, numba, sympy = solve_in_new_process(directory)
    assert float(solution) == pytest.approx(0.36787944, rel=1e-5)
    assert not numba
    assert not sympy


def test_a_tampered_integrator_is_made_again(directory, entry):
    """Edited machine code is never run: the entry is made anew and replaced."""
    kept.keep(*entry)
    (path,) = directory.iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    assert cache.read(path.name) is None
    solution, _, _ = solve_in_new_process(directory)
    assert float(solution) == pytest.approx(0.36787944, rel=1e-5)
    assert cache.read(path.name) is not None


def test_without_a_cache_it_is_compiled(tmp_path, entry, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("EQUIFINAL_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(kept, "SHIPPED", tmp_path / "nothing")
    bitcode, _ = native.optimised("define i32 @solve() {\n ret i32 0\n}")
    compiled = []
    monkeypatch.setattr(integrator, "compiled_code", lambda: compiled.append(1) or kept.Code(bitcode, b"solve"))
    (address,) = integrator._code().addresses.values()
    assert address != 0
    assert len(compiled) == 1


@pytest.mark.slow
def test_an_unusable_cache_costs_time_only(tmp_path, entry):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    solution, _, _ = solve_in_new_process(blocked)
    assert float(solution) == pytest.approx(0.36787944, rel=1e-5)


def test_object_code_says_what_it_needs():
    assembly = """
    declare double @exp(double)
    define double @f(double %x) {
      %y = call double @exp(double %x)
      ret double %y
    }
    """
    bitcode, outside = native.optimised(assembly)
    assert outside == ["exp"]
    assert native.load_object(native.emit_object(bitcode), "f").addresses["f"] != 0
