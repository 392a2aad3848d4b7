"""Plays what pages are made of, shard by shard, each kept as a bundle in published/.

python -m analysis.shards field|papers [--list | --render | --confirm [K]] [--no-commit] [SHARD ...]

Takes the first shard of that part of published/shards.yaml that is missing, not whole or not
confirmed (or those that are named), renders the pages and commits what that gave. Of a whole bundle
ten drawn cells are played again: if all are equal to the last bit this commit confirms it, else its
shard is played anew. A play ends after 40 minutes; the next call goes on. A bundle says whether the
tree differed from its commit: so a play begins in a clean tree, and leaves one. `--no-commit` plays
in any tree and commits nothing. `--render` makes the pages from the bundles. `--confirm` plays K
drawn cells (10) of each bundle again. Recorded data are in CBOBENCH_DATA.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from analysis import bundles, pictures
from analysis.bundles import Shard, bundle_of, is_confirmed, is_whole, read_about, read_shards
from analysis.field import page as field
from analysis.folders import PUBLISHED, ROOT
from analysis.papers import reproduction
from cbobench.errors import CbobenchError, Misuse, unknown
from cbobench.replay.replay import describe_replay, replay
from cbobench.results.provenance import invocation
from cbobench.sweep.interrupt import interruptible
from cbobench.words import count_noun, list_names

RUNS = Path("runs")
SECONDS = 2400  # of wall time, after which a call stops a play
DRAWN = 10  # cells of a bundle that are played again
LONGEST = 20_000  # rounds of any suite
STOPPED = 130  # how `cbobench run` exits after a signal
HINT = "or commit nothing: --no-commit"


class Part(NamedTuple):
    """What is made of a part of the shards.

    Attributes:
        render: makes all of it from the bundles.
        update: says on its pages who played and confirmed the bundles, and what else is quick.
        files: what is made, in the repository.
    """

    render: Callable[[], None]
    update: Callable[[], None]
    files: tuple[Path, ...]


def render_papers() -> None:
    """Compute findings, page and pictures, which need every suite."""
    shards = read_shards("papers")
    if missing := [name for name in shards if not is_whole(name, shards[name])]:
        print(f"{reproduction.PAGE.name} and pictures are as before, without {list_names(missing)}")
        return
    reproduction.main([])
    pictures.draw_papers()


PARTS = {
    "field": Part(
        render=field.write_pages,
        update=field.write_pages,
        files=(field.PAGE, field.FOLDER, field.README),
    ),
    "papers": Part(
        render=render_papers,
        update=lambda: reproduction.main(["--render"]),
        files=(reproduction.PAGE,),
    ),
}


def rounds_of(shard: Shard) -> list[int] | None:
    """The rounds of every curve that a bundle keeps, as its shard says, None for the usual ones;
    those after T are none.
    """
    if "every" not in shard:
        return None
    every = shard["every"]
    return sorted({1, *range(every, LONGEST + 1, every), *shard.get("also", ())})


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


def play_shard(name: str, shard: Shard, seconds: float = SECONDS) -> None:
    """Play what is missing of a shard, or stale, for some time, and keep what there is.

    Raises:
        Misuse: a command of it was refused, or somebody stopped it.
    """
    run = RUNS / name
    words = ["run", shard.get("suite", name), "--out", str(run)]
    words += ["--seeds", str(shard["seeds"])] if "seeds" in shard else []
    words += ["--again", "stale"] if run.exists() else []
    # Cells of some pairs are played one by one, so that little is lost where a play is stopped.
    pairs = [["--only", pattern, "--block", "1"] for pattern in shard.get("only", ())]
    deadline = time.monotonic() + seconds
    for options in pairs or [[]]:
        code = run_until([*words, *options], deadline)
        if time.monotonic() >= deadline:
            print(f"{name}: stopped after {seconds / 60:.0f} minutes; the next call goes on")
            break
        # A failed cell is a result: its bundle says so, and the others are played.
        if code not in (0, 1):
            raise Misuse(f"{name} is not played (see above)")
    bundles.keep_run(name, run, rounds_of(shard))


def confirm_shard(name: str, cells: int) -> bool:
    """Replay drawn cells of a bundle; record that the code at hand plays the same bits, if it does.

    Returns:
        Whether all that were drawn are equal. If one differs, or cannot be checked here, nothing
        is recorded.

    Raises:
        Misuse: code that no commit holds plays.
    """
    call = invocation([])
    if call["dirty"] and find_edits(PUBLISHED.name):
        raise Misuse("the tree has changes that no commit holds; commit first")
    replayed = replay([str(bundle_of(name))], cells)
    print(f"{name}: " + "\n  ".join(describe_replay(replayed)))
    if replayed.verdict != "equal":
        return False
    said = {"bundle": bundles.digest_of(bundle_of(name)), "commit": call["commit"]}
    said |= {"at": call["at"], "cells": len(replayed.outcomes)}
    confirmed = bundles.read_confirmed() | {name: said}
    file = PUBLISHED / bundles.CONFIRMED
    file.write_text(json.dumps(dict(sorted(confirmed.items())), indent=1) + "\n")
    return True


def renew_shard(name: str, shard: Shard) -> str:
    """Confirm a whole bundle, or else play its shard; the subject of a commit of what that gave."""
    if is_whole(name, shard) and confirm_shard(name, DRAWN):
        return f"Confirm {name} by {count_noun(DRAWN, 'drawn cell')}"
    play_shard(name, shard)
    cells = read_about(bundle_of(name))["cells"]
    played = cells["done"] + cells["failed"]
    return f"Play {name}: {played} of {count_noun(cells['expected'], 'cell')}"


def ask_git(*words: str) -> str:
    """What git answers in the work tree.

    Raises:
        Misuse: it refuses, in its words.
    """
    asked = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if asked.returncode:
        said = (asked.stderr or asked.stdout).strip().splitlines() or ["no reason given"]
        raise Misuse(f"git {words[0]}: {said[0]}; mend that, {HINT}")
    return asked.stdout


def find_edits(*but: str) -> str:
    """Files with changes that no commit holds, but for some folders; empty if there are none."""
    return ask_git("status", "--porcelain", "--", ":/", *(f":(exclude){folder}" for folder in but))


def refuse_edits() -> None:
    """Refuse to play in a tree that differs from its commit: the bundle would say so for good.

    Raises:
        Misuse: there are such files, of which the first are named.
    """
    if names := [line[3:] for line in find_edits().splitlines()]:
        raise Misuse(
            f"the tree has changes that no commit holds ({list_names(names[:3])}); commit "
            f"them, {HINT}"
        )


def commit_results(subject: str, part: Part) -> None:
    """Commit what is published and the part's pages, and nothing else; nothing if none changed."""
    places = [str(path) for path in (PUBLISHED, *part.files) if path.exists()]
    if ask_git("status", "--porcelain", "--", *places):
        ask_git("add", "--", *places)
        ask_git("commit", "--quiet", "-m", subject, "--", *places)
        print(f"committed: {subject}")


