"""The picture of docs/architecture.md: the rooms, and what each hands to the next.

Run with: uv run python docs/figures/architecture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

INK, GREY = "#1b1f24", "#757b83"  # on filled boxes; on any page, light or dark
ASKED, EXACT, NUMERICAL, DRAWN, READ = "#d9dde3", "#a9d3f2", "#f6d28f", "#a8dcc4", "#f3bfa6"
WIDTH, HEIGHT = 1.95, 0.64
COLUMN, ROW, GAP = 3.15, 1.2, 0.05

# name: column, row, colour, what is in it
ROOMS = {
    "algebra": (0, 0, EXACT, "polynomials, ideals"),
    "formats": (1, 0, ASKED, "files to problems"),
    "machine": (2, 0, NUMERICAL, "expressions to code"),
    "identifiability": (0, 1, EXACT, "what data can tell"),
    "language": (1, 1, ASKED, "text to a model"),
    "ode": (2, 1, NUMERICAL, "batches of solves"),
    "fibre": (0, 2, NUMERICAL, "other θ, same output"),
    "problem": (1, 2, ASKED, "data, noise, priors"),
    "posterior": (2, 2, NUMERICAL, "density of θ"),
    "studies": (0, 4, DRAWN, "fit, compare, calibrate"),
    "samplers": (1, 3, DRAWN, "algorithms and runs"),
    "prediction": (2, 3, NUMERICAL, "trajectories, bands"),
    "results": (1, 4, DRAWN, "draws, what they mean"),
    "words": (0, 5, READ, "sentences, tables"),
    "report": (1, 5, READ, "one page"),
    "plots": (2, 5, READ, "figures"),
    "cli": (1, 6, READ, "arguments, printing"),
}
# from, to, what is handed over
HANDED = [
    ("formats", "language", "equations"),
    ("language", "problem", "Model"),
    ("algebra", "identifiability", "exact answers"),
    ("language", "identifiability", "Model"),
    ("identifiability", "fibre", "combinations"),
    ("problem", "fibre", "priors"),
    ("language", "ode", "Model"),
    ("machine", "ode", "compiled field"),
    ("ode", "posterior", "trajectories"),
    ("problem", "posterior", "Problem"),
    ("fibre", "samplers", "Fibre"),
    ("posterior", "samplers", "Posterior"),
    ("posterior", "prediction", "outputs"),
    ("studies", "results", "runs"),
    ("samplers", "results", "draws, counts"),
    ("results", "words", "findings"),
    ("results", "plots", "InferenceData"),
    ("prediction", "plots", "bands"),
    ("words", "report", "sentences"),
    ("plots", "report", "figures"),
    ("report", "cli", "a page"),
]
HEADINGS = ("exact, never a float", "what is asked", "numerical, in batches")


def place(room: str) -> tuple[float, float]:
    return ROOMS[room][0] * COLUMN, -ROOMS[room][1] * ROW


def draw_room(axes: Axes, room: str) -> None:
    (x, y), (*_, colour, text) = place(room), ROOMS[room]
    shape = FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, "round,pad=0,rounding_size=0.1")
    shape.set(facecolor=colour, edgecolor="none")
    axes.add_patch(shape)
    axes.text(x, y + 0.13, room, ha="center", va="center", color=INK, weight="bold", size=11)
    axes.text(x, y - 0.14, text, ha="center", va="center", color=INK, size=8.5)


def draw_arrow(axes: Axes, one: str, other: str, text: str) -> None:
    """From border to border; what is handed over stands beside a vertical arrow, above a level one, below a slope."""
    (x, y), (to_x, to_y) = place(one), place(other)
    side = (to_x > x) - (to_x < x)
    if not side:
        start, end = (x, y - HEIGHT / 2 - GAP), (to_x, to_y + HEIGHT / 2 + GAP)
        label, how = (x + 0.1, (y + to_y) / 2), {"ha": "left", "va": "center"}
    else:
        slope = 0.2 if to_y < y else 0.0
        start, end = (x + side * (WIDTH / 2 + GAP), y - slope), (to_x - side * (WIDTH / 2 + GAP), to_y + slope)
        label, how = ((x + to_x) / 2, (y + to_y) / 2 + 0.06), {"ha": "center", "va": "bottom"}
        if slope:
            label, how = (label[0] - 0.05 * side, label[1] - 0.1), {"ha": "right" if side > 0 else "left", "va": "top"}
    style = {"arrowstyle": "-|>", "color": GREY, "lw": 1.6, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13}
    axes.annotate("", end, start, arrowprops=style)
    axes.text(*label, text, color=GREY, size=8.5, **how)


def main() -> None:
    plt.rcParams.update({"svg.hashsalt": "equifinal"})
    figure, axes = plt.subplots(figsize=(8.6, 8.0))
    for room in ROOMS:
        draw_room(axes, room)
    for one, other, text in HANDED:
        draw_arrow(axes, one, other, text)
    for column, text in enumerate(HEADINGS):
        axes.text(column * COLUMN, 0.55, text, ha="center", color=GREY, size=9.5, style="italic")
    axes.set(xlim=(-1.05, 2 * COLUMN + 1.1), ylim=(-6 * ROW - 0.4, 0.8), aspect="equal")
    axes.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), transparent=True, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
