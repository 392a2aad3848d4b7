"""`cbobench claims`: which claims to test, and their findings as a table, Markdown or JSON."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cbobench.errors import CbobenchError, Misuse, one_line, printable, unknown
from cbobench.papers.claims import Claim, Finding, findings
from cbobench.papers.evidence import Part, Verdict
from cbobench.report.figures import find_recipes
from cbobench.report.formats import TextTable, format_number, render, render_records
from cbobench.report.load import Run
from cbobench.words import count_noun

VERDICTS: tuple[Verdict, ...] = (
    "reproduced", "stronger than claimed", "reproduced in part", "contradicted", "cannot tell", "not in these runs",
)  # fmt: skip
NOTE = (
    "parts: those that hold, of all; ours: the part that decides, with its 95 % interval, paired by seed, p adjusted "
    "by Holm over the claim; cannot tell: the seeds that would"
)


def claims_of(recipe: str | None = None, only: Sequence[str] = ()) -> list[Claim]:
    """The claims of the shipped recipes, or of one recipe (a name or a path).

    Args:
        only: ids.

    Raises:
        Misuse: no such recipe, one without claims, an unknown id, an id given twice.
    """
    found: dict[str, Claim] = {}
    for path, module in find_recipes(recipe):
        some = getattr(module, "claims", None)
        if some is None and recipe is None:
            continue
        if not isinstance(some, list) or not all(isinstance(one, Claim) for one in some):
            raise Misuse(f"{path} has no list `claims` of cbobench.papers.claims.Claim")
        for claim in some:
            if claim.id in found:
                raise Misuse(f"{path}: the claim {claim.id} is there twice; ids are unique")
            found[claim.id] = claim
    for word in only:
        if word not in found:
            raise unknown("claim", word, found)
    return [claim for claim in found.values() if not only or claim.id in only]


def evaluate(
    runs: Sequence[str], claims: Iterable[Claim], note: Callable[[str], None] = lambda words: None, draws: int = 0
) -> list[Finding]:
    """Test claims on runs (paths or URIs).

    Args:
        note: takes a message about runs that are left out because they have no good cell.
        draws: simulated replications per finding.

    Raises:
        Misuse: no run there, or one twice. CbobenchError: no run has a good cell, or a claim's test fails.
    """
    every = {run.folder.uri: run for run in map(Run, runs)}
    for run in every.values():
        run.folder.refuse_bundle("claims look at rounds that no bundle holds; give the run folder")
    if len(every) < len(runs):
        raise Misuse("a run is given twice; its claims would count twice")
    read = {place: run for place, run in every.items() if (run.cells["status"] == "ok").any()}
    if empty := ", ".join(str(run.folder) for place, run in every.items() if place not in read):
        if not read:
            raise CbobenchError(f"{empty} has no good cell yet, so no claim can be tested; see cbobench status")
        note(f"left out, without a good cell yet: {empty}")
    result = []
    for claim in claims:
        try:
            result += list(findings([*read.values()], [claim], draws))
        except CbobenchError:
            raise
        except Exception as error:  # a user's claim may fail in any way
            raise CbobenchError(f"the claim {claim.id} cannot be tested: {one_line(error)}") from error
    return result


def format_estimate(value: float, low: float, high: float, p: float) -> str:
    """A part's value with its interval, to four digits as a verdict may hang on the last, and the p of a comparison."""
    if math.isnan(low):
        return format_number(value, is_count=True)
    return f"{format_number(value)} [{format_number(low)}, {format_number(high)}]" + (
        "" if math.isnan(p) else f", p {p:.2g}"
    )


def describe_counts(found: Sequence[Finding]) -> str:
    """How many claims, in how many settings, with which verdicts."""
    claims, settings = len({f.claim.id for f in found}), sum(bool(f.parts) for f in found)
    verdicts = count_verdicts([f.verdict for f in found])
    return f"{count_noun(claims, 'claim')}, {count_noun(settings, 'setting')}: {verdicts}"


def count_verdicts(verdicts: Sequence[str]) -> str:
    """How many have which verdict: 1 reproduced, 2 contradicted."""
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts)


def describe_seeds(part: Part) -> str:
    """The seeds of a part, and how many would tell if these cannot: "50/50, some 180 would tell"."""
    seeds = f"{part.n}/{part.expected}"
    if not part.needed:
        return seeds
    return (
        f"{seeds}, no number would tell" if math.isinf(part.needed) else f"{seeds}, some {part.needed:,.0f} would tell"
    )


