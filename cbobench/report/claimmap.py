"""Where a claim holds: a map per claim of its verdicts over the settings that runs sweep, with what they cost."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cbobench.report.claims import Finding
from cbobench.report.evidence import Verdict
from cbobench.report.layout import save
from cbobench.report.readings import short
from cbobench.report.style import SIZES
from cbobench.words import counted

LOOKS: dict[Verdict, tuple[str, str]] = {  # colour and symbol: told apart without the colour, too
    "holds": ("#56B4E9", "+"), "does not hold": ("#D55E00", "−"), "undecided": ("0.88", "?"),
}  # fmt: skip


def axes_of(found: Finding) -> dict[str, str]:
    """The swept parameters in words: one that several methods share is said once, else with its method."""
    values: dict[str, dict[str, str]] = {}
    for name, value in found.axes.items():
        owner, _, parameter = name.rpartition(".")
        values.setdefault(parameter, {})[owner] = short(value)
    result = {}
    for parameter, owners in values.items():
        if len(set(owners.values())) == 1:
            result[parameter] = next(iter(owners.values()))
        else:
            result |= {f"{owner} {parameter}": value for owner, value in owners.items()}
    return result


def table(found: Sequence[Finding]) -> tuple[str, list[str], list[str], dict[tuple[str, str], Finding]]:
    """A claim's findings as a table: the parameter across, its values, the rows' words, and the cells."""
    settings = [(f, axes_of(f)) for f in found]
    names = dict.fromkeys(name for _, axes in settings for name in axes)
    seen = {name: list(dict.fromkeys(axes.get(name, "–") for _, axes in settings)) for name in names}
    across = max(seen, key=lambda name: len(seen[name]), default="")
    places = {f.where for f in found}
    rows: dict[str, None] = {}
    cells: dict[tuple[str, str], Finding] = {}
    for f, axes in settings:
        others = [f"{name} {axes[name]}" for name in names if name != across and name in axes and len(seen[name]) > 1]
        row, column = ", ".join([*([f.where] if len(places) > 1 or not others else []), *others]), axes.get(across, "–")
        while (row, column) in cells:  # settings that the axes do not tell apart
            row += " "
        rows[row] = None
        cells[row, column] = f
    return across, seen.get(across, ["–"]), list(rows), cells


def draw_maps(found: Sequence[Finding], folder: Path) -> Iterator[tuple[str, list[Path], float]]:
    """Write the map of every claim as PDF, PNG, CSV and TXT (the caption); yields its id, the paths, CPU-minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    claims = {f.claim.id: [g for g in found if g.claim.id == f.claim.id and g.parts] for f in found}
    for id, mine in claims.items():
        if mine:
            paths = [folder / f"map_{id}.{kind}" for kind in ("pdf", "png", "csv", "txt")]
            minutes = sum({pair: cost for f in mine for pair, cost in f.costs.items()}.values()) / 60
            words = _caption(mine, minutes)
            _draw(mine, paths[0], paths[1], words)
            _write(mine, paths[2])
            paths[3].write_text(words, encoding="utf-8")
            yield id, paths, minutes


def _caption(found: Sequence[Finding], minutes: float) -> str:
    claim, seeds = found[0].claim, sorted({f.n for f in found})
    some = counted(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    words = f"{claim.id}, {claim.source}: {claim.statement}. "
    words += "Verdicts over the settings: + holds, − does not hold, ? undecided; "
    words += "beside it the parts that hold of all, below it complete seeds · CPU-minutes. "
    words += f"{some}; {minutes:.1f} CPU-minutes in all, every cell counted once."
    return textwrap.fill(words, 100) + "\n"


def _write(found: Sequence[Finding], path: Path) -> None:
    rows: list[Mapping[str, Any]] = [
        {"claim": f.claim.id, "where": f.where, **axes_of(f), "verdict": f.verdict, "n": f.n, "expected": f.expected,
         "cpu_minutes": round(f.seconds / 60, 3), "settings": f.settings}
        for f in found
    ]  # fmt: skip
    names = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(names), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _draw(found: Sequence[Finding], pdf: Path, png: Path, words: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    across, columns, rows, cells = table(found)
    size = SIZES["double"]
    with size.context():
        image, axis = plt.subplots(figsize=(size.width, 0.8 + 0.32 * len(rows)), layout="constrained")
        for (row, column), f in cells.items():
            x, y = columns.index(column), rows.index(row)
            colour, symbol = LOOKS[f.verdict]
            axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
            held = sum(part.verdict == "holds" for part in f.parts)
            axis.text(x, y - 0.14, f"{symbol} {held}/{len(f.parts)}", ha="center", va="center", fontweight="bold")
            small: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size.small}
            axis.text(x, y + 0.3, f"{f.n} · {f.seconds / 60:.2g}", **small)
        axis.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), xlabel=across)
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(rows)), [textwrap.fill(row.strip(), 44) for row in rows], fontsize=size.small)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
        axis.set_title(f"{found[0].claim.id}:  + holds   − does not hold   ? undecided")
        save(image, pdf, png, size.dpi, words, {"Title": found[0].claim.id})
        plt.close(image)
