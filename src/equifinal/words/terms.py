"""Technical terms in a few words each, for footnotes, ``--explain`` and the page; ``docs/glossary.md`` says more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

TERMS = {
    "identifiable": "ideal data (without noise, at all times) would determine it",
    "up to alternatives": "ideal data leave finitely many values, between which the prior decides",
    "up to": "solutions are counted over the complex numbers; fewer of them may be real",
    "combination": "a function of the parameters that ideal data determine",
    "fibre": "all parameter vectors that give the same output",
    "branch": "a separate piece of a fibre",
    "shrinkage": "the part of the prior's spread that the data removed, on the prior's own scale",
    "bits": "information gained from the data (1 bit: half of what the prior allowed is excluded)",
    "driven by": "what decides the posterior (a percentage: the prior's share, which no such data can reduce)",
    "noise parameter": "a parameter that only the scatter of the data depends on",
    "effective draws": "how many independent draws would be as informative",
    "ESS bulk": "effective number of independent draws",
    "ESS tail": "the same for the 5% and 95% quantiles",
    "ESS/s": "effective draws per second",
    "IACT": "draws per independent draw",
    "MCSE/SD": "Monte Carlo error of the mean, relative to the sd",
    "R-hat": "disagreement of the chains (1 is ideal, at most 1.01 is good)",
    "k-hat": "heaviness of the tails of the importance weights (below 0.5 is good)",
    "warm-up": "what a sampler does before its draws count: it searches and adapts",
    "marginal likelihood": "probability of the data under model and priors; its ratio compares models",
    "residual": "observation minus expectation, in standard deviations of new observations",
}
# how a term may be written, where that is not just its name
_WRITTEN = {
    "combination": r"[Cc]ombinations?",
    "fibre": r"[Ff]ibres?",
    "branch": r"branch(?:es)?",
    "up to": r"(?:up|Up) to(?= \d)",
    "shrinkage": r"[Ss]hrinkage",
    "identifiable": r"(?:not )?[Ii]dentifiable",
    "effective draws": r"effective draws?",
    "noise parameter": r"noise parameters?|noise(?= +data)",
    "residual": r"[Rr]esiduals?",
    "warm-up": r"[Ww]arm-up",
    "bits": r"[Bb]its?",
}
_PATTERNS = {term: re.compile(rf"(?<![\w-])(?:{_WRITTEN.get(term, re.escape(term))})(?![\w-])") for term in TERMS}
_TOKEN = re.compile(r"<[^>]*>|[^<]+")
_LEFT_ALONE = {"head", "style", "title", "svg", "math", "pre", "code", "a", "h1", "h2", "button"}


def footnote(titles: Iterable[str]) -> str:
    """Explain those of the titles that are technical terms."""
    return "; ".join(f"{title}: {TERMS[title]}" for title in titles if title in TERMS)


def terms_in(text: str) -> list[str]:
    """The technical terms in a text, in the order in which they first appear."""
    found = {term: match.start() for term, pattern in _PATTERNS.items() if (match := pattern.search(text))}
    return sorted(found, key=lambda term: found[term])


def explanation(text: str) -> str:
    """A line for each technical term in a text; empty if there is none."""
    return "\n".join(f"  {term}: {TERMS[term]}" for term in terms_in(text))


def explained_html(page: str, place: str) -> str:
    """A page in which each term, where it first appears, leads to its explanation; ``place`` is where these go.

    Figures, formulas, headings and what is a link already are left alone.
    """
    used: list[str] = []
    closed: list[str] = []  # elements around that are left alone

    def marked(token: re.Match[str]) -> str:
        text = token[0]
        if text.startswith("<"):
            name = re.match(r"</?(\w+)", text)
            if name and name[1] in _LEFT_ALONE and not text.endswith("/>"):
                closed.pop() if text.startswith("</") else closed.append(name[1])
            return text
        return text if closed else _linked(text, used)

    page = _TOKEN.sub(marked, page)
    rows = [(_anchor(term), escape(term), escape(TERMS[term])) for term in sorted(used, key=str.lower)]
    items = "".join(f'<dt id="{anchor}">{term}</dt><dd>{text}</dd>' for anchor, term, text in rows)
    return page.replace(place, items)


def _anchor(term: str) -> str:
    return "term-" + re.sub(r"\W+", "-", term.lower())


def _linked(text: str, used: list[str]) -> str:
    hits = []
    for term, pattern in _PATTERNS.items():
        if term not in used and (hit := pattern.search(text)):
            hits.append((hit.start(), hit.end(), term))
    made, at = [], 0
    for start, end, term in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if start < at:  # inside of a longer one, whose place it will take another time
            continue
        used.append(term)
        link = f'<a class="term" href="#{_anchor(term)}" title="{escape(TERMS[term])}">{text[start:end]}</a>'
        made += [text[at:start], link]
        at = end
    return "".join([*made, text[at:]])
