"""Plays every suite of a paper and draws its figures.

python docs/paper_figures.py [--seeds N] [--data FOLDER] [--out RUNS]

Runs are kept and resumed: a second call plays only what is missing. A suite that cannot be played, for example because
its recorded data are not there, is named at the end (exit code 1).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cbobench import resources
from cbobench.cli import main

CLAIMS_ONLY = ("_cost", "_slack", "_full_information", "_fixed_penalty")  # of what the papers say without a figure
PAPERS = ("zhou_ji_2022", "shi_eryilmaz_2022", "guo_zhu_liu_2022")


def suites() -> dict[str, str]:
    """The papers' suites, with their papers."""
    return {name: paper for paper in PAPERS for name in resources.suites() if name.startswith(paper)}


def play(suite: str, out: Path, **options: object) -> bool:
    """Play what is missing of a suite into `out`, a folder of its name; whether that could be done.

    Args:
        options: of `cbobench run`, such as seeds or data; None for none.
    """
    words = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return main(["run", suite, "--out", str(out / suite), *words]) == 0


def paper_figures(
    out: Path, seeds: int | None, data: Path | None, horizon: int | None = None, cpus: int | None = None
) -> tuple[list[Path], list[str]]:
    """The figures drawn (PNG), and the suites that could not be played."""
    drawn, missing = [], []
    for suite, paper in suites().items():
        if not suite.endswith(CLAIMS_ONLY):
            started = time.perf_counter()
            if not play(suite, out, seeds=seeds, data=data, horizon=horizon, cpus=cpus):
                missing.append(suite)
                continue
            before = set((out / "figures").glob("*.png"))
            main(["figures", str(out / suite), "--recipe", paper, "--out", str(out / "figures")])
            drawn += sorted(set((out / "figures").glob("*.png")) - before)
            print(f"{suite}: {time.perf_counter() - started:.0f} s", flush=True)
    return drawn, missing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Every figure of the papers.")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    _, left_out = paper_figures(options.out, options.seeds, options.data)
    print(f"{len(list((options.out / 'figures').glob('*.png')))} figures in {options.out / 'figures'}")
    if left_out:
        print(f"not played: {', '.join(left_out)} (see above)")
    raise SystemExit(1 if left_out else 0)
