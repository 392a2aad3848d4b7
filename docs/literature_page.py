"""docs/literature.md and README's table, from the findings that docs/literature.py has stored or read."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cbobench.errors import Misuse
from cbobench.report.numbers import format_number
from cbobench.report.paired import format_p
from cbobench.resources import find_suite
from cbobench.stats.paired_tests import SIGNIFICANT, decidable
from cbobench.suite import yamlio
from cbobench.suite.entries import SourceLine, algorithm_variants, entries
from cbobench.words import count_noun

HERE = Path(__file__).parent
PAGE, README = HERE / "literature.md", HERE.parent / "README.md"
INTERVAL = 6  # seeds from which order statistics hold a median with 95 %
TOP = 8  # methods in README
SLOWER = 10  # an opponent should take so many times as long per round; where it does not, the page names the problem
SAME = "no significant difference"
Findings = dict[str, Any]

INTRODUCTION = """\
# The methods against the field

**{origin}**{since}

This page compares methods for boxes with those of other libraries. The suite `literature_full` plays {problems} of
the literature without noise, with {seeds} and {horizon} evaluations each. That horizon is our choice; papers give
such problems up to a hundred. The first evaluations are a Sobol design that all methods share.

f and every g_j are in units of their spread over the box. Simple regret is f* minus the best feasible f that was
evaluated; a seed that found nothing feasible counts as worse than any number (∞). Theory methods stand here twice: with
the problem's kernel, and with models fitted to what they observe (`kernel: fit`).

Written by `docs/literature.py` from `docs/literature.json`. Medians and ranks are those of `cbobench compare`; medians
have 95 % intervals over seeds, from six seeds on. Time is of one thread, each run by itself, beside other work on the
same machine ({cpu}).
"""

RULES = """
A method is better or worse if Wilcoxon's signed-rank test, paired by seed, says so at 5 %. Holm's adjustment is over
all tests against the same opponent ({tests} here). *Worse unadjusted* is a defeat that only the adjustment would hide;
it counts as a defeat. A negative median difference favours the method. No difference is too small to count: if both
methods found the optimum, 1e-6 may decide.

The two sides differ in setup:

- `cei` and `scbo` refit their models each round up to 30 observations, then whenever there are a tenth more. BoTorch's
  methods refit each round.
- Ours have priors on lengthscales and noise, and model the bilog transform of constraints. BoTorch's methods do as
  their parameters say (`cbobench show botorch-cei`): `models: turbo` has bounds and no priors, as in SCBO's tutorial,
  and `bilog: false` models the constraints as they are.
- *Recommended feasible* is of the point that a method recommends in the end: ours by its model, an opponent the best
  that it has evaluated.
"""


def value(stored: float | str | None) -> float:
    return math.nan if stored is None else float(stored)


def page(found: Findings) -> str:
    """The page as Markdown."""
    rows = found["table"]
    since = "".join(f"\n- {change}" for change in found["since"])
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    introduction = INTRODUCTION.format(
        origin=origin(found),
        since=f" Since then:\n{since}" if since else "",
        problems=count_noun(len(problems), "problem"),
        horizon=rows[0]["horizon"],
        cpu=found["cpu"],
        seeds=count_noun(max(row["expected"] for row in rows), "seed"),
    )
    text = [introduction, "## Over all problems\n", overall(found)]
    text += ["## Ours against BoTorch's\n", verdicts(found), versus(found["paired"])]
    for problem in problems:
        mine = [row for row in rows if row["problem"] == problem]
        text += [f"## {plain_label(mine[0]['problem_label'])}\n", of_problem(mine)]
    return "\n".join(text)


def lines(head: Sequence[str], body: Iterable[Sequence[str]], left: int = 1) -> str:
    marks = [":--"] * left + ["--:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *body)) + "\n"


def plain_label(label: str) -> str:
    """A problem's name without its parameters: all of these are without noise."""
    return label.partition("[")[0]


def count(rows: list[dict[str, Any]]) -> str:
    """n of expected, and what failed."""
    n, expected, failed = (sum(row[key] for row in rows) for key in ("n", "expected", "failed"))
    return f"{n}/{expected}" + (f" ({failed} failed)" if failed else "")


