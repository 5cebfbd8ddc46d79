"""The page on problem files names every family with its arguments, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from equifinal.problem import noise_families, prior_families
from equifinal.problem.families import Family

PAGE = Path(__file__).parents[2] / "docs" / "problem-file.md"


def table(heading: str) -> dict[str, list[str]]:
    """For each name in the first column of the table below a heading, the names in its second."""
    text = PAGE.read_text(encoding="utf-8").split(heading, 1)[1]
    rows = [row.split("|")[1:3] for row in re.findall(r"^\|.*\|$", text.split("\n## ")[0], flags=re.MULTILINE)[2:]]
    return {name: re.findall(r"`(.+?)`", second) for first, second in rows for name in re.findall(r"`(.+?)`", first)}


def arguments(families: dict[str, Family]) -> dict[str, list[str]]:
    return {name: [argument.name for argument in family.arguments] for name, family in families.items()}


def test_noise() -> None:
    assert table("## `[noise]`") == arguments(noise_families.FAMILIES)
    for name, family in noise_families.FAMILIES.items():
        assert re.search(
            rf"^\| `{name}` .*\| {family.support.word} \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
        )


def test_priors() -> None:
    bounds = {name: ["lower", "upper"] for name, family in prior_families.FAMILIES.items() if family.needs_bounds}
    assert table("## `[parameters]`") == arguments(prior_families.FAMILIES) | bounds
