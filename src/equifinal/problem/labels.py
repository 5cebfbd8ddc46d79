"""How names are written for readers: a label, a unit, or both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import TIME
from equifinal.problem.data import Experiment

MAX_LENGTH = 80


@dataclass(frozen=True)
class Label:
    """What stands for a name in tables and figures: ``Label("β", "1/day")``; empty text leaves it out."""

    label: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        for key in ("label", "unit"):
            value = getattr(self, key)
            if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_LENGTH:
                raise DataError(f"{key} must be text on one line, of {MAX_LENGTH} characters at most, not {value!r}")


def known_names(experiments: Iterable[Experiment]) -> set[str]:
    """What may have a label besides parameters: time, outputs, states, inputs, definitions, constants, quantities."""
    found = {TIME}
    for experiment in experiments:
        m = experiment.model
        found |= {*m.states, *m.outputs, *m.inputs, *m.definitions, *m.constants, *m.quantities, *m.trajectories}
        found |= {*m.levels}
    return found


def check_labels(labels: Mapping[str, Label], known: Set[str]) -> None:
    for name in labels:
        if name not in known:
            raise DataError(f"there is nothing named '{name}' to label{did_you_mean(name, known)}")
