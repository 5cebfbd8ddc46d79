"""A problem: experiments, priors and settings; everything a fit needs, and nothing computed yet."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import TIME, Expression, Number, names, substitute, to_text
from equifinal.language.model import Model
from equifinal.problem.data import Experiment, unknowns
from equifinal.problem.labels import MAX_LENGTH, Label, check_labels, known_names
from equifinal.problem.prior import Prior
from equifinal.showing import Shown

AXES = ("chain", "draw")
STATISTICS = ("lp", "log_like", "acceptance_rate")


@dataclass(frozen=True)
class SolverSettings:
    """Tolerances of the ODE solver; ``method`` is ``auto``, ``explicit`` or ``stiff``."""

    rtol: float = 1e-6
    atol: float = 1e-9
    max_steps: int = 50_000
    method: str = "auto"

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
                raise DataError(f"solver setting '{name}' must be between 0 and 1, not {value!r}")
        if isinstance(self.max_steps, bool) or not isinstance(self.max_steps, int) or self.max_steps < 1:
            raise DataError(f"solver setting 'max_steps' must be a positive whole number, not {self.max_steps!r}")
        if self.method not in ("auto", "explicit", "stiff"):
            hint = did_you_mean(str(self.method), ("auto", "explicit", "stiff"))
            raise DataError(f"solver setting 'method' must be auto, explicit or stiff, not '{self.method}'{hint}")


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Shown):
    """Experiments that share parameters, a prior for each parameter, and settings.

    A quantity of interest that depends on a constant that differs between experiments, such as a reproduction number in
    cities of several sizes, has a value for each: ``R0 [city]``.

    ``priors`` may be empty for an identifiability analysis; `require_complete` says what a fit would miss. ``labels``
    say how names are written for readers; that of time goes by ``t``. ``nominal`` are values of parameters that whoever
    made the problem gives with it, such as the published ones; nothing is inferred from them. ``notes`` say what a
    reader of another format had to leave out.
    """

    experiments: tuple[Experiment, ...]
    priors: Mapping[str, Prior] = field(default_factory=dict)
    solver: SolverSettings = SolverSettings()
    sampling: Mapping[str, object] = field(default_factory=dict)
    name: str = "problem"
    labels: Mapping[str, Label] = field(default_factory=dict)
    nominal: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.experiments:
            raise DataError("a problem needs at least one experiment")
        object.__setattr__(self, "experiments", _named(self.experiments))
        experiments, labels = _told_apart(self.experiments, self.labels)
        object.__setattr__(self, "experiments", experiments)
        object.__setattr__(self, "labels", labels)
        for experiment in self.experiments:
            if not experiment.name.isprintable():
                raise DataError(f"the experiment name {experiment.name!r} contains control characters")
        shown = "".join(c if c.isprintable() else "\ufffd" for c in self.name)  # the name of a file may be anything
        object.__setattr__(self, "name", shown)
        known = unknowns(self.experiments)
        for name in self.priors:
            if name not in known:
                likely = did_you_mean(name, [other for other in known if other not in self.priors])
                raise DataError(
                    f"parameter '{name}' has a prior but appears neither in the equations nor in the noise"
                    + (f"{likely} That has no prior: one of the two is misspelt" if likely else "")
                )
        for name, value in self.nominal.items():
            if name not in known:
                raise DataError(f"'{name}' has a nominal value but is not a parameter{did_you_mean(name, known)}")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise DataError(f"the nominal value of '{name}' must be a finite number, not {value!r}")
        for name in (*known, *self.quantities, *(y for e in self.experiments for y in e.model.outputs)):
            if name in AXES:
                raise DataError(
                    f"'{name}' cannot be a parameter, quantity or output: ArviZ uses this name for its own axes"
                )
        for experiment in self.experiments:
            for name in experiment.model.outputs:
                if name in STATISTICS:
                    raise DataError(f"'{name}' cannot be an output: results use the name for statistics of the sampler")
        check_labels(self.labels, known_names(self.experiments) | {*known})

    def __repr__(self) -> str:
        observed = sum(experiment.size for experiment in self.experiments)
        several = f"{len(self.experiments)} experiments, " if len(self.experiments) > 1 else ""
        return f"<Problem {self.name}: {several}{len(self.parameters)} parameters, {observed} observations>"

    def __str__(self) -> str:
        return f"{self.name}\n\n{self.model}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Every unknown, in the order of the priors where they are given."""
        return tuple(dict.fromkeys([*self.priors, *unknowns(self.experiments)]))

    @property
    def model(self) -> Model:
        """The model of the first experiment."""
        return self.experiments[0].model

    @cached_property
    def quantities(self) -> Mapping[str, Expression]:
        """Quantities of interest of all experiments, in parameters only; constants are put in."""
        found: dict[str, Expression] = {}
        known = unknowns(self.experiments)
        for experiment in self.experiments:
            for name, closed in _closed(experiment).items():
                found.setdefault(name, closed)
                for used in names(closed):
                    if used not in known:
                        raise DataError(f"quantity '{name}' needs '{used}', which no experiment has as a parameter")
        return found

    def title(self, name: str, *, unit: bool = True) -> str:
        """How a name, or ``t`` for time, is written for readers: its label, with its unit in brackets."""
        label = self.labels.get(name, Label())
        text = label.label or ("time" if name == TIME else name)
        return f"{text} ({label.unit})" if unit and label.unit else text

    def require_complete(self) -> None:
        """Raise a `DataError` naming everything that a fit still needs."""
        starts = {f"{x}_0": x for e in self.experiments for x in e.model.states}
        missing: list[str] = []
        if not self.parameters:
            missing.append("something unknown: neither the model nor the noise has a parameter")
        for name in self.parameters:
            if name not in self.priors:
                hint = did_you_mean(name, self.priors)
                state = starts.get(name)
                origin = f" (the initial value of {state}; or write {state}(0) = ... in the equations)" if state else ""
                missing.append(f"a prior for '{name}'{origin}{hint}")
        observed = {entry.output for e in self.experiments for entry in e.observations if entry.values.size}
        missing += [f"data for experiment '{e.name}'" for e in self.experiments if e.name and not e.size]
        missing += [f"data for output '{y}'" for y in self.model.outputs if y not in observed]
        for experiment in self.experiments:
            for name in experiment.model.inputs:
                if name not in experiment.inputs:
                    missing.append(f"values of the input '{name}'")
        if missing:
            raise DataError("before a fit, the problem still needs:\n" + "\n".join(f"  - {item}" for item in missing))

    def fingerprint(self) -> str:
        """A digest of everything that determines the posterior."""
        digest = hashlib.sha256()

        def add(*parts: object) -> None:
            for part in parts:
                digest.update(repr(part).encode())

        for experiment in self.experiments:
            model = experiment.model
            add(experiment.name, model.to_text(), dict(model.constants), model.inputs, model.outputs)
            add([(name, to_text(expression, decimals=True)) for name, expression in model.quantities.items()])
            if model.trajectories:
                add([(name, to_text(expression, decimals=True)) for name, expression in model.trajectories.items()])
            add(*_happening(model))
            for entry in experiment.observations:
                add(entry.output, entry.times.tolist(), entry.values.tolist(), entry.previous.tolist())
                add(entry.noise.family, sorted(entry.noise.texts.items()))
                if np.isfinite([entry.below, entry.above]).any() or entry.noise.limits:
                    add(entry.noise.limits, entry.below.tolist(), entry.above.tolist(), entry.censored.tolist())
            for name, series in experiment.inputs.items():
                add(name, series.times.tolist(), series.values.tolist(), series.interpolation)
        for name, prior in self.priors.items():
            add(name, prior.family, sorted(prior.arguments.items()), prior.lower, prior.upper, prior.coordinate)
        add(self.solver)
        return digest.hexdigest()[:16]


