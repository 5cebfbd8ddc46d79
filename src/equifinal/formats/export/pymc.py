"""A problem as a Python script for PyMC: SciPy solves the equations, and the likelihood is a black box to PyMC.

The script stands alone. Its function ``log_likelihood`` needs NumPy and SciPy only; ``build_model`` gives the model of
PyMC.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping

from equifinal.errors import DataError
from equifinal.formats.export.code import Syntax, check_plain, every_name, needed, rows_of
from equifinal.language.expression import Expression, Name
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

PYTHON = Syntax(
    functions={
        **{name: f"np.{name}" for name in ("exp", "log", "sin", "cos", "tan", "tanh", "abs")},
        "min": "np.minimum",
        "max": "np.maximum",
    },
    power=lambda base, exponent: f"({base} ** {exponent})",
    choice=lambda condition, value, otherwise: f"({value} if {condition} else {otherwise})",
    reserved=frozenset({*keyword.kwlist, "np", "t", "x", "p", "math", "stats", "solve_ivp", "total", "found"}),
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
}


def problem_to_pymc(problem: Problem, values: Mapping[str, float]) -> str:
    """The script; `values` of the parameters stand in it as a starting point.

    Raises
    ------
    DataError
        If the problem has what the script cannot do.
    """
    check_plain(problem, "PyMC")
    problem.require_complete()
    called = PYTHON.names(every_name(problem))
    parts = [_HEAD.format(name=problem.name)]
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
    parts.append(_MODEL.format(priors="\n".join(lines), order=order))
    return "\n\n\n".join(parts) + "\n"


_HEAD = '''"""{name}, for PyMC."""

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp'''

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
        pm.Potential("likelihood", LogLikelihood()(pt.stack([theta[i] for i in {order}])))
    return model


if __name__ == "__main__":
    import pymc as pm

    with build_model():
        print(pm.summary(pm.sample(step=pm.DEMetropolisZ(), initvals=dict(zip(PARAMETERS, START)))))'''


def _experiment(problem: Problem, experiment: Experiment, i: int, called: Mapping[str, str]) -> str:
    model, times = experiment.model, rows_of(experiment)
    unpacked = [f"    {called[name]} = p[{k}]" for k, name in enumerate(problem.parameters)]
    constants = [f"    {called[name]} = {float(value)!r}" for name, value in model.constants.items()]
    states = [f"    {called[x]} = x[{k}]" for k, x in enumerate(model.states)]
    right = [model.equations[x] for x in model.states]

    def lines(roots: list[Expression]) -> list[str]:
        return [f"    {called[n]} = {PYTHON.write(model.definitions[n], called)}" for n in needed(model, roots)]

    def listed(roots: list[Expression]) -> str:
        return f"    return [{', '.join(PYTHON.write(e, called) for e in roots)}]"

    first = list(model.start)
    seen: list[Expression] = [Name(y) for y in model.outputs]
    for entry in experiment.observations:
        seen += list(entry.noise.expressions)
    text = [f"def rhs_{i}(t, x, p):", *unpacked, *constants, *states, *lines(right), listed(right)]
    text += ["", "", f"def start_{i}(p):", *unpacked, *constants, listed(first)]
    text += ["", "", f"def outputs_{i}(t, x, p):", *unpacked, *constants, *states, *lines(seen), listed(seen)]
    text += ["", "", f"TIMES_{i} = {times!r}", "", "", f"def log_likelihood_{i}(p):"]
    text += [f"    first = np.asarray(start_{i}(p), float)", "    x = {0.0: first}", f"    if TIMES_{i}:"]
    text += [
        f"        found = solve_ivp(rhs_{i}, (0.0, TIMES_{i}[-1]), first, 'LSODA', TIMES_{i}, args=(p,), "
        f"rtol={problem.solver.rtol!r}, atol={problem.solver.atol!r})",
        "        if not found.success:",
        "            return -np.inf",
        f"        x.update(zip(TIMES_{i}, found.y.T))",
        f"    y = {{t: outputs_{i}(t, state, p) for t, state in x.items()}}",
        "    total = 0.0",
    ]
    computed = len(model.outputs)
    for entry in experiment.observations:
        text += _observations(entry, problem, model.outputs.index(entry.output), computed)
        computed += len(entry.noise.expressions)
    return "\n".join([*text, "    return total"])


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
    before = [None if math.isnan(t) else float(t) for t in entry.previous]
    m = f"y[t][{column}]" if not entry.increment else f"y[t][{column}] - y[before][{column}]"
    density = DENSITIES[family].format(y="value", m="m", s=f"({scale})", df=df)
    rows = list(zip(entry.times.tolist(), before, entry.values.tolist(), strict=True))
    return [
        f"    for k, (t, before, value) in enumerate({rows!r}):",
        f"        m = {m}",
        f"        total += {density}",
    ]


def _prior(name: str, prior: Prior) -> str:
    if prior.family not in ("uniform", "loguniform", *PRIORS):
        raise DataError(f"the prior of '{name}' ({prior.family}) is not exported to PyMC")
    lower = repr(prior.lower) if math.isfinite(prior.lower) else "None"
    upper = repr(prior.upper) if math.isfinite(prior.upper) else "None"
    if prior.family == "uniform":
        return f'pm.Uniform("{name}", lower={lower}, upper={upper})'
    if prior.family == "loguniform":  # the logarithm is uniform
        return (
            f'pm.Deterministic("{name}", pt.exp(pm.Uniform("log {name}", '
            f"lower={math.log(prior.lower)!r}, upper={math.log(prior.upper)!r})))"
        )
    law = PRIORS[prior.family].format(**prior.arguments, lower=lower, upper=upper)
    return f'pm.Truncated("{name}", {law}, lower={lower}, upper={upper})'
