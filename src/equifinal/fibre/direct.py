r"""A rational chart as one straight-line function of theta_I and c, with bounds on its errors.

It computes theta_D, xi at what it found, and :math:`\det \partial\xi/\partial\theta_D`: all that the weight of a
root needs, and with the bounds all that is needed to know whether the numbers can be trusted as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from equifinal.algebra.elimination.triangular import Step, combination_name
from equifinal.fibre.combinations import Combinations
from equifinal.machine.determinant import TooLong, determinant
from equifinal.machine.functions import Functions
from equifinal.machine.graph import Term
from equifinal.machine.native import Code

MOST_MINORS = 500
MOST_NODES = 1500  # beyond, refinement by Newton's method is no slower and compilation takes long


def direct_code(combinations: Combinations, free: Sequence[int], steps: Sequence[Step]) -> Code | None:
    """A function ``direct`` of theta_I and c: theta_D in the order of theta, xi, the determinant, and their bounds.

    None where it would be too long.
    """
    names, d, q = combinations.names, combinations.dimension, combinations.rank
    c = [combination_name(j) for j in range(q)]
    functions = Functions({"x": [names[k] for k in free], "p": c}, {})
    graph = functions.graph
    for step in steps:
        constant, slope = functions.record(step.coefficients)
        functions.names[step.name] = Term(graph, graph.negative(graph.divide(constant, slope)))
    theta = [functions.names[name].node for name in names]
    dependent = [k for k in range(d) if k not in free]
    wanted = [*combinations.functions.nodes["values"][:q], *combinations.jacobian_nodes]
    here = graph.copied(combinations.functions.graph, wanted, {("x", k): theta[k] for k in range(d)})
    jacobian = [[here[q + j * d + k] for k in dependent] for j in range(q)]
    try:
        nodes = [*(theta[k] for k in dependent), *here[:q], determinant(graph, jacobian, MOST_MINORS)]
    except TooLong:
        return None
    if len(graph.reachable(nodes)) > MOST_NODES:
        return None
    return functions.compile_bounded("direct", nodes)
