"""How all figures look: colour-blind safe, readable at column width, the same bytes for the same data."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from equifinal.errors import DataError
from equifinal.files import replace_file

INK, MUTED, FAINT = "#222222", "#777777", "#dddddd"
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000"]
POSTERIOR, PRIOR, FIBRE = COLOURS[0], COLOURS[1], COLOURS[5]
COLUMN = 3.4  # inches: the width of a column in most journals
FORMATS = (".png", ".svg", ".pdf")
MARKERS = {0: "o", -1: "v", 1: "^"}  # of data: a number, a limit below which an observation lies, one above which

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "equifinal",
    "svg.fonttype": "none",  # text stays text: found by a search, read aloud, in any script
    "axes.formatter.use_mathtext": False,
    "axes.formatter.limits": (-3, 5),
    "figure.dpi": 150,
}


@contextmanager
def styled() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


@cache
def _drawing() -> type[Any]:
    from matplotlib.figure import Figure

    class Drawing(Figure):
        """A figure that a notebook shows as the last expression of a cell, whether pyplot is in use or not."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            with styled():
                self.savefig(buffer, format="png", bbox_inches="tight")
            return buffer.getvalue()

    return Drawing


def new_figure(**arguments: Any) -> Any:
    """A figure of matplotlib's that shows itself in notebooks."""
    return _drawing()(**arguments)


def panels(count: int, height: float) -> tuple[Any, list[Any]]:
    """A figure with so many panels: a single one at column width, several side by side in two columns."""
    if count == 1:  # margins that are known need not be searched for, which takes as long as drawing
        figure = new_figure(figsize=(COLUMN, height))
        figure.subplots_adjust(left=0.21, right=0.95, bottom=0.44 / height, top=1 - 0.22 / height)
        return figure, [figure.add_subplot()]
    rows = -(-count // 2)
    figure = new_figure(figsize=(COLUMN * 2, height * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, 2, k + 1) for k in range(count)]


def shortened(name: str, most: int = 22) -> str:
    """A user's name as a label: not too long, and a dollar sign in it is a dollar sign, not the start of a formula."""
    short_name = name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return short_name.replace("$", r"\$")


def colours(n: int) -> list[Any]:
    """Give as many colours as are needed, the first few easy to tell apart."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    from matplotlib import colormaps

    return [colormaps["viridis"](k / (n - 1)) for k in range(n)]


def check_path(path: Path) -> None:
    """Refuse a name whose ending is no format, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"{path}: a figure's name must end in {', '.join(FORMATS)}")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file")


def save(figure: Any, path: Path) -> None:
    check_path(path)
    kind = path.suffix.lower()[1:]
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]

    with styled():  # what makes it the same bytes again holds when it is written, too
        replace_file(path, partial(figure.savefig, format=kind, metadata=metadata), "the figure")
