"""A problem as a Python script for PyMC: SciPy solves the equations, and the likelihood is a black box to PyMC.

The script stands alone. Its function ``log_likelihood`` needs NumPy and SciPy only; ``build_model`` gives the model of
PyMC. Equations are solved from one event to the next, among which are the moments at which conditions on time change.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from equifinal.errors import DataError
from equifinal.formats.export.code import Syntax, every_name, lowered, needed, refuse, times_of
from equifinal.language.expression import Expression, Name
from equifinal.language.model import Event, Model
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

PYTHON = Syntax(
    functions={
        **{name: f"np.{name}" for name in ("exp", "log", "sin", "cos", "tan", "tanh", "arctan", "abs", "floor")},
        "min": "np.minimum",
        "max": "np.maximum",
    },
    power=lambda base, exponent: f"({base} ** {exponent})",
    choice=lambda condition, value, otherwise: f"({value} if {condition} else {otherwise})",
    reserved=frozenset({*keyword.kwlist, "np", "t", "x", "l", "p", "k", "stats", "solve_ivp", "solved"}),
)
# the log density of an observation y around m, by family; s is the scale, after its unit
DENSITIES: Mapping[str, str] = {
    "normal": "stats.norm.logpdf({y}, {m}, {s})",
    "student-t": "stats.t.logpdf({y}, {df}, {m}, {s})",
    "laplace": "stats.laplace.logpdf({y}, {m}, {s})",
    "lognormal": "stats.norm.logpdf(np.log({y}), np.log({m}), {s}) - np.log({y})",
    "log-laplace": "stats.laplace.logpdf(np.log({y}), np.log({m}), {s}) - np.log({y})",
    "poisson": "stats.poisson.logpmf({y}, {m})",
    "negative-binomial": "stats.nbinom.logpmf({y}, 1 / {s}, 1 / (1 + {s} * {m}))",
}
ALIKE = {"log10-normal": "lognormal", "log2-normal": "lognormal", "log10-laplace": "log-laplace"}
# the log probability of less than y, of which that of more is the same with another name at the end
BELOW: Mapping[str, str] = {
    "normal": "stats.norm.logcdf({y}, {m}, {s})",
    "student-t": "stats.t.logcdf({y}, {df}, {m}, {s})",
    "laplace": "stats.laplace.logcdf({y}, {m}, {s})",
    "lognormal": "stats.norm.logcdf(np.log({y}), np.log({m}), {s})",
    "log-laplace": "stats.laplace.logcdf(np.log({y}), np.log({m}), {s})",
    "poisson": "stats.poisson.logcdf({y}, {m})",
    "negative-binomial": "stats.nbinom.logcdf({y}, 1 / {s}, 1 / (1 + {s} * {m}))",
}
COUNTS = ("poisson", "negative-binomial")
PRIORS: Mapping[str, str] = {
    "normal": "pm.Normal.dist(mu={mean}, sigma={sd})",
    "halfnormal": "pm.Normal.dist(mu=0.0, sigma={sd})",
    "lognormal": "pm.LogNormal.dist(mu={meanlog}, sigma={sdlog})",
    "gamma": "pm.Gamma.dist(alpha={shape}, beta={rate})",
    "exponential": "pm.Exponential.dist(lam={rate})",
    "beta": "pm.Beta.dist(alpha={a}, beta={b})",
    "student-t": "pm.StudentT.dist(nu={df}, mu={location}, sigma={scale})",
    "cauchy": "pm.Cauchy.dist(alpha={location}, beta={scale})",
    "halfcauchy": "pm.Cauchy.dist(alpha=0.0, beta={scale})",
    "laplace": "pm.Laplace.dist(mu={location}, b={scale})",
    "chi-squared": "pm.ChiSquared.dist(nu={df})",
    "rayleigh": "pm.Weibull.dist(alpha=2.0, beta=2.0**0.5 * {scale})",
    "loglaplace": "pm.Laplace.dist(mu={location}, b={scale})",  # of the logarithm
}


def problem_to_pymc(problem: Problem, values: Mapping[str, float]) -> str:
    """The script; `values` of the parameters stand in it as a starting point.

    Raises
    ------
    DataError
        If the problem has what the script cannot do.
    """
    refuse(problem, "PyMC")
    problem.require_complete()
    problem = replace(problem, experiments=tuple(map(lowered, problem.experiments)))
    called = PYTHON.names(every_name(problem))
    parts = [_HEAD.format(name=problem.name.replace("\\", "/").replace('"', "'"))]
    parts.append(f"PARAMETERS = {list(problem.parameters)!r}")
    parts.append(f"START = {[float(values[name]) for name in problem.parameters]!r}")
    functions = []
    for i, experiment in enumerate(problem.experiments, start=1):
        parts.append(_experiment(problem, experiment, i, called))
        functions.append(f"log_likelihood_{i}")
    total = " + ".join(f"{function}(p)" for function in functions)
    parts.append(f'def log_likelihood(p):\n    """log L at the parameters in their order."""\n    return {total}')
    lines = [f"        theta.append({_prior(name, prior)})" for name, prior in problem.priors.items()]
    order = [list(problem.priors).index(name) for name in problem.parameters]
    start = {
        f"log {name}" if prior.family in ON_LOGARITHM else name: _on_scale(prior, values[name])
        for name, prior in problem.priors.items()
    }
    parts.append(_MODEL.format(priors="\n".join(lines), order=order, start=start))
    return "\n\n\n".join(parts) + "\n"


_HEAD = '''"""{name}, for PyMC."""

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp


def solved(rhs, outputs, happen, start, x, l, events, times, p, **settings):
    """Outputs by time, or None; at one time, events of order 0 come before outputs, those of order 2 after them."""
    what = [(max(time, start), order, k) for k, (time, order) in enumerate(events)]
    now, found = start, {{}}
    for time, order, k in sorted([*what, *((time, 1, -1) for time in times)], key=lambda step: step[:2]):
        if time > now:
            course = solve_ivp(rhs, (now, time), x, "LSODA", [time], args=(l, p), **settings)
            if not course.success:
                return None
            x, now = course.y[:, -1], time
        if k < 0:
            found[time] = outputs(time, x, l, p)
        else:
            x, l = happen(k, now, x, l, p)
    return found'''

_MODEL = '''def build_model():
    """The PyMC model; the likelihood has no gradient, so sample it with pm.DEMetropolisZ or pm.sample_smc."""
    import pymc as pm
    import pytensor.tensor as pt
    from pytensor.graph.op import Apply, Op

    class LogLikelihood(Op):
        def make_node(self, theta):
            return Apply(self, [pt.as_tensor_variable(theta)], [pt.dscalar()])

        def perform(self, node, inputs, outputs):
            value = log_likelihood(np.asarray(inputs[0], float))
            outputs[0][0] = np.asarray(value if np.isfinite(value) else -np.inf)

    with pm.Model() as model:
        theta = []
{priors}
        pm.Potential("log likelihood", LogLikelihood()(pt.stack([theta[i] for i in {order}])))
    return model


if __name__ == "__main__":
    import pymc as pm

    with build_model():
        print(pm.summary(pm.sample(step=pm.DEMetropolisZ(), initvals={start})))'''


def _experiment(problem: Problem, experiment: Experiment, i: int, called: Mapping[str, str]) -> str:
    model = experiment.model
    unpacked = [f"    {called[name]} = p[{k}]" for k, name in enumerate(problem.parameters)]
    unpacked += [f"    {called[name]} = {float(value)!r}" for name, value in model.constants.items()]
    states = [f"    {called[x]} = x[{k}]" for k, x in enumerate(model.states)]
    states += [f"    {called[name]} = l[{k}]" for k, name in enumerate(model.levels)]

    def lines(roots: Sequence[Expression]) -> list[str]:
        return [f"    {called[n]} = {PYTHON.write(model.definitions[n], called)}" for n in needed(model, roots)]

    def listed(roots: Sequence[Expression]) -> str:
        return f"[{', '.join(PYTHON.write(e, called) for e in roots)}]"

    def function(title: str, head: Sequence[str], *body: str) -> str:
        return "\n".join([f"def {title}:", *head, *body])

    right = [model.equations[x] for x in model.states]
    seen: list[Expression] = [Name(y) for y in model.outputs]
    for entry in experiment.observations:
        seen += list(entry.noise.expressions)
    events = ", ".join(f"({PYTHON.write(e.time, called)}, {0 if e.first else 2})" for e in model.jumps)
    parts = [
        function(f"rhs_{i}(t, x, l, p)", [*unpacked, *states, *lines(right)], f"    return {listed(right)}"),
        function(f"outputs_{i}(t, x, l, p)", [*unpacked, *states, *lines(seen)], f"    return {listed(seen)}"),
        function(f"happen_{i}(k, t, x, l, p)", [*unpacked, *states], *_jumps(model, listed)),
        function(
            f"begin_{i}(p)",
            unpacked,
            f"    return {PYTHON.write(model.start_time, called)}, {listed(model.start)}, "
            f"{listed(model.first_levels)}, [{events}]",
        ),
        function(
            f"log_likelihood_{i}(p)",
            [],
            f"    times = {times_of(experiment)!r}",
            f"    y = solved(rhs_{i}, outputs_{i}, happen_{i}, *begin_{i}(p), times, p, "
            f"rtol={problem.solver.rtol!r}, atol={problem.solver.atol!r})",
            "    if y is None:",
            "        return -np.inf",
            "    total = 0.0",
            *_observed(experiment, problem),
            "    return total",
        ),
    ]
    return "\n\n\n".join(parts)


def _jumps(model: Model, listed: Callable[[Sequence[Expression]], str]) -> list[str]:
    def after(event: Event, names: Iterable[str]) -> str:
        return listed([event.sets.get(name, Name(name)) for name in names])

    cases = [
        f"    if k == {k}:\n        return {after(event, model.states)}, {after(event, model.levels)}"
        for k, event in enumerate(model.jumps)
    ]
    return [*cases, "    return x, l"]


def _observed(experiment: Experiment, problem: Problem) -> list[str]:
    text: list[str] = []
    computed = len(experiment.model.outputs)
    for entry in experiment.observations:
        text += _observations(entry, problem, experiment.model.outputs.index(entry.output), computed)
        computed += len(entry.noise.expressions)
    return text


def _observations(entry: Observations, problem: Problem, column: int, computed: int) -> list[str]:
    noise = entry.noise
    family = ALIKE.get(noise.family, noise.family)
    if family not in DENSITIES or not entry.values.size:
        if not entry.values.size:
            return []
        raise DataError(f"{noise.family} noise is not exported to PyMC")
    arguments: dict[str, str] = {}
    for rule in noise.record.arguments:
        value = noise.arguments.get(rule.name)
        if value is None:
            continue
        if isinstance(value, str):
            text = f"p[{problem.parameters.index(value)}]"
        elif isinstance(value, tuple):
            text = f"{list(value)!r}[k]"
        elif isinstance(value, float):
            text = repr(value)
        else:
            text = f"y[t][{computed}]"
            computed += 1
        arguments[rule.name] = text if rule.unit == 1.0 else f"{rule.unit!r} * {text}"
    relative, df = arguments.pop("relative", None), arguments.pop("df", "0.0")
    scale = next(iter(arguments.values()), "0.0")
    if relative is not None:
        scale = f"np.sqrt(({scale}) ** 2 + ({relative} * m) ** 2)"
    m = f"y[t][{column}]" if not entry.increment else f"y[t][{column}] - y[before][{column}]"
    summed: list[str] = []
    one_less = 1.0 if family in COUNTS else 0.0  # less than 3 is 2 at the most
    laws = {
        0: DENSITIES[family].format(y="value", m="m", s=f"({scale})", df=df),
        -1: BELOW[family].format(y=f"value - {one_less}", m="m", s=f"({scale})", df=df),
        1: BELOW[family].replace("logcdf", "logsf").format(y="value", m="m", s=f"({scale})", df=df),
    }
    for side, law in laws.items():
        rows = [
            (k, float(t), None if math.isnan(before) else float(before), float(value))
            for k, (t, before, value) in enumerate(zip(entry.times, entry.previous, entry.values, strict=True))
            if entry.censored[k] == side
        ]
        if rows:
            summed += [f"    for k, t, before, value in {rows!r}:", f"        m = {m}", f"        total += {law}"]
    return summed


ON_LOGARITHM = ("loguniform", "loglaplace")


def _on_scale(prior: Prior, value: float) -> float:
    return math.log(value) if prior.family in ON_LOGARITHM else float(value)


def _prior(name: str, prior: Prior) -> str:
    bounds = [
        "None" if math.isinf(b) or (prior.family in ON_LOGARITHM and b <= 0) else repr(_on_scale(prior, b))
        for b in (prior.lower, prior.upper)
    ]
    within = f"lower={bounds[0]}, upper={bounds[1]}"
    called = f"log {name}" if prior.family in ON_LOGARITHM else name
    if prior.family in ("uniform", "loguniform"):
        law = f'pm.Uniform("{called}", {within})'
    elif prior.family in PRIORS:
        law = f'pm.Truncated("{called}", {PRIORS[prior.family].format(**prior.arguments)}, {within})'
    else:
        raise DataError(f"the prior of '{name}' ({prior.family}) is not exported to PyMC")
    return f'pm.Deterministic("{name}", pt.exp({law}))' if called != name else law