def list_bundles(names: Iterable[str]) -> None:
    """Print how much of every bundle is played, by which code, whether a replay confirmed it, and
    what it cost.
    """
    for name in names:
        if not bundle_of(name).exists():
            print(f"{name}: not played")
            continue
        about = read_about(bundle_of(name))
        cells = about["cells"]
        print(
            f"{name}: {cells['done']} of {cells['expected']} cells, by "
            f"{bundles.played_by(about)}, "
            f"{'confirmed' if is_confirmed(name) else 'not confirmed'}, "
            f"{about['seconds'] / 60:.1f} CPU-minutes"
        )


def choose_next(shards: Mapping[str, Shard]) -> list[str]:
    """The first shard that is missing or not whole, else the first that is not confirmed; at most
    one.
    """
    missing = [name for name in shards if not is_whole(name, shards[name])]
    return missing[:1] or [name for name in shards if not is_confirmed(name)][:1]


def play_shards(
    part: Part, shards: Mapping[str, Shard], names: Sequence[str], is_committed: bool
) -> None:
    """Play or confirm some shards, by default the next one; each is committed as it ends."""
    names = names or choose_next(shards)
    for name in names:
        subject = renew_shard(name, shards[name])
        part.update()
        if is_committed:
            commit_results(subject, part)
    if not names:
        print("nothing to play")


def main(given: Sequence[str] | None = None) -> None:
    """Play, list, confirm or render, as the command line says."""
    parser = argparse.ArgumentParser(description="What pages are made of, shard by shard.")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("shards", nargs="*", metavar="SHARD")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--confirm", type=int, nargs="?", const=DRAWN, metavar="K")
    parser.add_argument("--no-commit", action="store_true")
    options = parser.parse_args(given)
    part = PARTS[options.part]
    shards = read_shards(options.part)
    if strange := [name for name in options.shards if name not in shards]:
        raise unknown("shard", strange[0], shards)
    if options.list:
        list_bundles(shards)
        return
    if options.render:
        part.render()
        return
    is_committed = not options.no_commit
    if is_committed:
        refuse_edits()
    if options.confirm is None:
        play_shards(part, shards, options.shards, is_committed)
        return
    names = options.shards or [name for name in shards if bundle_of(name).exists()]
    missed = [name for name in names if not confirm_shard(name, options.confirm)]
    part.update()
    if is_committed:
        commit_results("Confirm bundles by replay", part)
    if missed:
        raise Misuse(f"not confirmed: {list_names(missed)} (see above)")


if __name__ == "__main__":
    try:
        main()
    except CbobenchError as error:
        raise SystemExit(f"shards: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("shards: stopped; what is played stays, the same call goes on") from None
