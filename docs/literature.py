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
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_figures import leave

from cbobench.cli import main
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.aggregate import summarised
from cbobench.report.formats import number
from cbobench.report.groups import Group, arenas, groups
from cbobench.report.load import Run
from cbobench.report.pairs import differences, probability
from cbobench.report.quantities import quantities
from cbobench.report.ranking import ranked
from cbobench.stats.paired import SIGNIFICANT
from cbobench.words import counted

HERE = Path(__file__).parent
STORED, PAGE, README = HERE / "literature.json", HERE / "literature.md", HERE.parent / "README.md"
SUITE = "literature_full"
OURS, THEIRS = ("cei", "scbo"), ("botorch-cei", "botorch-scbo")
REGRET = quantities()["simple_regret"]
SHOWN = [REGRET, *(quantities()[name] for name in ("recommended_regret", "us_per_round"))]
Findings = dict[str, Any]

INTRODUCTION = """\
# The methods against the field

Seven problems of the literature without noise, as the suite `literature_full` plays them: {horizon} evaluations, of
which the first ten are the same Sobol points for all. f and every g_j are in units of their spread over the box, and so
is simple regret: f* minus the best feasible f that was evaluated (a seed that found nothing feasible counts as worse
than any number). Theory methods stand here twice, with the problem's kernel and with models fitted to what they
observe (`kernel: fit`).

Written by `make literature` from `docs/literature.json`. Numbers are those of `cbobench compare`: medians with 95 %
intervals over seeds; ranks over the (problem, seed) that all methods have; differences paired by seed with Wilcoxon's
signed-rank test, adjusted by Holm.
"""


