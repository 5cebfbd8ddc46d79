"""Every error that the exactness tests plant, and how clearly it is seen: the table of `docs/exactness.md`.

    uv run python benchmarks/mutations.py

Runs the tests of `tests/statistical` that change one thing in a sampler and demand that stationarity fails, and
prints the least p-value of each, or that the likelihood carried along was found wrong before any test of it.
"""

from __future__ import annotations

import sys
import time

import pytest

MUTATIONS = (
    "each_term_is_needed or check_of_reversibility or swaps_need or labels_are_needed or must or needs_new or "
    "every_root or one_root_needs or uphill_need or uphill_are or uphill_have or told_apart"
)
FILES = tuple(f"tests/statistical/test_{name}.py" for name in ("geometric", "pseudo_marginal", "collapsed"))


class Recorder:
    """Keeps the least p-value of what a test computes."""

    def __init__(self) -> None:
        self.least: dict[str, float] = {}
        self.now = ""
        self.began = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for module in {item.module for item in session.items}:  # type: ignore[attr-defined]
            whole = module.p_values

            def p_values(*arguments, _whole=whole, **options):
                found = _whole(*arguments, **options)
                self.least[self.now] = min(found)
                return found

            module.p_values = p_values

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.now, self.began = item.name, time.perf_counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            p = self.least.get(self.now)
            shown = "likelihood found wrong" if p is None else f"p = {p:.1e}"
            print(f"{report.outcome:8}{self.now:95}{shown:26}{report.duration:5.0f} s", file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    options = ["-o", "addopts=--strict-markers", "-p", "no:terminal", "-k", MUTATIONS]
    sys.exit(pytest.main([*FILES, *options], plugins=[Recorder()]))
