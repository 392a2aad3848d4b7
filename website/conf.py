"""Sphinx settings. `pages.py` writes the sources."""

from __future__ import annotations

import re
from typing import Any

import cbobench

project = "cbobench"
author = "The cbobench contributors"
copyright = author
release = version = cbobench.__version__
html_title = f"cbobench {release}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.autoprogram",
]
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/field/*.md",
    "reference/**",
    "website/notebooks/*.ipynb",
]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # a generated page may begin its entries with smaller headings

nb_execution_mode = "off"  # notebooks are kept with what they show; the gallery says otherwise
nb_execution_raise_on_error = True

default_role = "code"  # single backticks in docstrings
napoleon_custom_sections = [("Class attributes", "params_style")]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_display_short_literal_types = True

smartquotes = False  # values are as one types them

html_theme = "furo"
html_static_path = ["site.css", "filter.js"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]  # of the open table; elsewhere it does nothing
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b57c4", "color-brand-content": "#0b57c4"},
    "dark_css_variables": {"color-brand-primary": "#6ea8ff", "color-brand-content": "#6ea8ff"},
}
pygments_style, pygments_dark_style = "friendly", "monokai"
highlight_language = "text"
html_search_language = "en"
# a page opened from a disk may not read the others, which summaries come from
html_show_search_summary = False


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Bars of absolute values in docstrings, which would name substitutions."""
    lines[:] = [re.sub(r"(`[^`]*`)|\|", lambda bar: bar[1] or r"\|", line) for line in lines]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars, priority=1)  # before types are added
