"""Plays every suite of the map, tests the claims over their settings, and writes docs/maps.json and docs/maps.md.

The table at the head of each paper's notes is written, too, from these findings and those of docs/reproduction.json.

python docs/maps.py [--out RUNS] [--data FOLDER] [--figures FOLDER] [--no-play] [--render]

Runs are kept and resumed. `--no-play` takes them as they are; `--figures` draws every map, too; `--render` writes the
page from the stored findings alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paper_figures import findings, leave, page_options

from cbobench import resources
from cbobench.papers.claim_maps import draw_maps, maps_of
from cbobench.papers.claim_tables import claims_of, evaluate
from cbobench.report.load import Run
from cbobench.words import count_noun

HERE = Path(__file__).parent
STORED, PAGE, SUITES = HERE / "maps.json", HERE / "maps.md", HERE / "reproduction.json"
NOTES = {"ZJ": HERE / "notes_zhou.md", "SE": HERE / "notes_shi.md", "GZL": HERE / "notes_guo.md"}  # by the claims' ids
VERDICTS = ("holds", "does not hold", "undecided")

INTRODUCTION = """\
# The map: where each claim holds

Each claim tested over the choices that its paper leaves open, in the suites `map_*`. Written by `make maps` from
`docs/maps.json`; `cbobench claims RUN... --map FOLDER` draws the same. What the verdicts mean is said in
[what of the papers is reproduced](reproduction.md), where seeds are at least as many and settings are few.

