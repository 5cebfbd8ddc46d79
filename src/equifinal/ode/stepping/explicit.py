"""Dormand and Prince's explicit Runge-Kutta pair of order 5(4), with dense output and a stiffness test.

Seven stages, the last of which is the first of the next step. The fourth-order continuous extension is
Shampine's.

References
----------
Dormand, Prince (1980), A family of embedded Runge-Kutta formulae. J. Comput. Appl. Math. 6, 19-26.
Hairer, Norsett, Wanner (1993), Solving Ordinary Differential Equations I, sections II.4 to II.6.
Hairer, Wanner (1996), Solving Ordinary Differential Equations II, section IV.2: the stiffness test.
"""

from __future__ import annotations

from fractions import Fraction

from equifinal.machine.pointers import DoublePointer, always_inline, shift
from equifinal.ode.stepping.field import field, squared_error
from equifinal.ode.stepping.layout import N_COLUMNS, N_STATES
from equifinal.ode.stepping.structs import Lane, Work, compiled, inlined

# Row i: weights of the stages before it. The last row is the fifth-order solution.
STAGES = [
    [Fraction(text) for text in row.split()]
    for row in (
        "1/5",
        "3/40 9/40",
        "44/45 -56/15 32/9",
        "19372/6561 -25360/2187 64448/6561 -212/729",
        "9017/3168 -355/33 46732/5247 49/176 -5103/18656",
        "35/384 0 500/1113 125/192 -2187/6784 11/84",
    )
]
NODES = [sum(row) for row in STAGES]
ERROR = [Fraction(text) for text in ("71/57600", "0", "-71/16695", "71/1920", "-17253/339200", "22/525", "-1/40")]
DENSE = [
    Fraction(text)
    for text in (
        "-12715105075/11282082432",
        "0",
        "87487479700/32700410799",
        "-10690763975/1880347072",
        "701980252875/199316789632",
        "-1453857185/822651844",
        "69997945/29380423",
    )
]

# Plain numbers under plain names: Numba turns global floats into constants of the code.
A21, (A31, A32), (A41, A42, A43) = float(STAGES[0][0]), map(float, STAGES[1]), map(float, STAGES[2])
A51, A52, A53, A54 = map(float, STAGES[3])
A61, A62, A63, A64, A65 = map(float, STAGES[4])
A71, _A72, A73, A74, A75, A76 = map(float, STAGES[5])
C2, C3, C4, C5 = map(float, NODES[:4])
E1, _E2, E3, E4, E5, E6, E7 = map(float, ERROR)
D1, _D2, D3, D4, D5, D6, D7 = map(float, DENSE)

STABILITY_BOUND = 2.5  # of |h lambda|, a little before the method's stability region ends


@compiled
def explicit_attempt(lane: Lane, work: Work, segment: DoublePointer, t: float, h: float, controlled: int) -> float:
    """One step of size h from (t, z); returns the square of its error in units of the tolerance.

    ``f0`` holds z'(t), ``k`` takes the six further stages and the error, ``scratch`` keeps the argument of the sixth.
    """
    always_inline()
    size = lane.system[N_STATES] * (1 + lane.system[N_COLUMNS])
    z, z_new, scratch, f0, k2 = work.z, work.z_new, work.scratch, work.f0, work.k
    k3, k4, k5 = shift(k2, size), shift(k2, 2 * size), shift(k2, 3 * size)
    k6, k7, error = shift(k2, 4 * size), shift(k2, 5 * size), shift(k2, 6 * size)
    for i in range(size):
        z_new[i] = z[i] + h * (A21 * f0[i])
    field(lane, work, t + C2 * h, segment, z_new, k2)
    for i in range(size):
        z_new[i] = z[i] + h * (A31 * f0[i] + A32 * k2[i])
    field(lane, work, t + C3 * h, segment, z_new, k3)
    for i in range(size):
        z_new[i] = z[i] + h * (A41 * f0[i] + A42 * k2[i] + A43 * k3[i])
    field(lane, work, t + C4 * h, segment, z_new, k4)
    for i in range(size):
        z_new[i] = z[i] + h * (A51 * f0[i] + A52 * k2[i] + A53 * k3[i] + A54 * k4[i])
    field(lane, work, t + C5 * h, segment, z_new, k5)
    for i in range(size):
        scratch[i] = z[i] + h * (A61 * f0[i] + A62 * k2[i] + A63 * k3[i] + A64 * k4[i] + A65 * k5[i])
    field(lane, work, t + h, segment, scratch, k6)
    for i in range(size):
        z_new[i] = z[i] + h * (A71 * f0[i] + A73 * k3[i] + A74 * k4[i] + A75 * k5[i] + A76 * k6[i])
    field(lane, work, t + h, segment, z_new, k7)
    for i in range(size):
        error[i] = h * (E1 * f0[i] + E3 * k3[i] + E4 * k4[i] + E5 * k5[i] + E6 * k6[i] + E7 * k7[i])
    return squared_error(lane, work, error, controlled)


@compiled
def at_stability_edge(lane: Lane, work: Work, h: float, controlled: int) -> bool:
    """Whether h times the dominant eigenvalue, estimated from two stages, leaves the stability region.

    Differences are taken in units of the tolerance: what is stiff is often small.
    """
    always_inline()
    size = lane.system[N_STATES] * (1 + lane.system[N_COLUMNS])
    k6, k7 = shift(work.k, 4 * size), shift(work.k, 5 * size)
    over, under = 0.0, 0.0
    for i in range(controlled):
        weight = 1.0 / (work.floors[i] + lane.rtol * abs(work.z_new[i]))
        over += (weight * h * (k7[i] - k6[i])) ** 2
        under += (weight * (work.z_new[i] - work.scratch[i])) ** 2
    return over > STABILITY_BOUND * STABILITY_BOUND * under


@inlined
def explicit_interpolate(lane: Lane, work: Work, theta: float, h: float) -> None:
    """z at t + theta h into ``middle``, fourth order, from an accepted step."""
    size = lane.system[N_STATES] * (1 + lane.system[N_COLUMNS])
    z, f0 = work.z, work.f0
    k3, k4, k5 = shift(work.k, size), shift(work.k, 2 * size), shift(work.k, 3 * size)
    k6, k7 = shift(work.k, 4 * size), shift(work.k, 5 * size)
    rest = 1.0 - theta
    for i in range(size):
        change = work.z_new[i] - z[i]
        left = h * f0[i] - change
        right = change - h * k7[i] - left
        bump = h * (D1 * f0[i] + D3 * k3[i] + D4 * k4[i] + D5 * k5[i] + D6 * k6[i] + D7 * k7[i])
        work.middle[i] = z[i] + theta * (change + rest * (left + theta * (right + rest * bump)))
