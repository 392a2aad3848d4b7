"""Plays the comparison with the field shard by shard, each kept as a bundle in published and
shown by docs/field.md.

python -m analysis.shards [--list | --render | --confirm [K]] [--no-commit] [SHARD ...]

Plays the first shard of published/shards.yaml that is missing or not whole (or those that are
named) for at most 40 minutes, exports it, renders the pages and commits both. What is then missing
of it is played by the next call. A bundle says whether the tree differed from its commit, and the
last shard's bundle would be such a difference: so a play begins in a clean tree, and leaves one.
`--no-commit` plays in any tree and commits nothing. `--render` writes the pages from the bundles
that are there. `--confirm` plays K drawn cells (5) of every shard again with the code at hand;
where all are equal to the last bit, the page says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.bundles import (
    CONFIRMED,
    count_missing,
    digest_of,
    find_sent,
    is_confirmed,
    played_by,
    read_about,
    read_confirmed,
)
from analysis.field import open_table
from analysis.field.page import PAGE, write_pages
from analysis.folders import PUBLISHED, ROOT
from cbobench.errors import CbobenchError, unknown
from cbobench.replay.replay import describe_replay, replay
from cbobench.results.export import export
from cbobench.results.provenance import invocation
from cbobench.suite import yamlio
from cbobench.sweep.interrupt import interruptible
from cbobench.words import count_noun, list_names

PAGES = (PAGE, open_table.PAGE.parent, ROOT / "README.md")  # what is rendered from the bundles
RUNS = Path("runs") / "field"
SECONDS = 2400  # of wall time, after which a call stops a play
CONFIRMING = 5  # cells of a shard that are drawn by default
STOPPED = 130  # how `cbobench run` exits after a signal
LEFT = "or commit nothing: make literature ARGS=--no-commit"


def read_shards() -> dict[str, dict[str, Any]]:
    """What is to be played, by the shard's name."""
    return dict(yamlio.read(PUBLISHED / "shards.yaml"))


def bundle_of(name: str) -> Path:
    """Where a shard is kept."""
    return PUBLISHED / f"{name}.zip"


def is_whole(name: str, shard: Mapping[str, Any]) -> bool:
    """Whether a shard has all of its cells, failed ones included."""
    return bundle_of(name).exists() and not count_missing(bundle_of(name), shard)


def run_until(words: Sequence[str], deadline: float) -> int:
    """Run a `cbobench` command, stopped at a moment of `time.monotonic`; its exit code.

    What it has published stays, and the same command resumes it.
    """
    with (
        interruptible(),
        subprocess.Popen([sys.executable, "-m", "cbobench", *words]) as process,
    ):
        try:
            return process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return STOPPED
        finally:
            process.terminate()  # whoever ends this call ends that one; it may have ended


def run_commands(name: str, commands: Iterable[Sequence[str]], seconds: float) -> bool:
    """Run the commands of a play one by one for some time; whether none was refused or stopped by
    somebody.
    """
    deadline = time.monotonic() + seconds
    for words in commands:
        code = run_until(words, deadline)
        if time.monotonic() >= deadline:
            print(f"{name}: stopped after {seconds / 60:.0f} minutes; the next call goes on")
            return True
        # A failed cell is a result: its bundle says so, and the others are played.
        if code not in (0, 1):
            return False
    return True


def keep_run(run: Path, bundle: Path, rounds: Sequence[int] | None = None) -> None:
    """Export what there is of a run, with the curves of some rounds or of the usual ones."""
    exported = export(run, bundle, rounds)
    print(
        f"{exported.file}: {exported.done} of {count_noun(exported.expected, 'cell')}, "
        f"{exported.size / 1e3:.0f} kB"
    )


def describe_play(name: str) -> str:
    """The subject of a commit: how many of a shard's cells are played, failed ones included."""
    cells = read_about(bundle_of(name))["cells"]
    played = cells["done"] + cells["failed"]
    return f"Play {name}: {played} of {count_noun(cells['expected'], 'cell')}"


def play_shard(name: str, shard: Mapping[str, Any], seconds: float) -> None:
    """Play what is missing of a shard for some time, and export what there is.

    Raises:
        SystemExit: a command of it was refused, or somebody stopped it.
    """
    run = RUNS / name
    options = ["--out", str(run), "--block", "1"]
    options += ["--seeds", str(shard["seeds"])] if "seeds" in shard else []
    commands = [["run", shard["suite"], *options, "--only", pattern] for pattern in shard["only"]]
    if not run_commands(name, commands, seconds):
        raise SystemExit(f"shards: {name} is not played (see above)")
    keep_run(run, bundle_of(name))


