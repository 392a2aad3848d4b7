"""Plays every suite of the papers, tests their claims, and writes docs/reproduction.json and docs/reproduction.md.

python docs/reproduction.py [--out RUNS] [--data FOLDER] [--no-play] [--render]

Runs are those of `make paper-figures`, kept and resumed. `--no-play` takes them as they are; `--render` writes the page
from the stored findings alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from paper_figures import findings, leave, page_options, suites

from cbobench.papers.claim_tables import as_record, claims_of, evaluate, format_estimate
from cbobench.papers.claim_tables import count_verdicts as verdicts
from cbobench.papers.evidence import RULE
from cbobench.words import count_noun

HERE = Path(__file__).parent
STORED, PAGE = HERE / "reproduction.json", HERE / "reproduction.md"


class Paper(NamedTuple):
    """A paper: its name, its figures {number: (what it shows, claims, problem)}, own page."""

    name: str
    figures: dict[str, tuple[str, tuple[str, ...], str]]
    notes: str


PAPERS = (
    Paper(
        "Zhou & Ji (2022), and its preprint (CBO)",
        {
            "1a": ("regret on synthetic data; N in the text of F.1", ("ZJ2", "ZJ3"), "rkhs-1d"),
            "1b": ("regret on the light sensors; N in the text", ("ZJ4",), "light-sensors"),
            "1c": ("V⁺ of CKB on the light sensors", ("ZJ6",), "light-sensors"),
            "2a": ("regret on the stocks; N in the text", ("ZJ5",), "stocks"),
            "2b": ("average regret on the stocks", ("ZJ5",), "stocks"),
            "2c": ("V⁺ of CKB on the stocks", ("ZJ6",), "stocks"),
            "no figure": ("V(T), cost of a round, slack, full information", ("ZJ1", "ZJ7", "ZJ8", "ZJ9"), ""),
        },
        "notes_zhou.md",
    ),
    Paper(
        "Shi & Eryilmaz (2022)",
        {
            "1": ("regret against violation of Algorithm 2 for several L and S", ("SE2",), "feasible-pocket"),
            "2, 3": ("the pocket, g without noise: boxes and means", ("SE1",), "feasible-pocket"),
            "4, 5": ("the pocket, g with noise: boxes and means", ("SE3",), "feasible-pocket"),
            "6, 7": ("rate allocation, g without noise: boxes and means", ("SE4",), "rate-allocation"),
            "8, 9": ("rate allocation, g with noise: boxes and means", ("SE4", "SE3"), "rate-allocation"),
            "no figure": ("Proposition 1: constant multipliers", ("SE5",), ""),
        },
        "notes_shi.md",
    ),
    Paper(
        "Guo, Zhu & Liu (2022)",
        {
            "1a, 1b": ("average regret and V⁺ on the pocket", ("GZL1",), ""),
            "2a, 2b": ("the same with delayed feedback", ("GZL2",), ""),
            "3a, 3b": ("the same with functions that change", ("GZL3",), ""),
        },
        "notes_guo.md",
    ),
)  # fmt: skip

NOTES = {
    "ZJ1": "With independent g, V(T) > 0 is seen only in instances in which the constraint binds.",
    "ZJ7": "Measured on a shared machine. CKB's cost of a round is mostly its overhead at these sizes.",
    "ZJ9": (
        "The two problems differ in what a round's sample is. On queue stability g_t is g plus one number for all "
        "actions. With an expert's guidance each action's estimate errs by itself, and x_t is chosen by looking at "
        "g_t: the sampled g_t(x_t) have a mean of -0.017 (case 1), as the theorem says, while the g(x_t) behind them "
        "have one of 0.065. V here is of g, so it grows. Assumption 5 does not exclude this."
    ),
}  # what decides, where a few words say it

INTRODUCTION = f"""\
# What of the papers is reproduced

Per figure and claim of the three papers: what it says, what was measured here, the verdict, and the settings behind it.
Written by `make claims` from `docs/reproduction.json`; the numbers are those of `cbobench claims` on the papers' suites
(`NAME.yaml`: read by the letter; `NAME_fit.yaml`: the reading that comes nearest to the paper).

