"""Conserved totals: linear combinations of states whose slopes cancel, whatever states and parameters are.

c is one if c.f = 0 identically. That is linear algebra: with f at enough random points as rows of a matrix, the c are
its kernel. Arithmetic is modulo a prime, so that no tolerance decides; coefficients are then the small fractions that
have these residues. Parameters are random as well: a law holds for all of them. Constants have their values, for a
constant that is zero may be what makes a total conserved.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np
from flint import nmod_mat

from equifinal.errors import SolverError
from equifinal.machine.graph import Graph

PRIME = 2**61 - 1
MORE = 5  # points than states: a chance of 2^-61 for each that a law is only apparent


def conserved_totals(graph: Graph, f: Sequence[int], constants: dict[int, Fraction]) -> tuple[list[int], np.ndarray]:
    """The laws c.x of slopes f, as states that each of them can be solved for, and the rows c.

    c is 1 at its own such state and 0 at the others'. ``constants`` are arguments that are not parameters, by place.

    Raises
    ------
    SolverError
        If a weight in a total is a function of parameters.
    """
    rng = random.Random(0)
    alike = {("p", i): _residue(value) for i, value in constants.items()}
    varied = [_slopes(graph, f, rng, dict(alike)) for _ in range(len(f) + MORE)]
    parameters = alike | {("p", i): rng.randrange(PRIME) for i in graph.loads(f, "p") if i not in constants}
    fixed = [_slopes(graph, f, rng, dict(parameters)) for _ in range(len(f) + MORE)]
    reduced, rank = nmod_mat(len(varied), len(f), [v for row in varied for v in row], PRIME).rref()
    if nmod_mat(len(fixed), len(f), [v for row in fixed for v in row], PRIME).rank() < rank:
        raise SolverError(
            "a steady state is wanted of a model in which a total with unknown weights is conserved (volumes that are "
            "parameters, say); write the equations in amounts, or give the weights as constants"
        )
    leading = [next(j for j in range(len(f)) if int(reduced[i, j])) for i in range(rank)]
    free = [j for j in range(len(f)) if j not in leading]
    laws = np.zeros((len(free), len(f)))
    for row, j in enumerate(free):
        laws[row, j] = 1.0
        for i, lead in enumerate(leading):
            laws[row, lead] = float(-_fraction(int(reduced[i, j])))
    return free, laws


def _slopes(graph: Graph, f: Sequence[int], rng: random.Random, loads: dict[tuple[str, int], int]) -> list[int]:
    """The slopes modulo the prime, at a random point; a function's values there are as good as any others."""
    values: dict[int, int] = {}
    for a in graph.reachable(f):
        match graph.nodes[a]:
            case ("number", number):
                values[a] = _residue(number)
            case ("load", array, index):
                if (array, index) not in loads:
                    loads[array, index] = rng.randrange(PRIME)
                values[a] = loads[array, index]
            case ("negative", b):
                values[a] = -values[b] % PRIME
            case ("add", b, c):
                values[a] = (values[b] + values[c]) % PRIME
            case ("subtract", b, c):
                values[a] = (values[b] - values[c]) % PRIME
            case ("multiply", b, c):
                values[a] = values[b] * values[c] % PRIME
            case ("divide", b, c):
                values[a] = values[b] * pow(values[c], PRIME - 2, PRIME) % PRIME
            case ("power", b, exponent):
                values[a] = pow(values[b], exponent, PRIME)
            case (operation, *rest):
                text = f"{operation} {[values[b] if isinstance(b, int) else b for b in rest]}"
                values[a] = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) % PRIME
    return [values[a] for a in f]


def _residue(number: Fraction) -> int:
    return number.numerator * pow(number.denominator, -1, PRIME) % PRIME


def _fraction(residue: int) -> Fraction:
    """The fraction of smallest terms that has a residue, by Euclid's algorithm."""
    bound = isqrt(PRIME // 2)
    (r, s), (r_next, s_next) = (PRIME, 0), (residue, 1)
    while r_next > bound:
        quotient = r // r_next
        r, s, r_next, s_next = r_next, s_next, r - quotient * r_next, s - quotient * s_next
    return Fraction(r_next, s_next)
