"""How long the next step is: a PI controller, with powers as exact as the length of a step needs.

Errors come as squares in units of the tolerance. Calls of ``sqrt``, ``log`` and ``exp`` were a sixth of the time of a
small model, and no step needs to be known to a thousandth: polynomials that meet the powers of 2 are wrong by 0.1% (the
logarithm) and 0.3% (the power), and the same on every machine.
"""

from __future__ import annotations

import math

from equifinal.machine.pointers import always_inline, bits_of, number_of
from equifinal.ode.stepping.structs import compiled

# After an accepted step h is multiplied by 0.9 err^-GROWTH err_before^MEMORY.
MEMORY = 0.04
GROWTH = 0.2 - 0.75 * MEMORY
SAFETY = math.log2(0.9)
LARGEST_GROWTH, LARGEST_CUT = 10.0, 0.2
LEAST_ERROR = 1e-40  # of squares, which have logarithms
LEAST_MEMORY = math.log2(1e-8)  # a tiny error is no reason to expect the next one to be tiny

MANTISSA, ONE = (1 << 52) - 1, 1023 << 52
L0, L1, L2, L3 = -2.15684951, 3.0489706, -1.04896925, 0.15684816  # together 0 at 1, and 1 at 2
P1, P2 = 0.66078292, 0.33921708


@compiled
def rough_log2(x: float) -> float:
    """The logarithm of a positive number."""
    always_inline()
    bits = bits_of(x)
    m = number_of((bits & MANTISSA) | ONE)
    return float((bits >> 52) - 1023) + ((L0 + m * L1) + (m * m) * (L2 + m * L3))


@compiled
def growth(log_error: float, log_before: float) -> float:
    """What to multiply a step with, from the logarithms of its error and of the last one's; 0 for that if it failed."""
    wanted = (SAFETY + 0.5 * MEMORY * log_before) - 0.5 * GROWTH * log_error
    whole = math.floor(wanted)
    part = wanted - whole
    power = number_of((int(whole) + 1023) << 52) * (1.0 + part * (P1 + part * P2))
    return min(max(power, LARGEST_CUT), LARGEST_GROWTH)
