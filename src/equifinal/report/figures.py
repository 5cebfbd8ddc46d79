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
    text = re.sub(r"<[^>]*>", _shorter, text)
    text = re.sub(r"\bid=\"([^\"]+)\"", rf'id="{key}-\1"', text)
    text = re.sub(r"href=\"#([^\"]+)\"", rf'href="#{key}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", text)
    text = re.sub(r"font-family: [^;\"]+;? ?", "", text)
    text = re.sub(r"(font: (?:\w+ )*[\d.]+px) [^;\"]+", r"\1 sans-serif", text)
    for colour, variable in (_VARIABLES | _RAISED).items():
        text = re.sub(rf"{re.escape(colour)}\b", f"var({variable})", text, flags=re.IGNORECASE)
    width, height = (float(re.search(rf'{side}="([\d.]+)pt"', text)[1]) for side in ("width", "height"))  # type: ignore[index]
    opening = (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width: {width * POINT:.0f}px" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return opening + text[text.index(">") + 1 :]


def _shorter(tag: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point, finer than any screen; what stands between tags is left alone."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])
