"""The families of noise: a record each, and nothing elsewhere that knows one from another.

With m the model's output and y an observation,

    normal             y ~ N(m, s^2),            s^2 = sd^2 + (relative m)^2
    student-t          y ~ m + s t_df,           s^2 = scale^2 + (relative m)^2
    laplace            y ~ Laplace(m, s),        s^2 = scale^2 + (relative m)^2
    lognormal          log y ~ N(log m, sdlog^2)
    log2-normal        log2 y ~ N(log2 m, sd^2); log10-normal likewise
    log-laplace        log y ~ Laplace(log m, scale); log10-laplace likewise
    poisson            y ~ Poisson(m)
    negative-binomial  y has mean m and variance m + overdispersion m^2

A new family is a new record with its functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from equifinal.machine.compiled import by_code
from equifinal.problem import noise_counts as counts
from equifinal.problem import noise_located as located
from equifinal.problem.families import NO_SUM, Argument, NoiseFamily, Sum, Support

POSITIVE = Support("positive", lambda y: y > 0)
COUNTS = Support("counts", lambda y: (y >= 0) & (y == y.round()))


def _lognormal(argument: Argument, *aliases: str) -> NoiseFamily:
    return NoiseFamily(
        arguments=(argument,),
        aliases=aliases,
        log_density=located.lognormal,
        log_beyond=located.lognormal_beyond,
        expansion=located.lognormal_expansion,
        bound=located.lognormal_bound,
        simulate=located.simulate_lognormal,
        of_data=located.log_or_none,
        of_output=located.log_or_none,
        support=POSITIVE,
        sum=Sum(located.log_square, located.of_squares),
    )


def _log_laplace(argument: Argument, *aliases: str) -> NoiseFamily:
    return NoiseFamily(
        arguments=(argument,),
        aliases=aliases,
        log_density=located.log_laplace,
        log_beyond=located.log_laplace_beyond,
        expansion=located.log_laplace_expansion,
        bound=located.log_laplace_bound,
        simulate=located.simulate_log_laplace,
        of_data=located.log_or_none,
        of_output=located.log_or_none,
        support=POSITIVE,
    )


FAMILIES: dict[str, NoiseFamily] = {
    "normal": NoiseFamily(
        arguments=(Argument("sd", default=0.0), Argument("relative", default=0.0)),
        one_of=("sd", "relative"),
        aliases=("gaussian",),
        log_density=located.normal,
        log_beyond=located.normal_beyond,
        expansion=located.normal_expansion,
        bound=located.normal_bound,
        simulate=located.simulate_normal,
        sum=Sum(located.square, located.of_squares, lambda given: "relative" not in given),
    ),
    "student-t": NoiseFamily(
        arguments=(Argument("df"), Argument("scale", default=0.0), Argument("relative", default=0.0)),
        one_of=("scale", "relative"),
        aliases=("student_t", "t"),
        log_density=located.student,
        log_beyond=located.student_beyond,
        expansion=located.student_expansion,
        bound=located.student_bound,
        simulate=located.simulate_student,
    ),
    "laplace": NoiseFamily(
        arguments=(Argument("scale", default=0.0), Argument("relative", default=0.0)),
        one_of=("scale", "relative"),
        log_density=located.laplace,
        log_beyond=located.laplace_beyond,
        expansion=located.laplace_expansion,
        bound=located.laplace_bound,
        simulate=located.simulate_laplace,
    ),
    "lognormal": _lognormal(Argument("sdlog"), "log-normal", "log_normal"),
    "log2-normal": _lognormal(Argument("sd", unit=math.log(2.0)), "log2_normal"),
    "log10-normal": _lognormal(Argument("sd", unit=math.log(10.0)), "log10_normal"),
    "log-laplace": _log_laplace(Argument("scale"), "log_laplace", "loglaplace"),
    "log10-laplace": _log_laplace(Argument("scale", unit=math.log(10.0)), "log10_laplace"),
    "poisson": NoiseFamily(
        log_density=counts.poisson,
        log_beyond=counts.poisson_beyond,
        expansion=counts.poisson_expansion,
        bound=counts.poisson_bound,
        simulate=counts.simulate_poisson,
        of_data=counts.log_factorial,
        of_output=located.log_or_none,
        support=COUNTS,
    ),
    "negative-binomial": NoiseFamily(
        arguments=(Argument("overdispersion"),),
        aliases=("negative_binomial",),
        log_density=counts.negative_binomial,
        log_beyond=counts.negative_binomial_beyond,
        expansion=counts.negative_binomial_expansion,
        bound=counts.negative_binomial_bound,
        simulate=counts.simulate_negative_binomial,
        of_data=counts.log_factorial,
        of_output=located.log_or_none,
        support=COUNTS,
    ),
}

# Loops over observations call functions as in the records by a code. Families that differ in units have one in common.
_laws = tuple({family.log_density: family for family in FAMILIES.values()}.values())
_sums = tuple({family.sum.term: family.sum for family in _laws if family.sum is not NO_SUM}.values())
log_density: Callable[..., Any] = by_code([family.log_density for family in _laws])
log_beyond: Callable[..., Any] = by_code([family.log_beyond for family in _laws])
expansion: Callable[..., Any] = by_code([family.expansion for family in _laws])
bound: Callable[..., Any] = by_code([family.bound for family in _laws])
of_output: Callable[..., Any] = by_code([family.of_output for family in _laws])
sum_term: Callable[..., Any] = by_code([found.term for found in _sums])
sum_log_density: Callable[..., Any] = by_code([found.log_density for found in _sums])


def code_of(family: NoiseFamily) -> int:
    """The code of a family's functions."""
    return [law.log_density for law in _laws].index(family.log_density)


def code_of_sum(family: NoiseFamily) -> int:
    """The code of a family's sum; -1 if there is none."""
    terms = [found.term for found in _sums]
    return terms.index(family.sum.term) if family.sum.term in terms else -1
