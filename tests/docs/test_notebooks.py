"""The notebooks in docs/ run as they stand: without errors or noise, and every figure is shown."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["doses", "first-fit", "ridge"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path: Path, tmp_path: Path) -> None:
    made = nbformat.read(path, 4)
    kept = [len(cell.get("outputs", [])) for cell in made.cells]
    NotebookClient(made, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, before in zip(made.cells, kept, strict=True):
        outputs = cell.get("outputs", [])
        assert len(outputs) == before  # what is shown in the documentation is what comes out
        assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
        if cell.source.rsplit("\n", 1)[-1].startswith("equifinal.plot_"):
            assert "image/png" in outputs[-1]["data"]
        if "equifinal.sample(" in cell.source:  # one live bar
            assert "<progress" in outputs[0]["data"]["text/html"]
            assert "sampled 100%" in outputs[0]["data"]["text/html"]
