"""How results show themselves: in one short line, and in notebooks as the tables of the command line.

Rooms below `words` know no sentences. What they hand out is a `Shown`, which asks for its page by name when a notebook
wants to display it.
"""

from __future__ import annotations

from importlib import import_module

PAGES = "equifinal.words.notebook"


class Shown:
    """Something that notebooks show as a page of the command line; `words.notebook` knows how."""

    __slots__ = ()

    def __str__(self) -> str:
        return import_module(PAGES).text(self)

    def _repr_html_(self) -> str:
        return import_module(PAGES).html(self)
