"""What docs/field's pages say of the shards themselves: by which settings and whose code they were
played, what that cost, and who confirmed it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.field.groups import plain
from analysis.folders import PUBLISHED
from analysis.markdown import tabulate, wrap
from analysis.papers.figures import name_commit
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.results.folder import open_run
from cbobench.results.manifest import Manifest
from cbobench.suite import yamlio
from cbobench.suite.variants import Variant
from cbobench.words import count_noun

LISTS = (PUBLISHED / "shards.yaml", PUBLISHED / "papers.yaml")
CONFIRMED = "confirmed.json"  # beside the bundles
NEWER = {"cei": "anchored", "scbo": "anew", "furbo": "anew"}  # settings that ours did not yet have


def digest_of(bundle: Path) -> str:
    """The digest of a bundle's bytes, by which it is confirmed."""
    return hashlib.sha256(bundle.read_bytes()).hexdigest()


def find_sent() -> list[Path]:
    """The bundles that others sent: those that neither shards.yaml nor papers.yaml names."""
    ours = {name for file in LISTS for name in yamlio.read(file)}
    return [path for path in sorted(PUBLISHED.glob("*.zip")) if path.stem not in ours]


def read_about(bundle: Path) -> dict[str, Any]:
    """How many cells a bundle has, whose calls played them, on which kinds of CPU, and for how many
    seconds of CPU time.
    """
    run = Run(bundle, Manifest.read(open_run(bundle)))
    good = run.cells[run.cells["status"] == "ok"]
    counts = {"done": len(good), "failed": len(run.cells) - len(good)}
    return {
        "cells": counts | {"expected": len(run.record.cells)},
        "calls": run.record.invocations,
        "cpus": sorted({*run.cells["cpu"].dropna()}),
        "seconds": float(good["seconds"].sum()),
    }


def played_variants(runs: Iterable[Run]) -> dict[str, Variant]:
    """The methods that have cells in some runs, by label."""
    variants: dict[str, Variant] = {}
    for run in runs:
        labels, played = run.record.labels("algorithms"), {*run.cells["algorithm"]}
        variants |= {
            plain(labels[title]): variant
            for title, variant in run.record.variants("algorithms").items()
            if title in played
        }
    return variants


def describe_play(runs: Sequence[Run]) -> str:
    """How many evaluations there are, which are the first ones, and how many are chosen at once."""
    horizons = sorted({grid.horizon for run in runs for grid in run.record.grids})
    values = [variant.values for variant in played_variants(runs).values()]
    designs = {item for one in values for item in (one.get("initial design") or {}).items()}
    under_way = [one["evaluations under way"] for one in values if "evaluations under way" in one]
    said = f"{' or '.join(map(str, horizons))} evaluations"
    for kind, count in sorted(designs):
        said += f", the first {count} a {kind.capitalize()} design"
    for points in sorted({one["points"] for one in under_way}):
        said += f", in batches of {points}: a batch is chosen before any of its results is known"
    return f"{said}."


def describe_settings(runs: Sequence[Run]) -> str:
    """Where methods do not play what their papers and theorems say, or what they play today; empty
    where they do.
    """
    settings = {name: variant.settings for name, variant in played_variants(runs).items()}
    scales = sorted({one["beta_scale"] for one in settings.values() if "beta_scale" in one})
    departures = []
    if scales and scales != [1.0]:
        listed = " or ".join(f"{scale:g}" for scale in scales)
        departures.append(f"every width β is multiplied by {listed} (`beta_scale`)")
    if any("sup" in (one.get("B"), one.get("G")) for one in settings.values()):
        departures.append(
            "B and G are the suprema of |f| and |g| over the box (`sup`), where theorems ask for "
            "norms"
        )
    said = [f"Not by the letter of the papers: {'; '.join(departures)}."] if departures else []
    by_noise: dict[float, dict[str, None]] = {}
    for name, one in settings.items():
        if isinstance(one.get("lam"), int | float):
            by_noise.setdefault(float(one["lam"]), {})[name.partition("[")[0]] = None
    for noise, names in sorted(by_noise.items()):
        listed = ", ".join(f"`{name}`" for name in names)
        said.append(f"The noise variance λ of the models is set to {noise:g} in {listed}.")
    for name, one in settings.items():
        newer = NEWER.get(name.partition("[")[0])
        if newer and newer not in one:
            said.append(f"`{name}` was played by code before `{newer}`.")
        if one.get("anchored") and one.get("lam") not in ("auto", "true"):
            said.append(
                f"`{name}` makes no steps to the boundary (`anchored`) here, as its noise is "
                f"fitted (`lam: {one['lam']}`)."
            )
    return " ".join(said)


