"""Plays the papers' suites one by one, each kept as a bundle in published;
from these `reproduction` and `gallery` write their pages, without a play.

python -m analysis.papers.play [--list | --render | --confirm [K]] [--no-commit] [SUITE ...]

Takes the first suite of published/papers.yaml that is missing, not whole or not confirmed (or
those that are named), and commits what that gave. Of a whole bundle ten drawn cells are played
again: if all are equal to the last bit this commit confirms it, else its suite is played anew. A
play ends after 40 minutes; the next call goes on. `--render` computes pages and gallery from the
bundles. `--confirm` plays K drawn cells (10) of each bundle again. The recorded data are in
CBOBENCH_DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.folders import PUBLISHED
from analysis.papers import gallery, reproduction
from analysis.papers.bundles import bundle_of, is_confirmed, is_whole, list_whole
from analysis.papers.figures import suites as list_papers
from analysis.shards import (
    SECONDS,
    commit_results,
    confirm_shards,
    describe_play,
    keep_run,
    list_bundles,
    refuse_edits,
    run_commands,
)
from cbobench.errors import CbobenchError, unknown
from cbobench.suite import yamlio
from cbobench.words import count_noun, list_names

RUNS = Path("runs") / "papers"
LONGEST = 20_000  # rounds of any suite
DRAWN = 10  # cells of a bundle that are played again
Suites = Mapping[str, Mapping[str, Any]]


def read_suites() -> dict[str, dict[str, Any]]:
    """What is to be played, by the suite's name, in this order."""
    return dict(yamlio.read(PUBLISHED / "papers.yaml"))


def rounds_of(entry: Mapping[str, Any]) -> list[int]:
    """The rounds of every curve that a bundle keeps, as its entry in papers.yaml says; those after
    T are none.
    """
    every = entry.get("every", LONGEST)
    return sorted({1, *range(every, LONGEST + 1, every), *entry.get("also", ())})


def commit_bundles(subject: str) -> None:
    """Commit the bundles, which commits confirmed them, and the page that says so."""
    reproduction.main(["--render"])
    commit_results(subject, PUBLISHED, reproduction.STORED, reproduction.PAGE)


def play_suite(suite: str, rounds: Sequence[int], seconds: float) -> None:
    """Play what is missing of a suite, or stale, for some time, and export what there is.

    Raises:
        SystemExit: the play was refused, or somebody stopped it.
    """
    run = RUNS / suite
    again = ["--again", "stale"] if run.exists() else []
    if not run_commands(suite, [["run", suite, "--out", str(run), *again]], seconds):
        raise SystemExit(f"papers: {suite} is not played (see above)")
    keep_run(run, bundle_of(suite), rounds)


def renew_suite(suite: str, rounds: Sequence[int], is_committed: bool) -> None:
    """Confirm a whole bundle, or else play its suite; commit what that gave."""
    if is_whole(suite) and not confirm_shards([suite], DRAWN):
        subject = f"Confirm {suite} by {count_noun(DRAWN, 'drawn cell')}"
    else:
        play_suite(suite, rounds, SECONDS)
        subject = describe_play(suite)
    if is_committed:
        commit_bundles(subject)


def render_pages() -> None:
    """Compute findings, pages and gallery from the bundles, as far as these are there: the prose
    about the papers names numbers of every suite.
    """
    if missing := [suite for suite in list_papers() if not is_whole(suite)]:
        print(f"{reproduction.PAGE.name} and gallery are as before, without {list_names(missing)}")
    else:
        reproduction.main([])
        gallery.main()


def choose_next(suites: Suites) -> list[str]:
    """The first suite that is missing or not whole, else the first that is not confirmed; at most
    one.
    """
    missing = [suite for suite in suites if not is_whole(suite)]
    return missing[:1] or [suite for suite in suites if not is_confirmed(suite)][:1]


def main(given: Sequence[str] | None = None) -> None:
    """Play, list or confirm, as the command line says."""
    parser = argparse.ArgumentParser(description="The papers' suites, one by one.")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--confirm", type=int, nargs="?", const=DRAWN, metavar="K")
    parser.add_argument("--no-commit", action="store_true")
    options = parser.parse_args(given)
    suites = read_suites()
    if strange := [suite for suite in options.suites if suite not in suites]:
        raise unknown("suite", strange[0], suites)
    if options.list or options.render:
        list_bundles(map(bundle_of, suites)) if options.list else render_pages()
        return
    # A bundle says whether the tree differed from its commit when it was played.
    if not options.no_commit:
        refuse_edits()
    if options.confirm is not None:
        there = options.suites or list_whole(suites)
        missed = confirm_shards(there, options.confirm)
        if not options.no_commit:
            commit_bundles("Confirm the papers' bundles by replay")
        if missed:
            raise SystemExit(f"papers: not confirmed: {list_names(missed)} (see above)")
        return
    names = options.suites or choose_next(suites)
    for suite in names:
        renew_suite(suite, rounds_of(suites[suite]), not options.no_commit)
    if not names:
        print("nothing to play")


if __name__ == "__main__":
    try:
        main()
    except CbobenchError as error:
        raise SystemExit(f"papers: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("papers: stopped; what is played stays, the same call goes on") from None
