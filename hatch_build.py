"""Compile, when the package is built, what every first fit would otherwise wait for.

The result is LLVM's bitcode, which fits one version of Python and of Numba: so does the wheel. Where it does not fit,
and where it could not be made, the package compiles on its first run instead. ``EQUIFINAL_BUILD_AHEAD=0`` leaves it
out, for a wheel of Python sources alone.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = Path("src", "equifinal", "machine", "shipped", str(sys.implementation.cache_tag))


class CompileAhead(BuildHookInterface):
    """Put bitcode beside the sources and into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if os.environ.get("EQUIFINAL_BUILD_AHEAD") == "0":
            return
        root = Path(self.root)
        code = "import sys; from pathlib import Path; from equifinal.studies.ahead import ship; ship(Path(sys.argv[1]))"
        done = subprocess.run(
            [sys.executable, "-c", code, str(root / SHIPPED)],
            env=os.environ | {"PYTHONPATH": str(root / "src"), "EQUIFINAL_CACHE_DIR": "nowhere"},
            cwd=root,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            self.app.display_warning(f"nothing was compiled ahead; first runs will compile:\n{done.stderr[-2000:]}")
            return
        if version == "editable":
            compileall.compile_dir(str(root / "src"), quiet=2)
        build_data["artifacts"].append(f"{SHIPPED.as_posix()}/*")
        build_data["tag"] = f"cp{sys.version_info.major}{sys.version_info.minor}-none-any"
