"""Absolute tolerances: what may pass as zero, for each state in terms of its own size.

A state's tolerance follows its largest value so far. A state that is still zero has no size of its own:

- If it has a slope, its first value tells.
- If errors may come back amplified, by way of a loop of states or of one that feeds itself, it is followed from its
  first value on, however small, after a first step that is too short to matter.
- Otherwise early errors are forgotten, and what counts is the size it comes to. That is guessed to be the size of the
  others. If it turns out much smaller, the solve is repeated with what is known by then.

Steps are chosen for the states alone. If they turn out too long for a sensitivity, the lane is solved once more for the
sensitivities, with tolerances in terms of their sizes.
"""

from __future__ import annotations

import math

from equifinal.machine.pointers import DoublePointer, call, shift
from equifinal.ode.stepping.field import column_parameters, inputs_at
from equifinal.ode.stepping.layout import JACOBIAN, N_COLUMNS, N_OWN, N_STATES, NNZ_JACOBIAN, PATTERNS
from equifinal.ode.stepping.structs import Lane, Work, compiled, inlined

SMALL_SHARE = 1e-5  # of the relative tolerance at the largest value: what may pass as zero
SMALL_ENOUGH = 0.01  # the same, for a guess to do: the estimate of the error of the first step may be that wrong
SMALLEST = 1e-300
SHORT = 0.1  # of the shortest time scale: a step in which errors of something that begins at zero do not matter
ROUNDING = 1e-13  # of the terms that make up a slope: what cannot be resolved
LARGEST_SLIP = 100.0  # error of a sensitivity in a step that is let pass: so many times the tolerance at its largest
OVERRATED = 10.0  # how much larger a sensitivity's size was thought to be, for the solve to be repeated
NEGLIGIBLE = 1e-6  # of the state for all of the parameter: a sensitivity that matters to nobody


@compiled
def floor_of(size: float, rtol: float, atol: float) -> float:
    return min(atol, max(SMALL_SHARE * rtol * size, SMALLEST))


@inlined
def first_floors(lane: Lane, work: Work, controlled: int) -> None:
    """Tolerances at the start; those of sensitivities once and for all."""
    n = lane.system[N_STATES]
    for i in range(n):
        work.floors[i] = floor_of(work.largest[i], lane.rtol, lane.atol)
    for i in range(n, controlled):
        work.floors[i] = max(lane.rtol * work.sizes[i], SMALLEST)


@inlined
def follow(lane: Lane, work: Work) -> None:
    """Let tolerances grow with their states."""
    floors, largest = work.floors, work.largest
    for i in range(lane.system[N_STATES]):
        if abs(work.z[i]) > largest[i]:
            largest[i] = abs(work.z[i])
            floor = floor_of(largest[i], lane.rtol, lane.atol)
            floors[i] = max(floors[i], floor) if floors[i] < math.inf else floor


@compiled
def guess_sizes(lane: Lane, work: Work) -> float:
    """Tolerances of states that are still zero; returns the longest step for their sake.

    A tolerance without bound stands for a state to be followed from its first value on.
    """
    d, largest, jacobian, u = lane.system, work.largest, work.jacobian, work.u
    n, count = d[N_OWN], d[NNZ_JACOBIAN]
    pattern, looped = shift(d, PATTERNS), shift(column_parameters(d), d[N_COLUMNS])
    call(d[JACOBIAN], work.z, lane.p, u, u, u, jacobian)
    others, rate, growing, followed = 0.0, 0.0, False, False
    for i in range(n):
        others = max(others, largest[i])
    for e in range(count):
        if pattern[count + e] < n:
            rate = max(rate, abs(jacobian[e]))
        growing = growing or (pattern[e] == pattern[count + e] and jacobian[e] > 0.0)
    for i in range(n):
        if largest[i] == 0.0:
            if work.f0[i] != 0.0:
                work.floors[i] = SMALLEST
            elif growing or looped[i] != 0:
                work.floors[i], followed = math.inf, True
            else:
                if work.sizes[i] == 0.0:
                    work.sizes[i] = others if others > 0.0 else lane.atol / (SMALL_SHARE * lane.rtol)
                work.floors[i] = floor_of(work.sizes[i], lane.rtol, lane.atol)
    return SHORT / rate if followed else math.inf


@inlined
def correct_sizes(lane: Lane, work: Work) -> bool:
    """Whether a state came out much smaller than guessed: then its size is known now, and the solve to be repeated."""
    wrong = False
    for i in range(lane.system[N_STATES]):
        found, guessed = work.largest[i], floor_of(work.sizes[i], lane.rtol, lane.atol)
        better = floor_of(found, lane.rtol, lane.atol)
        if found > SMALLEST and guessed > SMALL_ENOUGH * lane.rtol * found and guessed > better:
            work.sizes[i], wrong = found, True
    return wrong


@compiled
def lift_over_rounding(lane: Lane, work: Work, segment: DoublePointer, t: float, step: float) -> None:
    """Raise tolerances to the rounding errors of slopes, for which no step is short enough."""
    d, u = lane.system, work.u
    count, pattern = d[NNZ_JACOBIAN], shift(d, PATTERNS)
    inputs_at(d, t, segment, u)
    call(d[JACOBIAN], work.z, lane.p, u, u, u, work.jacobian)
    for i in range(d[N_STATES]):
        work.middle[i] = 0.0
    for e in range(count):
        work.middle[pattern[e]] += abs(work.jacobian[e] * work.z[pattern[count + e]])
    for i in range(d[N_STATES]):
        work.floors[i] = max(work.floors[i], ROUNDING * step * work.middle[i])


@inlined
def note_slips(lane: Lane, work: Work, error: DoublePointer, missed: float) -> None:
    """The largest size and error of each sensitivity up to this step; errors may be larger than estimated."""
    n = lane.system[N_STATES]
    for i in range(n, n * (1 + lane.system[N_COLUMNS])):
        if missed * abs(error[i]) > work.slips[i]:
            work.slips[i] = missed * abs(error[i])
        if abs(work.z_new[i]) > work.largest[i]:
            work.largest[i] = abs(work.z_new[i])


@inlined
def doubt_sensitivities(lane: Lane, work: Work) -> bool:
    """Whether steps were too long for a sensitivity whose size was not known by then; notes all sizes."""
    d, largest = lane.system, work.largest
    n, m, parameters = d[N_STATES], d[N_COLUMNS], column_parameters(d)
    doubt = False
    for i in range(n):
        for j in range(m):
            at, parameter = n + i * m + j, abs(lane.p[parameters[j]])
            least = NEGLIGIBLE * largest[i] / parameter if parameter > 0.0 else 0.0
            size = max(largest[at], least)
            slipped = work.slips[at] > LARGEST_SLIP * lane.rtol * size
            doubt = doubt or (slipped and work.sizes[at] > OVERRATED * size)
            work.sizes[at] = size
    return doubt
