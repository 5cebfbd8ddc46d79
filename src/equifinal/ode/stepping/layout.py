"""How a compiled system, and a batch of solves, is handed to the integrators: one table of integers each.

Sizes and addresses stand at fixed places, then the sparsity patterns one after another. Plain numbers only,
so that the integrators' compiled code does not depend on Python objects, nor on the model.
"""

from __future__ import annotations

from typing import NamedTuple

# sizes
N_STATES = 0  # what is integrated: the model's own states, then the levels that events set
N_OUTPUTS = 1
N_INPUTS = 2
N_COLUMNS = 3  # parameters the states depend on: columns of the sensitivities that are integrated; 0 without them
N_SENSITIVITIES = 4  # parameters that sensitivities are reported for
NNZ_JACOBIAN = 5  # entries of df/dx that are not zero by structure
NNZ_FORCING = 6  # of df/dp
NNZ_OUTPUT_X = 7  # of dy/dx
NNZ_OUTPUT_P = 8  # of dy/dp
NNZ_START = 9  # of dx(0)/dp

# addresses of the model's functions, and what they store
START = 10  # x(0)
RHS = 11  # f
JACOBIAN = 12  # df/dx
DRIFT = 13  # df/du . du, the partial derivative of f by time
OUTPUTS = 14  # y
START_TANGENT = 15  # x(0), dx(0)/dp
TANGENT = 16  # f, df/dx, df/dp
CURVATURE = 17  # derivatives of df/dx and df/dp in the direction (dx, du)
OUTPUT_TANGENT = 18  # y, dy/dx, dy/dp

# events
N_OWN = 19  # states that are the model's own
N_EVENTS = 20
EVENTS = 21  # address of three integers for each event: addresses of its kind and its numbers, whether it is first
ONSET = 22  # whether the first of them is the start

# patterns: rows then columns of each matrix in the order of the sizes above; then the parameter of each column, and for
# each state whether it has an influence on a loop of states
PATTERNS = 23

# a kind of event: sizes, addresses of functions, then places of what is set, columns of dtau/dp, rows and columns of
# dG/dx, and those of dG/dp, rows being counted among what is set
N_SETS = 0
NNZ_WHEN = 1
NNZ_JUMP_X = 2
NNZ_JUMP_P = 3
WHEN = 4  # tau
JUMP = 5  # G
WHEN_TANGENT = 6  # tau, dtau/dp
JUMP_TANGENT = 7  # G, dG/dt, dG/dx, dG/dp
KIND_PATTERNS = 8


class Batch(NamedTuple):
    """What is to be solved and where results go, as one table of integers: counts, and addresses of arrays."""

    system: int
    method: int
    arguments: int
    n_arguments: int
    starts: int  # states and sensitivities of each lane to start from, or 0: the model's own initial values
    n_lanes: int
    counter: int  # deals out lanes
    times: int
    n_times: int
    inputs: int
    n_segments: int
    tolerances: int  # rtol, atol
    max_steps: int
    tableau: int
    states: int
    outputs: int
    sensitivities: int
    state_sensitivities: int
    status: int
    steps: int
    undefined: int  # whether outputs may be
