"""Where the chains of a walk begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.posterior.posterior import Posterior
from equifinal.samplers.protocol import Start, Task
from equifinal.samplers.searching import climbing

Find = Callable[[Posterior, np.random.Generator], climbing.Start]
Begin = Callable[[Task, NDArray[np.float64]], Start]


def starting(find: Find, begin: Begin) -> Callable[[Task, Any, Sequence[np.random.Generator]], Start]:
    """``init`` of samplers that put each chain where ``find`` leads from prior draws."""

    def init(task: Task, plan: Any, rngs: Sequence[np.random.Generator]) -> Start:
        starts = [find(task.posterior, rng) for rng in rngs]
        solves, failures = np.array([[start.solves, start.failures] for start in starts], np.int64).T
        begun = begin(task, np.stack([start.position for start in starts]))
        return Start(begun.state, begun.solves + solves, begun.failures + failures)

    return init
