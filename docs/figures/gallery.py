"""The gallery's pictures: for each case study a fit over its data, and two of its parameters as the data leave them.

Run with: uv run python docs/figures/gallery.py          all of them, a few minutes
          uv run python docs/figures/gallery.py si mrna  some of them
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import equifinal

INK, BAND, DRAWS = "#222222", "#0072B2", "#D55E00"
FOLDER = Path(__file__).with_suffix("")

# example: the output shown, whether it is shown on a logarithmic scale, two parameters, and whether those are
CASES = {
    "si": ("cases", False, ("gamma", "I0"), False),
    "hiv": ("V", True, ("lambda", "N"), True),
    "influenza": ("in_bed", False, ("gamma", "rho"), False),
    "theophylline": ("concentration", False, ("F", "V"), False),
    "treatment": ("V", True, ("lambda", "N"), True),
    "mrna": ("protein", False, ("beta", "delta"), True),
    "signalling": ("glow", False, ("synthesis", "s2"), True),
}


def draw(name: str) -> None:
    output, logarithmic, pair, log_pair = CASES[name]
    problem = equifinal.load(name)
    data = equifinal.sample(problem, draws=2000, seed=1, progress=False, predictive=False)
    for sentence in equifinal.advise(data):
        print(f"{name}: {sentence}")
    table = equifinal.predict(data, states=[]).to_dataframe()
    experiment = problem.experiments[0]
    if "experiment" in table:
        table = table[table["experiment"] == experiment.name]
    band = table[table["name"] == output]
    seen = next(one for one in experiment.observations if one.output == output)

    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 2.5), layout="constrained")
    times = band["time"]
    left.fill_between(times, band["observed 5%"], band["observed 95%"], color=BAND, alpha=0.2, lw=0)
    left.fill_between(times, band["observed 25%"], band["observed 75%"], color=BAND, alpha=0.35, lw=0)
    left.plot(times, band["observed 50%"], color=BAND, lw=0.8)
    values, censored = seen.values, seen.censored != 0
    left.plot(seen.times[~censored], values[~censored], "o", color=INK, ms=3, mec="white", mew=0.4)
    left.plot(seen.times[censored], values[censored], "v", color=INK, ms=4, mec="white", mew=0.4)
    left.set(xlabel=problem.title("t"), ylabel=problem.title(output))
    if logarithmic:
        left.set_yscale("log")
        left.set_ylim(0.5 * values.min(), 2 * float(band["observed 95%"].max()))

    one, other = (data.posterior[parameter].values.ravel()[::4] for parameter in pair)
    right.plot(one, other, ".", color=DRAWS, ms=2, alpha=0.35, mew=0)
    right.set(xlabel=problem.title(pair[0]), ylabel=problem.title(pair[1]))
    if log_pair:
        right.set(xscale="log", yscale="log")
    left.set_title("What the data show", fontsize=9, loc="left")
    right.set_title("What they leave open", fontsize=9, loc="left")
    save(figure, FOLDER / f"{name}.png")
    plt.close(figure)


def save(figure: plt.Figure, path: Path) -> None:
    """With 64 colours, which nobody misses, a picture takes a third of the room."""
    from PIL import Image

    figure.savefig(path, dpi=200)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(64)
    small.save(path, optimize=True)


def main() -> None:
    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or CASES:
        draw(name)


if __name__ == "__main__":
    main()
