"""The file itself: template, style, scripts and data put together."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cbobench.errors import Misuse

HERE = Path(__file__).parent
LIBRARY = Path("package_data", "plotly.min.js")
SCRIPTS = ("tables.js", "figures.js", "ends.js", "choices.js", "page.js")


def library() -> Path:
    """The plotting library that goes into the page.

    Raises:
        Misuse: it is not installed.
    """
    spec = find_spec("plotly")  # found, not imported: only its JavaScript is needed
    places = [Path(place) / LIBRARY for place in (spec.submodule_search_locations if spec else None) or ()]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise Misuse("a report needs plotly, not installed here; to install: pip install 'cbobench[page]'")
    return path


def embed_json(content: Mapping[str, Any]) -> str:
    """JSON that no label can break out of: every < is escaped, so that there is no tag, no comment, no script's end."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def assemble_page(content: Mapping[str, Any], plotly: Path, again: int | None = None) -> str:
    """The page as HTML.

    Its policy lets the browser run these scripts alone, by their hashes, and load nothing from anywhere.

    Args:
        content: see `page.content`; `live`, if it is there, is text on a run that is played.
        plotly: the plotting library.
        again: seconds after which the browser loads the page again, None for never.
    """
    page_scripts = [(HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    scripts = [page_scripts[0], plotly.read_text(encoding="utf-8").replace("\r", ""), *page_scripts[1:]]
    if any(re.search(r"</script", script, flags=re.IGNORECASE) for script in scripts):
        raise Misuse(f"{plotly} ends its own script; install another version of plotly")
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    parts = {
        "title": html.escape(content["title"]),
        "again": "" if again is None else f'\n<meta name="load-again" content="{again}">',
        "live": f'<pre id="live">{html.escape(content["live"])}</pre>' if "live" in content else "",
        "policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        f"form-action 'none'; script-src {allowed}",
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "data": embed_json(content),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    template = (HERE / "template.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], template)
