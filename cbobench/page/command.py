"""`cbobench report`: runs as one page that opens offline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cbobench.errors import Misuse, printable, show

if TYPE_CHECKING:
    from cbobench.report.load import Run

NAME = "report.html"
SUFFIXES = (".html", ".htm")  # of a page, so that none is put in the place of something else


def do_report(options: argparse.Namespace) -> int:
    """`cbobench report`, once the modules that runs name are imported where that was asked for."""
    from cbobench.page.assemble import assemble_page, library
    from cbobench.page.content import content
    from cbobench.report.load import Run
    from cbobench.results.folder import RunFolder

    plotly = library()
    refuse(options.out)
    runs = [Run(run) for run in options.runs]
    if len({run.folder.uri for run in runs}) < len(runs):
        raise Misuse("a run is given twice; a page shows each once")
    out = place(options.out, runs)
    page_content = content(runs)
    page = assemble_page(page_content, plotly).encode()
    RunFolder(str(out.absolute().parent)).publish(out.name, lambda sink: sink.write(page))
    for run in page_content["runs"]:
        for note in run["notes"]:
            print(printable(f"{run['label']}: {note}"), file=sys.stderr)
    print(f"{out} ({out.stat().st_size / 1e6:.1f} MB)")
    return 0


def refuse(out: Path | None) -> None:
    """Raises `Misuse` for a place where no page can be written, before anything is read."""
    if out is not None and out.is_dir():
        raise Misuse(f"{out} is a folder; give a file, such as {out / NAME}")
    if out is not None and (out.suffix.lower() not in SUFFIXES or (out.exists() and not out.is_file())):
        raise Misuse(f"--out is {show(str(out))}; give the name of a file that ends with .html")
    if out is not None and not out.parent.is_dir():
        raise Misuse(f"{out.parent} is no folder; make it first, or give another --out")


def place(out: Path | None, runs: Sequence[Run]) -> Path:
    """Where the page goes: into the folder that it shows, where that is one on this machine, else here."""
    if out is not None:
        return out
    folder = Path(runs[0].folder.uri) if len(runs) == 1 and runs[0].folder.local else Path()
    return folder.with_suffix(".html") if folder.is_file() else folder / NAME
