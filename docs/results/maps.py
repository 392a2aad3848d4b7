"""Tests the claims over the settings of the map, on the bundles of its suites, and writes maps.json
and docs/maps.md.

python -m docs.results.maps [--figures FOLDER] [--render]

`--figures` draws every map, too; `--render` writes the page from the stored findings alone. The
site draws the maps from these (`restore`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from cbobench import resources
from cbobench.papers.claim_maps import Map, describe_axis, draw_maps, maps_of
from cbobench.papers.claim_tables import claims_of, count_verdicts, evaluate
from cbobench.papers.claims import Finding
from cbobench.papers.evidence import Part
from cbobench.report.load import Run
from cbobench.words import count_noun
from docs.results.bundles import bundle_of, list_whole, tabulate_bundles, trace_origin
from docs.results.paper_figures import Stored, write_page

HERE = Path(__file__).parent
STORED, PAGE = HERE / "maps.json", HERE.parent / "maps.md"

TITLE = "# The map: where each claim holds\n"
INTRODUCTION = """\
The claims tested over the choices that their papers leave open, in the suites `map_*`. Some choices are multiplied out,
most are swept one at a time beside the letter of the paper. [What of the papers is reproduced](reproduction.md) says
what the verdicts mean. Per claim: how often it has which verdict, and the choice over whose values the share of parts
that hold varies most. `cbobench claims RUN... --map FOLDER` draws the maps, with a cell per setting. No setting was
chosen because it makes a claim hold.
"""  # noqa: E501


def suites() -> list[str]:
    """The suites of the map."""
    return [name for name in resources.suites() if name.startswith("map_")]


def measured(names: Sequence[str], figures: Path | None = None) -> Stored:
    """What is stored: the cost of every suite in CPU-minutes, and one entry per claim and suite."""
    folders = [str(bundle_of(name)) for name in names]
    found, _ = evaluate(folders, claims_of())
    if figures is not None:
        for map, paths in draw_maps(found, figures):
            print(f"{paths[0].with_suffix('')} ({map.minutes:.2g} CPU-minutes)")
    read = [Run(folder) for folder in folders]
    return {
        **trace_origin(names),
        "suites": {
            run.record.suite: round(float(run.cells["seconds"].sum()) / 60, 2) for run in read
        },
        "maps": [_store_map(map) for map in maps_of(found)],
    }


def _store_map(map: Map) -> Stored:
    first = map.findings[0]
    return {
        "id": map.claim,
        "statement": first.claim.statement,
        "suites": list(first.suites),
        "cpu_minutes": round(map.minutes, 2),
        "common": ", ".join(map.common),
        "settings": [_store_finding(finding) for finding in map.findings],
    }


def _store_finding(finding: Finding) -> Stored:
    return {
        "axes": finding.axes,
        "where": finding.places,
        "verdict": finding.verdict,
        "n": finding.n,
        "expected": finding.expected,
        "parts": [part.verdict for part in finding.parts],
    }


def restore(stored: Stored) -> Iterator[Map]:
    """The maps as they were measured, as far as they are drawn."""
    claims = {claim.id: claim for claim in claims_of()}
    for one in stored["maps"]:
        found = []
        for setting in one["settings"]:
            n, expected, verdict = setting["n"], setting["expected"], setting["verdict"]
            parts = tuple(
                Part("", "", "", verdict, 0.0, 0.0, 0.0, n, expected)
                for verdict in setting["parts"]
            )
            claim, suites = claims[one["id"]], tuple(one["suites"])
            found.append(
                Finding(
                    claim,
                    verdict,
                    setting["where"],
                    suites,
                    (),
                    parts,
                    setting["axes"],
                    one["common"],
                )
            )
        yield Map.of(found)


def page(stored: Stored) -> str:
    """The page as Markdown."""
    maps: dict[str, list[Map]] = {}
    for map in restore(stored):
        maps.setdefault(map.claim, []).append(map)
    played = f"Played by commit {stored['commit']}, {stored['date']}.\n"
    changes = describe_changes(stored["before"]) if "before" in stored else ""
    text = [part for part in (TITLE, INTRODUCTION, played, changes) if part]
    for id in sorted(
        maps, key=lambda id: ("ZSG".index(id[0]), int("".join(c for c in id if c.isdigit())), id)
    ):
        text.append(f"## {id}: {maps[id][0].findings[0].claim.statement}\n")
        text += [describe(map) for map in maps[id]]
        text.append("")
    costs = stored["suites"]
    text.append(f"{count_noun(len(costs), 'suite')}, {sum(costs.values()):.0f} CPU-minutes in all.")
    text += ["\n## Bundles\n", tabulate_bundles(suites())]
    return "\n".join(text).rstrip() + "\n"


def list_verdicts(stored: Stored) -> dict[tuple[str, ...], str]:
    """The verdict of every setting of every map."""
    verdicts: dict[tuple[str, ...], str] = {}
    for one in stored["maps"]:
        for setting in one["settings"]:
            axes = json.dumps(setting["axes"], sort_keys=True)
            verdicts[one["id"], setting["where"], axes] = setting["verdict"]
    return verdicts


def count_changes(former: Stored, now: Stored) -> dict[str, Any]:
    """How many settings of both have another verdict now, and whose plays the former were."""
    before, after = list_verdicts(former), list_verdicts(now)
    shared = before.keys() & after.keys()
    changed = sum(before[setting] != after[setting] for setting in shared)
    about = {key: former[key] for key in ("date", "commit")}
    return about | {"settings": len(shared), "changed": changed}


def describe_changes(before: Mapping[str, Any]) -> str:
    """What differs from the plays of before, in a line."""
    return (
        f"Before, the plays were of {before['date']}, commit {before['commit']}: "
        f"{before['changed']} of {count_noun(before['settings'], 'setting')} have another verdict "
        "now.\n"
    )


def describe(map: Map) -> str:
    """Two sentences on a map: its verdicts, and the axis that decides most."""
    seeds = count_noun(min(f.expected for f in map.findings), "seed")
    counts = count_verdicts([f.verdict for f in map.findings])
    first = f"- **{map.suite}** ({count_noun(len(map.findings), 'setting')}, {seeds}): {counts}."
    spreads = {}
    for axis in dict.fromkeys(name for axes in map.axes for name in axes):
        by_value: dict[str, list[float]] = {}
        for f, axes in zip(map.findings, map.axes, strict=True):
            by_value.setdefault(axes.get(axis, ""), []).append(f.held / len(f.parts))
        shares = {value: mean(some) for value, some in by_value.items()}
        worst, best = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        spreads[axis] = (shares[best] - shares[worst], best, shares[best], worst, shares[worst])
    axis = max(spreads, key=lambda name: spreads[name][0], default="")
    if not axis or spreads[axis][0] == 0:
        return f"{first} No choice changes how many parts hold."
    _, best, most, worst, least = spreads[axis]
    return (
        f"{first} Most depends on {describe_axis(axis)}: "
        f"at {best} {most:.0%} of the parts hold, at {worst} {least:.0%}."
    )


def read_stored() -> Stored:
    """What is stored."""
    return dict(json.loads(STORED.read_text(encoding="utf-8")))


def main(given: Sequence[str] | None = None) -> None:
    """Write findings and page, or the page alone."""
    parser = argparse.ArgumentParser(
        description="The papers' claims over the choices that the papers leave open."
    )
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args(given)
    stored = former = read_stored()
    if not options.render:
        stored = measured(list_whole(suites()), options.figures)
        stored["before"] = former.get("before") or count_changes(former, stored)
    write_page(stored, STORED, page(stored), PAGE)
    print(PAGE)


if __name__ == "__main__":
    main()
