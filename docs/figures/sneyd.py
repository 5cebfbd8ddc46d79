"""The figure of docs/case-sneyd.md: a published model with two freedoms, and parameters that no data tell apart.

    uv run docs/figures/sneyd.py Sneyd_PNAS2002.yaml

The problem is one of the PEtab benchmark collection.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from equifinal import equivalents, load
from equifinal.posterior.posterior import Posterior

COMBINATIONS = (
    *("k_2", "k2", "l_4", "l4", "k3", "k_3"),
    *("k_1/k1", "l_2/l2", "k_4/k4", "l_6/l6", "k_1 + l_2", "k_4 + l_6"),
)
FREE = ("k_1", "k1", "l_2", "l2", "k_4", "k4", "l_6", "l6")
COLOURS = ("#1b4f72", "#c0392b", "#d68910", "#1e8449", "#7d3c98", "#555555")


def main(file: str) -> None:
    problem = load(file)
    # some nominal values are on their bounds
    at = {
        n: float(np.clip(v, 1.0001 * problem.priors[n].lower, 0.9999 * problem.priors[n].upper))
        for n, v in problem.nominal.items()
    }
    found = equivalents(problem, at, 6, combinations=COMBINATIONS)
    names = list(found.fibre.names)
    print(f"largest difference between outputs: {found.largest_difference:.1e}")
    posterior = Posterior(problem)
    whole = np.tile([problem.nominal[name] for name in posterior.parameters], (len(found.theta), 1))
    for j, name in enumerate(posterior.parameters):
        if name in names:
            whole[:, j] = found.theta[:, names.index(name)]
    for row, value in zip(found.theta, posterior.log_likelihood(whole).values, strict=True):
        print(f"log likelihood {value:.5f}:", {name: float(f"{row[names.index(name)]:.4g}") for name in FREE})

    mpl.rcParams.update({"svg.hashsalt": "equifinal", "font.size": 9})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for colour, (experiment, curve) in zip(
        plt.cm.viridis(np.linspace(0, 0.9, len(problem.experiments))),
        zip(problem.experiments, found.trajectories[0], strict=True),
        strict=True,
    ):
        entry = experiment.observations[0]
        left.plot(entry.times, entry.values, ".", color=colour, markersize=4)
        left.plot(curve.times, curve.outputs[entry.output], color=colour, linewidth=1)
    for other in found.trajectories[1:]:
        for experiment, curve in zip(problem.experiments, other, strict=True):
            left.plot(curve.times, curve.outputs[experiment.observations[0].output], "k:", linewidth=0.7)
    left.set(xlabel="time (s)", ylabel="open probability", title="Six sets of parameters, one output")

    prior = problem.priors["k_1"]
    total = at["k_1"] + at["l_2"]
    line = np.geomspace(prior.lower, total, 400)
    middle.loglog(line, np.maximum(total - line, 1e-12), color="#999999", linewidth=1)
    for colour, row in zip(COLOURS, found.theta, strict=False):
        middle.plot(row[names.index("k_1")], row[names.index("l_2")], "o", color=colour)
    middle.set(xlabel="k_1", ylabel="l_2", title=f"k_1 + l_2 = {total:.3g} is all they show")
    middle.set_ylim(1e-3 * total, 3 * total)

    places = np.arange(len(FREE))
    for name, place in zip(FREE, places, strict=True):
        bounds = problem.priors[name]
        right.plot([bounds.lower, bounds.upper], [place, place], color="#dddddd", linewidth=7, solid_capstyle="butt")
    for colour, row in zip(COLOURS, found.theta, strict=False):
        right.plot([row[names.index(name)] for name in FREE], places, "o-", color=colour, linewidth=0.6, markersize=4)
    right.set_xscale("log")
    right.set_yticks(places, FREE)
    right.set(xlabel="value (grey: the prior)", title="The same six sets")
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