{RULE}
No setting was chosen because it makes a claim hold.
"""

EARLIER = """\
These findings are of the suites before they were split into the letter and the best-known fit: below each claim stands
with which settings it was measured.
"""


def page(rows: list[dict[str, Any]]) -> str:
    """The page as Markdown."""
    text = [INTRODUCTION, tally(rows)]
    if not any("-fit" in row["where"] for row in rows):
        text.append(EARLIER)
    for paper in PAPERS:
        text += [f"## {paper.name}\n", f"[Where each claim holds, and what decides]({paper.notes})\n"]
        text.append(figure_table(paper, rows))
        known = dict.fromkeys(id for _, ids, _ in paper.figures.values() for id in ids)
        text += [claim_section(id, [row for row in rows if row["id"] == id]) for id in sorted(known)]
    return "\n".join(text)


def tally(rows: list[dict[str, Any]]) -> str:
    """How many settings have which verdict."""
    claims, settings = count_noun(len({row["id"] for row in rows}), "claim"), count_noun(len(rows), "setting")
    return f"{claims} in {settings}: {verdicts([row['verdict'] for row in rows])}.\n"


def figure_table(paper: Paper, rows: list[dict[str, Any]]) -> str:
    """One row per figure: what it shows, its claims, and their verdicts."""
    lines = ["| figure | what it shows | claims and verdicts |", "| :-- | :-- | :-- |"]
    for number, (what, ids, problem) in paper.figures.items():
        verdicts = []
        for id in ids:
            mine = [row for row in rows if row["id"] == id]
            said = [row["verdict"] for row in mine if not problem or problem in row["problems"] or not row["parts"]]
            counts = ", ".join(f"{verdict} ({said.count(verdict)})" for verdict in dict.fromkeys(said))
            verdicts.append(f"{id}: {counts or 'not tested'}")
        lines.append(f"| {number} | {what} | {'; '.join(verdicts)} |")
    return "\n".join(lines) + "\n"


def claim_section(id: str, rows: list[dict[str, Any]]) -> str:
    """A claim: its statement, one table row per setting and decisive part, the settings below."""
    if not rows:
        return f"### {id}\n\nNot tested.\n"
    first = rows[0]
    source = ", ".join(word for word in (first["source"], first["figure"]) if word)
    lines = [f"### {id}: {first['statement']}\n", f"{source}.\n"]
    lines += ["| suite | verdict | part | paper | ours | n |", "| :-- | :-- | :-- | :-- | :-- | --: |"]
    for row in rows:
        where, verdict = row["where"], f"**{row['verdict']}**"
        for part in row["parts"]:
            n = f"{part['n']}/{part['expected']}"
            numbers = (math.nan if part[k] is None else float(part[k]) for k in ("value", "low", "high", "p"))
            mark = "" if part["verdict"] == row["verdict"] else f" ({part['verdict']})"
            lines.append(
                f"| {where} | {verdict} | {part['what']}{mark} | {part['paper']} | {format_estimate(*numbers)} | {n} |"
            )
            where = verdict = ""
        if not row["parts"]:
            lines.append(f"| – | {verdict} | {row['note']} | | | |")
    if id in NOTES:
        lines += ["", NOTES[id]]
    settings = dict.fromkeys((row["where"], row["settings"]) for row in rows if row["settings"])
    lines += ["", *(f"- {where}: {words}" for where, words in settings)]
    return "\n".join(lines).rstrip() + "\n"


def measured(runs: Iterable[Path]) -> list[dict[str, Any]]:
    """The findings in runs, as they are stored."""
    found = evaluate([str(run) for run in runs], claims_of(), print)
    return [{k: v for k, v in as_record(one).items() if k != "cpu_minutes"} for one in found]


def write(rows: list[dict[str, Any]]) -> None:
    """Store the findings, and write the page."""
    STORED.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    options = page_options("The papers' claims, tested.", "runs/paper").parse_args()
    rows, missing = findings(options, suites(), STORED, measured)
    write(rows)
    print(f"{PAGE}: {tally(rows).strip()}")
    leave(missing)
