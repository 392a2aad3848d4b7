"""Exports runs as bundles and writes their sizes into docs/bundles.md: python docs/bundles.py RUNS... [--out FOLDER].

RUNS are run folders, or folders of run folders; what is no run is passed over, and a run without a cell is named.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from cbobench.errors import CbobenchError
from cbobench.results.bundle import open_run
from cbobench.results.export import Exported, export
from cbobench.results.manifest import Manifest

PAGE = Path(__file__).parent / "bundles.md"
TABLE = re.compile(r"(<!-- sizes -->\n).*?(<!-- /sizes -->)", flags=re.S)
HEAD = "| run | T | cells | folder, MB | bundle, kB |\n| --- | ---: | ---: | ---: | ---: |\n"


def runs_in(folders: Iterable[Path]) -> list[Path]:
    """The run folders among some folders and what they hold, by name."""
    places = [place for folder in folders for place in (folder, *sorted(folder.glob("*")))]
    return [place for place in places if (place / "run.json").is_file()]


def row(run: Path, made: Exported) -> str:
    """The line of one run."""
    horizons = sorted({grid.horizon for grid in Manifest.read(open_run(run)).grids})
    size = sum(file.stat().st_size for file in run.rglob("*.parquet")) + (run / "run.json").stat().st_size
    cells = f"{made.done:,}" if made.done == made.expected else f"{made.done:,} of {made.expected:,}"
    until = ", ".join(f"{horizon:,}" for horizon in horizons)
    return f"| `{run.name}` | {until} | {cells} | {size / 1e6:.1f} | {made.size / 1000:,.0f} |\n"


def written(text: str, rows: Iterable[str]) -> str:
    """The page with these lines as its table."""
    return TABLE.sub(lambda found: found[1] + HEAD + "".join(rows) + found[2], text)


def main() -> None:
    """Export what there is."""
    parser = argparse.ArgumentParser(description="Bundles of many runs, and their sizes.")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS")
    parser.add_argument("--out", type=Path, default=Path("runs/bundles"))
    options = parser.parse_args()
    rows = []
    for run in runs_in(options.runs):
        try:
            made = export(run, options.out / f"{run.name}.zip")
        except CbobenchError as error:
            print(f"not exported: {error}")
            continue
        print(f"{made.file}: {made.size / 1000:,.0f} kB", flush=True)
        rows.append(row(run, made))
    if not rows:
        raise SystemExit(
            f"no run with a cell in {', '.join(map(str, options.runs))}; make claims plays the papers' suites"
        )
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
