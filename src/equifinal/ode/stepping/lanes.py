"""The loop over lanes and steps: step control, the stiffness switch, output at the requested times, failures.

Compiled once for all models. Lanes share nothing but the counter that deals them out, so a lane's result
does not depend on which lanes it is solved with, nor on how many threads there are.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from equifinal.machine.pointers import (
    DoublePointer,
    Doubles,
    IntegerPointer,
    Integers,
    always_inline,
    integers_at,
    shift,
    take_next,
)
from equifinal.ode.stepping.control import LEAST_ERROR, LEAST_MEMORY, growth, rough_log2
from equifinal.ode.stepping.events import (
    ALLOWED,
    START,
    begin_timeline,
    due_at,
    happen,
    last_time,
    rows_before,
    set_timeline,
)
from equifinal.ode.stepping.explicit import at_stability_edge, explicit_attempt
from equifinal.ode.stepping.field import all_finite, field
from equifinal.ode.stepping.floors import (
    correct_sizes,
    doubt_sensitivities,
    first_floors,
    follow,
    guess_sizes,
    lift_over_rounding,
    note_slips,
)
from equifinal.ode.stepping.layout import N_COLUMNS, N_EVENTS, N_INPUTS, N_OWN, N_SENSITIVITIES, N_STATES, ONSET
from equifinal.ode.stepping.output import blank_rows, set_start, write_rows
from equifinal.ode.stepping.stiff import interpolation_doubt, prepare, stiff_attempt
from equifinal.ode.stepping.structs import (
    Index,
    Lane,
    Rows,
    Work,
    compiled,
    divided,
    inlined,
    lane_of,
    read_batch,
    rows_of,
)

OK, TOO_MANY_STEPS, STEP_TOO_SMALL, NOT_FINITE = 0, 1, 2, 3
AUTO, EXPLICIT, STIFF = 0, 1, 2

# Steps at the edge of stability before switching, more for many states as stiff steps are dearer there.
STIFF_STEPS, STIFF_STEPS_PER_STATE = 15, 2
MANY_STEPS = 5000  # after which stiff steps are tried, too: they may be longer
CALM_STEPS = 6  # away from the edge, after which it is forgotten
NOISE_CHECK = 64  # steps between looks at rounding errors, beside those after repeated rejections
TINY = 2.3e-16
MISSED = 7.0  # how much too small explicit error estimates are taken to be where sensitivities are judged
LARGEST_DOUBT = 10.0**2  # about the interior of a stiff step: the square, in units of the tolerance


@compiled
def begin(lane: Lane, work: Work, rows: Rows, controlled: int) -> bool:
    """Set the start, with all rows still unknown; says whether it is finite."""
    n = lane.system[N_STATES]
    blank_rows(lane, rows, np.int64(0))
    set_start(lane, work)
    for i in range(n * (1 + lane.system[N_COLUMNS])):
        work.largest[i], work.slips[i] = abs(work.z[i]), 0.0
    first_floors(lane, work, controlled)
    return all_finite(work.z, n)


@compiled
def evaluate(lane: Lane, work: Work, segment: DoublePointer, t: float, stiff: bool) -> bool:
    """z' at the beginning of a step, and what else a stiff step needs; says whether it is finite."""
    field(lane, work, t, segment, work.z, work.f0)
    if not all_finite(work.f0, lane.system[N_STATES]):
        return False
    if stiff:
        prepare(lane, work, segment)
    return True


