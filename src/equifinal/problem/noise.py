"""How observations scatter around the model's output: a family with its arguments, from `noise_families`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError
from equifinal.language.parser import is_name
from equifinal.problem.families import NoiseFamily, family_name
from equifinal.problem.noise_families import FAMILIES

Array = NDArray[np.float64]


@dataclass(frozen=True, init=False)
class Noise:
    """A noise family with its arguments: ``Noise("normal", sd=5)`` or ``Noise("normal", sd="sigma")``.

    Every argument is a positive number or the name of a parameter.

    Parameters
    ----------
    family
        ``normal`` (sd and/or relative), ``student-t`` (df; scale and/or relative), ``lognormal`` (sdlog), ``poisson``
        or ``negative-binomial`` (overdispersion).
    """

    family: str
    arguments: Mapping[str, float | str]

    def __init__(self, family: str, /, **arguments: float | str):
        name = family_name(family, FAMILIES, "noise family")
        record = FAMILIES[name]
        record.check_names(f"{name} noise", arguments)
        for rule in record.arguments:
            value = arguments.get(rule.name, 1.0)
            if isinstance(value, str):
                usable = is_name(value)
            else:
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                usable = number and abs(value) < 1e300 and (value > 0 or not rule.positive)
            if not usable:
                kind = "a positive number" if rule.positive else "a number"
                raise DataError(f"{name} noise: '{rule.name}' must be {kind} or the name of a parameter, not {value!r}")
        object.__setattr__(self, "family", name)
        object.__setattr__(self, "arguments", {k: v if isinstance(v, str) else float(v) for k, v in arguments.items()})

    @property
    def record(self) -> NoiseFamily:
        return FAMILIES[self.family]

    @property
    def code(self) -> int:
        """Number by which compiled loops know the family."""
        return list(FAMILIES).index(self.family)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments that are estimated."""
        return tuple(value for value in self.arguments.values() if isinstance(value, str))

    @property
    def values(self) -> tuple[float | str, ...]:
        """Every argument of the family in its order, given or by default."""
        return tuple(self.arguments.get(rule.name, rule.default or 0.0) for rule in self.record.arguments)

    @property
    def sums(self) -> bool:
        """Whether one sum is all that observations with this noise need."""
        return self.record.sum.holds(self.arguments)

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name} = {value if isinstance(value, str) else format(value, 'g')}"
            for name, value in self.arguments.items()
        )
        return f"{self.family}({shown})" if shown else self.family

    def check_values(self, values: Array, output: str) -> None:
        """Refuse observations that the family gives no probability to."""
        seen = values[~np.isnan(values)]
        word, allows = self.record.support
        bad = seen[~allows(seen)]
        if bad.size:
            raise DataError(f"output '{output}' has {self.family} noise, so its data must be {word}; found {bad[0]:g}")

    def simulate(self, mean: Array, parameters: Mapping[str, float | Array], rng: np.random.Generator) -> Array:
        """Draw an observation around each entry of ``mean``; NaN where the family is not defined there.

        Parameters
        ----------
        parameters
            Values of those that the noise names, which broadcast against ``mean``.
        """
        arguments = [np.asarray(parameters[v] if isinstance(v, str) else v, float) for v in self.values]
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.record.simulate(np.asarray(mean, float), arguments, rng)
