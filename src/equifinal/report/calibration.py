"""A calibration in a folder: the record of its replicates, the findings and the figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from equifinal.errors import DataError
from equifinal.files import replace_file
from equifinal.plots import style
from equifinal.plots.calibration import plot_calibration
from equifinal.problem.problem import Problem
from equifinal.studies.calibrate.findings import Calibration
from equifinal.studies.calibrate.replicates import calibrate
from equifinal.words.calibration import calibration_json
from equifinal.words.json_output import finite

RECORD, FINDINGS, FIGURES = "replicates.jsonl", "calibration.json", ("ranks.svg", "ranks.png")


def calibrate_to(folder: Path, problem: Problem, **settings: Any) -> tuple[Calibration, list[Path]]:
    """Calibrate, going on with what is in the folder, and write findings and figures there; `settings` as `calibrate`.

    Returns
    -------
    What was calibration, and the files written.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, but `folder` must name a folder")
    calibration = calibrate(problem, record=folder / RECORD, **settings)
    text = json.dumps(finite(calibration_json(calibration)), indent=1) + "\n"
    written = [replace_file(folder / FINDINGS, lambda path: path.write_text(text, encoding="utf-8"), "the findings")]
    if len(calibration.ranks):
        figure = plot_calibration(calibration)
        for name in FIGURES:
            style.save(figure, folder / name)
            written.append(folder / name)
    return calibration, written
