"""Plays every suite of a paper and draws its figures.

python -m analysis.papers.figures [--seeds N] [--data FOLDER] [--out RUNS]

Runs are kept and resumed: a second call plays only what is missing. A suite that cannot be played,
for example because its recorded data are not there, is named at the end (exit code 1).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cbobench import resources
from cbobench.cli import main
from cbobench.report.load import Run
from cbobench.words import count_noun

NATIVE = "native"  # the arithmetic of a machine as it is
# of what the papers say without a figure
CLAIMS_ONLY = ("_cost", "_slack", "_full_information", "_fixed_penalty")
Stored = dict[str, Any]
PAPERS = ("zhou_ji_2022", "shi_eryilmaz_2022", "guo_zhu_liu_2022")


def suites() -> dict[str, str]:
    """The papers' suites, with their papers."""
    return {
        name: paper for paper in PAPERS for name in resources.suites() if name.startswith(paper)
    }


def play(suite: str, out: Path, **options: object) -> bool:
    """Play what is missing of a suite into `out`, a folder of its name; whether that could be done.

    Args:
        options: of `cbobench run`, such as seeds or data; None for none.
    """
    words = [
        word
        for name, value in options.items()
        if value is not None
        for word in (f"--{name}", str(value))
    ]
    return main(["run", suite, "--out", str(out / suite), *words]) == 0


def name_commit(call: Mapping[str, Any]) -> str:
    """The commit of a call, and whether its work tree differed from that."""
    return str(call.get("commit") or "unknown")[:7] + (" with changes" if call.get("dirty") else "")


def name_span(commits: Sequence[str]) -> str:
    """Some commits; of many the first and the last, as each bundle has its own beside its name."""
    if len(commits) > 3:
        return f"{commits[0]} to {commits[-1]}"
    return ", ".join(commits) or "unknown"


def describe_origin(runs: Sequence[Run]) -> dict[str, Any]:
    """Who played some runs and when, as pages store and state it.

    Returns:
        commit, date: the commits (`name_span`), and the latest day.
        arithmetic, cpus: the kinds of both.
    """
    calls = [call for run in runs for call in run.record.invocations]
    dates = [str(call["at"])[:10] for call in calls if call.get("at")]
    return {
        "commit": name_span([*dict.fromkeys(map(name_commit, calls))]),
        "date": max(dates, default="unknown"),
        "arithmetic": sorted(
            {kind for run in runs for kind in run.cells["arithmetic"].fillna(NATIVE)}
        ),
        "cpus": sorted({kind for run in runs for kind in run.cells["cpu"].dropna()}),
    }


def write_page(stored: Stored, file: Path, text: str, page: Path) -> None:
    """Store findings in a file, and write their page."""
    file.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def leave(missing: list[str]) -> NoReturn:
    """End the program: with exit code 1, and their names, where suites could not be played."""
    if missing:
        print(f"not played: {', '.join(missing)} (see above)")
    raise SystemExit(1 if missing else 0)


def paper_figures(
    out: Path,
    seeds: int | None,
    data: Path | None,
    horizon: int | None = None,
    cpus: int | None = None,
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
    print(
        f"{count_noun(len(list((options.out / 'figures').glob('*.png'))), 'figure')} in "
        f"{options.out / 'figures'}"
    )
    leave(left_out)