def render_pages(shards: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the pages from the bundles that are there."""
    write_pages(PUBLISHED, shards)
    played = [bundle_of(name) for name in shards if bundle_of(name).exists()]
    text = open_table.render_table(played, find_sent())
    open_table.PAGE.write_text(text, encoding="utf-8")


def confirm_shard(name: str, cells: int, call: Mapping[str, Any]) -> bool:
    """Replay drawn cells of a shard; record for the page that the code of a call plays the same
    bits, if it does.

    Returns:
        Whether all that were drawn are equal. If one differs, or cannot be checked here, nothing
        is recorded.
    """
    replayed = replay([str(bundle_of(name))], cells)
    print(f"{name}: " + "\n  ".join(describe_replay(replayed)))
    if replayed.verdict != "equal":
        return False
    path = bundle_of(name).with_name(CONFIRMED)
    confirmed = read_confirmed(path.parent)
    said = {"bundle": digest_of(bundle_of(name)), "commit": call["commit"], "at": call["at"]}
    confirmed[bundle_of(name).stem] = said | {"cells": len(replayed.outcomes)}
    path.write_text(json.dumps(dict(sorted(confirmed.items())), indent=1) + "\n")
    return True


def ask_git(*words: str) -> str:
    """What git answers in the work tree.

    Raises:
        SystemExit: it refuses, in its words.
    """
    asked = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if asked.returncode:
        said = (asked.stderr or asked.stdout).strip().splitlines() or ["no reason given"]
        raise SystemExit(f"shards: git {words[0]}: {said[0]}; mend that, {LEFT}")
    return asked.stdout


def find_edits(*but: str) -> str:
    """Files with changes that no commit holds, but for some folders; empty if there are none."""
    return ask_git("status", "--porcelain", "--", ":/", *(f":(exclude){folder}" for folder in but))


def refuse_edits() -> None:
    """Refuse to play in a tree that differs from its commit: the bundle would say so for good.

    Raises:
        SystemExit: there are such files, of which the first are named.
    """
    names = [line[3:] for line in find_edits().splitlines()]
    if names:
        raise SystemExit(
            f"shards: the tree has changes that no commit holds ({list_names(names[:3])}); commit "
            f"them, {LEFT}"
        )


def commit_results(subject: str, *paths: Path) -> None:
    """Commit some files and the pages, and nothing else; nothing if none of them changed."""
    places = [str(path) for path in (*paths, *PAGES) if path.exists()]
    if ask_git("status", "--porcelain", "--", *places):
        ask_git("add", "--", *places)
        ask_git("commit", "--quiet", "-m", subject, "--", *places)
        print(f"committed: {subject}")


def confirm_shards(names: Sequence[str], cells: int) -> list[str]:
    """Confirm shards, those that can be; the others are returned.

    Raises:
        SystemExit: code that no commit holds plays.
    """
    call = invocation([])
    if call["dirty"] and find_edits("published"):
        raise SystemExit("shards: the tree has changes that no commit holds; commit first")
    return [name for name in names if not confirm_shard(name, cells, call)]


def list_bundles(bundles: Iterable[Path]) -> None:
    """Print how much of every bundle is played, by which code, whether a replay confirmed it, and
    what it cost.
    """
    for bundle in bundles:
        if not bundle.exists():
            print(f"{bundle.stem}: not played")
            continue
        about, is_known = read_about(bundle), is_confirmed(bundle, read_confirmed(bundle.parent))
        cells = about["cells"]
        print(
            f"{bundle.stem}: {cells['done']} of {cells['expected']} cells, by {played_by(about)}, "
            f"{'confirmed' if is_known else 'not confirmed'}, {about['seconds'] / 60:.1f} "
            "CPU-minutes"
        )


def play_shards(
    shards: Mapping[str, Mapping[str, Any]], names: Sequence[str], is_committed: bool
) -> None:
    """Play some shards, by default the next that is missing; each is committed as it ends.

    Raises:
        SystemExit: the tree has changes, and what is played shall be committed.
    """
    if is_committed:
        refuse_edits()
    names = names or [name for name in shards if not is_whole(name, shards[name])][:1]
    for name in names:
        play_shard(name, shards[name], SECONDS)
        render_pages(shards)
        if is_committed:
            commit_results(describe_play(name), bundle_of(name))
    if not names:
        print("nothing to play")


def main(given: Sequence[str] | None = None) -> None:
    """Play, list, confirm or render, as the command line says."""
    parser = argparse.ArgumentParser(description="The comparison with the field, shard by shard.")
    parser.add_argument("shards", nargs="*", metavar="SHARD")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--confirm", type=int, nargs="?", const=CONFIRMING, metavar="K")
    parser.add_argument("--no-commit", action="store_true")
    options = parser.parse_args(given)
    shards = read_shards()
    if strange := [name for name in options.shards if name not in shards]:
        raise unknown("shard", strange[0], shards)
    if options.list:
        list_bundles(map(bundle_of, shards))
    elif options.render:
        render_pages(shards)
    elif options.confirm is not None:
        names = options.shards or [name for name in shards if bundle_of(name).exists()]
        missed = confirm_shards(names, options.confirm)
        render_pages(shards)
        if not options.no_commit:
            commit_results("Confirm shards of the field by replay", PUBLISHED / CONFIRMED)
        if missed:
            raise SystemExit(f"shards: not confirmed: {list_names(missed)} (see above)")
    else:
        play_shards(shards, options.shards, not options.no_commit)


if __name__ == "__main__":
    try:
        main()
    except CbobenchError as error:
        raise SystemExit(f"shards: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("shards: stopped; what is played stays, the same call goes on") from None
