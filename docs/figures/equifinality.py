"""The README's picture: five epidemics that no data can tell apart, and a random walk lost among them.

Run with: uv run python docs/figures/equifinality.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import equifinal
from equifinal.examples import example_path

INK, MUTED = "#222222", "#888888"
COLOURS = ["#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"]  # safe for the colour-blind


def on_the_fibre(rho: float) -> dict[str, float]:
    """The parameters with this rho that give the same cases as the truth; N = 10,000."""
    growth, ratio, seed = 1.9, 1e-3, 10.0  # beta*N - gamma, beta/rho, rho*I0
    return {"beta": ratio * rho, "rho": rho, "gamma": ratio * rho * 10_000 - growth, "I0": seed / rho}


def main() -> None:
    problem = equifinal.load(example_path("si"))
    (observed,) = problem.experiments[0].observations
    times = np.linspace(0, 10, 201)
    shares = np.linspace(0.195, 0.285, 5)
    plt.rcParams.update(
        {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "equifinal"}
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.1), constrained_layout=True)

    for share, colour, width in zip(shares, COLOURS, (9, 7, 5, 3, 1), strict=True):
        values = on_the_fibre(share)
        (curve,) = equifinal.simulate(problem, values, times=times)
        text = f"γ = {values['gamma']:.2f},  ρ = {share:.2f},  I₀ = {values['I0']:.0f}"
        left.plot(curve.times, curve.outputs["cases"], color=colour, lw=width, solid_capstyle="round", label=text)
    left.plot(observed.times, observed.values, "o", color=INK, ms=4, mec="white", label="data", zorder=9)
    left.set(xlabel="day", ylabel="reported cases", title="Five epidemics, one curve")
    left.legend(frameon=False, fontsize=8, loc="lower right")

    data = equifinal.sample(problem, sampler="random-walk", chains=2, warmup=5000, draws=1500, seed=6, progress=False)
    draws = data.posterior
    growth, ratio, seed = (
        float(c.mean())
        for c in (draws["beta"] * 1e4 - draws["gamma"], draws["beta"] / draws["rho"], draws["rho"] * draws["I0"])
    )
    gamma = np.linspace(0.01, 1, 200)
    fibre = seed / ((gamma + growth) / (ratio * 1e4))
    right.plot(gamma, fibre, color=MUTED, lw=7, alpha=0.35, solid_capstyle="round", label="same output, exactly")
    for chain, colour in zip(data.posterior.chain.values, (COLOURS[0], COLOURS[4]), strict=True):
        part = data.posterior.sel(chain=chain)
        right.plot(part["gamma"], part["I0"], color=colour, lw=0.5, alpha=0.9, label=f"random walk, chain {chain + 1}")
    right.set(
        xlabel="recovery rate γ", ylabel="initially infected I₀", ylim=(28, 58), title="1,500 steps of a random walk"
    )
    right.legend(frameon=False, fontsize=8)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