def costs(found: Findings) -> dict[str, float]:
    """By algorithm of which every problem has a cell: milliseconds per round, the mean of the problems' means."""
    result = {}
    for algorithm in dict.fromkeys(row["algorithm"] for row in found["table"]):
        spent = [value(row["ms_per_round"]) for row in found["table"] if row["algorithm"] == algorithm]
        if not any(map(math.isnan, spent)):
            result[algorithm] = sum(spent) / len(spent)
    return result


def origin(found: Findings) -> str:
    """Which code played the numbers, and when."""
    return f"Played on {found['date']} with the code of commit {found['commit']} (suite `{found['suite']}`)."


def overall(found: Findings, most: int | None = None) -> str:
    """Mean ranks and costs of the `most` best methods, or of all, the best first."""
    rank = {row["algorithm"]: row for row in found["ranks"]}
    spent, body = costs(found), []
    played = list(dict.fromkeys(row["algorithm"] for row in found["table"] if row["n"]))
    for algorithm in sorted(played, key=lambda a: value(rank[a]["rank"]) if a in rank else math.inf):
        rows = [row for row in found["table"] if row["algorithm"] == algorithm]
        cost = format_number(spent[algorithm]) if algorithm in spent else "–"
        body.append([f"`{rows[0]['algorithm_label']}`", standing(rank.get(algorithm)), count(rows), cost])
    text = lines(["method", "mean rank", "runs", "ms per round"], body[:most])
    if len(body) > (most or len(body)):
        text += f"\nThe best {most} of {len(body)} methods.\n"
    if rank:
        first, seeds = found["ranks"][0], max(row["expected"] for row in found["table"])
        apart = format_number(value(first["critical_difference"]))
        text += (
            f"\n*Mean rank* (1 = best): by the median simple regret over {count_noun(first['blocks'], 'problem')}, "
            f"among the {len(rank)} methods that have all {count_noun(seeds, 'seed')} on each. A star marks those "
            f"that do not differ significantly from the best (critical difference {apart}, Nemenyi, 5 %). So few "
            "problems show little.\n"
        )
    text += f"\nPlaying all of this took {format_number(found['hours'])} hours of one core"
    if found["hours_of_opponents"]:
        text += f", {format_number(found['hours_of_opponents'])} of them for `botorch-cei` and `botorch-scbo`"
    text += ".\n"
    if missing := not_played(found):
        text += f"\nAdded to the suite since, with no results yet: {', '.join(f'`{label}`' for label in missing)}.\n"
    return text


def not_played(found: Findings) -> list[str]:
    """The methods of the suite, as it is today, of which no cell was played."""
    suite = find_suite(found["suite"])
    content, at = yamlio.read(suite), SourceLine(suite)
    played = {row["algorithm"] for row in found["table"] if row["n"]}
    variants = [
        variant
        for entry in entries(content, "algorithms", at)
        for variant in algorithm_variants(entry, at, content["shared"], False, ())
    ]
    return [variant.label for variant in variants if variant.title not in played]


def standing(row: dict[str, Any] | None) -> str:
    """A mean rank, with its mark."""
    if row is None or math.isnan(value(row["rank"])):
        return "–"
    return format_number(value(row["rank"])) + ("" if row["separable_from_best"] else "*")


def of_problem(rows: list[dict[str, Any]]) -> str:
    body = []
    for row in sorted(rows, key=lambda row: math.inf if row["median"] is None else value(row["median"])):
        if row["n"]:
            ends = (row["median"], row["low"], row["high"]) if row["n"] >= INTERVAL else (row["median"], None, None)
            regret = spread(*map(value, ends)) if row["found"] else "∞"
            feasible = f"{int(row['feasible'])}/{row['n']}"
            body.append(
                [
                    f"`{row['algorithm_label']}`",
                    regret,
                    feasible,
                    count([row]),
                    format_number(value(row["ms_per_round"])),
                ]
            )
    return lines(["method", "simple regret", "recommended feasible", "n", "ms per round"], body)


def spread(middle: float, low: float, high: float) -> str:
    """middle [low, high], each to two digits of its own: regrets differ by orders of magnitude."""
    texts = ["–" if math.isnan(x) else f"{x:.2g}".replace("inf", "∞") for x in (middle, low, high)]
    return texts[0] if math.isnan(low) else f"{texts[0]} [{texts[1]}, {texts[2]}]"