def played_by(about: Mapping[str, Any]) -> str:
    """The commits whose code played a bundle, of what it says of itself."""
    return ", ".join(sorted({name_commit(call) for call in about["calls"]}))


def count_missing(bundle: Path, shard: Mapping[str, Any]) -> int:
    """How many cells of a shard its bundle has not; failed ones it has.

    The bundle counts what was asked for so far. Seeds that were added since are looked for, too,
    and a method that was never begun counts on all problems of the bundle.
    """
    cells = read_about(bundle)["cells"]
    missing = cells["expected"] - cells["done"] - cells["failed"]
    manifest = Manifest.read(open_run(bundle))
    played = manifest.cells.by_pair
    seeds = shard.get("seeds", max(map(len, played), default=1))
    for pattern in shard["only"]:
        try:
            pairs = manifest.only(pattern).cells.by_pair
        except Misuse:  # a pattern without a pair
            missing += seeds * len({pair.pair.problem.title for pair in played})
            continue
        missing += sum(max(0, seeds - len(pair)) for pair in pairs)
    return int(missing)


def describe_rest(bundle: Path, shard: Mapping[str, Any]) -> str:
    """What is missing of a shard that was begun, and what that costs if its cells cost what the
    others did; nothing of a whole one.
    """
    about, missing = read_about(bundle), count_missing(bundle, shard)
    if not missing:
        return ""
    hours = missing * about["seconds"] / 3600 / max(1, about["cells"]["done"])
    return f"`{bundle.stem}` ({count_noun(missing, 'cell')}, about {hours:.1f} CPU-hours)"


def read_confirmed(folder: Path) -> dict[str, dict[str, Any]]:
    """What is known of the bundles of a folder of which drawn cells were played again, by name."""
    path = folder / CONFIRMED
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def is_confirmed(bundle: Path, confirmed: Mapping[str, Any]) -> bool:
    """Whether drawn cells of a bundle as it is were played again, all to the same bits."""
    said = confirmed.get(bundle.stem)
    return said is not None and said["bundle"] == digest_of(bundle)


def confirmed_by(bundle: Path, confirmed: Mapping[str, Any]) -> str:
    """The commit whose code did that; a dash without one."""
    if not is_confirmed(bundle, confirmed):
        return "–"
    said = confirmed[bundle.stem]
    return f"{said['commit'][:7]} ({count_noun(said['cells'], 'cell')})"


def tabulate_shards(bundles: Sequence[Path], shards: Mapping[str, Mapping[str, Any]]) -> str:
    """Which shards there are, of which suite, who played them, and what that cost."""
    columns = ["shard", "suite", "cells", "failed", "played by", "confirmed by", "CPU"]
    columns += ["CPU-hours", "kB"]
    confirmed, lines, changed = read_confirmed(bundles[0].parent), [], 0
    for bundle in bundles:
        about = read_about(bundle)
        changed += any(call.get("dirty") for call in about["calls"])
        cells = about["cells"]
        kinds = ", ".join(str(kind).partition(",")[0] for kind in about["cpus"])
        lines.append(
            (
                f"[`{bundle.stem}`](../../published/{bundle.name})",
                f"`{shards[bundle.stem]['suite']}`",
                *(f"{cells['done']}/{cells['expected']}", f"{cells['failed']}"),
                *(played_by(about), confirmed_by(bundle, confirmed), kinds),
                *(f"{about['seconds'] / 3600:.2f}", f"{bundle.stat().st_size / 1e3:.0f}"),
            )
        )
    note = wrap(
        f"{changed} of {count_noun(len(bundles), 'shard')} were played *with changes*: in a work "
        "tree that differed from its commit. How it differed is not recorded. What confirms a "
        "shard is the code of a commit as it is."
    )
    return (f"{note}\n" if changed else "") + tabulate(columns, lines, "llrrlllrr") + "\n"
