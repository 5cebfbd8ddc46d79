"""How a compiled system, and a batch of solves, is handed to the integrators: one table of integers each.

Sizes and addresses stand at fixed places, then the sparsity patterns one after another. Plain numbers only,
so that the integrators' compiled code does not depend on Python objects, nor on the model.
"""

from __future__ import annotations

from typing import NamedTuple

# sizes
N_STATES = 0
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

# patterns: rows then columns of each matrix in the order of the sizes above; then the parameter of each column, and for
# each state whether it has an influence on a loop of states
PATTERNS = 19


class Batch(NamedTuple):
    """What is to be solved and where results go, as one table of integers: counts, and addresses of arrays."""

    system: int
    method: int
    arguments: int
    n_arguments: int
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
