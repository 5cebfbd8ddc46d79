r"""How late the terms of a model show in its outputs, from where the power series of its states begin.

Where states start at zero, a term may show late: with x' = 1, x(0) = 0 and z' = a x^{40} the parameter a is in no
coefficient of z before that of t^{41}. The order at which a series begins adds up in products and is at least the
smaller one in sums, and :math:`v(x_i) = 1 + v(f_i)` where :math:`x_i(0) = 0`. How much later a change of one step
changes an output is, backwards, a shortest path: through a product it takes the order of the other factor, and through
an equation one more.
"""

from __future__ import annotations

from math import inf

from equifinal.algebra.arithmetic.series import OutputSeries


def beginnings(run: OutputSeries, *, proved: bool = False) -> dict[int, float]:
    """The order at which each step begins, or a lower bound where the series is too short; infinite for zero.

    A step that is zero as far as the series goes, although its bound lies before, is taken for zero; not if what is
    zero shall be `proved`, for which there are bounds alone.
    """
    states = [0 if start.any() else inf for start in run.start[..., 0]]
    while True:
        found = _forwards(run, states, proved)
        earlier = [min(now, 1 + found[i]) for now, i in zip(states, run.rhs, strict=True)]
        if earlier == states:
            return found
        states = earlier


def _forwards(run: OutputSeries, states: list[float], proved: bool) -> dict[int, float]:
    found: dict[int, float] = {}
    for i in run.steps:
        step = run.program.steps[i]
        begins = run.begins(i)
        if run.constant[i] or (begins is not None and not proved):
            found[i] = inf if begins is None else begins
            continue
        match step.kind:
            case "name" if step.name in run.model.states:
                bound = states[run.model.states.index(step.name)]
            case "add":
                bound = min(found[step.left], found[step.right])
            case "mul":
                bound = found[step.left] + found[step.right]
            case "div":  # nothing is divided by what begins at zero
                bound = found[step.left]
            case _:
                bound = 0  # an input
        found[i] = bound if proved or bound >= run.order else inf
    return found


def latest_arrival(run: OutputSeries) -> int:
    """The highest order at which a term of the model first shows in an output."""
    begins = beginnings(run)
    delay = dict.fromkeys(run.steps, inf)  # from a step to the nearest output
    delay.update(dict.fromkeys(run.outputs, 0))
    previous: dict[int, float] = {}
    while previous != delay:
        previous = dict(delay)
        for i in reversed(run.steps):
            step = run.program.steps[i]
            if step.kind == "name" and step.name in run.model.states:
                behind = [(run.rhs[run.model.states.index(step.name)], 1.0)]
            elif step.kind in ("number", "name"):
                continue
            else:
                other = {"add": (0.0, 0.0), "mul": (begins[step.right], begins[step.left])}
                left, right = other.get(step.kind, (0.0, begins[step.left]))
                behind = [(step.left, left), (step.right, right)]
            for j, later in behind:
                delay[j] = min(delay[j], delay[i] + later)
    arrivals = [0.0, *(begins[i] for i in run.outputs)]
    for i in run.steps:
        step = run.program.steps[i]
        if step.kind == "add":
            arrivals += [begins[step.left] + delay[i], begins[step.right] + delay[i]]
        elif step.kind == "name" and step.name in run.model.states:
            arrivals += [begins[i] + delay[i], begins[run.rhs[run.model.states.index(step.name)]] + 1 + delay[i]]
    return int(max(a for a in arrivals if a < inf))


def is_silent(run: OutputSeries) -> bool:
    """Whether all outputs are zero as far as the series goes, and nothing proves that they remain so."""
    if run.output_coefficients().any():
        return False
    bounds = beginnings(run, proved=True)
    return any(bounds[i] < inf for i in run.outputs)
