"""Public data, problems and models that live beside the repository, not in it."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path(os.environ.get("EQUIFINAL_SHARED", Path(__file__).parents[3] / "shared"))