@compiled
def first_step(lane: Lane, work: Work, segment: DoublePointer, t: float, span: float) -> float:
    """A first step from the size of z, z' and a difference of z' (Hairer, Norsett, Wanner I, II.4).

    States that are zero have no say, and those that are what rounding left of zero do not make it too short to be one.
    """
    n, z, f0, k, floors = lane.system[N_OWN], work.z, work.f0, work.k, work.floors
    size_z, size_f = 0.0, 0.0
    for i in range(n):
        if z[i] != 0.0:
            scale = floors[i] + lane.rtol * abs(z[i])
            size_z += (z[i] / scale) ** 2
            size_f += (f0[i] / scale) ** 2
    size_z, size_f = math.sqrt(size_z / n), math.sqrt(size_f / n)
    h = 1e-6 if size_z < 1e-5 or size_f < 1e-5 else 0.01 * size_z / size_f
    h = min(h, span)
    for i in range(lane.system[N_STATES] * (1 + lane.system[N_COLUMNS])):
        work.z_new[i] = z[i] + h * f0[i]
    field(lane, work, t + h, segment, work.z_new, k)
    change = 0.0
    for i in range(n):
        if z[i] != 0.0:
            change += ((k[i] - f0[i]) / (floors[i] + lane.rtol * abs(z[i]))) ** 2
    largest = max(size_f, math.sqrt(change / n) / h)
    larger = max(1e-6, h * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.2
    h = min(100.0 * h, larger, span)
    return min(max(h, 1e3 * TINY * abs(t)), span) if h > 0.0 and math.isfinite(h) else 1e-6 * span


@compiled
def too_bold(lane: Lane, work: Work, h: float) -> bool:
    """Whether a step would change a state by more than its size, as one from before a jump of the inputs may.

    Error estimates are no guard against that: a Hill function that switches at the very beginning of a step weighs
    seventy times as much in the solution as in its estimated error.
    """
    bold = False
    for i in range(lane.system[N_OWN]):
        bold = bold or h * abs(work.f0[i]) > abs(work.z[i]) > 0.0
    return bold


@compiled
def move(lane: Lane, work: Work, stiff: bool) -> None:
    """Go to the end of an accepted step."""
    always_inline()
    n = lane.system[N_STATES]
    size = n * (1 + lane.system[N_COLUMNS])
    if size > n:
        note_slips(lane, work, shift(work.k, (7 if stiff else 6) * size), 1.0 if stiff else MISSED)
    newest = shift(work.k, 5 * size)
    for i in range(size):
        work.z[i] = work.z_new[i]
        work.f0[i] = newest[i]
    follow(lane, work)


@inlined
def integrate(lane: Lane, work: Work, rows: Rows, controlled: int) -> int:
    """Integrate one lane from its start through all times; returns its status. Rows not reached are NaN.

    ``controlled`` is how many entries of z have their errors controlled: the states, or all.
    """
    times, inputs, method = lane.times, lane.inputs, lane.method
    width, arrivals = 1 + 2 * lane.system[N_INPUTS], 0
    patience = STIFF_STEPS + STIFF_STEPS_PER_STATE * lane.system[N_STATES]
    stiff = method == STIFF
    t, h, log_before, at_edge, calm = work.clock[START], 0.0, LEAST_MEMORY, 0, 0
    fresh, rejected, noisy, undefined, landing, turned = True, False, False, False, False, True
    segment, here = inputs, 0
    place: Index = np.int64(0)  # not a literal, for which functions would be compiled once more
    if not begin(lane, work, rows, controlled):
        return NOT_FINITE
    final, due = last_time(lane, work), due_at(work, place)
    row: Index = rows_before(lane, work, rows, stiff) if lane.system[ONSET] != 0 else np.int64(0)
    while True:
        while here + 1 < lane.n_segments and inputs[(here + 1) * width] <= t:
            here += 1
            segment, fresh, turned = shift(inputs, here * width), True, True
        if due <= t and row >= 0:
            row, place = happen(lane, work, rows, segment, row, place, t, stiff)
            if place < 0:
                return NOT_FINITE
            due, h, log_before, fresh, turned = due_at(work, place), 0.0, LEAST_MEMORY, True, True
        if 0 <= row < lane.n_times and (times[row] <= t or t >= final):
            until = times[lane.n_times - 1] if t >= final else t
            row = write_rows(lane, work, rows, segment, row, t, 0.0, until, stiff)
        if row < 0:
            return NOT_FINITE
        if row == lane.n_times:
            return OK
        end = min(times[row] if landing else final, final, due)
        if here + 1 < lane.n_segments:
            end = min(end, inputs[(here + 1) * width])

        if fresh and not evaluate(lane, work, segment, t, stiff):
            return NOT_FINITE
        longest = guess_sizes(lane, work) if turned else math.inf
        if h == 0.0 or longest < math.inf or (turned and too_bold(lane, work, min(h, end - t))):
            h = min(first_step(lane, work, segment, t, end - t), longest)
        fresh, turned = False, False

        # an attempt that never goes across the end of a stretch of inputs, nor leaves a sliver before it
        last = t + 1.01 * h >= end
        step = end - t if last else h
        if lane.steps[0] - arrivals - work.clock[ALLOWED] >= lane.max_steps:
            return TOO_MANY_STEPS
        if (not last and 0.1 * step <= TINY * abs(t)) or (rejected and step < 1e-290):
            if stiff or method == EXPLICIT:
                return NOT_FINITE if undefined else STEP_TOO_SMALL
            stiff, fresh, h, rejected = True, True, 0.0, False
            continue
        if noisy or lane.steps[0] % NOISE_CHECK == 0:
            lift_over_rounding(lane, work, segment, t, step)
        lane.steps[0] += 1
        if stiff:
            error = stiff_attempt(lane, work, segment, t, step, controlled)
        else:
            error = explicit_attempt(lane, work, segment, t, step, controlled)

        if not error <= 1.0:
            undefined = not math.isfinite(error)
            h = step * (0.1 if undefined else growth(rough_log2(error), 0.0))
            noisy, rejected = rejected, True
            continue
        noisy, undefined = False, False
        t_new = end if last else t + step
        if times[row] < t_new:
            if stiff and interpolation_doubt(lane, work, controlled) > LARGEST_DOUBT:
                landing = True  # from here on, step to the times rather than across
                continue
            row = write_rows(lane, work, rows, segment, row, t, step, t_new, stiff)
            if row < 0:
                return NOT_FINITE
        if last:
            arrivals += 1  # as many as times and breaks at most, and no sign of trouble

        log_error = rough_log2(max(error, LEAST_ERROR))
        larger = growth(log_error, log_before)
        larger = min(larger, 1.0) if rejected else larger
        log_before = max(log_error, LEAST_MEMORY)
        # a step cut short by the end of a stretch says little about the next one
        h = max(step * larger, h) if last else step * larger
        rejected, fresh = False, stiff
        if not stiff and method == AUTO:
            calm += 1
            if at_stability_edge(lane, work, step, controlled):
                at_edge, calm = at_edge + 1, 0
            elif calm == CALM_STEPS:
                at_edge = 0
        move(lane, work, stiff)
        if not stiff and method == AUTO and (at_edge == patience or lane.steps[0] > MANY_STEPS):
            stiff, fresh = True, True
        t = t_new


@compiled
def solved_again(lane: Lane, work: Work, status: int, controlled: int) -> int:
    """How many entries are to be controlled in another solve; 0 if there is no need for one.

    Lanes are solved again while sizes were guessed too large, and then for sensitivities if they are in doubt.
    """
    n = lane.system[N_STATES]
    if status != OK:
        return 0
    if controlled == n and correct_sizes(lane, work):
        return n
    return n * (1 + lane.system[N_COLUMNS]) if doubt_sensitivities(lane, work) else 0


@compiled
def only_sensitivities(lane: Lane, work: Work, rows: Rows) -> Rows:
    """Rows of which states and outputs remain as they are."""
    outputs = shift(work.spare, lane.system[N_STATES])
    return Rows(work.spare, outputs, rows.sensitivities, rows.state_sensitivities, 0, 0)


@compiled
def blank_after_failure(lane: Lane, rows: Rows) -> None:
    """Leave nothing at all from the first row on that has no sensitivities."""
    row, width = np.int64(0), lane.system[N_STATES] * lane.system[N_SENSITIVITIES]
    while not math.isnan(rows.state_sensitivities[row * width]):
        row += 1
    blank_rows(lane, rows, row)


def solve_lanes(table: IntegerPointer, room: DoublePointer) -> None:
    """Solve lanes as the counter deals them out, until there are no more."""
    batch = read_batch(table)
    d, status, counter = integers_at(batch.system), integers_at(batch.status), integers_at(batch.counter)
    work, n = divided(d, room), d[N_STATES]
    while True:
        place = take_next(counter)
        if place >= batch.n_lanes:
            return
        lane, rows = lane_of(batch, place), rows_of(batch, place)
        lane.steps[0] = 0
        for i in range(n * (1 + d[N_COLUMNS])):
            work.sizes[i] = 0.0 if i < n else math.inf
        target, controlled, following = rows, n, n
        begin_timeline(d, work)
        known = d[N_EVENTS] == 0 or set_timeline(lane, work)
        if not known:
            blank_rows(lane, rows, np.int64(0))
        while following > 0:
            controlled = following
            if controlled > n:
                target = only_sensitivities(lane, work, rows)
            status[place] = integrate(lane, work, target, controlled) if known else NOT_FINITE
            following = solved_again(lane, work, status[place], controlled)
        if controlled > n and status[place] != OK:
            blank_after_failure(lane, rows)


SIGNATURE = types.void(Integers, Doubles)