def versus(rows: list[dict[str, Any]]) -> str:
    """The paired tests, a row each."""
    body = []
    tests = Counter(row["against"] for row in rows)
    for row in rows:
        middle = spread(*(value(row[key]) for key in ("median", "median_low", "median_high")))
        told = outcome(row, tests[row["against"]])
        verdict = f"**{told}**" if told.startswith("worse") else told
        names = [f"`{row['algorithm_label']}`", f"`{row['against_label']}`", plain_label(row["problem_label"])]
        p_values = [format_p(value(row[name])) for name in ("p", "p_holm")]
        counts = [f"{row['wins']}/{row['ties']}/{row['losses']}", f"{row['n']}/{row['expected']}"]
        body.append([*names, verdict, middle, *p_values, *counts])
    head = ["method", "against", "problem", "verdict", "median difference", "p", "p (Holm)", "w/t/l", "n"]
    rules = RULES.format(tests=max(tests.values(), default=0))
    return lines(head, body, left=4) + rules if rows else "Not played yet.\n"


def outcome(row: dict[str, Any], tests: int) -> str:
    """Better, worse, or `SAME`, as `compare` marks differences; of `tests` of which Holm's adjustment is."""
    if value(row["p_holm"]) < SIGNIFICANT:
        return "better" if value(row["effect"]) > 0 else "worse"
    if value(row["p"]) < SIGNIFICANT and value(row["effect"]) < 0:
        return "worse unadjusted"
    return SAME if decidable(row["n"], tests) else "too few seeds"


def verdicts(found: Findings) -> str:
    """One line per pair of methods: on how many problems which is better, defeats by name, and how much faster."""
    text = []
    spent = {(row["problem"], row["algorithm"]): value(row["ms_per_round"]) for row in found["table"]}
    for mine, theirs in dict.fromkeys((row["algorithm"], row["against"]) for row in found["paired"]):
        rows = [row for row in found["paired"] if (row["algorithm"], row["against"]) == (mine, theirs)]
        tests = sum(row["against"] == theirs for row in found["paired"])
        told = [(outcome(row, tests), plain_label(row["problem_label"])) for row in rows]
        lost = [f"{name}{how.removeprefix('worse')}" for how, name in told if how.startswith("worse")]
        words = Counter(how for how, _ in told)
        ratios = {
            plain_label(r["problem_label"]): spent[r["problem"], theirs] / spent[r["problem"], mine] for r in rows
        }
        middle, least = sorted(ratios.values())[len(ratios) // 2], min(ratios, key=lambda name: ratios[name])
        below = [f"{name} ({format_number(ratio)})" for name, ratio in ratios.items() if ratio < SLOWER]
        text.append(
            f"- `{rows[0]['algorithm_label']}` against `{rows[0]['against_label']}`: better on {words['better']} of "
            f"{count_noun(len(rows), 'problem')}, no significant difference on {words[SAME]}, worse on "
            f"{', '.join(lost) if lost else 'none'}, too few seeds on {words['too few seeds']}. A round is "
            f"{format_number(middle)} times faster (median of the problems; least {format_number(ratios[least])}, on "
            f"{least}{'; below ' + str(SLOWER) + ': ' + ', '.join(below) if below else ''}). Both have at least "
            f"{count_noun(min(row['n'] for row in rows), 'seed')}."
        )
    return "\n".join(text) + "\n"


def in_readme(found: Findings, text: str) -> str:
    """README with its table of mean ranks and cost.

    Raises:
        Misuse: there is no place for it.
    """
    seeds = max(row["expected"] for row in found["table"])
    few = f" {seeds} seeds are few: medians have no intervals.\n" if seeds < INTERVAL else "\n"
    section = f"<!-- literature -->\n{origin(found)}{few}\n{overall(found, TOP)}<!-- end -->"
    new, times = re.subn(r"<!-- literature -->\n.*?<!-- end -->", lambda _: section, text, flags=re.S)
    if times != 1:
        raise Misuse(f"README.md has {times} tables between <!-- literature --> and <!-- end -->; allowed: one")
    return new


def write(full: Findings, small: Findings) -> None:
    """Write docs/literature.md and README's table."""
    readme = in_readme(small, README.read_text(encoding="utf-8"))
    PAGE.write_text(page(full), encoding="utf-8")
    README.write_text(readme, encoding="utf-8")
