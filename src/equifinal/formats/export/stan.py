"""A problem as a Stan program: one function for each experiment solves its equations and sums the log densities.

Data stand in the program. ``log_lik`` is the log likelihood, as this package computes it. Where something happens,
equations are solved from one event or observation to the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equifinal.errors import DataError
from equifinal.formats.export.code import Syntax, every_name, lowered, needed, refuse, times_of
from equifinal.language.expression import Expression, Name
from equifinal.language.model import Model
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

_WORDS = (
    "for in while repeat until if then else true false int real complex vector row_vector matrix simplex unit_vector "
    "ordered positive_ordered array tuple functions model data parameters quantities transformed generated lower upper "
    "offset multiplier return profile break continue void target jacobian print reject fatal_error get_lp T var fvar "
    "t x l p k now both when start times y total in_order "
    "alignas alignof and asm auto bool case catch char class const constexpr default delete "
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


FUNCTIONS = ("rhs", "start", "levels", "onset", "outputs", "happen", "log_likelihood")
IN_ORDER = """  array[] int in_order(array[] real times) {  // those at one time stay as they are
    array[size(times)] int found;
    for (i in 1:size(times)) {
      int place = i;
      while (place > 1) {
        if (times[found[place - 1]] <= times[i]) break;
        found[place] = found[place - 1];
        place -= 1;
      }
      found[place] = i;
    }
    return found;
  }"""


def problem_to_stan(problem: Problem) -> str:
    """The program.

    Raises
    ------
    DataError
        If the problem has what the program cannot do.
    """
    refuse(problem, "Stan")
    problem.require_complete()
    happening = [_happens(experiment) for experiment in problem.experiments]
    experiments = [lowered(e) if there else e for e, there in zip(problem.experiments, happening, strict=True)]
    problem = replace(problem, experiments=tuple(experiments))
    own = {f"{name}_{i}" for name in FUNCTIONS for i, _ in enumerate(experiments, start=1)}
    called = replace(STAN, reserved=STAN.reserved | own).names(every_name(problem))
    parts = [
        (_happening if there else _experiment)(problem, experiment, i, called)
        for i, (experiment, there) in enumerate(zip(experiments, happening, strict=True), start=1)
    ]
    functions = "\n\n".join([*([IN_ORDER] if any(happening) else []), *parts])
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


def _happens(experiment: Experiment) -> bool:
    model = experiment.model
    return bool(model.inputs or model.events or model.levels or model.onset is not None)


@dataclass(frozen=True)
class _Functions:
    """What all functions of an experiment are made of."""

    model: Model
    called: Mapping[str, str]
    unpacked: Sequence[str]
    states: Sequence[str]
    seen: Sequence[Expression]

    def function(self, title: str, roots: Sequence[Expression], *, at_start: bool = False) -> list[str]:
        """One that gives a vector of formulas."""
        definitions = [] if at_start else needed(self.model, roots)
        own = [
            f"    real {self.called[n]} = {STAN.write(self.model.definitions[n], self.called)};" for n in definitions
        ]
        head = [*self.unpacked, *([] if at_start else self.states)]
        return [f"  vector {title} {{", *head, *own, f"    return {self.vector(roots)};", "  }"]

    def vector(self, roots: Sequence[Expression]) -> str:
        return f"[{', '.join(STAN.write(e, self.called) for e in roots)}]'" if roots else "rep_vector(0, 0)"


def _functions(problem: Problem, experiment: Experiment, called: Mapping[str, str]) -> _Functions:
    model = experiment.model
    unpacked = [f"    real {called[name]} = p[{k}];" for k, name in enumerate(problem.parameters, start=1)]
    unpacked += [f"    real {called[name]} = {float(value)!r};" for name, value in model.constants.items()]
    states = [f"    real {called[x]} = x[{k}];" for k, x in enumerate(model.states, start=1)]
    states += [f"    real {called[name]} = l[{k}];" for k, name in enumerate(model.levels, start=1)]
    seen: list[Expression] = [Name(y) for y in model.outputs]
    for entry in experiment.observations:
        seen += list(entry.noise.expressions)
    return _Functions(model, called, unpacked, states, seen)


def _experiment(problem: Problem, experiment: Experiment, i: int, called: Mapping[str, str]) -> str:
    """Without anything that happens: one solve gives all outputs."""
    model, times = experiment.model, [t for t in times_of(experiment) if t > 0]
    has = _functions(problem, experiment, called)
    text = has.function(f"rhs_{i}(real t, vector x, vector p)", [model.equations[x] for x in model.states])
    text += has.function(f"start_{i}(vector p)", model.start, at_start=True)
    text += has.function(f"outputs_{i}(real t, vector x, vector p)", has.seen)
    text += [f"  real log_likelihood_{i}(vector p) {{", f"    vector[{len(model.states)}] start = start_{i}(p);"]
    text.append(f"    array[{len(times) + 1}] vector[{len(has.seen)}] y;")
    text.append(f"    y[1] = outputs_{i}(0.0, start, p);")
    if times:
        text += [
            f"    array[{len(times)}] real times = {{{', '.join(map(repr, times))}}};",
            f"    array[{len(times)}] vector[{len(model.states)}] x = ode_bdf_tol(rhs_{i}, start, 0.0, times, "
            f"{_settings(problem)}, p);",
            f"    for (k in 1:{len(times)}) y[k + 1] = outputs_{i}(times[k], x[k], p);",
        ]
    place = {0.0: 1, **{time: k for k, time in enumerate(times, start=2)}}
    return "\n".join([*text, *_observed(experiment, problem, place)])


def _happening(problem: Problem, experiment: Experiment, i: int, called: Mapping[str, str]) -> str:
    """From one event or observation to the next."""
    model, times = experiment.model, times_of(experiment)
    has = _functions(problem, experiment, called)
    first, after = ([e for e in model.jumps if e.first is early] for early in (True, False))
    text = has.function(f"rhs_{i}(real t, vector x, vector l, vector p)", [model.equations[x] for x in model.states])
    text += has.function(f"start_{i}(vector p)", model.start, at_start=True)
    text += has.function(f"levels_{i}(vector p)", model.first_levels, at_start=True)
    moments = [model.start_time, *(e.time for e in (*first, *after))]
    text += has.function(f"onset_{i}(vector p)", moments, at_start=True)
    text += has.function(f"outputs_{i}(real t, vector x, vector l, vector p)", has.seen)
    text += [f"  vector happen_{i}(int k, real t, vector x, vector l, vector p) {{", *has.unpacked, *has.states]
    for k, event in enumerate((*first, *after), start=1):
        sets = [event.sets.get(name, Name(name)) for name in (*model.states, *model.levels)]
        text.append(f"    if (k == {k}) return {has.vector(sets)};")
    text += ["    return append_row(x, l);", "  }", f"  real log_likelihood_{i}(vector p) {{"]
    count, early, late = len(times), len(first), len(after)
    text += [
        f"    vector[{len(model.states)}] x = start_{i}(p);",
        f"    vector[{len(model.levels)}] l = levels_{i}(p);",
        f"    vector[{early + late + 1}] start = onset_{i}(p);",
        "    real now = start[1];",
        f"    array[{count}] real times = {{{', '.join(map(repr, times))}}};",
        f"    array[{early + count + late}] real when;",
        f"    array[{count}] vector[{len(has.seen)}] y;",
        f"    for (k in 1:{early}) when[k] = fmax(start[k + 1], now);",
        f"    for (k in 1:{count}) when[{early} + k] = times[k];",
        f"    for (k in 1:{late}) when[{early + count} + k] = fmax(start[{early + 1} + k], now);",
        "    for (k in in_order(when)) {",
        "      if (when[k] > now) {",
        f"        x = ode_bdf_tol(rhs_{i}, x, now, {{when[k]}}, {_settings(problem)}, l, p)[1];",
        "        now = when[k];",
        "      }",
        f"      if (k > {early} && k <= {early + count}) {{",
        f"        y[k - {early}] = outputs_{i}(when[k], x, l, p);",
        "      } else {",
        f"        vector[{len(model.states) + len(model.levels)}] both;",
        f"        both = happen_{i}(k > {early} ? k - {count} : k, now, x, l, p);",
        f"        x = head(both, {len(model.states)});",
        f"        l = tail(both, {len(model.levels)});",
        "      }",
        "    }",
    ]
    place = {time: k for k, time in enumerate(times, start=1)}
    return "\n".join([*text, *_observed(experiment, problem, place)])


def _settings(problem: Problem) -> str:
    return f"{problem.solver.rtol!r}, {problem.solver.atol!r}, {problem.solver.max_steps}"


def _observed(experiment: Experiment, problem: Problem, place: Mapping[float, int]) -> list[str]:
    text = ["    real total = 0.0;"]
    computed = len(experiment.model.outputs)
    for entry in experiment.observations:
        column = experiment.model.outputs.index(entry.output) + 1
        text += _observations(entry, problem, column, computed + 1, place)
        computed += len(entry.noise.expressions)
    return [*text, "    return total;", "  }"]


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
        side = int(entry.censored[k])
        value -= side < 0 and family in COUNTS  # less than 3 is 2 at the most
        shown = str(int(value)) if family in COUNTS else repr(float(value))
        lines.append(f"    total += {_law(family, side).format(y=shown, m=m, s=f'({scale})', df=df)};")
    return lines


def _law(family: str, side: int) -> str:
    """The log density, or the log probability of less, or more, than a limit."""
    if not side:
        return DENSITIES[family]
    ending = "_lcdf(" if side < 0 else "_lccdf("
    return DENSITIES[family].removesuffix(" - log({y})").replace("_lpdf(", ending).replace("_lpmf(", ending)


def _bounds(prior: Prior) -> str:
    given = {"lower": prior.lower, "upper": prior.upper}
    finite = [f"{key}={value!r}" for key, value in given.items() if math.isfinite(value)]
    return f"<{', '.join(finite)}>" if finite else ""


def _prior(name: str, prior: Prior, called: str) -> str:
    """The prior without the constant by which truncation divides it."""
    if prior.family not in PRIORS:
        raise DataError(f"the prior of '{name}' ({prior.family}) is not exported to Stan")
    return PRIORS[prior.family].format(name=called, **{key: repr(value) for key, value in prior.arguments.items()})
