"""The bundles of published/: what plays each, who played it, whose replay confirmed it, and the
table of pages on that. `shards.yaml` lists ours; any other was sent by somebody.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cbobench
from analysis.folders import PUBLISHED
from analysis.markdown import tabulate
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.results.export import export
from cbobench.results.folder import open_run
from cbobench.results.manifest import Manifest
from cbobench.suite import yamlio
from cbobench.words import count_noun

Shard = Mapping[str, Any]
LISTED = "shards.yaml"
CONFIRMED = "confirmed.json"


def read_shards(part: str) -> dict[str, Shard]:
    """What is to be played for a part of the pages, "field" or "papers", by the shard's name."""
    return dict(yamlio.read(PUBLISHED / LISTED)[part])


def bundle_of(name: str) -> Path:
    """Where a shard is kept."""
    return PUBLISHED / f"{name}.zip"


def list_played(names: Iterable[str]) -> list[Path]:
    """The bundles of some shards that are there."""
    return [bundle for bundle in map(bundle_of, names) if bundle.exists()]


def find_sent() -> list[Path]:
    """The bundles that others sent: those that shards.yaml does not name."""
    parts = yamlio.read(PUBLISHED / LISTED).values()
    ours = {bundle_of(name) for shards in parts for name in shards}
    return sorted({*PUBLISHED.glob("*.zip")} - ours)


def digest_of(bundle: Path) -> str:
    """The digest of a bundle's bytes, by which it is confirmed."""
    return hashlib.sha256(bundle.read_bytes()).hexdigest()


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


def is_whole(name: str, shard: Shard) -> bool:
    """Whether a bundle has all cells of its shard, failed ones included.

    The bundle counts what was asked for so far. Methods and seeds that were added since are looked
    for, too.
    """
    if not bundle_of(name).exists():
        return False
    cells = read_about(bundle_of(name))["cells"]
    manifest = Manifest.read(open_run(bundle_of(name)))
    try:
        asked = [manifest.only(pattern).cells.by_pair for pattern in shard.get("only", ())]
    except Misuse:  # a pattern without a pair was never begun
        return False
    has_seeds = all(len(pair) >= shard.get("seeds", 0) for pairs in asked for pair in pairs)
    return has_seeds and bool(cells["done"] + cells["failed"] >= cells["expected"])


def read_content(bundle: Path) -> tuple[Any, ...]:
    """What a bundle says of every cell that was asked for, whoever played it: how it ended, the
    digest of its play, and of which rounds it has values.
    """
    cells, rounds = cbobench.load_cells(bundle), cbobench.load_rounds(bundle, ["regret"])
    played = cells[["cell", "status", "digest"]].fillna("").itertuples(index=False, name=None)
    asked = Manifest.read(open_run(bundle)).cells.ids.tolist()
    return sorted(asked), sorted(played), sorted({*rounds["t"]})


def keep_run(name: str, run: Path, rounds: Sequence[int] | None = None) -> None:
    """Export what there is of a run, with the curves of some rounds or of the usual ones.

    A bundle that says the same already is left as it is: git keeps every version of it.
    """
    bundle = bundle_of(name)
    with tempfile.TemporaryDirectory() as place:
        exported = export(run, Path(place) / bundle.name, rounds)
        new = Path(exported.file)
        is_known = bundle.exists() and read_content(bundle) == read_content(new)
        if not is_known:
            shutil.copyfile(new, bundle)
            record_digest(name)
    print(
        f"{bundle}: {exported.done} of {count_noun(exported.expected, 'cell')}, "
        f"{exported.size / 1e3:.0f} kB{', as before' if is_known else ''}"
    )


def record_digest(name: str) -> None:
    """Write the digest of a bundle into its line of shards.yaml."""
    listed = PUBLISHED / LISTED
    line = re.compile(rf"^(  {name}: {{.*?)(, sha256: \w+)?}}$", flags=re.M)
    text = listed.read_text(encoding="utf-8")
    said = rf"\1, sha256: {digest_of(bundle_of(name))}}}"
    listed.write_text(line.sub(said, text), encoding="utf-8")


def read_confirmed() -> dict[str, dict[str, Any]]:
    """What is known of the bundles of which drawn cells were played again, by name."""
    path = PUBLISHED / CONFIRMED
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def is_confirmed(name: str) -> bool:
    """Whether drawn cells of a bundle as it is were played again, all to the same bits."""
    said = read_confirmed().get(name)
    return said is not None and said["bundle"] == digest_of(bundle_of(name))


def confirmed_by(name: str) -> str:
    """The commit whose code did that; a dash without one."""
    if not is_confirmed(name):
        return "–"
    said = read_confirmed()[name]
    return f"{said['commit'][:7]} ({count_noun(said['cells'], 'cell')})"


def name_commit(call: Mapping[str, Any]) -> str:
    """The commit of a call, and whether its work tree differed from that."""
    return str(call.get("commit") or "unknown")[:7] + (" with changes" if call.get("dirty") else "")


def played_by(about: Mapping[str, Any]) -> str:
    """The commits whose code played a bundle, of what it says of itself."""
    return ", ".join(sorted({name_commit(call) for call in about["calls"]}))


def tabulate_bundles(names: Iterable[str], folder: str) -> str:
    """Who played the bundles of a page, who confirmed them, and what they cost.

    Args:
        folder: published/, from the page.
    """
    head = ("bundle", "cells", "played by", "confirmed by", "CPU", "CPU-minutes", "kB")
    lines = []
    for bundle in list_played(names):
        about = read_about(bundle)
        cells = about["cells"]
        lines.append(
            (
                f"[`{bundle.stem}`]({folder}/{bundle.name})",
                f"{cells['done']}/{cells['expected']}",
                played_by(about),
                confirmed_by(bundle.stem),
                ", ".join(str(kind).partition(",")[0] for kind in about["cpus"]),
                f"{about['seconds'] / 60:.1f}",
                f"{bundle.stat().st_size / 1e3:.0f}",
            )
        )
    return tabulate(head, lines, "lrlllrr") + "\n"


def list_missing(shards: Mapping[str, Shard]) -> str:
    """A sentence on the shards that are not played yet, or not whole, with their prices, "?" where
    none is told.
    """
    unplayed = [name for name in shards if not bundle_of(name).exists()]
    begun = [name for name in shards if name not in unplayed and not is_whole(name, shards[name])]
    said = []
    for words, names in (("Begun and not whole", begun), ("Not played yet", unplayed)):
        if names:
            listed = ", ".join(f"`{name}` ({shards[name].get('price', '?')})" for name in names)
            said.append(f"{words}: {listed}.")
    return " ".join(said) or "All are played."