def _happening(model: Model) -> Iterator[object]:
    """What happens to a model, as text; nothing where nothing does."""
    if model.levels:
        yield [(name, to_text(value, decimals=True)) for name, value in model.levels.items()]
    for event in model.events:
        sets = [(name, to_text(value, decimals=True)) for name, value in event.sets.items()]
        yield (to_text(event.time, decimals=True), sets, event.first)
    if model.onset is not None:
        yield "onset", to_text(model.onset, decimals=True)
    if model.before is not None:
        yield "before", model.before.to_text(), dict(model.before.constants)


def _named(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """Several experiments need names of their own; those without one are numbered."""
    if len(experiments) == 1:
        return tuple(experiments)
    named = tuple(
        experiment if experiment.name else replace(experiment, name=f"experiment {i}")
        for i, experiment in enumerate(experiments, start=1)
    )
    given = [experiment.name for experiment in named]
    for name in given:
        if given.count(name) > 1:
            raise DataError(f"two experiments are named '{name}'")
    return named


def own_name(quantity: str, experiment: str) -> str:
    """A quantity that is another one in each experiment; a slash in its name would be a folder in files."""
    return f"{quantity} [{experiment.replace('%', '%25').replace('/', '%2F')}]"


def _told_apart(
    experiments: tuple[Experiment, ...], labels: Mapping[str, Label]
) -> tuple[tuple[Experiment, ...], Mapping[str, Label]]:
    """Experiments, and labels, in which quantities that differ between experiments have names of their own."""
    meant: dict[str, set[Expression]] = {}
    for experiment in experiments:
        for name, closed in _closed(experiment).items():
            meant.setdefault(name, set()).add(closed)
    differing = {name for name, expressions in meant.items() if len(expressions) > 1}
    if not differing:
        return experiments, labels
    found, shown = [], {name: label for name, label in labels.items() if name not in differing}
    for experiment in experiments:
        model = experiment.model
        names = {name: own_name(name, experiment.name) if name in differing else name for name in model.interest}
        quantities = {names[name]: expression for name, expression in model.interest.items()}
        found.append(replace(experiment, model=replace(model, quantities=quantities)))
        for name in differing & set(names) & set(labels):
            text = f"{labels[name].label or name} [{experiment.name}]"
            shown[names[name]] = replace(labels[name], label=text[:MAX_LENGTH])
    return tuple(found), shown


def _closed(experiment: Experiment) -> dict[str, Expression]:
    """Quantities of an experiment with its constants put in."""
    constants: dict[str, Expression] = {k: Number(v) for k, v in experiment.model.constants.items()}
    return {name: substitute(expression, constants) for name, expression in experiment.model.interest.items()}
