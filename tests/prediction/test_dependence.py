"""What is said of trajectories where the combinations are finer than what data determine."""

from __future__ import annotations

from equifinal.formats.toml import loads
from equifinal.posterior.study import Study
from equifinal.prediction.dependence import determined_trajectories
from equifinal.prediction.predict import prior_rows
from tests.support.problems import FINER, UNDEFINED_AT_FIRST


def judged(text: str) -> dict[str, bool | None]:
    study = Study(loads(text))
    rows = prior_rows(study.problem, 20)
    found = determined_trajectories(study.problem, study.fibre, rows, study.analysis)
    return {name: verdict for (_, name), verdict in found.items()}


def test_what_agrees_along_a_finer_fibre_is_not_called_determined() -> None:
    """A = k/(a s) (1 - exp(-a s t)), and k is free; nobody could show it exactly, so that it is not known."""
    assert judged(UNDEFINED_AT_FIRST) == {"share": True, "A": None, "B": None}


def test_what_differs_is_known_all_the_same() -> None:
    found = judged(FINER)
    assert (found["x"], found["u"]) == (True, False)
    assert found["w"] is not False  # 1 - x
