"""What draws depend on besides problem, settings and seed: versions, source code, processor.

A worker on another machine draws what this one would only if all of them are the same there.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from equifinal import __file__ as package
from equifinal.machine import native

PACKAGES = ("equifinal", "numpy", "scipy", "numba", "llvmlite", "arviz")
PYTHON = "python"


class Environment(NamedTuple):
    """What a process runs on; two that are equal give the same draws."""

    versions: tuple[tuple[str, str], ...]
    source: str  # of equifinal: versions under development have the same number
    processor: str  # with its C library, whose exponentials and logarithms may differ in their last digit


@cache
def environment() -> Environment:
    """The environment of this process."""
    processor = f"{native.machine()} {platform.platform(terse=True)} {' '.join(platform.libc_ver())}"
    return Environment(tuple(versions().items()), _source(), sha256(processor.encode()).hexdigest())


def versions() -> dict[str, str]:
    """Python without its last number, which changes no result, and packages."""
    found = {PYTHON: "{}.{}".format(*sys.version_info)}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _source() -> str:
    digest = sha256()
    folder = Path(package).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
