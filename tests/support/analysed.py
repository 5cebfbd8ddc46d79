"""Analyses of models that several tests need, each made once in a run, whichever worker comes first."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from math import inf
from pathlib import Path

from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model


def analysed(model: Model, effort: float) -> Identifiability:
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")  # without workers nothing outlives this process anyway
    if not run:
        return analyse(model, time_limit=inf, effort=effort)
    content = repr((model.to_text(), dict(model.constants), model.inputs, model.outputs, effort))
    folder = Path(tempfile.gettempdir()) / f"equifinal-tests-{run}"
    path = folder / hashlib.sha256(content.encode()).hexdigest()
    if path.exists():
        return Identifiability.from_json(json.loads(path.read_text()))
    result = analyse(model, time_limit=inf, effort=effort)
    folder.mkdir(exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(result.to_json()))
    partial.replace(path)
    return result


def said(result: Identifiability) -> str:
    """What a person reads about an analysis, in one line, since sentences may be broken anywhere."""
    return " ".join(str(result).split())
