"""Plays the comparison with the field shard by shard, each kept as a bundle in docs/results and
shown by docs/field.md.

python -m docs.results.shards [--list | --render | --confirm K] [SHARD ...]

Plays the first shard of docs/results/shards.yaml that is missing or not whole (or those that are
named), exports it and stops. A play that was ended is resumed. `--render` writes the page from the
bundles that are there. `--confirm` plays K drawn cells of every shard again with the code at hand;
where all are equal to the last bit, the page says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cbobench.cli import main
from cbobench.errors import CbobenchError, unknown
from cbobench.replay.replay import replay
from cbobench.replay.text import describe_replay
from cbobench.results.bundle import Bundle
from cbobench.results.export import export
from cbobench.results.provenance import invocation
from cbobench.suite import yamlio
from cbobench.words import count_noun, list_names
from docs.results.field_page import write_pages
from docs.results.field_shards import CONFIRMED, digest_of, played_by
from docs.results.paper_figures import leave

FOLDER = Path(__file__).parent
RUNS = Path("runs") / "field"


def read_shards() -> dict[str, dict[str, Any]]:
    """What is to be played, by the shard's name."""
    return dict(yamlio.read(FOLDER / "shards.yaml"))


def bundle_of(name: str) -> Path:
    """Where a shard is kept."""
    return FOLDER / f"{name}.zip"


def read_about(name: str) -> dict[str, Any] | None:
    """What a shard's bundle says of itself; None before it is played."""
    return Bundle(str(bundle_of(name))).about if bundle_of(name).exists() else None


def is_whole(name: str) -> bool:
    """Whether a shard has all of its cells, failed ones included."""
    about = read_about(name)
    return (
        about is not None
        and about["cells"]["done"] + about["cells"]["failed"] >= about["cells"]["expected"]
    )


def play_shard(name: str, shard: Mapping[str, Any]) -> None:
    """Play what is missing of a shard, and export it."""
    run = RUNS / name
    for pattern in shard["only"]:
        options = ["--out", str(run), "--block", "1", "--only", pattern]
        options += ["--seeds", str(shard["seeds"])] if "seeds" in shard else []
        if main(["run", shard["suite"], *options]) != 0:
            leave([name])
    exported = export(run, bundle_of(name))
    print(
        f"{exported.file}: {exported.done} of {count_noun(exported.expected, 'cell')}, "
        f"{exported.size / 1e3:.0f} kB"
    )


def confirm_shard(name: str, cells: int, call: Mapping[str, Any]) -> bool:
    """Replay drawn cells of a shard; record for the page that the code of a call plays the same
    bits, if it does.

    Returns:
        Whether all that were drawn are equal. If one differs, or cannot be replayed bit by bit
        here, nothing is recorded.
    """
    replayed = replay([str(bundle_of(name))], cells)
    print(f"{name}: " + "\n  ".join(describe_replay(replayed)))
    if replayed.differs or not all(
        o.state == "equal" and o.candidate.way == "bits" for o in replayed.outcomes
    ):
        return False
    path = FOLDER / CONFIRMED
    confirmed = json.loads(path.read_text()) if path.exists() else {}
    said = {"bundle": digest_of(bundle_of(name)), "commit": call["commit"], "at": call["at"]}
    confirmed[name] = said | {"cells": len(replayed.outcomes)}
    path.write_text(json.dumps(dict(sorted(confirmed.items())), indent=1) + "\n")
    return True


def find_edits() -> str:
    """Files with changes that no commit holds, but for results, which play nothing; empty if there
    are none.
    """
    words = ["git", "status", "--porcelain", "--", ":/", f":(exclude){FOLDER.name}"]
    return subprocess.run(
        words, cwd=FOLDER.parent, capture_output=True, text=True, check=True
    ).stdout


def confirm_shards(names: Sequence[str], cells: int) -> None:
    """Confirm shards, those that can be.

    Raises:
        SystemExit: code that no commit holds plays, or some shards are not confirmed, which are
            named.
    """
    call = invocation([])
    if call["dirty"] and find_edits():
        raise SystemExit("shards: the tree has changes that no commit holds; commit first")
    if missed := [name for name in names if not confirm_shard(name, cells, call)]:
        raise SystemExit(f"shards: not confirmed: {list_names(missed)} (see above)")


def list_shards(shards: Mapping[str, Mapping[str, Any]]) -> None:
    """Print how much of every shard is played, by which code, and what it cost."""
    for name in shards:
        about = read_about(name)
        if about is None:
            print(f"{name}: not played")
            continue
        cells, hours = about["cells"], about["cost"]["cpu_hours"]
        print(
            f"{name}: {cells['done']} of {cells['expected']} cells, by {played_by(about)}, "
            f"{hours:.2f} CPU-hours"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The comparison with the field, shard by shard.")
    parser.add_argument("shards", nargs="*", metavar="SHARD")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--confirm", type=int, metavar="K")
    arguments = parser.parse_args()
    try:
        shards = read_shards()
        if strange := [name for name in arguments.shards if name not in shards]:
            raise unknown("shard", strange[0], shards)
        if arguments.list:
            list_shards(shards)
        elif arguments.confirm is not None:
            confirm_shards(
                arguments.shards or [name for name in shards if bundle_of(name).exists()],
                arguments.confirm,
            )
        elif arguments.render:
            write_pages(FOLDER, shards)
        else:
            names = arguments.shards or [name for name in shards if not is_whole(name)][:1]
            for name in names:
                play_shard(name, shards[name])
            if not names:
                print("nothing to play")
            write_pages(FOLDER, shards)
    except CbobenchError as error:
        raise SystemExit(f"shards: {error}") from None
