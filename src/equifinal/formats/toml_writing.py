"""A problem as a readable problem file (TOML): one model, and for each experiment what is different in it.

Not every problem fits into this; what was written is therefore read back and compared.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from equifinal.errors import DataError, EquifinalError
from equifinal.formats import toml
from equifinal.formats.common_model import CommonModel
from equifinal.formats.sbml.names import fresh
from equifinal.language.checks import free_names
from equifinal.language.expression import Expression, Number, evaluate, names, number_text, to_text
from equifinal.language.functions import call_on_arrays
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Event, Model
from equifinal.problem.data import Experiment, Observations, unknowns
from equifinal.problem.labels import Label
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings, own_name


class NotWritable(DataError):
    """The problem has no problem file of this kind."""


def problem_to_toml(problem: Problem) -> str:
    """The text of a problem file; reading it gives the same posterior.

    Raises
    ------
    DataError
        If there is no such file: experiments whose equations differ, for example.
    """
    try:
        text = _Writer(problem).text()
        _check_same(problem, toml.loads(text, name=problem.name))
    except EquifinalError as error:
        raise NotWritable(f"this problem cannot be written as TOML ({error}); give a file that ends in .json") from None
    return text


class _Writer:
    def __init__(self, problem: Problem):
        self.problem = problem
        self.common = CommonModel(problem)
        self.models = self.common.models

    # --- text ---

    def text(self) -> str:
        problem = self.problem
        outputs = list(dict.fromkeys(y for model in self.models for y in model.outputs))
        model = [f"outputs = {_list(map(_quoted, outputs))}"]
        if self.models[0].inputs:
            model.append(f"inputs = {_list(map(_quoted, self.models[0].inputs))}")
        if self._alone:
            model += self._start_lines(self.models[0])
        model.append(f'equations = """\n{self._equations()}\n"""')
        parts = ["\n".join(["[model]", *model])]
        if self.common.constants:
            parts.append(_table("constants", {n: _value(v) for n, v in self.common.constants.items()}))
        quantities = {**self.models[0].quantities, **self.models[0].trajectories}
        if quantities:
            own = own_name("", problem.experiments[0].name)  # reading the file tells them apart again
            parts.append(_table("quantities", {n.removesuffix(own): _quoted(_text(v)) for n, v in quantities.items()}))
        if problem.priors:
            parts.append(_table("parameters", {n: self._parameter(n, p) for n, p in problem.priors.items()}))
        labels = {n: _label(vars(label)) for n, label in _labels(problem).items() if n not in problem.priors}
        if labels:
            parts.append(_table("labels", {("time" if n == "t" else n): text for n, text in labels.items()}))
        for experiment in problem.experiments:
            parts += self._experiment(experiment, "" if self._alone else "experiment.")
        if problem.solver != SolverSettings():
            parts.append(_table("solver", {k: _plain(v) for k, v in vars(problem.solver).items()}))
        if problem.sampling:
            parts.append(_table("sampling", {k: _setting(v) for k, v in problem.sampling.items()}))
        return "\n\n".join(parts) + "\n"

    def _equations(self) -> str:
        model = self.models[0]
        lines = [f"{x}' = {_text(model.equations[x])}" for x in model.states]
        lines += [f"{name} = {_text(value)}" for name, value in self.common.definitions.items()]
        lines += [f"{x}(0) = {_text(self.common.initial(x))}" for x in model.states]
        if idle := self._idle():  # a definition keeps them in the model
            name = fresh("without_effect", self.common.taken)
            lines.append(f"{name} = {' + '.join(idle)}")
        return "\n".join(lines)

    def _idle(self) -> list[str]:
        """Parameters that nothing contains; they have their prior as posterior."""
        bare = [replace(e, model=replace(e.model, parameters=free_names(e.model))) for e in self.problem.experiments]
        used = {*unknowns(bare)}
        return [name for name in self.problem.priors if name not in used]

    def _parameter(self, name: str, prior: Prior) -> str:
        table: dict[str, str] = {"prior": _quoted(prior.family)}
        table |= {key: _plain(value) for key, value in prior.arguments.items()}
        bounds = {"lower": prior.lower, "upper": prior.upper}
        table |= {key: _plain(value) for key, value in bounds.items() if math.isfinite(value)}
        table["coordinate"] = _quoted(prior.coordinate)
        if name in self.problem.nominal:
            table["nominal"] = _plain(self.problem.nominal[name])
        if name in self.problem.labels:
            table |= {k: _quoted(v) for k, v in vars(self.problem.labels[name]).items() if v}
        return _inline(table)

    @property
    def _alone(self) -> bool:
        """Whether there is one experiment, which needs no table of its own."""
        return len(self.models) == 1 and not self.problem.experiments[0].name and not self.common.own(self.models[0])

    def _experiment(self, experiment: Experiment, prefix: str) -> Iterator[str]:
        model = experiment.model
        if prefix:
            lines = ["[[experiment]]", f"name = {_quoted(experiment.name)}"]
            if own := self.common.own(model):
                lines.append(f"constants = {_inline({n: _value(v) for n, v in own.items()})}")
            yield "\n".join([*lines, *self._start_lines(model)])
        for event in model.events:
            yield self._change(event, model, prefix)
        for name, series in experiment.inputs.items():
            table = {"time": _numbers(series.times), "value": _numbers(series.values)}
            yield _table(f"{prefix}inputs.{_key(name)}", table | {"interpolation": _quoted(series.interpolation)})
        yield from self._data(experiment, prefix)

    def _start_lines(self, model: Model) -> list[str]:
        lines = []
        if model.onset is not None:
            lines.append(f"start = {_value(model.onset)}")
        if model.before is not None:
            lines.append('initial = "steady state"')
            before = {"constants": self.common.held(model), "inputs": self.common.held_inputs(model)}
            tables = {k: _inline({n: _value(v) for n, v in table.items()}) for k, table in before.items() if table}
            if tables:
                lines.append(f"before = {_inline(tables)}")
        return lines

    def _change(self, event: Event, model: Model, prefix: str) -> str:
        levels = {n: _value(v) for n, v in event.sets.items() if n in model.levels}
        states = {n: _value(v) for n, v in event.sets.items() if n not in model.levels}
        lines = [f"[[{prefix}change]]", f"time = {_value(event.time)}"]
        lines += [f"constants = {_inline(levels)}"] if levels else []
        lines += [f"set = {_inline(states)}"] if states else []
        return "\n".join([*lines, *(["first = true"] if event.first else [])])

    def _data(self, experiment: Experiment, prefix: str) -> Iterator[str]:
        entries = experiment.observations
        times = [time for entry in entries for time in entry.times.tolist()]
        counted = {time for entry in entries if entry.increment for time in entry.previous.tolist() if time > 0}
        times += sorted(counted - {*times})  # rows without values, from which increments count
        noises: dict[str, str] = {}
        columns: dict[str, str] = {}
        start = 0
        for entry in entries:
            noises[entry.output] = _noise(entry.noise, start, len(times))
            if entry.values.size:
                column = ["nan"] * len(times)
                column[start : start + entry.values.size] = _readings(entry)
                columns[entry.output] = _list(column)
                start += entry.values.size
        yield _table(f"{prefix}noise", noises)
        increments = [_quoted(entry.output) for entry in entries if entry.increment]
        data = {"increments": _list(increments)} if increments else {}
        if columns:
            data |= {"time": _numbers(times), **columns}
        if data:
            yield _table(f"{prefix}data", data)


# --- TOML ---


def _noise(noise: Noise, start: int, total: int) -> str:
    def written(value: float | tuple[float, ...] | str) -> str:
        if isinstance(value, tuple):
            column = np.full(total, np.nan)
            column[start : start + len(value)] = value
            return _numbers(column)
        return _quoted(value) if isinstance(value, str) else _plain(value)

    given = {key: written(value) for key, value in {**noise.texts, **noise.limits}.items()}
    return _inline({"family": _quoted(noise.family), **given})


def _readings(entry: Observations) -> Iterator[str]:
    """Values, and of those that are censored the limit beyond which they lie."""
    for value, side in zip(entry.values.tolist(), entry.censored.tolist(), strict=True):
        yield _quoted(f"{'<' if side < 0 else '>'}{value!r}") if side else repr(value)


def _text(expression: Expression) -> str:
    return to_text(expression, decimals=True)


def _value(expression: Expression) -> str:
    """A number as one, anything else as text."""
    if isinstance(expression, Number):
        text = number_text(expression.value)
        return text if re.fullmatch(r"-?\d{1,15}(\.\d+)?(e[-+]?\d+)?", text) else _quoted(text)
    return _quoted(_text(expression))


def _plain(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else repr(float(value) if isinstance(value, np.floating) else value)


def _setting(value: Any) -> str:
    return _inline({k: _setting(v) for k, v in value.items()}) if isinstance(value, dict) else json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _numbers(values: Iterable[float]) -> str:
    return _list(repr(float(value)) for value in values)


def _inline(table: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{_key(key)} = {value}" for key, value in table.items()) + " }"


def _table(title: str, table: Mapping[str, str]) -> str:
    return "\n".join([f"[{title}]", *(f"{_key(key)} = {value}" for key, value in table.items())])


def _labels(problem: Problem) -> dict[str, Label]:
    """Labels by the names that a file has; quantities of one experiment go by the name that all of them share."""
    found: dict[str, Label] = {}
    for name, label in problem.labels.items():
        own = next((e.name for e in problem.experiments if e.name and name.endswith(own_name("", e.name))), None)
        if own is None:
            found[name] = label
        else:
            shared, text = name.removesuffix(own_name("", own)), label.label.removesuffix(f" [{own}]")
            found.setdefault(shared, replace(label, label="" if text == shared else text))
    return found


def _label(label: Mapping[str, str]) -> str:
    return _inline({key: _quoted(value) for key, value in label.items() if value})


# --- is it the same? ---


def _check_same(problem: Problem, other: Problem) -> None:
    """Compare data, noise and priors, and the models by their values at random points."""
    if dict(problem.priors) != dict(other.priors) or len(problem.experiments) != len(other.experiments):
        raise NotWritable("its priors or experiments would not come back")
    for mine, its in zip(problem.experiments, other.experiments, strict=True):
        seen = {entry.output: entry for entry in its.observations}
        for entry in mine.observations:
            back = seen.get(entry.output)
            columns = ("times", "values", "censored", "below", "above", "previous")
            if back is None or not (
                all(np.array_equal(getattr(entry, c), getattr(back, c), equal_nan=True) for c in columns)
                and entry.increment == back.increment
                and entry.noise == back.noise
            ):
                raise NotWritable(f"the data of '{entry.output}' would not come back")
        for name, series in mine.inputs.items():
            same = its.inputs[name]
            if not (np.array_equal(series.times, same.times) and np.array_equal(series.values, same.values)):
                raise NotWritable(f"the input '{name}' would not come back")
        _check_same_model(mine.model, its.model)


def _check_same_model(mine: Model, its: Model) -> None:
    rng = random.Random(0)
    free = {*mine.states, *mine.parameters, *mine.inputs, *mine.levels, *its.levels, *its.parameters, "t"}
    values = {name: rng.uniform(0.5, 1.5) for name in sorted(free)}
    (a, b) = (_numbers_of(model, values, mine.outputs) for model in (mine, its))
    if len(a) != len(b) or not np.allclose(a, b, rtol=1e-12, atol=1e-300, equal_nan=True):
        raise NotWritable("its equations or events would not come back")
    if (mine.before is None) != (its.before is None):
        raise NotWritable("its steady states would not come back")
    if mine.before is not None and its.before is not None:
        (a, b) = (_numbers_of(model, values, ()) for model in (mine.before, its.before))
        if len(a) != len(b) or not np.allclose(a, b, rtol=1e-12, atol=1e-300, equal_nan=True):
            raise NotWritable("its steady states would not come back")


def _numbers_of(model: Model, values: Mapping[str, float], outputs: Sequence[str]) -> list[float]:
    """Everything about a model as numbers, at one point."""
    plain = without_conditions(model)
    known = {**values, **{name: float(value) for name, value in plain.constants.items()}}
    known |= {name: 0.25 for name in plain.levels if name not in known}
    seen = dict(zip(plain.outputs, plain.observed, strict=True))
    parts = [*plain.rhs, *(seen[y] for y in outputs)]
    parts += plain.start if plain.before is None else []
    parts += plain.first_levels
    parts.append(plain.start_time)
    for event in plain.jumps:
        parts += [event.time, *(event.sets[name] for name in sorted(event.sets)), Number(Fraction(event.first))]
    missing = {name for part in parts for name in names(part)} - known.keys()
    known |= dict.fromkeys(missing, 0.75)
    with np.errstate(all="ignore"):
        return [float(evaluate(part, known, float, call_on_arrays)) for part in parts]