def run_of(folders: Sequence[Path], into: Path) -> Run:
    """One folder as a run, or several as one: a folder that holds the cells and the calls of all is the run of all."""
    if len(folders) == 1:
        return Run(folders[0])
    for folder in folders:
        Run(folder)  # is one
        for kind in ("cells", "rounds", "invocations"):  # in this order: a cell is published after its rounds
            shutil.copytree(folder / kind, into / kind, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
    return Run(into)


def measured(run: Run) -> Findings:
    """What the pages say, as it is stored."""
    found = named_plainly(groups(run))
    rows = summarised(found, SHOWN)
    spent = [float(group.good["seconds"].sum()) for group in found]
    keep = ["problem", "algorithm", "problem_label", "algorithm_label", "horizon", "n", "expected", "failed"]
    table = rows[keep].assign(
        median=rows["simple_regret_median"],
        low=rows["simple_regret_median_low"],
        high=rows["simple_regret_median_high"],
        feasible=rows["recommended_regret_defined"],
        ms_per_round=rows["us_per_round"] / 1000,
        seconds=spent,
        expected=int(rows["expected"].max()),  # opponents that are played apart may be asked for seed by seed
    )
    versus, against = [], [title for word in THEIRS if (title := title_of(run, found, word))]
    mine = [title for word in OURS if (title := title_of(run, found, word))]
    some = [group for group in found if group.algorithm in (*mine, *against)]
    for title in against:
        pairs = [group for group in some if group.algorithm in (*mine, title)]
        versus += records(differences(run, pairs, [REGRET], title).to_dict("records"))
    everywhere, left_out = ranks(found)
    each = {some[0].problem: ranks(some)[0] for some in arenas(found)}
    for row in (stored := records(table.to_dict("records"))):
        row["rank"] = each[row["problem"]].get(row["algorithm"], {}).get("rank")
    return {"table": stored, "ranks": list(everywhere.values()), "left_out": left_out, "paired": versus}


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
        frame = ranked(found, [REGRET], "")[0]
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


def value(stored: float | str | None) -> float:
    return math.nan if stored is None else float(stored)


# Pages --------------------------------------------------------------------------------------------------------------


def page(found: Findings) -> str:
    """The page as Markdown."""
    rows = found["table"]
    text = [INTRODUCTION.format(horizon=rows[0]["horizon"]), "## Over all problems\n", overall(found)]
    text += ["## Ours against BoTorch's\n", verdicts(found), versus(found["paired"])]
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        text += [f"## {plain_label(mine[0]['problem_label'])}\n", of_problem(mine)]
    return "\n".join(text)


def lines(head: Sequence[str], body: Iterable[Sequence[str]], left: int = 1) -> str:
    marks = [":--"] * left + ["--:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *body)) + "\n"


def plain_label(label: str) -> str:
    """A problem's name without its parameters: all of these are without noise."""
    return label.partition("[")[0]


def costs(found: Findings) -> dict[str, tuple[str, int, int, float, float]]:
    """By algorithm: label, cells played and expected, milliseconds per round, CPU seconds of a cell."""
    result = {}
    for algorithm in dict.fromkeys(row["algorithm"] for row in found["table"]):
        mine = [row for row in found["table"] if row["algorithm"] == algorithm]
        n, expected = (sum(row[key] for row in mine) for key in ("n", "expected"))
        if n:
            seconds = sum(row["seconds"] for row in mine) / n
            per_round = sum(row["seconds"] / row["horizon"] for row in mine) / n
            result[algorithm] = mine[0]["algorithm_label"], n, expected, 1000 * per_round, seconds
    return result


def overall(found: Findings) -> str:
    """Mean ranks and costs of all methods, the best first."""
    rank = {row["algorithm"]: row for row in found["ranks"]}
    spent = costs(found)
    body = []
    for algorithm in sorted(spent, key=lambda a: value(rank[a]["rank"]) if a in rank else math.inf):
        label, n, expected, ms, seconds = spent[algorithm]
        row = rank.get(algorithm)
        mark = "" if row is None or row["separable_from_best"] else "*"
        body.append(
            [f"`{label}`", f"{number(value(row['rank']))}{mark}" if row else "–", f"{n}/{expected}", number(ms),
             number(seconds)]
        )  # fmt: skip
    text = lines(["method", "mean rank", "runs", "ms per round", "s per run"], body)
    if rank:
        one = next(iter(rank.values()))
        text += (
            f"\n1 is best of {len(rank)}; over {one['blocks']} of {one['expected']} (problem, seed), those that all "
            f"have. \\* within the critical difference of the best ({number(value(one['critical_difference']))}, "
            "Nemenyi, 5 %). Seconds are of one core, on a machine that was shared.\n"
        )
    if found["left_out"]:
        text += f"\nNot ranked, without a cell on some problem yet: {', '.join(found['left_out'])}.\n"
    return text


def of_problem(rows: list[dict[str, Any]]) -> str:
    body = []
    for row in sorted(rows, key=lambda row: (row["rank"] is None, row["rank"])):
        if row["n"]:
            regret = spread(*(value(row[key]) for key in ("median", "low", "high")))
            feasible = f"{int(row['feasible'])}/{row['n']}"
            body.append(
                [f"`{row['algorithm_label']}`", regret, feasible, number(value(row["rank"])),
                 f"{row['n']}/{row['expected']}", number(value(row["ms_per_round"]))]
            )  # fmt: skip
    return lines(["method", "simple regret", "recommended feasible", "mean rank", "n", "ms per round"], body)


def spread(middle: float, low: float, high: float) -> str:
    """middle [low, high], each to two digits of its own: regrets differ by orders of magnitude."""
    texts = ["–" if math.isnan(x) else f"{x:.2g}".replace("inf", "∞") for x in (middle, low, high)]
    return texts[0] if math.isnan(low) else f"{texts[0]} [{texts[1]}, {texts[2]}]"


def versus(rows: list[dict[str, Any]]) -> str:
    body = []
    tests = Counter(row["against"] for row in rows)
    for row in rows:
        middle = spread(*(value(row[key]) for key in ("median", "median_low", "median_high")))
        body.append(
            [f"`{row['algorithm_label']}`", f"`{row['against_label']}`", plain_label(row["problem_label"]),
             outcome(row, tests[row["against"]]), middle, probability(value(row["p_holm"])),
             f"{row['wins']}/{row['ties']}/{row['losses']}", f"{row['n']}/{row['expected']}"]
        )  # fmt: skip
    head = ["method", "against", "problem", "verdict", "median difference", "p (Holm)", "w/t/l", "n"]
    return lines(head, body, left=4) if rows else "Not played yet.\n"


def outcome(row: dict[str, Any], tests: int) -> str:
    """Better, worse, or not separable, as `compare` marks differences; of `tests` of which Holm's adjustment is."""
    if value(row["p_holm"]) < SIGNIFICANT:
        return "better" if value(row["effect"]) > 0 else "**worse**"
    return "too few seeds" if 2.0 ** (1 - row["n"]) * tests > SIGNIFICANT else "not separable"


def verdicts(found: Findings) -> str:
    """One line per pair of methods: on how many problems which is better, defeats by name, and how much faster."""
    text, spent = [], costs(found)
    for mine, theirs in dict.fromkeys((row["algorithm"], row["against"]) for row in found["paired"]):
        rows = [row for row in found["paired"] if (row["algorithm"], row["against"]) == (mine, theirs)]
        tests = sum(row["against"] == theirs for row in found["paired"])
        told = [outcome(row, tests) for row in rows]
        lost = [plain_label(row["problem_label"]) for row, how in zip(rows, told, strict=True) if how == "**worse**"]
        defeats = f"worse on {', '.join(lost)}" if lost else "worse on none"
        few = min(row["n"] for row in rows)
        faster = spent[theirs][3] / spent[mine][3]
        text.append(
            f"- `{rows[0]['algorithm_label']}` against `{rows[0]['against_label']}`: better on "
            f"{told.count('better')} of {counted(len(rows), 'problem')}, not separable on "
            f"{told.count('not separable')}, {defeats}, too few seeds on {told.count('too few seeds')}; "
            f"{faster:.0f} times as fast per round; at least {counted(few, 'seed')} that both have."
        )
    return "\n".join(text) + "\n"


def in_readme(found: Findings, text: str) -> str:
    """README with its table: mean rank over the problems and cost, from the same findings."""
    table = overall(found).partition("\nNot ranked")[0]
    section = f"<!-- literature -->\n{table}<!-- end -->"
    return re.sub(r"<!-- literature -->\n.*?<!-- end -->", lambda _: section, text, flags=re.S)


def write(found: Findings) -> None:
    """Store the findings, and write the page and README's table."""
    STORED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    README.write_text(in_readme(found, README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The literature's problems, all methods.")
    parser.add_argument("--run", type=Path, nargs="+", default=[Path("runs/literature-full")])
    parser.add_argument("--no-play", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    if options.render:
        findings = json.loads(STORED.read_text(encoding="utf-8"))
    else:
        played = options.no_play or main(["run", SUITE, "--out", str(options.run[0])]) == 0
        if not played:
            leave([SUITE])
        try:
            with tempfile.TemporaryDirectory() as folder:
                findings = measured(run_of(options.run, Path(folder)))
        except CbobenchError as error:
            raise SystemExit(f"literature: {error}") from None
    write(findings)
    print(f"{PAGE}: {counted(sum(row['n'] for row in findings['table']), 'run')}")
