"""`cbobench report`: runs as one HTML file that opens offline; its only scripts are plotly's."""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cbobench.errors import Misuse, printable, show
from cbobench.registry import tell_install

if TYPE_CHECKING:
    from cbobench.page.content import Page
    from cbobench.report.load import Run

NAME = "report.html"
STYLE = Path(__file__).with_name("page.css")
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def do_report(options: argparse.Namespace) -> int:
    """`cbobench report`, once the modules that runs name are imported where that was asked for."""
    if find_spec("plotly") is None:
        raise Misuse(
            f"a report needs plotly, not installed here; to install: {tell_install('page')}"
        )
    refuse(options.out)
    from cbobench.page.content import Page, add_run
    from cbobench.report.load import Run
    from cbobench.results.folder import RunFolder

    runs = [Run(run) for run in options.runs]
    page = Page()
    for run in runs:
        add_run(page, run)
    content = assemble_page(page, title=runs[0].record.suite).encode()
    out = options.out or place(runs)
    # There whole, or not at all.
    folder = RunFolder(str(out.absolute().parent))
    folder.publish(out.name, lambda sink: sink.write(content))
    print(f"{out} ({len(content) / 1e6:.1f} MB)")
    return 0


def refuse(out: Path | None) -> None:
    """Raise `Misuse` for a place where no page can be written, before anything is read."""
    if out is not None and (out.suffix != ".html" or (out.exists() and not out.is_file())):
        raise Misuse(f"--out is {show(str(out))}; give the name of a file that ends with .html")


def place(runs: Sequence[Run]) -> Path:
    """Where a page goes by default: into the run folder, where that is one on this machine, else
    here.
    """
    folder, *others = [folder for run in runs for folder in run.folders]
    is_elsewhere = len(others) > 0 or folder.is_bundle or not folder.local
    return Path("" if is_elsewhere else folder.uri, NAME)


def assemble_page(page: Page, title: str) -> str:
    """The page as HTML.

    Its policy lets the browser run plotly's scripts alone, by their hashes, and load nothing from
    anywhere.
    """
    digests = [hashlib.sha256(script.encode()).digest() for script in page.scripts]
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    allowed = " ".join(hashes or ["'none'"])
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        f"form-action 'none'; script-src {allowed}"
    )
    return PAGE.format(
        policy=policy,
        title=html.escape(printable(title)),
        style=STYLE.read_text(encoding="utf-8"),
        body="\n".join(page.parts),
    )
