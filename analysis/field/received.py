"""Checks the bundles that others send: each is read whole, and drawn cells
of it are played again.

python -m analysis.field.received [--since COMMIT] [--replay K] [BUNDLE ...]

By default all of published/ that shards.yaml does not name; with `--since` those of them that
differ from a commit. No module is imported because a bundle names it. A bundle of which a drawn
cell cannot be checked here, as a library or data are missing, is named and is no error; one that
differs, or is damaged, is (exit code 1).
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from analysis.bundles import find_sent
from analysis.folders import PUBLISHED
from cbobench.errors import CbobenchError, Misuse, printable
from cbobench.replay.replay import describe_replay, replay
from cbobench.words import count_noun, list_names

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.zip")
MOST = 2_000_000  # bytes of a bundle
DRAWN = 3  # cells of a bundle that are drawn by default


def find_since(commit: str) -> list[Path]:
    """The bundles that are new or others than at a commit.

    Raises:
        SystemExit: git knows no such commit.
    """
    words = ["git", "diff", "--name-only", "--relative", "--diff-filter=d", commit, "--", "."]
    asked = subprocess.run(words, cwd=PUBLISHED, capture_output=True, text=True, check=False)
    if asked.returncode:
        raise SystemExit(f"received: {asked.stderr.splitlines()[0]}; give a commit of this clone")
    changed = set(asked.stdout.split("\n"))
    return [bundle for bundle in find_sent() if bundle.name in changed]


def check_bundle(bundle: Path, cells: int) -> str:
    """Read a bundle, replay drawn cells, and say what became of them.

    Returns:
        "equal", "not checked" where some drawn cells could not be checked here, or "wrong".
    """
    size = bundle.stat().st_size if bundle.is_file() else 0
    if not NAME.fullmatch(bundle.name) or size > MOST:
        print(
            f"{printable(bundle.name)}: {size / 1e6:.1f} MB; name it in small "
            f"letters, digits and hyphens, with .zip, and send at most {MOST / 1e6:g} MB"
        )
        return "wrong"
    try:
        replayed = replay([str(bundle)], cells)
    except Misuse as error:  # that nothing can be drawn is no fault
        print(f"{bundle.name}: {printable(str(error))}")
        return "not checked" if str(error).startswith("no cell can be drawn") else "wrong"
    except CbobenchError as error:
        print(f"{bundle.name}: {printable(str(error))}")
        return "wrong"
    print(f"{bundle.name}: " + "\n".join(describe_replay(replayed)))
    return "wrong" if replayed.verdict == "differs" else replayed.verdict


def check_bundles(bundles: Sequence[Path], cells: int) -> int:
    """Check some bundles; the exit code."""
    names: dict[str, list[str]] = {"equal": [], "not checked": [], "wrong": []}
    for bundle in bundles:
        names[check_bundle(bundle, cells)].append(bundle.name)
    said = [f"{len(some)} {state}: {list_names(some)}" for state, some in names.items() if some]
    print("; ".join([count_noun(len(bundles), "bundle"), *said]))
    return 1 if names["wrong"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Bundles that others sent.")
    parser.add_argument("bundles", nargs="*", type=Path, metavar="BUNDLE")
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--replay", type=int, default=DRAWN, metavar="K")
    options = parser.parse_args()
    given = options.bundles or (find_since(options.since) if options.since else find_sent())
    raise SystemExit(check_bundles(given, options.replay))
