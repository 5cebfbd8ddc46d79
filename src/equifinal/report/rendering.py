"""Templates and figures: how a page is put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from equifinal.errors import EquifinalError
from equifinal.report.figures import inline_svg
from equifinal.words.terms import TERMS


class Figures:
    """Draws figures as the page needs them, numbers them, and leaves out what cannot be drawn."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, label: str, draw: Callable[[], Any]) -> Any:
        from markupsafe import Markup

        self.count += 1
        try:
            return Markup(inline_svg(draw(), label, f"f{self.count}"))
        except EquifinalError:  # there is nothing of this kind to draw
            return None
        except (ValueError, ArithmeticError) as error:  # numbers that no axis can hold; the rest of the page stands
            return Markup('<p class="warning">{}: could not be drawn ({}).</p>').format(label, error)


def render(template: str, **context: Any) -> str:
    """A page from a template beside this module; what users wrote is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folder = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup((folder / "style.css").read_text(encoding="utf-8"))
    return environment.get_template(template).render(style=style, terms=TERMS, **context)
