"""`cbobench claims`: which claims to test, and their findings as a table, Markdown or JSON."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

from cbobench.errors import CbobenchError, Misuse, one_line, reraise_stop, unknown
from cbobench.papers.claims import Claim, Finding, findings
from cbobench.papers.evidence import Part, Verdict
from cbobench.report.figures.figures import find_recipes
from cbobench.report.load import Run
from cbobench.report.tables.formats import render, render_records, terminal_width
from cbobench.report.tables.table import TextTable, format_number
from cbobench.words import count_noun

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
NOTE = (
    "parts: those that hold, of all; ours: the part that decides, with its 95 % interval; cannot "
    "tell: the seeds that "
    "would"
)
P_NOTE = (
    "p: how likely values at least so far off would be if the claim were true, by Holm over its "
    "parts; below 5 % a part is contradicted"
)
MORE = "more: --long (the paper's numbers and ours, seeds, settings)"
ROOM = 20  # columns that a statement has at least
FEW = 3  # claims that are not in the runs up to which each says what it needs


def claims_of(recipe: str | None = None, only: Sequence[str] = ()) -> list[Claim]:
    """The shipped claims, or those of one recipe (a name or a path).

    Args:
        only: ids.

    Raises:
        Misuse: no such recipe, one without claims, an unknown id, an id given twice.
    """
    claims_by_id: dict[str, Claim] = {}
    for path, module in find_recipes(recipe, "claims"):
        module_claims = getattr(module, "claims", None)
        if not isinstance(module_claims, list) or not all(
            isinstance(claim, Claim) for claim in module_claims
        ):
            raise Misuse(f"{path} has no list `claims` of cbobench.papers.claims.Claim")
        for claim in module_claims:
            if claim.id in claims_by_id:
                raise Misuse(f"{path}: the claim {claim.id} is there twice; ids are unique")
            claims_by_id[claim.id] = claim
    for word in only:
        if word not in claims_by_id:
            raise unknown("claim", word, claims_by_id)
    return [claim for claim in claims_by_id.values() if not only or claim.id in only]


def evaluate(
    runs: Sequence[str], claims: Iterable[Claim], draws: int = 0
) -> tuple[list[Finding], str]:
    """Test claims on runs (paths or URIs).

    Args:
        draws: simulated replications per finding.

    Returns:
        What was found, and a message about runs that are left out because they have no good cell
        ("" for none).

    Raises:
        Misuse: no run there, or one twice. CbobenchError: no run has a good cell, a claim's test
            fails, or it looks at a round that a bundle does not keep.
    """
    runs_by_uri = {str(run): run for run in map(Run, runs)}
    if len(runs_by_uri) < len(runs):
        raise Misuse("a run is given twice; its claims would count twice")
    runs_with_cells = [run for run in runs_by_uri.values() if (run.cells["status"] == "ok").any()]
    empty = ", ".join(str(run) for run in runs_by_uri.values() if run not in runs_with_cells)
    if not runs_with_cells:
        raise CbobenchError(
            f"{empty} has no good cell yet, so no claim can be tested; see cbobench status"
        )
    tested: list[Finding] = []
    for claim in claims:
        try:
            tested += findings(runs_with_cells, [claim], draws)
        except CbobenchError:
            raise
        except BaseException as error:  # a user's claim may fail in any way
            reraise_stop(error)
            raise CbobenchError(
                f"the claim {claim.id} cannot be tested: {one_line(error)}"
            ) from error
    return tested, f"left out, without a good cell yet: {empty}" if empty else ""


def format_estimate(part: Part) -> str:
    """A part's value with its interval, to four digits as a verdict may hang on the last, and p if
    it decided.
    """
    if math.isnan(part.low):
        return format_number(part.value, is_count=True)
    p = f", p {part.p:.2g}" if part.verdict == "contradicted" and not math.isnan(part.p) else ""
    return f"{format_number(part.value)} [{format_number(part.low)}, {format_number(part.high)}]{p}"


def describe_counts(findings: Sequence[Finding]) -> str:
    """How many claims, in how many settings, with which verdicts."""
    claims = len({f.claim.id for f in findings})
    settings = sum(bool(f.parts) for f in findings)
    verdicts = count_verdicts([f.verdict for f in findings])
    return f"{count_noun(claims, 'claim')}, {count_noun(settings, 'setting')}: {verdicts}"


def count_verdicts(verdicts: Sequence[str]) -> str:
    """How many have which verdict: 1 reproduced, 2 contradicted."""
    return ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts
    )


def describe_seeds(part: Part) -> str:
    """The seeds of a part, and how many would tell if these cannot: "50/50, some 180 would
    tell".
    """
    seeds = f"{part.n}/{part.expected}"
    if not part.needed:
        return seeds
    return (
        f"{seeds}, no number would tell"
        if math.isinf(part.needed)
        else f"{seeds}, some {part.needed:,.0f} would tell"
    )


def render_findings(
    findings: Sequence[Finding],
    style: str = "table",
    parts: bool = False,
    width: int | None = None,
    brief: bool = False,
) -> str:
    """Findings as "table", "markdown" or "json"; with `parts`, a row for every part; `brief`: of a
    table, a line for every claim.
    """
    if style == "json":
        return render_records([as_record(f) for f in findings], "json")
    if brief and style == "table" and any(f.parts for f in findings):
        width = width or terminal_width()
        return render(tabulate_verdicts(findings, width), style, width)
    table = tabulate_findings(findings, parts)
    if not table.rows:  # no grid without a row
        lines = [table.title, *table.note.splitlines()]
        return "\n".join(
            part for line in lines for part in textwrap.wrap(line, width or terminal_width())
        )
    rows = [[*row] for row in table.rows]
    # From the end: the row above must still hold the text that this one is compared with.
    for previous, row in reversed(list(itertools.pairwise(rows))):
        if style == "table" and previous[:2] == row[:2]:  # a statement is printed once
            row[1] = ""
    return render(replace(table, rows=rows), style, width)


def tabulate_verdicts(findings: Sequence[Finding], width: int) -> TextTable:
    """A line for every claim that the runs hold: its verdict, or in how many settings which, and
    as much of its statement as a line of this width has room for.
    """
    tested = [f for f in findings if f.parts]
    verdicts: dict[str, list[str]] = {}
    for f in tested:
        verdicts.setdefault(f.claim.id, []).append(f.verdict)
    statements = {f.claim.id: f.claim.statement for f in tested}
    said = {
        id: words[0] if len({*words}) == 1 else count_verdicts(words)
        for id, words in verdicts.items()
    }
    # Two columns before each of the three, and one at the end.
    room = width - 7 - max(len("claim"), *map(len, said)) - max(map(len, said.values()))
    rows = [
        (id, words, textwrap.shorten(statements[id], max(room, ROOM), placeholder=" …"))
        for id, words in said.items()
    ]
    return TextTable(
        ["claim", "verdict", "statement"], rows, describe_counts(findings), MORE, left=3
    )


def tabulate_findings(findings: Sequence[Finding], parts: bool = False) -> TextTable:
    """Findings as a table; below it the settings, each once, and the claims that the runs say
    nothing of.

    Rows that differ in their settings alone are one.
    """
    tested = [f for f in findings if f.parts]
    columns = [
        "claim",
        "statement",
        "verdict",
        "parts",
        "paper",
        "ours",
        "seeds",
        "setting",
        "self-replication",
    ]
    numbers = {
        key: i for i, key in enumerate(dict.fromkeys((f.places, f.settings) for f in tested), 1)
    }
    settings_by_row: dict[tuple[str, ...], list[int]] = {}
    for f in tested:
        rates = f"{f.rates.holds:.0%}, wrong in {f.rates.contradicted:.0%}" if f.rates else ""
        for part in f.parts if parts else [f.deciding]:
            verdict, held = (part.verdict, "") if parts else (f.verdict, f"{f.held}/{len(f.parts)}")
            ours = f"{part.subject}: {format_estimate(part)}"
            described = (
                f.claim.id,
                f.claim.statement,
                verdict,
                held,
                part.paper,
                ours,
                describe_seeds(part),
            )
            settings = settings_by_row.setdefault((*described, rates), [])
            if numbers[f.places, f.settings] not in settings:
                settings.append(numbers[f.places, f.settings])
    rows = [
        [*row[:-1], ", ".join(map(str, numbers)), row[-1]]
        for row, numbers in settings_by_row.items()
    ]
    notes = [NOTE] if rows else []
    notes += [P_NOTE] * any(", p " in row[5] for row in rows)
    notes = (
        ["; ".join(notes)] * bool(notes)
        + _describe_settings([*numbers])
        + _describe_untested(findings)
    )
    table = TextTable(columns, rows, describe_counts(findings), "\n".join(notes), left=9)
    idle = {
        i for i, alike in ((7, len(numbers) < 2), (8, not any(f.rates for f in findings))) if alike
    }
    return table.without(idle)


def _describe_settings(settings: Sequence[tuple[str, str]]) -> list[str]:
    """A line with what all settings (places, words) share, and a numbered one each with the
    rest.
    """
    # R is a metric, too.
    words_by_setting = [
        re.sub(r"(?<!\S)(?=R )", "parameter ", text).split(", ") for _, text in settings
    ]
    if not words_by_setting:
        return []
    shared = [
        word
        for word in words_by_setting[0]
        if all(word in setting_words for setting_words in words_by_setting)
    ]
    if len(settings) == 1:
        return [f"setting: {settings[0][0]}: {', '.join(shared)}"]
    lines = [f"all settings: {', '.join(shared)}"] * bool(shared)
    for number, ((places, _), setting_words) in enumerate(
        zip(settings, words_by_setting, strict=True), 1
    ):
        own_text = ", ".join(word for word in setting_words if word not in shared)
        lines.append(f"setting {number}: {places}" + (f": {own_text}" if own_text else ""))
    return lines


def _describe_untested(findings: Sequence[Finding]) -> list[str]:
    """A line with the claims that are not in the runs; what they need, of few, and where the runs
    have the problem.
    """
    untested = [f for f in findings if not f.parts]
    near = untested if len(untested) <= FEW else [f for f in untested if f.near]
    other_claims = [f.claim.id for f in untested if f not in near]
    texts = [f"{f.claim.id} {f.note}" for f in near]
    texts += [f"{', '.join(other_claims)} need other problems (--format json says which)"] * bool(
        other_claims
    )
    return [f"not in these runs: {'; '.join(texts)}"] * bool(untested)


def as_record(finding: Finding) -> dict[str, Any]:
    """A finding as JSON; NaN becomes null, infinity a string."""
    claim = finding.claim
    head = {name: getattr(claim, name) for name in ("id", "statement", "quote", "source", "figure")}
    parts = [
        {
            "rule": part.rule,
            "what": part.subject,
            "paper": part.paper,
            "verdict": part.verdict,
            "value": _finite(part.value),
            "low": _finite(part.low),
            "high": _finite(part.high),
            "n": part.n,
            "expected": part.expected,
            "p": _finite(part.p),
            "needed": _finite(part.needed),
        }
        for part in finding.parts
    ]
    return head | {
        "verdict": finding.verdict,
        "held": finding.held,
        "rates": finding.rates and finding.rates._asdict(),
        "where": finding.places,
        "problems": list(finding.problems),
        "settings": finding.settings,
        "n": finding.n,
        "expected": finding.expected,
        "note": finding.note,
        "parts": parts,
    }


def _finite(value: float) -> float | str | None:
    """A number with six digits that JSON can hold."""
    if math.isnan(value):
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)