def render_findings(
    found: Sequence[Finding], style: str = "table", parts: bool = False, width: int | None = None
) -> str:
    """Findings as "table", "markdown" or "json"; with `parts`, a row for every part."""
    if style == "json":
        return render_records([as_record(f) for f in found], "json")
    table = tabulate_findings(found, parts)
    rows = [[*row] for row in table.rows]
    for previous, row in reversed(list(itertools.pairwise(rows))):
        if style == "table" and previous[:2] == row[:2]:  # a statement is printed once
            row[1] = ""
            row[6] = "" if previous[6] == row[6] else row[6]
    return render(replace(table, rows=rows), style, width)


def tabulate_findings(found: Sequence[Finding], parts: bool = False) -> TextTable:
    """Findings as a table, in which every row says all."""
    columns = ["claim", "statement", "verdict", "parts", "paper", "ours", "settings", "seeds"]
    if replicated := any(f.rates for f in found):
        columns.append("self-replication")
    rows: list[list[str]] = []
    for f in found:
        if not f.parts:
            rows.append([f.claim.id, f.claim.statement, f.verdict, "", "", f.note, "", "", *[""] * replicated])
        for part in f.parts if parts else ([f.deciding] if f.parts else []):
            verdict, held = (part.verdict, "") if parts else (f.verdict, f"{f.held}/{len(f.parts)}")
            what = f"{part.what}: {format_estimate(part.value, part.low, part.high, part.p)}"
            settings = f"{f.where}: {f.settings}"
            row = [f.claim.id, f.claim.statement, verdict, held, part.paper, what, settings, describe_seeds(part)]
            rows.append([*row, describe_rates(f)] if replicated else row)
    return TextTable(columns, rows, describe_counts(found), NOTE, left=8)


def describe_rates(found: Finding) -> str:
    """The self-replication rate: "96 %, wrong in 0 %"."""
    return f"{found.rates.holds:.0%}, wrong in {found.rates.contradicted:.0%}" if found.rates else ""


def as_record(found: Finding) -> dict[str, Any]:
    """A finding as JSON; NaN becomes null, infinity a string."""
    claim = found.claim
    head = {name: getattr(claim, name) for name in ("id", "statement", "quote", "source", "figure")}
    parts = [
        {
            "rule": part.rule, "what": part.what, "paper": part.paper, "verdict": part.verdict,
            "value": _finite(part.value),
            "low": _finite(part.low), "high": _finite(part.high), "n": part.n, "expected": part.expected,
            "p": _finite(part.p), "needed": _finite(part.needed),
        }
        for part in found.parts
    ]  # fmt: skip
    return head | {
        "verdict": found.verdict, "held": found.held, "rates": found.rates and found.rates._asdict(),
        "where": found.where, "problems": list(found.problems),
        "axes": dict(found.axes), "settings": found.settings,
        "n": found.n, "expected": found.expected, "cpu_minutes": round(found.seconds / 60, 2), "note": found.note,
        "parts": parts,
    }  # fmt: skip


def _finite(value: float) -> float | str | None:
    """A number with six digits that JSON can hold."""
    if math.isnan(value):
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def command(
    runs: Sequence[str],
    style: str,
    recipe: str | None,
    only: Sequence[str],
    parts: bool,
    strict: bool,
    maps: Path | None,
    draws: int,
) -> int:
    """`cbobench claims`; `strict` exits with 1 if a part is contradicted, or a claim of `only` cannot be tested."""
    left_out: list[str] = []
    found = evaluate(runs, claims_of(recipe, only), left_out.append, draws)
    print(render_findings(found, style, parts))
    if maps is not None:
        from cbobench.papers.claim_maps import draw_maps

        for map, paths in draw_maps(found, maps):
            print(f"{paths[0].with_suffix('')} ({map.minutes:.2g} CPU-minutes): {map.claim}", file=sys.stderr)
    for words in left_out:
        print(printable(words), file=sys.stderr)
    if not strict:
        return 0
    untested = [f for f in found if f.verdict == "not in these runs"]
    if only and untested:
        needs = "; ".join(f"{f.claim.id} {f.note}" for f in untested)
        print(f"not tested, as these runs hold nothing of it: {needs}", file=sys.stderr)
        return 1
    if len(untested) == len(found):
        print(f"not tested, as these runs hold nothing of it: {count_noun(len(found), 'claim')}", file=sys.stderr)
        return 1
    return int(bool(left_out) or any(part.verdict == "contradicted" for f in found for part in f.parts))
