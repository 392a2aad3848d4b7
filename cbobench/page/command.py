"""`cbobench report`: runs as one page that opens offline, put together from template, style,
scripts and data.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbobench.errors import Misuse, printable, show
from cbobench.registry import tell_install

if TYPE_CHECKING:
    from cbobench.report.load import Run

HERE = Path(__file__).parent
LIBRARY = Path("package_data", "plotly.min.js")
SCRIPTS = ("tables.js", "figures.js", "ends.js", "choices.js", "page.js")
NAME = "report.html"
SUFFIXES = (".html", ".htm")  # of a page, so that none is put in the place of something else


def do_report(options: argparse.Namespace) -> int:
    """`cbobench report`, once the modules that runs name are imported where that was asked for."""
    from cbobench.page.content import content
    from cbobench.report.load import Run

    plotly = library()
    refuse(options.out)
    runs = [Run(run) for run in options.runs]
    if len({run.folder.uri for run in runs}) < len(runs):
        raise Misuse("a run is given twice; a page shows each once")
    out = place(options.out, runs)
    page_content = content(runs)
    write_page(out, assemble_page(page_content, plotly))
    for run in page_content["runs"]:
        for note in run["notes"]:
            print(printable(f"{run['label']}: {note}"), file=sys.stderr)
    print(f"{out} ({out.stat().st_size / 1e6:.1f} MB)")
    return 0


def write_page(out: Path, page: str) -> None:
    """Write a page so that it is there whole or not at all."""
    from cbobench.results.folder import RunFolder

    content = page.encode()
    RunFolder(str(out.absolute().parent)).publish(out.name, lambda sink: sink.write(content))


def refuse(out: Path | None) -> None:
    """Raises `Misuse` for a place where no page can be written, before anything is read."""
    if out is not None and out.is_dir():
        raise Misuse(f"{out} is a folder; give a file, such as {out / NAME}")
    if out is not None and (
        out.suffix.lower() not in SUFFIXES or (out.exists() and not out.is_file())
    ):
        raise Misuse(f"--out is {show(str(out))}; give the name of a file that ends with .html")
    if out is not None and not out.parent.is_dir():
        raise Misuse(f"{out.parent} is no folder; make it first, or give another --out")


def place(out: Path | None, runs: Sequence[Run]) -> Path:
    """Where the page goes: into the folder that it shows, where that is one on this machine, else
    here.
    """
    if out is not None:
        return out
    folder = Path(runs[0].folder.uri) if len(runs) == 1 and runs[0].folder.local else Path()
    return folder.with_suffix(".html") if folder.is_file() else folder / NAME


def library() -> Path:
    """The plotting library that goes into the page.

    Raises:
        Misuse: it is not installed.
    """
    spec = find_spec("plotly")  # found, not imported: only its JavaScript is needed
    places = [
        Path(place) / LIBRARY for place in (spec.submodule_search_locations if spec else None) or ()
    ]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise Misuse(
            f"a report needs plotly, not installed here; to install: {tell_install('page')}"
        )
    return path


def embed_json(content: Mapping[str, Any]) -> str:
    """JSON that no label can break out of: every < is escaped, so that there is no tag, no comment,
    no script's end.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def assemble_page(content: Mapping[str, Any], plotly: Path) -> str:
    """The page as HTML.

    Its policy lets the browser run these scripts alone, by their hashes, and load nothing from
    anywhere.

    Args:
        content: see `page.content`.
        plotly: the plotting library.
    """
    page_scripts = [(HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    scripts = [
        page_scripts[0],
        plotly.read_text(encoding="utf-8").replace("\r", ""),
        *page_scripts[1:],
    ]
    if any(re.search(r"</script", script, flags=re.IGNORECASE) for script in scripts):
        raise Misuse(f"{plotly} ends its own script; install another version of plotly")
    digests = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    parts = {
        "title": html.escape(content["title"]),
        "policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri "
        "'none'; "
        f"form-action 'none'; script-src {allowed}",
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "data": embed_json(content),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    template = (HERE / "template.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], template)
