"""What happens to a lane: its timeline, and jumps with their sensitivities.

An event at time tau(p) takes x- to x+ = G(x-, p, t). To differentiate this, move p a little. The event is then later by
dtau, up to it the solution goes on with slope f-, and so much less remains to go on with slope f+:

    S+ = dG/dx (S- + f- dtau/dp) + dG/dp + dG/dt dtau/dp - f+ dtau/dp,

dG/dt being the partial derivative of the new values by time, which they may name, or inputs that change with it.

Events at one time are treated one after another, as if a moment passed between them; each has its own f- and f+. The
start of a model with an onset is an event like the others: until then nothing moves, so that its f- is zero.

An event before the start happens at the start, and moves with it: dtau/dp is that of the start.

References
----------
Galan, Feehery, Barton (1999), Parametric sensitivity functions for hybrid discrete/continuous systems. Appl. Numer.
Math. 31, 17-47.
"""

from __future__ import annotations

import math

import numpy as np

from equifinal.machine.pointers import DoublePointer, IntegerPointer, call, doubles_at, integers_at, never_inline, shift
from equifinal.ode.stepping.field import all_finite, inputs_at
from equifinal.ode.stepping.floors import follow
from equifinal.ode.stepping.layout import (
    EVENTS,
    JUMP,
    JUMP_TANGENT,
    KIND_PATTERNS,
    N_COLUMNS,
    N_EVENTS,
    N_INPUTS,
    N_SETS,
    N_STATES,
    NNZ_JUMP_P,
    NNZ_JUMP_X,
    NNZ_WHEN,
    ONSET,
    RHS,
    WHEN,
    WHEN_TANGENT,
)
from equifinal.ode.stepping.output import write_rows
from equifinal.ode.stepping.structs import Index, Lane, Rows, Work, compiled, inlined

EVENT_STEPS = 100.0  # that an event adds to those that a lane may take
START, ALLOWED = 0, 1  # places in ``clock``


@compiled
def event_at(d: IntegerPointer, event: int) -> IntegerPointer:
    return shift(integers_at(d[EVENTS]), 3 * event)


@compiled
def due_at(work: Work, place: Index) -> float:
    """When the next event happens; never, after the last."""
    return max(work.taus[int(work.order[place])], work.clock[START])


@compiled
def comes_before(d: IntegerPointer, work: Work, a: int, b: int) -> bool:
    """Whether event a comes before event b: by time, then by whether it is first, then as they stand.

    Of those that happen at the start because they would have been earlier, the earlier one is first.
    """
    taus, start = work.taus, work.clock[START]
    if max(taus[a], start) != max(taus[b], start):
        return taus[a] < taus[b]
    first, other = event_at(d, a)[2], event_at(d, b)[2]
    if first != other:
        return first > other
    return taus[a] < taus[b] if taus[a] != taus[b] else a < b


@compiled
def sink(d: IntegerPointer, work: Work, top: int, count: int) -> None:
    """Restore a heap in ``order``, latest event on top, of which only the entry at ``top`` may be out of place."""
    order = shift(work.order, d[ONSET])
    while 2 * top + 1 < count:
        child = 2 * top + 1
        if child + 1 < count and comes_before(d, work, int(order[child]), int(order[child + 1])):
            child += 1
        if not comes_before(d, work, int(order[top]), int(order[child])):
            return
        order[top], order[child] = order[child], order[top]
        top = child


