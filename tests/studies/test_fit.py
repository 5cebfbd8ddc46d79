"""A fit goes on, and writes its report, where nothing could be found out beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.formats.toml import loads
from equifinal.posterior import study
from equifinal.report.fit import with_report
from equifinal.studies.fit import fit
from tests.support.problems import DECAY

SETTINGS = {"sampler": "random-walk", "draws": 50, "warmup": 200}


def test_a_fit_whose_analysis_fails_says_that_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise IdentifiabilityError("there was no time at all")

    monkeypatch.setattr(study, "analysed", fails)
    with pytest.warns(UserWarning, match="the identifiability analysis failed: there was no time at all"):
        done = fit(loads(DECAY), SETTINGS, folder=tmp_path / "run", finish=with_report)
    assert done.meaning is not None
    assert {f.verdict for f in done.meaning.of_kind("parameter")} == {"unknown"}
    assert done.meaning.weakest is None
    text = (tmp_path / "run" / "report.html").read_text()
    assert "It is not known which parameters are identifiable." in text
    assert "Nothing was found out, since there was no time at all." in text
    assert "exact algebra shows" not in text
