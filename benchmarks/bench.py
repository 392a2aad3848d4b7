"""Measures the cases of `benchmarks/cases.py`, here or here and at another commit in turns. Not a test: nothing fails.

    make bench [ARGS="--only dispatch tiny --repeats 3"]
    make bench-compare BASE=COMMIT [ARGS=...]

Each measurement is a process of its own. Only ratios of numbers from one run mean something on a shared machine, so a
comparison alternates between the two trees.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cbobench as cbobench  # before NumPy, because it chooses the arithmetic

# isort: split
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CASES = (
    *("dispatch", "variants", "tiny", "small_tasks", "quickstart", "big", "large", "boxes"),
    *("methods", "recommending", "long_horizon", "refit"),
)
DRAWS = 2000  # of the bootstrap
FEWEST = 5  # measurements of an interval: of 3, it covers the ratio in 90 % of the cases, of 1 never
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Measure = Callable[[str, Path], dict[str, float]]
Taken = dict[str, dict[str, list[float]]]  # by tree and figure


def measure(case: str, tree: Path) -> dict[str, float]:
    """Return a case's figures for the cbobench of a tree.

    Raises:
        RuntimeError: the case fails there.
    """
    command = [sys.executable, str(ROOT / "benchmarks" / "cases.py"), case]
    done = subprocess.run(
        command, env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(tree)}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message")
    found = json.loads(done.stdout.splitlines()[-1])
    if Path(found["tree"]) != tree:
        raise RuntimeError(f"cbobench was imported from {found['tree']}, not from {tree}")
    return {name: float(value) for name, value in found["figures"].items()}


def take_turns(
    case: str, trees: dict[str, Path], repeats: int, measure: Measure = measure
) -> tuple[Taken, dict[str, str]]:
    """Measure a case for some trees in turns. Return the figures, and why a tree failed, which is then left out."""
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
    """Return the ratio of the medians, and its 95 % interval by the bootstrap; NaN below `FEWEST` measurements."""
    if min(len(here), len(base)) < FEWEST:
        return statistics.median(here) / statistics.median(base), math.nan, math.nan
    rng = np.random.default_rng(0)
    one, other = (np.median(rng.choice(np.asarray(v), (DRAWS, len(v))), axis=1) for v in (here, base))
    low, high = np.quantile(one / other, [0.025, 0.975])
    return statistics.median(here) / statistics.median(base), float(low), float(high)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A commit in a folder of its own, which is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "base"
        _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()


def describe_machine() -> dict[str, Any]:
    """Return what the figures depend on beside the code."""
    facts = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    models = [value.strip() for name, _, value in facts if name.startswith("model name")]
    return {
        "at": time.strftime("%Y-%m-%d %H:%M"),
        "cpu": models[0] if models else platform.processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def lines(case: str, taken: Taken, failed: dict[str, str]) -> Iterator[str]:
    """Return a case's figures as lines: medians, and the ratio with its interval if there are two trees."""
    for tree, why in failed.items():
        yield f"{case:14} {tree} failed: {why}"
    for figure in dict.fromkeys(name for one in taken.values() for name in one):
        known = {tree: one[figure] for tree, one in taken.items() if figure in one}
        text = f"{case:14} {figure:48}" + "".join(f" {tree} {statistics.median(v):10.4g}" for tree, v in known.items())
        if len(known) == 2:
            ratio, low, high = ratio_interval(known["here"], known["base"])
            text += f"  here/base {ratio:.2f}" + ("" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]")
        yield text


def main() -> None:
    """Print the figures; write them as JSON."""
    options = argparse.ArgumentParser()
    options.add_argument("--only", nargs="*", choices=CASES, default=CASES, help="cases")
    options.add_argument("--repeats", type=int, default=FEWEST, help="measurements of each tree")
    options.add_argument("--base", help="a commit to compare with")
    options.add_argument("--out", type=Path, help="the JSON file")
    given = options.parse_args()
    commit = _git("rev-parse", "--short", "HEAD")
    out = given.out or ROOT / "build" / "bench" / f"{f'{given.base}-' if given.base else ''}{commit}.json"
    about = describe_machine() | {"commit": commit, "dirty": bool(_git("status", "--porcelain")), "base": given.base}

    def run(trees: dict[str, Path]) -> None:
        found = {}
        for case in given.only:
            taken, failed = take_turns(case, trees, given.repeats)
            found[case] = {"figures": taken, "failed": failed}
            print("\n".join(lines(case, taken, failed)), flush=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(about | {"cases": found}, indent=1, ensure_ascii=False) + "\n")
        print(f"written: {out}")

    if given.base:
        with checkout(given.base) as tree:
            run({"base": tree, "here": ROOT})
    else:
        run({"here": ROOT})


if __name__ == "__main__":
    main()