@inlined
def sort_events(d: IntegerPointer, work: Work) -> None:
    """Order the events, but for the start, which stays where it is. Most often they are in order already."""
    begin, order = d[ONSET], shift(work.order, d[ONSET])
    count, sorted_already = d[N_EVENTS] - begin, True
    for place in range(1, count):
        sorted_already = sorted_already and comes_before(d, work, begin + place - 1, begin + place)
    if not sorted_already:
        for top in range(count // 2 - 1, -1, -1):
            sink(d, work, top, count)
        for last in range(count - 1, 0, -1):
            order[0], order[last] = order[last], order[0]
            sink(d, work, 0, last)


@inlined
def begin_timeline(d: IntegerPointer, work: Work) -> None:
    """The timeline of a lane to which nothing happens: it starts at time 0, and after the last event there is none."""
    count = d[N_EVENTS]
    work.clock[START], work.clock[ALLOWED] = 0.0, 0.0
    work.taus[count], work.order[count] = math.inf, float(count)


@compiled
def set_timeline(lane: Lane, work: Work) -> bool:
    """When the lane starts and what happens when; says whether all of that is known."""
    never_inline()
    d, u, taus = lane.system, work.u, work.taus
    count, known = d[N_EVENTS], True
    for e in range(count):
        event = event_at(d, e)
        call(integers_at(event[0])[WHEN], u, lane.p, u, doubles_at(event[1]), u, shift(taus, e))
        work.order[e] = float(e)
        known = known and taus[e] == taus[e]
    if d[ONSET] != 0:
        work.clock[START] = taus[0]
        known = known and math.isfinite(taus[0])
    if known:
        sort_events(d, work)
    return known


@compiled
def last_time(lane: Lane, work: Work) -> float:
    """When a solve ends: at the last time; if that is infinite, once nothing is left to happen."""
    end = lane.times[lane.n_times - 1] if lane.n_times > 0 else 0.0
    if end < math.inf:
        return end
    end = work.clock[START]
    if lane.n_times > 1:
        end = max(end, lane.times[lane.n_times - 2])  # only the last is infinite
    end = max(end, lane.inputs[(lane.n_segments - 1) * (1 + 2 * lane.system[N_INPUTS])])
    for e in range(lane.system[N_EVENTS]):
        if work.taus[e] < math.inf:
            end = max(end, work.taus[e])
    return end


@compiled
def slide(lane: Lane, work: Work, shifts: DoublePointer, sign: float) -> None:
    """Move the sensitivities by a shift in time: S += sign f dtau/dp, with f where the states are now."""
    never_inline()
    d, u, slope = lane.system, work.u, work.middle
    n, m = d[N_STATES], d[N_COLUMNS]
    call(d[RHS], work.z, lane.p, u, u, u, slope)
    for i in range(n):
        for j in range(m):
            if shifts[j] != 0.0:
                work.z[n + i * m + j] += sign * slope[i] * shifts[j]


@compiled
def add_shifts(lane: Lane, work: Work, kind: IntegerPointer, numbers: DoublePointer, shifts: DoublePointer) -> bool:
    """Add the entries of dtau/dp of an event; says whether there are any."""
    u, columns = work.u, shift(kind, KIND_PATTERNS + kind[N_SETS])
    if kind[NNZ_WHEN] > 0:
        call(kind[WHEN_TANGENT], u, lane.p, u, numbers, u, work.entries)
    for e in range(kind[NNZ_WHEN]):
        shifts[columns[e]] += work.entries[1 + e]
    return kind[NNZ_WHEN] > 0


@compiled
def jump(lane: Lane, work: Work, segment: DoublePointer, t: float, e: int) -> bool:
    """Let an event happen; says whether all is finite afterwards."""
    never_inline()
    d, u, z, entries = lane.system, work.u, work.z, work.entries
    n, m = d[N_STATES], d[N_COLUMNS]
    kind, numbers = integers_at(event_at(d, e)[0]), doubles_at(event_at(d, e)[1])
    count, targets = kind[N_SETS], shift(kind, KIND_PATTERNS)
    inputs_at(d, t, segment, u)
    if m == 0:
        call(kind[JUMP], z, lane.p, u, numbers, u, entries)
        for i in range(count):
            z[targets[i]] = entries[i]
        return all_finite(z, n)

    shifts, onset = work.k, d[ONSET] != 0
    for j in range(m):
        shifts[j] = 0.0
    if work.taus[e] < work.clock[START]:  # it moves with the start, which moves if it is an event itself
        moves = False
        if onset:
            start = event_at(d, 0)
            moves = add_shifts(lane, work, integers_at(start[0]), doubles_at(start[1]), shifts)
    else:
        moves = add_shifts(lane, work, kind, numbers, shifts)
    if moves and not (onset and e == 0):
        slide(lane, work, shifts, 1.0)
    call(kind[JUMP_TANGENT], z, lane.p, u, numbers, shift(segment, 1 + d[N_INPUTS]), entries)
    rows, by_x, by_p, slopes = work.scratch, kind[NNZ_JUMP_X], kind[NNZ_JUMP_P], shift(entries, count)
    for i in range(count):
        for j in range(m):
            rows[i * m + j] = slopes[i] * shifts[j] if shifts[j] != 0.0 else 0.0
    pattern = shift(targets, count + kind[NNZ_WHEN])
    for i in range(by_x):
        target, source = shift(rows, pattern[i] * m), shift(z, n + pattern[by_x + i] * m)
        for j in range(m):
            target[j] += entries[2 * count + i] * source[j]
    pattern = shift(pattern, 2 * by_x)
    for i in range(by_p):
        rows[pattern[i] * m + pattern[by_p + i]] += entries[2 * count + by_x + i]
    for i in range(count):
        z[targets[i]] = entries[i]
        for j in range(m):
            z[n + targets[i] * m + j] = rows[i * m + j]
    if moves:
        slide(lane, work, shifts, -1.0)
    return all_finite(z, n * (1 + m))


@compiled
def happen(
    lane: Lane, work: Work, rows: Rows, segment: DoublePointer, row: Index, place: Index, t: float, stiff: bool
) -> tuple[Index, Index]:
    """All that happens at time t, and between what is first and what is not the rows that are wanted at t.

    Returns the next row and the next event; -1 for one of them if something is not finite.
    """
    never_inline()
    d = lane.system
    observed = False
    while due_at(work, place) <= t:
        e = int(work.order[place])
        if not observed and event_at(d, e)[2] == 0:
            observed = True
            if row < lane.n_times and lane.times[row] <= t:
                row = write_rows(lane, work, rows, segment, row, t, 0.0, t, stiff)
        if row < 0 or not jump(lane, work, segment, t, e):
            return row, -1
        place += 1
        work.clock[ALLOWED] += EVENT_STEPS
    follow(lane, work)
    for i in range(d[N_STATES], d[N_STATES] * (1 + d[N_COLUMNS])):
        work.largest[i] = max(work.largest[i], abs(work.z[i]))
    return row, place


@compiled
def rows_before(lane: Lane, work: Work, rows: Rows, stiff: bool) -> Index:
    """Write the rows before an onset, which are those of the initial state; returns the next row."""
    never_inline()
    row: Index = np.int64(0)
    here, width = 0, 1 + 2 * lane.system[N_INPUTS]
    start = work.clock[START]
    while 0 <= row < lane.n_times and lane.times[row] < start:
        t = lane.times[row]
        while here + 1 < lane.n_segments and lane.inputs[(here + 1) * width] <= t:
            here += 1
        row = write_rows(lane, work, rows, shift(lane.inputs, here * width), row, t, 0.0, t, stiff)
    return row
