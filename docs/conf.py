"""Sphinx's settings: `scripts/docs.sh` builds the site into `docs/_build/html`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import equifinal

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "equifinal"
author = "The equifinal authors"
copyright = "The equifinal authors, MIT licence"
version = release = equifinal.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "site_pages",
]
exclude_patterns = ["_build", "figures/*.py"]
nitpicky = True
# What belongs to other projects, or is no public name, is not linked to.
nitpick_ignore_regex = [("py:obj", r".*"), ("py:class", r"(?!equifinal\.[A-Za-z]+$).*")]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"  # tutorials are run when the site is built, and again when they change
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "py:obj"  # in docstrings, `name` is one of ours
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
python_maximum_signature_line_length = 90
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "equifinal"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "gallery": [], "collection": []}
copybutton_exclude = ".linenos, .gp, .go"
