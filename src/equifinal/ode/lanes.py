"""The loop over lanes and steps: step control, the stiffness switch, output at the requested times, failures.

Compiled once for all models. Lanes share nothing but the counter that deals them out, so a lane's result
does not depend on which lanes it is solved with, nor on how many threads there are.
"""

from __future__ import annotations

import math

from numba import types

from equifinal.machine.pointers import Doubles, Integers, shift, take_next
from equifinal.ode.explicit import at_stability_edge, explicit_attempt, explicit_interpolate
from equifinal.ode.field import all_finite, compiled, field
from equifinal.ode.layout import N_COLUMNS, N_INPUTS, N_OUTPUTS, N_SENSITIVITIES, N_STATES, NNZ_JACOBIAN
from equifinal.ode.output import blank, emit, set_start
from equifinal.ode.stiff import interpolation_doubt, prepare, stiff_attempt, stiff_interpolate

OK, TOO_MANY_STEPS, STEP_TOO_SMALL, NOT_FINITE = 0, 1, 2, 3
AUTO, EXPLICIT, STIFF = 0, 1, 2

# Step control: after an accepted step h is multiplied by 0.9 err^-GROWTH err_before^MEMORY, a PI controller.
MEMORY = 0.04
GROWTH = 0.2 - 0.75 * MEMORY
SAFETY = 0.9
LARGEST_GROWTH, LARGEST_CUT = 10.0, 0.2
LEAST_MEMORY = math.log(1e-4)  # a tiny error is no reason to expect the next one to be tiny
# Steps at the edge of stability before switching, more for many states as stiff steps are dearer there.
STIFF_STEPS, STIFF_STEPS_PER_STATE = 15, 2
CALM_STEPS = 6  # away from the edge, after which it is forgotten
TINY = 2.3e-16
SMALL_SHARE = 1e-3  # of the relative tolerance of a state at its largest: what may pass as zero
LARGEST_DOUBT = 10.0  # about the interior of a stiff step, in units of the tolerance


@compiled
def set_floors(n, z, f0, span, rtol, atol, floors):
    """The absolute tolerance of each state: ``atol``, or less where the state itself is small.

    A state's size is what it has been, or else what its first slope would make of it, or else the others'.
    """
    largest = 0.0
    for i in range(n):
        floors[i] = abs(z[i]) if z[i] != 0.0 else abs(f0[i]) * span
        largest = max(largest, floors[i])
    for i in range(n):
        size = floors[i] if floors[i] > 0.0 else largest
        floors[i] = min(atol, max(SMALL_SHARE * rtol * size, 1e-300)) if size > 0.0 else atol


