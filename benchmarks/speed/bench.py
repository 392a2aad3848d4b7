"""Measures the cases of `cases.py`, here or here and at another commit in turns. Not a test:
nothing fails.

    make speed [ARGS="--only dispatch tiny --repeats 3"]
    make speed BASE=COMMIT [ARGS=...]

Each measurement is a process of its own. Only ratios of numbers from one run mean something on a
shared machine, so a comparison alternates between the two trees.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.machine import ROOT, describe_machine, git, write_record
from benchmarks.speed.cases import CASES

DRAWS = 2000  # of the bootstrap
# measurements of an interval: of 3, it covers the ratio in 90 % of the cases, of 1 never
FEWEST = 5
Taken = dict[str, dict[str, list[float]]]  # by tree and figure


def measure(case: str, tree: Path) -> dict[str, float]:
    """Return a case's figures for the cbobench of a tree.

    Raises:
        RuntimeError: the case fails there.
    """
    command = [sys.executable, str(Path(__file__).with_name("cases.py")), case]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    if Path(found["tree"]) != tree:
        raise RuntimeError(f"cbobench was imported from {found['tree']}, not from {tree}")
    return {name: float(value) for name, value in found["figures"].items()}


def take_turns(case: str, trees: dict[str, Path], repeats: int) -> tuple[Taken, dict[str, str]]:
    """Measure a case for some trees in turns. Return the figures, and why a tree failed, which is
    then left out.
    """
    taken: Taken = {name: {} for name in trees}
    failed: dict[str, str] = {}
    for _ in range(repeats):
        for name, tree in trees.items():
            if name in failed:
                continue
            try:
                found = measure(case, tree)
            except RuntimeError as error:
                failed[name] = str(error)
                continue
            for figure, value in found.items():
                taken[name].setdefault(figure, []).append(value)
    return taken, failed


def ratio_interval(here: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of the medians, and its 95 % interval by the bootstrap; NaN below `FEWEST`
    measurements.
    """
    ratio = statistics.median(here) / statistics.median(base)
    if min(len(here), len(base)) < FEWEST:
        return ratio, math.nan, math.nan
    rng = np.random.default_rng(0)
    one, other = (
        np.median(rng.choice(np.asarray(v), (DRAWS, len(v))), axis=1) for v in (here, base)
    )
    low, high = np.quantile(one / other, [0.025, 0.975])
    return ratio, float(low), float(high)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A commit in a folder of its own, which is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "base"
        git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def lines(case: str, taken: Taken, failed: dict[str, str]) -> Iterator[str]:
    """Return a case's figures as lines: medians, and the ratio with its interval if there are two
    trees.
    """
    for tree, why in failed.items():
        yield f"{case:14} {tree} failed: {why}"
    for figure in dict.fromkeys(name for one in taken.values() for name in one):
        known = {tree: one[figure] for tree, one in taken.items() if figure in one}
        text = f"{case:14} {figure:48}" + "".join(
            f" {tree} {statistics.median(v):10.4g}" for tree, v in known.items()
        )
        if len(known) == 2:
            ratio, low, high = ratio_interval(known["here"], known["base"])
            text += f"  here/base {ratio:.2f}" + (
                "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
            )
        yield text


def main() -> None:
    """Print the figures; write them as JSON."""
    options = argparse.ArgumentParser()
    options.add_argument("--only", nargs="*", choices=CASES, default=CASES, help="cases")
    options.add_argument("--repeats", type=int, default=FEWEST, help="measurements of each tree")
    options.add_argument("--base", help="a commit to compare with")
    options.add_argument("--out", type=Path, help="the JSON file")
    given = options.parse_args()
    about = describe_machine() | {"base": given.base}
    name = "-".join(filter(None, (given.base, about["commit"])))
    out = given.out or ROOT / "build" / "bench" / f"{name}.json"

    def run(trees: dict[str, Path]) -> None:
        found = {}
        for case in given.only:
            taken, failed = take_turns(case, trees, given.repeats)
            found[case] = {"figures": taken, "failed": failed}
            print("\n".join(lines(case, taken, failed)), flush=True)
            write_record(out, about | {"cases": found})
        print(f"written: {out}")

    if given.base:
        with checkout(given.base) as tree:
            run({"base": tree, "here": ROOT})
    else:
        run({"here": ROOT})


if __name__ == "__main__":
    main()
