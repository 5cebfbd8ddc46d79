"""Fuzzed models at hostile points: a small part of the campaign of `tests.support.fuzzing`."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.support import fuzzing


def test_some_seeds_of_the_campaign(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for seed in (*range(60), 1660, 2274, 2358):  # the last had found something
        found += fuzzing.attempt(seed, tmp_path)
    assert found["vectors"] > 500
    assert 10 < found["refused"] < 40


@pytest.mark.slow
def test_many_seeds_of_the_campaign(tmp_path: Path) -> None:
    assert not fuzzing.campaign(10**6, 3000, tmp_path).wrong


def test_the_campaign_books_what_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(seed: int, folder: Path) -> Counter[str]:
        if seed == 1:
            raise KeyError("planted")
        if seed == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        while seed == 5:
            pass
        return Counter(models=1)

    monkeypatch.setattr(fuzzing, "attempt", attempt)
    monkeypatch.setattr(fuzzing, "LIMIT", 0.2)
    found = fuzzing.campaign(0, 8, tmp_path, lambda text: None)
    assert found.counts["models"] == 8
    assert [problem.split(":")[0] for problem in found.wrong] == ["seed 1", "seed 3", "seed 5"]
    for problem, word in zip(found.wrong, ("KeyError", "SIGKILL", "SIGPROF"), strict=True):
        assert word in problem
