"""Plays every suite of a paper and draws its figures.

python -m analysis.papers.figures [--seeds N] [--data FOLDER] [--out RUNS]

Runs are kept and resumed: a second call plays only what is missing. A suite that cannot be played,
for example because its recorded data are not there, is named at the end (exit code 1).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from analysis.bundles import read_shards
from cbobench.cli import main
from cbobench.words import count_noun

# of what the papers say without a figure
CLAIMS_ONLY = ("_cost", "_slack", "_full_information", "_fixed_penalty")


def list_suites() -> list[str]:
    """The papers' suites that have figures."""
    return [name for name in read_shards("papers") if not name.endswith(CLAIMS_ONLY)]


def recipe_of(suite: str) -> str:
    """The recipe that draws the figures of a suite."""
    return suite.partition("_2022")[0] + "_2022"


def play(suite: str, out: Path, **options: object) -> bool:
    """Play what is missing of a suite into `out`, a folder of its name; whether that could be done.

    Args:
        options: of `cbobench run`, such as seeds or data; None for none.
    """
    given = {f"--{name}": str(value) for name, value in options.items() if value is not None}
    words = [word for option in given.items() for word in option]
    return main(["run", suite, "--out", str(out / suite), *words]) == 0


def draw_figures(out: Path, **options: object) -> list[str]:
    """Play all suites (`play`) and draw their figures into a folder of `out`; the suites that could
    not be played.
    """
    missing = []
    for suite in list_suites():
        started = time.perf_counter()
        if not play(suite, out, **options):
            missing.append(suite)
            continue
        folder = ["--out", str(out / "figures")]
        main(["figures", str(out / suite), "--recipe", recipe_of(suite), *folder])
        print(f"{suite}: {time.perf_counter() - started:.0f} s", flush=True)
    return missing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Every figure of the papers.")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    left_out = draw_figures(given.out, seeds=given.seeds, data=given.data)
    drawn = [*(given.out / "figures").glob("*.png")]
    print(f"{count_noun(len(drawn), 'figure')} in {given.out / 'figures'}")
    if left_out:
        raise SystemExit(f"not played: {', '.join(left_out)} (see above)")
