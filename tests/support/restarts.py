"""Events by restarting SciPy at each of them: slow, simple, and independent of the integrators."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from equifinal.language.expression import evaluate
from equifinal.language.functions import call_on_arrays
from equifinal.language.model import Model


def _value(expression, values):
    return float(evaluate(expression, values, float, call_on_arrays))


def solve_with_restarts(model: Model, p: dict[str, float], times: np.ndarray, tolerance: float = 1e-11) -> np.ndarray:
    """Outputs (T, n_outputs) of a model without inputs or conditions at ascending times."""
    known = p | {name: float(value) for name, value in model.constants.items()}
    names = (*model.states, *model.levels)
    x = np.array([_value(e, known) for e in (*model.start, *model.first_levels)])
    start = _value(model.start_time, known)
    events = [(max(_value(e.time, known), start), not e.first, _value(e.time, known), e) for e in model.jumps]
    events.sort(key=lambda event: event[:3])

    def at(t, x):
        return known | dict(zip(names, x, strict=True)) | {"t": t}

    def slope(t, x):
        values = at(t, x)
        return [*(_value(e, values) for e in model.rhs), *[0.0] * len(model.levels)]

    def until(t, x, end):
        if end <= t:
            return x
        return solve_ivp(slope, (t, end), x, "Radau", rtol=tolerance, atol=1e-3 * tolerance).y[:, -1]

    rows, t = [], start
    for wanted in times:
        while events and (events[0][0] < wanted or (events[0][0] == wanted and not events[0][1])):
            moment, _, _, event = events.pop(0)
            x, t = until(t, x, moment), moment
            values = at(t, x)
            for name, new in event.sets.items():
                x[names.index(name)] = _value(new, values)
        if wanted > t:
            x, t = until(t, x, wanted), wanted
        rows.append([_value(y, at(wanted, x)) for y in model.observed])
    return np.array(rows)
