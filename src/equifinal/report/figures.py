"""Figures as SVG that is part of a page: its text is the page's text, its colours follow light and dark."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

from equifinal.plots.style import COLOURS, FAINT, INK, MUTED, styled

POINT = 96 / 72  # CSS pixels
_VARIABLES = {INK: "--ink", MUTED: "--muted", FAINT: "--faint"} | {c: f"--c{k}" for k, c in enumerate(COLOURS[:-1])}
_RAISED = {"#ffffff": "--page", "white": "--page", "#000000": "--ink"}


def inline_svg(figure: Any, label: str, key: str) -> str:
    """A figure as an ``<svg>`` element.

    Parameters
    ----------
    label
        What is to be seen, for those who cannot see it.
    key
        A prefix for identifiers, unique on the page.
    """
    buffer = io.StringIO()
    with styled():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>|<style type=\"text/css\">.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", lambda tag: _adapted(tag[0], key), text)
    width, height = (float(re.search(rf'{side}="([\d.]+)pt"', text)[1]) for side in ("width", "height"))  # type: ignore[index]
    opening = (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width: {width * POINT:.0f}px" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return opening + text[text.index(">") + 1 :]


def _adapted(tag: str, key: str) -> str:
    """A tag with identifiers of its own, the page's font and colours; what stands between tags is left alone."""
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)  # a hundredth of a point is finer than any screen
    tag = re.sub(r"\bid=\"([^\"]+)\"", rf'id="{key}-\1"', tag)
    tag = re.sub(r"href=\"#([^\"]+)\"", rf'href="#{key}-\1"', tag)
    tag = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", tag)
    tag = re.sub(r"font-family: [^;\"]+;? ?", "", tag)
    tag = re.sub(r"(font: (?:\w+ )*[\d.]+px) [^;\"]+", r"\1 sans-serif", tag)
    for colour, variable in (_VARIABLES | _RAISED).items():
        tag = re.sub(rf"{re.escape(colour)}\b", f"var({variable})", tag, flags=re.IGNORECASE)
    return tag
