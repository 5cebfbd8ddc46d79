"""Terms that are explained on screen are those of the glossary."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.words.terms import TERMS, footnote

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("term", TERMS)
def test_every_term_is_in_the_glossary(term: str) -> None:
    word = term.split("/")[0].removesuffix(" bulk").removesuffix(" tail").lower()
    assert f"**{word}" in GLOSSARY


def test_a_footnote_explains_technical_terms_only() -> None:
    assert footnote(["mean", "IACT", "sd"]) == f"IACT: {TERMS['IACT']}"
