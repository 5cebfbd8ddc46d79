"""Which steps of a program can be computed together: those of one kind that need nothing of each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np

from equifinal.algebra.arithmetic.straight_line import Program
from equifinal.language.expression import Expression
from equifinal.language.model import Model

KEPT = 64  # programs: an analysis computes series of the same few models hundreds of times


@dataclass(frozen=True)
class Group:
    """Steps `target` of one kind.

    ``add`` sums the steps `left`, those from `right` on for each target; ``scale`` multiplies `left`, which changes
    with time, by `right`, which does not, or by its reciprocal (``shrink``); ``mul`` and ``div`` have series on both
    sides.
    """

    kind: str
    target: np.ndarray
    left: np.ndarray
    right: np.ndarray


class Schedule(NamedTuple):
    """A program for the right-hand sides and the outputs of a model, and how to go through it."""

    program: Program
    rhs: list[int]
    outputs: list[int]
    steps: list[int]
    constant: dict[int, bool]
    groups: list[Group]


class Recorded(NamedTuple):
    """A program for some functions of the parameters, and the steps that it takes."""

    program: Program
    roots: list[int]
    steps: list[int]


def schedule_of(model: Model) -> Schedule:
    """How to compute the right-hand sides and the outputs of a model."""
    moving = (*model.states, *model.inputs)
    return _schedule(tuple(model.rhs), tuple(model.observed), tuple(model.constants.items()), moving)


def recorded(expressions: Sequence[Expression], constants: Mapping[str, Fraction]) -> Recorded:
    """How to compute functions of parameters; the same ones are asked about at one point after another."""
    return _recorded(tuple(expressions), tuple(constants.items()))


@lru_cache(KEPT)
def _schedule(
    rhs: tuple[Expression, ...],
    observed: tuple[Expression, ...],
    constants: tuple[tuple[str, Fraction], ...],
    moving: tuple[str, ...],
) -> Schedule:
    program = Program()
    slopes, outputs = (program.record(expressions, dict(constants)) for expressions in (rhs, observed))
    roots = [*slopes, *outputs]
    steps, constant = needed(program, roots), constant_steps(program, set(moving))
    return Schedule(program, slopes, outputs, steps, constant, groups_of(program, steps, roots, constant))


@lru_cache(KEPT)
def _recorded(expressions: tuple[Expression, ...], constants: tuple[tuple[str, Fraction], ...]) -> Recorded:
    program = Program()
    roots = program.record(expressions, dict(constants))
    return Recorded(program, roots, needed(program, roots))


def needed(program: Program, roots: Sequence[int]) -> list[int]:
    found: set[int] = set()
    stack = list(roots)
    while stack:
        i = stack.pop()
        if i not in found:
            found.add(i)
            step = program.steps[i]
            stack.extend(j for j in (step.left, step.right) if j >= 0)
    return sorted(found)


def constant_steps(program: Program, moving: set[str]) -> dict[int, bool]:
    """Which steps do not change with time."""
    constant: dict[int, bool] = {}
    for i, step in enumerate(program.steps):
        match step.kind:
            case "number":
                constant[i] = True
            case "name":
                constant[i] = step.name not in moving
            case _:
                constant[i] = constant[step.left] and constant[step.right]
    return constant


def groups_of(program: Program, steps: Sequence[int], roots: Sequence[int], constant: dict[int, bool]) -> list[Group]:
    """The steps that change with time, as groups in an order in which each uses earlier ones only."""
    uses = Counter(roots)
    for i in steps:
        uses.update(j for j in (program.steps[i].left, program.steps[i].right) if j >= 0)
    inside: set[int] = set()  # sums that are parts of one other sum and of nothing else

    def terms(i: int) -> list[int]:
        """What a sum consists of, the sums inside it taken to pieces."""
        found, stack = [], [program.steps[i].right, program.steps[i].left]
        while stack:
            j = stack.pop()
            step = program.steps[j]
            if step.kind == "add" and uses[j] == 1 and not constant[j]:
                inside.add(j)
                stack += [step.right, step.left]
            else:
                found.append(j)
        return found

    parts = {i: terms(i) for i in steps if program.steps[i].kind == "add" and not constant[i]}
    level = dict.fromkeys(steps, 0)
    members: dict[tuple[float, str], list[tuple[int, list[int], list[int]]]] = {}
    for i in steps:
        step = program.steps[i]
        if constant[i] or step.kind == "name":
            continue
        kind, left, right = step.kind, [step.left], [step.right]
        if kind == "add":
            left, right = parts[i], []
        elif kind == "mul" and (constant[step.left] or constant[step.right]):
            kind = "scale"
            if constant[step.left]:
                left, right = right, left
        elif kind == "div" and constant[step.right]:
            kind = "shrink"
        level[i] = 1 + max(level[j] for j in (*left, *right))
        members.setdefault((inf if i in inside else level[i], kind), []).append((i, left, right))
    found = []
    for (_, kind), group in sorted(members.items()):
        targets, lefts, rights = zip(*group, strict=True)
        left_steps, right_steps = ([j for row in side for j in row] for side in (lefts, rights))
        begins = np.cumsum([0, *map(len, lefts)])[:-1]
        others = begins if kind == "add" else np.array(right_steps)
        found.append(Group(kind, np.array(targets), np.array(left_steps), others))
    return found
