"""A problem as a Stan program: one function for each experiment solves its equations and sums the log densities.

Data stand in the program. ``log_lik`` is the log likelihood, as this package computes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from equifinal.errors import DataError
from equifinal.formats.export.code import Syntax, every_name, needed, refuse, times_of
from equifinal.language.expression import Expression, Name
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

_WORDS = (
    "for in while repeat until if then else true false int real complex vector row_vector matrix simplex unit_vector "
    "ordered positive_ordered array tuple functions model data parameters quantities transformed generated lower upper "
    "offset multiplier return profile break continue void target jacobian print reject fatal_error get_lp T var fvar "
    "t x p start times y total alignas alignof and asm auto bool case catch char class const constexpr default delete "
    "do double enum explicit export extern float friend goto inline long mutable namespace new not operator or private "
    "protected public register short signed sizeof static struct switch template this throw try typedef typeid "
    "typename union unsigned using virtual volatile xor e pi log_lik"
)
STAN = Syntax(
    functions={
        **{name: name for name in ("exp", "log", "sin", "cos", "tan", "tanh")},
        "abs": "abs",
        "arctan": "atan",
        "floor": "floor",
        "min": "fmin",
        "max": "fmax",
    },
    power=lambda base, exponent: f"pow({base}, {exponent})",
    choice=lambda condition, value, otherwise: f"({condition} ? {value} : {otherwise})",
    reserved=frozenset(_WORDS.split()),
)
DENSITIES: Mapping[str, str] = {
    "normal": "normal_lpdf({y} | {m}, {s})",
    "student-t": "student_t_lpdf({y} | {df}, {m}, {s})",
    "laplace": "double_exponential_lpdf({y} | {m}, {s})",
    "lognormal": "lognormal_lpdf({y} | log({m}), {s})",
    "log-laplace": "double_exponential_lpdf(log({y}) | log({m}), {s}) - log({y})",
    "poisson": "poisson_lpmf({y} | {m})",
    "negative-binomial": "neg_binomial_2_lpmf({y} | {m}, 1.0 / {s})",
}
COUNTS = ("poisson", "negative-binomial")
ALIKE = {"log10-normal": "lognormal", "log2-normal": "lognormal", "log10-laplace": "log-laplace"}
PRIORS: Mapping[str, str] = {
    "uniform": "",
    "loguniform": "target += -log({name});",
    "normal": "{name} ~ normal({mean}, {sd});",
    "halfnormal": "{name} ~ normal(0, {sd});",
    "lognormal": "{name} ~ lognormal({meanlog}, {sdlog});",
    "gamma": "{name} ~ gamma({shape}, {rate});",
    "exponential": "{name} ~ exponential({rate});",
    "beta": "{name} ~ beta({a}, {b});",
    "student-t": "{name} ~ student_t({df}, {location}, {scale});",
    "cauchy": "{name} ~ cauchy({location}, {scale});",
    "halfcauchy": "{name} ~ cauchy(0, {scale});",
    "laplace": "{name} ~ double_exponential({location}, {scale});",
    "loglaplace": "target += double_exponential_lpdf(log({name}) | {location}, {scale}) - log({name});",
    "rayleigh": "{name} ~ rayleigh({scale});",
    "chi-squared": "{name} ~ chi_square({df});",
}


def problem_to_stan(problem: Problem) -> str:
    """The program.

    Raises
    ------
    DataError
        If the problem has what the program cannot do.
    """
    refuse(problem, "Stan", _not_written)
    problem.require_complete()
    called = STAN.names(every_name(problem))
    functions = "\n\n".join(
        _experiment(problem, experiment, i, called) for i, experiment in enumerate(problem.experiments, start=1)
    )
    declared, laws = [], []
    for name, prior in problem.priors.items():
        declared.append(f"  real{_bounds(prior)} {called[name]};")
        law = _prior(name, prior, called[name])
        laws += [f"  {law}"] if law else []
    packed = ", ".join(called[name] for name in problem.parameters)
    total = " + ".join(f"log_likelihood_{i}(p)" for i in range(1, len(problem.experiments) + 1))
    blocks = {
        "functions": functions,
        "parameters": "\n".join(declared),
        "transformed parameters": f"  vector[{len(problem.parameters)}] p = [{packed}]';\n  real log_lik = {total};",
        "model": "\n".join([*laws, "  target += log_lik;"]),
    }
    return f"// {problem.name}\n" + "\n".join(f"{title} {{\n{inside}\n}}" for title, inside in blocks.items()) + "\n"


def _not_written(experiment: Experiment) -> dict[str, bool]:
    model = experiment.model
    return {
        "known inputs": bool(model.inputs),
        "doses, switches or other events": bool(model.events or model.levels),
        "an onset": model.onset is not None,
        "censored data": any(entry.censored.any() for entry in experiment.observations),
    }


def _experiment(problem: Problem, experiment: Experiment, i: int, called: Mapping[str, str]) -> str:
    model, times = experiment.model, [t for t in times_of(experiment) if t > 0]
    unpacked = [f"    real {called[name]} = p[{k}];" for k, name in enumerate(problem.parameters, start=1)]
    constants = [f"    real {called[name]} = {float(value)!r};" for name, value in model.constants.items()]
    states = [f"    real {called[x]} = x[{k}];" for k, x in enumerate(model.states, start=1)]

    def body(roots: list[Expression], head: list[str]) -> list[str]:
        own = [f"    real {called[n]} = {STAN.write(model.definitions[n], called)};" for n in needed(model, roots)]
        return [*head, *own, f"    return [{', '.join(STAN.write(e, called) for e in roots)}]';"]

    seen: list[Expression] = [Name(y) for y in model.outputs]
    for entry in experiment.observations:
        seen += list(entry.noise.expressions)
    right = [model.equations[x] for x in model.states]
    text = [f"  vector rhs_{i}(real t, vector x, vector p) {{", *body(right, [*unpacked, *constants, *states]), "  }"]
    text += [f"  vector start_{i}(vector p) {{", *unpacked, *constants]
    text += [f"    return [{', '.join(STAN.write(e, called) for e in model.start)}]';", "  }"]
    text += [
        f"  vector outputs_{i}(real t, vector x, vector p) {{",
        *body(seen, [*unpacked, *constants, *states]),
        "  }",
    ]
    text += [f"  real log_likelihood_{i}(vector p) {{", f"    vector[{len(model.states)}] start = start_{i}(p);"]
    text.append(f"    array[{len(times) + 1}] vector[{len(seen)}] y;")
    text.append(f"    y[1] = outputs_{i}(0.0, start, p);")
    if times:
        solver = problem.solver
        text += [
            f"    array[{len(times)}] real times = {{{', '.join(map(repr, times))}}};",
            f"    array[{len(times)}] vector[{len(model.states)}] x = ode_bdf_tol(rhs_{i}, start, 0.0, times, "
            f"{solver.rtol!r}, {solver.atol!r}, {solver.max_steps}, p);",
            f"    for (k in 1:{len(times)}) y[k + 1] = outputs_{i}(times[k], x[k], p);",
        ]
    text.append("    real total = 0.0;")
    place = {0.0: 1, **{time: k for k, time in enumerate(times, start=2)}}
    computed = len(model.outputs)
    for entry in experiment.observations:
        text += _observations(entry, problem, model.outputs.index(entry.output) + 1, computed + 1, place)
        computed += len(entry.noise.expressions)
    return "\n".join([*text, "    return total;", "  }"])


def _observations(
    entry: Observations, problem: Problem, column: int, computed: int, place: Mapping[float, int]
) -> list[str]:
    noise = entry.noise
    family = ALIKE.get(noise.family, noise.family)
    if not entry.values.size:
        return []
    if family not in DENSITIES:
        raise DataError(f"{noise.family} noise is not exported to Stan")
    lines = []
    for k, (time, previous, value) in enumerate(zip(entry.times, entry.previous, entry.values, strict=True)):
        row = place[float(time)]
        own, arguments = computed, dict[str, str]()
        for rule in noise.record.arguments:
            given = noise.arguments.get(rule.name)
            if given is None:
                continue
            if isinstance(given, str):
                text = f"p[{problem.parameters.index(given) + 1}]"
            elif isinstance(given, (float, tuple)):
                text = repr(given[k] if isinstance(given, tuple) else given)
            else:
                text, own = f"y[{row}][{own}]", own + 1
            arguments[rule.name] = text if rule.unit == 1.0 else f"{rule.unit!r} * {text}"
        m = f"y[{row}][{column}]" + ("" if math.isnan(previous) else f" - y[{place[float(previous)]}][{column}]")
        relative, df = arguments.pop("relative", None), arguments.pop("df", "1")
        scale = next(iter(arguments.values()), "0")
        if relative is not None:
            scale = f"sqrt(square({scale}) + square({relative} * ({m})))"
        shown = str(int(value)) if family in COUNTS else repr(float(value))
        lines.append(f"    total += {DENSITIES[family].format(y=shown, m=m, s=f'({scale})', df=df)};")
    return lines


def _bounds(prior: Prior) -> str:
    given = {"lower": prior.lower, "upper": prior.upper}
    finite = [f"{key}={value!r}" for key, value in given.items() if math.isfinite(value)]
    return f"<{', '.join(finite)}>" if finite else ""


def _prior(name: str, prior: Prior, called: str) -> str:
    """The prior without the constant by which truncation divides it."""
    if prior.family not in PRIORS:
        raise DataError(f"the prior of '{name}' ({prior.family}) is not exported to Stan")
    return PRIORS[prior.family].format(name=called, **{key: repr(value) for key, value in prior.arguments.items()})
