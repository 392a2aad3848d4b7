"""Sphinx settings. `pages.py` assembles the pages; their source is Markdown that a forge shows as
well.
"""

from __future__ import annotations

import cbobench

project = "cbobench"
author = "The cbobench contributors"
copyright = author
release = version = cbobench.__version__
html_title = f"cbobench {release}"

extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_inline"]  # the width of a picture
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # a generated page may begin its entries with smaller headings

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
