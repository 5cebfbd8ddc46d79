"""Allowances of work: parts share one meter, what is too large is not begun, and only a user's limit reads a clock."""

from __future__ import annotations

import time

import pytest

from equifinal.algebra.arithmetic.budget import Budget, OutOfTime, TooLarge


def test_parts_spend_from_the_whole() -> None:
    whole = Budget(100)
    part = whole.part(30)
    part.spend(20)
    assert (whole.left, part.left, whole.spent) == (80, 10, 20)
    whole.spend(5)  # what another stage spends is no longer there for this one
    assert part.left == 5
    assert whole.part(1000).left == whole.left == 75


def test_what_is_too_large_is_not_begun_and_costs_nothing() -> None:
    budget = Budget(10)
    with pytest.raises(TooLarge):
        budget.spend(11)
    assert budget.left == 10
    budget.spend(10)
    with pytest.raises(TooLarge):
        budget.spend(1)


def test_a_part_used_up_leaves_the_rest() -> None:
    whole = Budget(100)
    with pytest.raises(TooLarge):
        whole.part(10).spend(20)
    whole.spend(100)


def test_time_that_has_passed_ends_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Budget(100, seconds=60)
    part = whole.part(10)
    part.spend(1)
    assert not whole.expired
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    for budget in (part, whole):
        with pytest.raises(OutOfTime):  # and not `TooLarge`, after which another way would be tried
            budget.spend(1000)
        assert budget.expired


def test_without_a_limit_no_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> float:
        raise AssertionError

    monkeypatch.setattr(time, "monotonic", never)
    budget = Budget(100)
    budget.part(50).spend(10)
    assert not budget.expired
