"""Templates and figures: how a page is put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from equifinal.errors import EquifinalError
from equifinal.report.figures import inline_svg
from equifinal.words.terms import explained_html

WIDE, NARROW = (10.6, 3.4), (3.75, 2.5)  # inches of a panel that is as wide as the page, and as a telephone
TERMS_HERE = "<!-- terms -->"


class Figures:
    """Draws figures as the page needs them, numbers them, and leaves out what cannot be drawn."""

    count: int

    def __init__(self) -> None:
        self.count = 0

    def in_two_sizes(self, label: str, draw: Callable[[tuple[float, float]], Any]) -> Any:
        """A figure as wide as the page, and one for a telephone in its place: text stays readable on both."""
        from markupsafe import Markup

        wide = self(label, lambda: draw(WIDE))
        narrow = self(label, lambda: draw(NARROW))
        if wide is None or narrow is None:
            return None
        return Markup('<div class="on-wide">{}</div><div class="on-narrow">{}</div>').format(wide, narrow)

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
    page = environment.get_template(template).render(style=style, **context)
    return explained_html(page, TERMS_HERE)
