"""Plays the suites of the literature, and writes the pages that show their results.

python docs/literature.py [literature_full | literature_small] [--run RUN ...] [--no-play] [--render]

literature_full is stored as docs/literature.json and shown by docs/literature.md. literature_small is exported as
docs/literature_small.zip and shown by README.md; a test plays a sample of its cells again. A run is kept and resumed.
Of several folders, such as those of opponents that were played elsewhere, the first is played and all are read as one
run. `--no-play` takes them as they are, as a bundle always is; `--render` writes the pages from what is stored. What is
not played yet is missing from the tables, which say n of expected.
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
from paper_figures import describe_origin, leave

from cbobench.cli import main
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.groups import Group, find_cpus, find_groups
from cbobench.report.load import Run
from cbobench.report.paired import differences
from cbobench.report.quantities import quantities
from cbobench.report.ranks import rank_algorithms
from cbobench.report.summary import summarise_groups
from cbobench.results.bundle import is_bundle
from cbobench.results.export import export
from cbobench.words import count_noun

STORED = Path(__file__).with_name("literature.json")
BUNDLE = Path(__file__).with_name("literature_small.zip")
FULL, SMALL = "literature_full", "literature_small"
OURS, THEIRS = ("cei", "scbo"), ("botorch-cei", "botorch-scbo")
REGRET = quantities()["simple_regret"]
QUANTITIES = [REGRET, *(quantities()[name] for name in ("recommended_regret", "us_per_round"))]


def run_of(folders: Sequence[Path], into: Path) -> Run:
    """One folder or bundle as a run, or several folders as one, which holds the cells and the calls of all.

    Raises:
        Misuse: no run there, or a bundle among several.
    """
    if len(folders) == 1:
        return Run(folders[0])
    for folder in folders:
        Run(folder)  # is one
        if is_bundle(str(folder)):
            raise Misuse(f"{folder} is a bundle, and only run folders are read as one; give it alone, or the folders")
        for kind in ("cells", "rounds", "invocations"):  # in this order: a cell is published after its rounds
            if (folder / kind).is_dir():
                shutil.copytree(folder / kind, into / kind, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
    return Run(into)


def measured(run: Run, suite: str = FULL) -> pages.Findings:
    """What the pages say of a run of a suite, as it is stored.

    Raises:
        Misuse: cells of several kinds of CPU, whose seconds cannot be compared, or of several variants of a method.
    """
    groups = named_plainly(find_groups(run))
    if len(kinds := find_cpus(groups)) > 1:
        raise Misuse(f"{run.folder} holds cells of {len(kinds)} kinds of CPU ({', '.join(sorted(kinds))}); give one")
    rows = summarise_groups(groups, QUANTITIES)
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
    )
    versus, against = [], [title for word in THEIRS if (title := title_of(run, groups, word))]
    ours = [title for word in OURS if (title := title_of(run, groups, word))]
    for title in against:
        pairs = [group for group in groups if group.algorithm in (*ours, title)]
        versus += records(differences(run, pairs, [REGRET], title).to_dict("records"))
    partial = {group.algorithm for group in groups if len(group.good) < expected}
    return {
        "suite": suite,
        **describe_origin(run.record.invocations),
        "since": [],
        "table": records(table.to_dict("records")),
        "ranks": ranks([group for group in groups if group.algorithm not in partial]),
        "paired": versus,
        "cpu": next(iter(kinds), "unknown"),
        "hours": hours(groups),
        "hours_of_opponents": hours([group for group in groups if group.algorithm in against]),
    }


def hours(groups: list[Group]) -> float:
    """CPU-hours of all good cells."""
    return float(f"{sum(float(group.good['seconds'].sum()) for group in groups) / 3600:.3g}")


def title_of(run: Run, groups: list[Group], word: str) -> str:
    """The title of the played variant of a method; empty where it is not played yet.

    Raises:
        Misuse: several of its variants are played.
    """
    variants = run.record.variants("algorithms")
    titles = {g.algorithm for g in groups if len(g.good) and word in (variants[g.algorithm].name, g.algorithm_label)}
    if len(titles) > 1:
        raise Misuse(f"{run.folder} holds {len(titles)} variants of {word}; allowed: one, that of the suite")
    return next(iter(titles), "")


def named_plainly(groups: list[Group]) -> list[Group]:
    """The groups with methods' labels as the suite has them, where an earlier one of the same label was not played."""
    plain = {group.algorithm: group.algorithm_label.partition(" (")[0] for group in groups if len(group.good)}
    unique = {title for title, label in plain.items() if list(plain.values()).count(label) == 1}
    return [replace(g, algorithm_label=plain[g.algorithm]) if g.algorithm in unique else g for g in groups]


def ranks(groups: list[Group]) -> list[dict[str, Any]]:
    """The rows of `cbobench compare --ranks` for methods that have every run; none where nothing can be ranked."""
    try:
        return records(rank_algorithms(groups, [REGRET], "")[0].to_dict("records"))
    except Misuse:
        return []


def records(rows: Iterable[dict[Any, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON has them: six digits, text for what is infinite, null for what is undefined."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return None if math.isnan(value) else float(f"{value:.6g}") if math.isfinite(value) else str(value)
        return value.item() if hasattr(value, "item") and not isinstance(value, float) else value

    return [{str(k): plain(float(v) if isinstance(v, float) else v) for k, v in row.items()} for row in rows]


def read_stored() -> tuple[pages.Findings, pages.Findings]:
    """What docs/literature.md and README's table show."""
    return json.loads(STORED.read_text(encoding="utf-8")), measured(Run(BUNDLE), SMALL)


def play(suite: str, runs: Sequence[Path]) -> None:
    """Play what is missing of a suite into the first of the runs."""
    # A block of one: a method's seconds per round are those of a run by itself, as an opponent's are.
    if main(["run", suite, "--out", str(runs[0]), "--block", "1"]) != 0:
        leave([suite])


def store(suite: str, runs: Sequence[Path]) -> None:
    """Store what the pages show of played runs."""
    if suite == SMALL:
        export(runs[0], BUNDLE)
        return
    with tempfile.TemporaryDirectory() as folder:
        findings = measured(run_of(runs, Path(folder)))
    STORED.write_text(json.dumps(findings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The literature's problems, all methods.")
    parser.add_argument("suite", nargs="?", choices=[FULL, SMALL], default=FULL)
    parser.add_argument("--run", type=Path, nargs="+")
    parser.add_argument("--no-play", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    played_runs = options.run or [Path("runs") / options.suite.replace("_", "-")]
    try:
        if not (options.render or options.no_play or is_bundle(str(played_runs[0]))):
            play(options.suite, played_runs)
        if not options.render:
            store(options.suite, played_runs)
        full, small = read_stored()
    except CbobenchError as error:
        raise SystemExit(f"literature: {error}") from None
    pages.write(full, small)
    for page, findings in ((pages.PAGE, full), (pages.README, small)):
        print(f"{page}: {count_noun(sum(row['n'] for row in findings['table']), 'run')}")