Some choices are multiplied out, most are swept one at a time beside the letter of the paper; seeds and horizon are
below each table. A row counts the settings that have its value, whatever the others are, and then says how many parts
of the claim held where most of them did. A cell that several claims read is counted in the cost of each.
No setting was chosen because it makes a claim hold.
"""


def suites() -> list[str]:
    """The suites of the map."""
    return [name for name in resources.suites() if name.startswith("map_")]


def measured(runs: Iterable[Path], figures: Path | None = None) -> dict[str, Any]:
    """What is stored: the cost of every suite in CPU-minutes, and one entry per claim and suite."""
    folders = [str(run) for run in runs]
    found = evaluate(folders, claims_of())
    if figures is not None:
        for map, paths in draw_maps(found, figures):
            print(f"{paths[0].with_suffix('')} ({map.minutes:.2g} CPU-minutes)")
    read = [Run(folder) for folder in folders]
    return {
        "suites": {run.record.suite: round(float(run.cells["seconds"].sum()) / 60, 2) for run in read},
        "maps": [
            {
                "id": map.claim, "statement": map.found[0].claim.statement, "suite": map.suite,
                "cpu_minutes": round(map.minutes, 2), "common": ", ".join(map.common),
                "seeds": [min(f.n for f in map.found), max(f.expected for f in map.found)],
                "settings": [
                    {"axes": axes, "verdict": f.verdict, "held": f.held, "parts": len(f.parts)}
                    for f, axes in zip(map.found, map.axes, strict=True)
                ],
            }
            for map in maps_of(found)
        ],
    }  # fmt: skip


def page(stored: dict[str, Any]) -> str:
    """The page as Markdown."""
    maps: dict[str, list[dict[str, Any]]] = {}
    for map in stored["maps"]:
        maps.setdefault(map["id"], []).append(map)
    costs = stored["suites"]
    text = [INTRODUCTION, "## All claims\n"]
    text += ["| claim | maps | settings | holds | does not hold | undecided | CPU-minutes |"]
    text += ["| :-- | :-- | --: | --: | --: | --: | --: |"]
    for id in sorted(maps):
        every = [setting for map in maps[id] for setting in map["settings"]]
        cells = [id, str(len(maps[id])), str(len(every)), *(str(n) for n in counts(every))]
        text.append(f"| {' | '.join(cells)} | {sum(map['cpu_minutes'] for map in maps[id]):.1f} |")
    words = ", ".join(f"{name.removeprefix('map-')} {cost:.2g}" for name, cost in sorted(costs.items()))
    text.append(f"\nCPU-minutes by suite: {words}; {sum(costs.values()):.0f} in all.\n")
    missing = [name for name in suites() if name.replace("_", "-") not in costs]
    if missing:
        text.append(f"Not played yet: {', '.join(missing)}.\n")
    for id in sorted(maps):
        text += [f"## {id}: {maps[id][0]['statement']}\n", *best(maps[id]), *table(maps[id]), ""]
        text += [f"- {map['suite']}: {seeds(map)}, {map['common']}" for map in maps[id]]
        text.append("")
    return "\n".join(text).rstrip() + "\n"


def counts(settings: list[dict[str, Any]]) -> list[int]:
    """How many settings have which verdict."""
    return [sum(setting["verdict"] == verdict for setting in settings) for verdict in VERDICTS]


def best(maps: list[dict[str, Any]]) -> list[str]:
    """Where it holds; else where most of its parts do."""
    every = [(map["suite"], setting) for map in maps for setting in map["settings"]]
    some = [(suite, setting) for suite, setting in every if setting["verdict"] == "holds"]
    if some:
        return [f"Holds in {len(some)} of {count_noun(len(every), 'setting')}.\n"]
    most = max(setting["held"] / setting["parts"] for _, setting in every)
    near = [(suite, s) for suite, s in every if s["held"] / s["parts"] == most]
    where = "; ".join(f"{suite} ({words(s['axes'])})" for suite, s in near[:2])
    more = f" and {len(near) - 2} more" if len(near) > 2 else ""
    first = near[0][1]
    return [f"Holds nowhere. Most parts, {first['held']} of {first['parts']}, hold at {where}{more}.\n"]


def words(axes: dict[str, str]) -> str:
    """A setting."""
    return ", ".join(f"{name} {value}" for name, value in axes.items()) or "its only setting"


def table(maps: list[dict[str, Any]]) -> list[str]:
    """One row per suite, axis and value."""
    lines = ["| map | axis | value | holds | does not hold | undecided | most parts | CPU-minutes |"]
    lines += ["| :-- | :-- | :-- | --: | --: | --: | --: | --: |"]
    for map in maps:
        suite, cost = map["suite"], f"{map['cpu_minutes']:.2g}"
        for axis in dict.fromkeys(name for setting in map["settings"] for name in setting["axes"]) or [""]:
            said = axis
            for value in dict.fromkeys(setting["axes"].get(axis, "") for setting in map["settings"]):
                mine = [setting for setting in map["settings"] if setting["axes"].get(axis, "") == value]
                most = max(mine, key=lambda setting: setting["held"] / setting["parts"])
                numbers = " | ".join(str(n) for n in counts(mine))
                lines.append(f"| {suite} | {said} | {value} | {numbers} | {most['held']}/{most['parts']} | {cost} |")
                suite = said = cost = ""
    return lines


def seeds(map: dict[str, Any]) -> str:
    """How many seeds every setting has."""
    low, expected = map["seeds"]
    return count_noun(expected, "seed") if low == expected else f"{low} to {count_noun(expected, 'seed')}"


def concluded(paper: str, text: str, stored: dict[str, Any], findings: list[dict[str, Any]]) -> str:
    """A page of notes with its table of verdicts as it should be: by the letter, as best known, and over the map."""
    lines = ["| claim | by the letter | as best known | the map |", "| :-- | :-- | :-- | :-- |"]
    tested = [row for row in findings if row["parts"] and re.fullmatch(rf"{paper}\d", row["id"])]
    for id in sorted({row["id"] for row in tested}):
        mine = [row for row in tested if row["id"] == id]
        letter = [row for row in mine if "-fit" not in row["where"] and "keep true" not in row["settings"]]
        swept = [setting for map in stored["maps"] if map["id"] == id for setting in map["settings"]]
        said = [verdicts(as_settings(rows)) for rows in (letter, [row for row in mine if row not in letter])]
        lines.append(f"| {id}: {mine[0]['statement']} | {' | '.join([*said, verdicts(swept)])} |")
    section = "\n".join(["<!-- verdicts -->", *lines, "<!-- end -->"])
    return re.sub(r"<!-- verdicts -->.*?<!-- end -->", lambda _: section, text, flags=re.S)


def as_settings(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings of docs/reproduction.json in the form of the map's."""
    return [
        {"verdict": row["verdict"], "held": sum(part["verdict"] == "holds" for part in row["parts"]),
         "parts": len(row["parts"])}
        for row in rows
    ]  # fmt: skip


def verdicts(settings: list[dict[str, Any]]) -> str:
    """How many settings have which verdict, and where it holds in none the most parts that hold in one."""
    if not settings:
        return "–"
    said = ", ".join(f"{verdict} in {n}" for verdict, n in zip(VERDICTS, counts(settings), strict=True) if n)
    if any(setting["verdict"] == "holds" for setting in settings):
        return said
    most = max(settings, key=lambda setting: setting["held"] / setting["parts"])
    if most["parts"] == 1:
        return said  # none of one part is what the verdict says
    return f"{said}; {'at most ' if most['held'] else ''}{most['held'] or 'none'} of {most['parts']} parts hold"


def write(stored: dict[str, Any]) -> None:
    """Store the findings, and write the page and the papers' tables."""
    STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(stored), encoding="utf-8")
    findings = json.loads(SUITES.read_text(encoding="utf-8"))
    for paper, path in NOTES.items():
        path.write_text(concluded(paper, path.read_text(encoding="utf-8"), stored, findings), encoding="utf-8")


if __name__ == "__main__":
    parser = page_options("The papers' claims over the choices that the papers leave open.", "runs/maps")
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    rows, missing = findings(options, suites(), STORED, lambda runs: measured(runs, options.figures))
    write(rows)
    print(PAGE)
    leave(missing)
