"""Plays the suite literature_full, and writes docs/literature.json, docs/literature.md and the table in README.md.

python docs/literature.py [--run FOLDER ...] [--no-play] [--render]

The run is kept and resumed. Of several folders, such as those of opponents that were played elsewhere, the first is
played and all are read as one run. `--no-play` takes them as they are; `--render` writes the pages from the stored
findings alone. What is not played yet is missing from the tables, which say n of expected.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import literature_page as pages
from paper_figures import leave

from cbobench.cli import main
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.groups import Group, find_cpus, find_groups
from cbobench.report.load import Run
from cbobench.report.paired import differences
from cbobench.report.quantities import quantities
from cbobench.report.ranks import rank_algorithms
from cbobench.report.summary import summarise_groups
from cbobench.resources import find_suite
from cbobench.suite import yamlio
from cbobench.suite.entries import Where, algorithm_variants, entries
from cbobench.words import count_noun

STORED = Path(__file__).with_name("literature.json")
SUITE = "literature_full"
OURS, THEIRS = ("cei", "scbo"), ("botorch-cei", "botorch-scbo")
REGRET = quantities()["simple_regret"]
SHOWN = [REGRET, *(quantities()[name] for name in ("recommended_regret", "us_per_round"))]


def run_of(folders: Sequence[Path], into: Path) -> Run:
    """One folder as a run, or several as one: a folder that holds the cells and the calls of all is the run of all."""
    if len(folders) == 1:
        return Run(folders[0])
    for folder in folders:
        Run(folder)  # is one
        for kind in ("cells", "rounds", "invocations"):  # in this order: a cell is published after its rounds
            shutil.copytree(folder / kind, into / kind, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
    return Run(into)


def measured(run: Run) -> pages.Findings:
    """What the pages say, as it is stored.

    Raises:
        Misuse: cells of several kinds of CPU, whose seconds cannot be compared, or of several variants of a method.
    """
    found = named_plainly(find_groups(run))
    if len(kinds := find_cpus(found)) > 1:
        raise Misuse(f"{run.folder} holds cells of {len(kinds)} kinds of CPU ({', '.join(sorted(kinds))}); give one")
    rows = summarise_groups(found, SHOWN)
    keep = ["problem", "algorithm", "problem_label", "algorithm_label", "horizon", "n", "expected", "failed"]
    expected = int(rows["expected"].max())
    table = rows[keep].assign(
        median=rows["simple_regret_median"],
        low=rows["simple_regret_median_low"],
        high=rows["simple_regret_median_high"],
        found=rows["simple_regret_defined"],
        feasible=rows["recommended_regret_defined"],
        ms_per_round=rows["us_per_round"] / 1000,
        expected=expected,  # opponents that are played apart may be asked for seed by seed
        stale=[group.stale + group.unchecked for group in found],
    )
    versus, against = [], [title for word in THEIRS if (title := title_of(run, found, word))]
    mine = [title for word in OURS if (title := title_of(run, found, word))]
    some = [group for group in found if group.algorithm in (*mine, *against)]
    for title in against:
        pairs = [group for group in some if group.algorithm in (*mine, title)]
        versus += records(differences(run, pairs, [REGRET], title).to_dict("records"))
    everywhere, left_out = ranks(found)
    lacking = {group.algorithm for group in found if len(group.good) < expected}
    return {
        "table": records(table.to_dict("records")), "missing": missing(found),
        "ranks": list(everywhere.values()), "left_out": left_out,
        "whole": list(ranks([group for group in found if group.algorithm not in lacking])[0].values()),
        "unplayable": run.record.unplayable, "paired": versus, "cpu": next(iter(kinds), "unknown"),
        "hours": hours(found), "hours_of_opponents": hours([g for g in found if g.algorithm in against]),
    }  # fmt: skip


def hours(found: list[Group]) -> float:
    """CPU-hours of all good cells."""
    return float(f"{sum(float(group.good['seconds'].sum()) for group in found) / 3600:.3g}")


def missing(found: list[Group]) -> list[str]:
    """The suite's methods of which no cell was played, as the suite labels them."""
    suite = find_suite(SUITE)
    content, at = yamlio.read(suite), Where(suite)
    asked = [
        algorithm_variants(entry, at, content["shared"], False, ()) for entry in entries(content, "algorithms", at)
    ]
    played = {group.algorithm_label for group in found if len(group.good)}
    return [variant.label for some in asked for variant in some if variant.label not in played]


def title_of(run: Run, found: list[Group], word: str) -> str:
    """The title of the played variant of a method; empty where it is not played yet.

    Raises:
        Misuse: several of its variants are played.
    """
    variants = run.record.variants("algorithms")
    titles = {g.algorithm for g in found if len(g.good) and word in (variants[g.algorithm].name, g.algorithm_label)}
    if len(titles) > 1:
        raise Misuse(f"{run.folder} holds {len(titles)} variants of {word}; allowed: one, that of the suite")
    return next(iter(titles), "")


def named_plainly(found: list[Group]) -> list[Group]:
    """The groups with methods' labels as the suite has them, where an earlier one of the same label was not played."""
    plain = {group.algorithm: group.algorithm_label.partition(" (")[0] for group in found if len(group.good)}
    once = {title for title, label in plain.items() if list(plain.values()).count(label) == 1}
    return [replace(g, algorithm_label=plain[g.algorithm]) if g.algorithm in once else g for g in found]


def ranks(found: list[Group]) -> tuple[dict[str, Any], list[str]]:
    """The rows of `cbobench compare --ranks` by algorithm, and whom it leaves out."""
    try:
        frame = rank_algorithms(found, [REGRET], "")[0]
    except Misuse:
        return {}, sorted({group.algorithm_label for group in found})
    rows = {row["algorithm"]: row for row in records(frame.to_dict("records"))}
    return rows, sorted({group.algorithm_label for group in found if group.algorithm not in rows})


def records(rows: Iterable[dict[Any, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON has them: six digits, text for what is infinite, null for what is undefined."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return None if math.isnan(value) else float(f"{value:.6g}") if math.isfinite(value) else str(value)
        return value.item() if hasattr(value, "item") and not isinstance(value, float) else value

    return [{str(k): plain(float(v) if isinstance(v, float) else v) for k, v in row.items()} for row in rows]


def write(found: pages.Findings) -> None:
    """Store the findings, and write the page and README's table."""
    STORED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    pages.write(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The literature's problems, all methods.")
    parser.add_argument("--run", type=Path, nargs="+", default=[Path("runs/literature-full")])
    parser.add_argument("--no-play", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    if options.render:
        findings = json.loads(STORED.read_text(encoding="utf-8"))
    else:
        # A block of one: a method's seconds per round are those of a run by itself, as an opponent's are.
        played = options.no_play or main(["run", SUITE, "--out", str(options.run[0]), "--block", "1"]) == 0
        if not played:
            leave([SUITE])
        try:
            with tempfile.TemporaryDirectory() as folder:
                findings = measured(run_of(options.run, Path(folder)))
        except CbobenchError as error:
            raise SystemExit(f"literature: {error}") from None
    write(findings)
    print(f"{pages.PAGE}: {count_noun(sum(row['n'] for row in findings['table']), 'run')}")
