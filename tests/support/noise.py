"""Densities of single observations, from the records of noise families."""

from __future__ import annotations

from equifinal.problem.noise_families import FAMILIES


def arguments(family: str, **given: float) -> tuple[float, float, float]:
    """As the compiled functions take them, without the checks of `Noise`."""
    values = [given.get(rule.name, rule.default or 0.0) for rule in FAMILIES[family].arguments]
    return tuple([*values, 0.0, 0.0, 0.0][:3])  # type: ignore[return-value]


def log_density(family: str, y: float, m: float, **given: float) -> float:
    record = FAMILIES[family]
    return record.log_density(y, record.of_data(y), m, record.of_output(m), arguments(family, **given))


def bound(family: str, y: float, **given: float) -> float:
    record = FAMILIES[family]
    return record.bound(y, record.of_data(y), arguments(family, **given))


def slope_and_information(family: str, y: float, m: float, **given: float) -> tuple[float, float]:
    return FAMILIES[family].slope_and_information(y, m, arguments(family, **given))
