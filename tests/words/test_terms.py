"""Terms that are explained on screen are those of the glossary."""

from __future__ import annotations

from pathlib import Path

import pytest

from equifinal.words.terms import TERMS, explained_html, explanation, footnote, terms_in

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("term", TERMS)
def test_every_term_is_in_the_glossary(term: str) -> None:
    word = term.split("/")[0].removesuffix(" bulk").removesuffix(" tail").lower()
    assert f"**{word}" in GLOSSARY


def test_a_footnote_explains_technical_terms_only() -> None:
    assert footnote(["mean", "IACT", "sd"]) == f"IACT: {TERMS['IACT']}"


def test_terms_are_found_however_they_are_written() -> None:
    said = "Up to 3 parameter sets; fibres with 2 branches. R-hat 1.001, ESS bulk 40; Shrinkage 0.3, 1.2 bits."
    assert terms_in(said) == ["up to", "fibre", "branch", "R-hat", "ESS bulk", "shrinkage", "bits"]
    assert explanation("R-hat") == f"  R-hat: {TERMS['R-hat']}"
    assert explanation("nothing technical, up to the reader") == ""


def test_on_a_page_the_first_of_each_leads_to_its_explanation() -> None:
    page = "<h2>Fibre</h2><svg><text>fibre</text></svg><p title='a fibre'>the fibre, and a fibre</p><dl>HERE</dl>"
    made = explained_html(page, "HERE")
    assert made.count('class="term"') == 1
    assert '<p title=\'a fibre\'>the <a class="term" href="#term-fibre"' in made
    assert f'<dt id="term-fibre">fibre</dt><dd>{TERMS["fibre"]}</dd>' in made
