"""Work on lanes in one thread or in several: every lane once, whatever its slices, and errors come back."""

from __future__ import annotations

import threading

import pytest

from equifinal.ode import threads


@pytest.mark.parametrize("lanes", [1, 2, 7, 1000])
@pytest.mark.parametrize("seconds", [0.0, 1e3])
def test_every_lane_is_done_once(lanes: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PROCESSORS", 3)
    done, guard = [0] * lanes, threading.Lock()

    def work(piece: slice) -> None:
        with guard:
            for lane in range(lanes)[piece]:
                done[lane] += 1

    threads.in_pieces(work, lanes, seconds)
    assert done == [1] * lanes


def test_an_error_in_a_thread_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PROCESSORS", 2)

    def work(piece: slice) -> None:
        if piece.start <= 50 < piece.stop:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.in_pieces(work, 100, 1e3)
