"""Plays the example notebooks and stores what they show: python -m website.examples.

They are played in an empty folder. Stored are tables and pictures: what Python prints of an object
names places of the machine, and nobody sees it.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
SHOWN = ("text/html", "image/png")
SECONDS = 300
MEASURED = "µs"  # heading of a column of times, which differ from play to play


def play(path: Path, folder: Path) -> Any:
    """A notebook as it is after all its cells have run in a folder."""
    import nbclient
    import nbformat

    book = nbformat.read(path, 4)
    about = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(
        book, timeout=SECONDS, kernel_name="python3", record_timing=False, resources=about
    ).execute()
    book.metadata = {"kernelspec": book.metadata["kernelspec"], "language_info": {"name": "python"}}
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if any(kind in output.get("data", ()) for kind in SHOWN):
                output.data = {kind: output.data[kind] for kind in SHOWN if kind in output.data}
                output.metadata = {}
    return book


def determined(html: str) -> list[list[str]]:
    """The texts of a page's tables, row by row, and of what stands below them, without what was
    measured.
    """
    rows, left_out = [], -1
    for row in re.findall(r"<(?:tr|caption|small)\b.*?</(?:tr|caption|small)>", html, re.S):
        cells = re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.S) or [row]
        if "<th" in row and row.count("<th") == len(cells):
            left_out = cells.index(MEASURED) if MEASURED in cells else -1
        rows.append(
            [re.sub(r"<[^>]+>", "", cell).strip() for i, cell in enumerate(cells) if i != left_out]
        )
    return rows


def outputs(book: Any) -> list[list[Any]]:
    """What the play of a notebook determines, cell by cell: the texts of its tables, and that there
    is a picture.
    """
    return [
        [
            determined("".join(output["data"].get("text/html", ""))) or [*output["data"]]
            if "data" in output
            else [output["output_type"]]
            for output in cell["outputs"]
        ]
        for cell in book["cells"]
        if cell["cell_type"] == "code"
    ]


if __name__ == "__main__":
    import nbformat

    for notebook in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as place:
            nbformat.write(play(notebook, Path(place)), notebook)