@compiled
def first_step(d, t, span, z, p, segment, f0, z_new, k, u, entries, rtol, floors):
    """A first step from the size of z, z' and a difference of z' (Hairer, Norsett, Wanner I, II.4)."""
    n = d[N_STATES]
    size = n * (1 + d[N_COLUMNS])
    size_z, size_f = 0.0, 0.0
    for i in range(n):
        scale = floors[i] + rtol * abs(z[i])
        size_z += (z[i] / scale) ** 2
        size_f += (f0[i] / scale) ** 2
    size_z, size_f = math.sqrt(size_z / n), math.sqrt(size_f / n)
    h = 1e-6 if size_z < 1e-5 or size_f < 1e-5 else 0.01 * size_z / size_f
    h = min(h, span)
    for i in range(size):
        z_new[i] = z[i] + h * f0[i]
    field(d, t + h, z_new, p, segment, u, entries, k)
    change = 0.0
    for i in range(n):
        change += ((k[i] - f0[i]) / (floors[i] + rtol * abs(z[i]))) ** 2
    largest = max(size_f, math.sqrt(change / n) / h)
    larger = max(1e-6, h * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.2
    h = min(100.0 * h, larger, span)
    return h if h > 0.0 and math.isfinite(h) else 1e-6 * span


@compiled
def solve_lane(
    d,
    method,
    p,
    times,
    n_times,
    inputs,
    n_segments,
    rtol,
    atol,
    max_steps,
    tableau,
    work,
    states,
    outputs,
    sensitivities,
    state_sensitivities,
    steps,
):
    """Integrate one lane from 0 through all times; returns its status. Rows not reached stay as they are."""
    n, n_inputs, n_outputs, width = d[N_STATES], d[N_INPUTS], d[N_OUTPUTS], d[N_SENSITIVITIES]
    size = n * (1 + d[N_COLUMNS])
    z, z_new, f0 = work, shift(work, size), shift(work, 2 * size)
    scratch, k = shift(work, 3 * size), shift(work, 4 * size)  # k: eight stages
    u = shift(work, 12 * size)
    u0, direction, drift = shift(u, n_inputs), shift(u, 2 * n_inputs), shift(u, 3 * n_inputs)
    pivots, floors, w = shift(drift, n), shift(drift, 2 * n), shift(drift, 3 * n)
    jacobian = shift(w, n * n)
    entries = shift(jacobian, d[NNZ_JACOBIAN])
    row = 1 + 2 * n_inputs

    stiff = method == STIFF
    t, h, log_before, at_edge, calm, arrivals = 0.0, 0.0, LEAST_MEMORY, 0, 0, 0
    fresh, rejected, undefined, landing, begun = True, False, False, False, False
    segment, here, next_time = inputs, 0, 0
    set_start(d, p, u, entries, z)
    if not all_finite(z, n):
        return NOT_FINITE
    while True:
        while here + 1 < n_segments and inputs[(here + 1) * row] <= t:
            here += 1
            segment, fresh = shift(inputs, here * row), True
        while next_time < n_times and times[next_time] <= t:
            if not emit(
                d,
                t,
                z,
                p,
                segment,
                u,
                entries,
                shift(states, next_time * n),
                shift(outputs, next_time * n_outputs),
                shift(sensitivities, next_time * n_outputs * width),
                shift(state_sensitivities, next_time * n * width),
            ):
                return NOT_FINITE
            next_time += 1
        if next_time == n_times:
            return OK
        end = times[next_time if landing else n_times - 1]
        if here + 1 < n_segments:
            end = min(end, inputs[(here + 1) * row])

        if fresh:
            field(d, t, z, p, segment, u, entries, f0)
            if not all_finite(f0, n):
                return NOT_FINITE
            if stiff:
                for i in range(n_inputs):
                    u0[i] = u[i]
                prepare(d, z, p, segment, u, entries, jacobian, drift)
            fresh = False
        if not begun:
            set_floors(n, z, f0, times[n_times - 1], rtol, atol, floors)
            begun = True
        if h == 0.0:
            h = first_step(d, t, end - t, z, p, segment, f0, z_new, k, u, entries, rtol, floors)

        # an attempt that never goes across the end of a stretch of inputs, nor leaves a sliver before it
        last = t + 1.01 * h >= end
        step = end - t if last else h
        failure = OK
        if steps[0] - arrivals >= max_steps:
            return TOO_MANY_STEPS
        if (not last and 0.1 * step <= TINY * t) or (rejected and step < 1e-290):
            failure = NOT_FINITE if undefined else STEP_TOO_SMALL
        if failure != OK:
            if stiff or method == EXPLICIT:
                return failure
            stiff, fresh, h, rejected = True, True, 0.0, False
            continue
        steps[0] += 1
        if stiff:
            error = stiff_attempt(
                d,
                t,
                step,
                z,
                p,
                segment,
                f0,
                k,
                z_new,
                u,
                entries,
                jacobian,
                drift,
                w,
                pivots,
                u0,
                direction,
                tableau,
                rtol,
                floors,
            )
        else:
            error = explicit_attempt(d, t, step, z, p, segment, f0, k, z_new, scratch, u, entries, rtol, floors)

        if not error <= 1.0:
            undefined = not math.isfinite(error)
            h = step * (0.1 if undefined else max(LARGEST_CUT, SAFETY * math.exp(-GROWTH * math.log(error))))
            rejected = True
            continue
        undefined = False
        t_new = end if last else t + step
        if (
            stiff
            and times[next_time] < t_new
            and interpolation_doubt(d, z, k, z_new, tableau, scratch, rtol, floors) > LARGEST_DOUBT
        ):
            landing = True  # from here on, step to the times rather than across
            continue
        if last:
            arrivals += 1  # as many as times and breaks at most, and no sign of trouble
        while next_time < n_times and times[next_time] < t_new:
            theta = (times[next_time] - t) / step
            middle = shift(k, 7 * size) if not stiff else scratch
            if stiff:
                stiff_interpolate(d, theta, z, k, z_new, tableau, middle)
            else:
                explicit_interpolate(d, theta, step, z, f0, k, z_new, middle)
            if not emit(
                d,
                times[next_time],
                middle,
                p,
                segment,
                u,
                entries,
                shift(states, next_time * n),
                shift(outputs, next_time * n_outputs),
                shift(sensitivities, next_time * n_outputs * width),
                shift(state_sensitivities, next_time * n * width),
            ):
                return NOT_FINITE
            next_time += 1

        log_error = math.log(max(error, 1e-20))
        growth = SAFETY * math.exp(MEMORY * log_before - GROWTH * log_error)
        growth = min(max(growth, LARGEST_CUT), LARGEST_GROWTH)
        log_before = max(log_error, LEAST_MEMORY)
        if rejected:
            growth = min(growth, 1.0)
        # a step cut short by the end of a stretch says little about the next one
        h = max(step * growth, h) if last else step * growth
        rejected = False
        if stiff:
            fresh = True
        else:
            if method == AUTO:
                if at_stability_edge(d, step, k, z_new, scratch, rtol, floors):
                    at_edge, calm = at_edge + 1, 0
                    if at_edge == STIFF_STEPS + STIFF_STEPS_PER_STATE * n:
                        stiff, fresh = True, True
                else:
                    calm += 1
                    if calm == CALM_STEPS:
                        at_edge = 0
            newest = shift(k, 5 * size)
            for i in range(size):
                f0[i] = newest[i]
        for i in range(size):
            z[i] = z_new[i]
        for i in range(n):
            floors[i] = min(atol, max(floors[i], SMALL_SHARE * rtol * abs(z[i])))
        t = t_new


def solve_lanes(
    d,
    method,
    p,
    n_arguments,
    n_lanes,
    counter,
    times,
    n_times,
    inputs,
    n_segments,
    rtol,
    atol,
    max_steps,
    tableau,
    work,
    states,
    outputs,
    sensitivities,
    state_sensitivities,
    status,
    steps,
):
    """Solve lanes as the counter deals them out, until there are no more."""
    n, n_outputs, width = d[N_STATES], d[N_OUTPUTS], d[N_SENSITIVITIES]
    while True:
        lane = take_next(counter)
        if lane >= n_lanes:
            return
        x = shift(states, lane * n_times * n)
        y = shift(outputs, lane * n_times * n_outputs)
        sy = shift(sensitivities, lane * n_times * n_outputs * width)
        sx = shift(state_sensitivities, lane * n_times * n * width)
        blank(x, n_times * n)
        blank(y, n_times * n_outputs)
        blank(sy, n_times * n_outputs * width)
        blank(sx, n_times * n * width)
        count = shift(steps, lane)
        count[0] = 0
        status[lane] = solve_lane(
            d,
            method,
            shift(p, lane * n_arguments),
            times,
            n_times,
            inputs,
            n_segments,
            rtol,
            atol,
            max_steps,
            tableau,
            work,
            x,
            y,
            sy,
            sx,
            count,
        )


_integer, _double = types.int64, types.float64
SIGNATURE = types.void(
    *(Integers, _integer, Doubles, _integer, _integer, Integers, Doubles, _integer, Doubles, _integer),
    *(_double, _double, _integer, Doubles, Doubles, Doubles, Doubles, Doubles, Doubles, Integers, Integers),
)
