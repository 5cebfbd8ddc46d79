"""Everything that a user needs is a public name, with a docstring whose examples work."""

from __future__ import annotations

import doctest
import inspect

import pytest

import equifinal
from equifinal import errors
from equifinal.showing import Shown
from tests.support.runs import meaning, run

PUBLIC = [name for name in dir(equifinal) if not name.startswith("__")]


def test_dir_shows_what_there_is() -> None:
    assert set(equifinal.__all__) == set(PUBLIC)
    known = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert known <= set(PUBLIC)
    for name in ("load", "analyse", "sample", "predict", "plot_fit", "plot_pairs", "load_results", "write_report"):
        assert name in PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'plot_fitt'"):
        equifinal.plot_fitt  # noqa: B018


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_explained(name: str) -> None:
    text = inspect.getdoc(getattr(equifinal, name)) or ""
    assert text.split("\n")[0].strip().endswith((".", ":"))
    if inspect.isfunction(getattr(equifinal, name)):
        assert ">>> import equifinal" in text


FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(equifinal, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_in_docstrings_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that examples begin with are taken from one that was made already."""
    own = equifinal.sample
    monkeypatch.setattr(
        "equifinal.studies.sample.sample", lambda *a, **k: own(*a, **k) if name == "sample" else run("si")
    )
    tests = doctest.DocTestFinder(recurse=False).find(getattr(equifinal, name), name, globs={})
    for test in tests:
        found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert found.attempted
        assert not found.failed


def test_combinations_print_as_text() -> None:
    found = equifinal.analyse(equifinal.load("si"))
    assert str(found.combinations) == "(beta/rho, beta*N - gamma, beta*I0)"
    assert repr(found) == "<Identifiability: not identifiable: beta, gamma, rho, I0>"
    assert "beta*N - gamma" in str(found)


def test_what_notebooks_show() -> None:
    problem, found = equifinal.load("si"), meaning("si")
    table = equifinal.summarise(run("si"))
    predicted = equifinal.predict(run("si"), states=["S"])
    shown: dict[str, Shown] = {
        "10 values": problem,
        "prior (": found,
        "R-hat": table,
        "depends on your prior": predicted,
        "precision": predicted.predictions,
        "ideal data determine": found.identifiability,
    }
    for words, thing in shown.items():
        assert len(repr(thing)) < 1000
        page = thing._repr_html_()
        assert page.startswith("<pre")
        assert words in page
    assert equifinal.plot_fit(run("si"))._repr_png_().startswith(b"\x89PNG")


def test_the_summary_is_a_table() -> None:
    table = equifinal.summarise(run("si"))
    frame = table.to_dataframe()
    assert tuple(frame.columns) == table.columns
    assert list(frame.index) == list(table)
    assert frame.loc["gamma", "rhat"] == table["gamma"]["rhat"] == table.column("rhat")["gamma"]
    for name in table:  # a ratio, not percent
        row = table[name]
        assert row["mcse_over_sd"] == pytest.approx((row["iact"] / 1600) ** 0.5)
