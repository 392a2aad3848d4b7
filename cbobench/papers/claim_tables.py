"""`cbobench claims`: which claims to test, and their findings as a table, Markdown or JSON."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, get_args

import pandas as pd

from cbobench.errors import CbobenchError, Misuse, one_line, reraise_stop, unknown
from cbobench.papers.claims import Claim, Finding, check_claim
from cbobench.papers.evidence import Part, Verdict
from cbobench.report.figures.figures import find_recipes
from cbobench.report.load import Run
from cbobench.report.tables.formats import (
    render,
    render_records,
    terminal_width,
    to_json_value,
)
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
        What was found, and the names of runs that are left out because they have no good cell (""
        for none).

    Raises:
        Misuse: no run there, or one twice. CbobenchError: no run has a good cell, a claim's test
            fails, or it looks at a round that a bundle does not keep.
    """
    opened = [*map(Run, runs)]
    if len({*map(str, opened)}) < len(opened):
        raise Misuse("a run is given twice; its claims would count twice")
    runs_with_cells = [run for run in opened if (run.cells["status"] == "ok").any()]
    empty = ", ".join(str(run) for run in opened if run not in runs_with_cells)
    if not runs_with_cells:
        raise CbobenchError(
            f"{empty} has no good cell yet, so no claim can be tested; see cbobench status"
        )
    tested = []
    for claim in claims:
        try:
            tested.extend(check_claim(runs_with_cells, claim, draws))
        except CbobenchError:
            raise
        except BaseException as error:  # a user's claim may fail in any way
            reraise_stop(error)
            raise CbobenchError(
                f"the claim {claim.id} cannot be tested: {one_line(error)}"
            ) from error
    return tested, empty


def has_p(part: Part) -> bool:
    """Whether its p decided, so that it is shown."""
    return part.verdict == "contradicted" and not math.isnan(part.p)


def format_estimate(part: Part) -> str:
    """A part's value with its interval, to four digits as a verdict may hang on the last, and p if
    it decided.
    """
    if math.isnan(part.low):
        return format_number(part.value, is_count=True)
    text = f"{format_number(part.value)} [{format_number(part.low)}, {format_number(part.high)}]"
    if has_p(part):
        text += f", p {part.p:.2g}"
    return text


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
    needed = "no number"
    if math.isfinite(part.needed):
        needed = f"some {part.needed:,.0f}"
    return f"{seeds}, {needed} would tell"


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
    width = width or terminal_width()
    is_table = style == "table"
    table = tabulate_findings(findings, parts, once=is_table)
    if not table.rows:  # no grid without a row
        lines = [table.title, *table.note.splitlines()]
        return "\n".join(textwrap.fill(line, width) for line in lines)
    if brief and is_table:
        table = tabulate_verdicts(findings, width)
    return render(table, style, width)


def tabulate_verdicts(findings: Sequence[Finding], width: int) -> TextTable:
    """A line for every claim that the runs hold: its verdict, or in how many settings which, and
    as much of its statement as a line of this width has room for.

    Args:
        findings: those of a claim stand together.
    """
    tested = [f for f in findings if f.parts]
    lines = [("claim", "verdict", "statement")]
    for claim, group in itertools.groupby(tested, key=lambda f: f.claim):
        words = [f.verdict for f in group]
        said: str = words[0]
        if len({*words}) > 1:
            said = count_verdicts(words)
        lines.append((claim.id, said, claim.statement))
    # Two columns before each of the three, and one at the end.
    longest = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = max(width - 7 - longest[0] - longest[1], ROOM)
    columns, *rows = [
        (id, said, textwrap.shorten(statement, room, placeholder=" …"))
        for id, said, statement in lines
    ]
    return TextTable(columns, rows, describe_counts(findings), MORE, left=3)


def tabulate_findings(
    findings: Sequence[Finding], parts: bool = False, once: bool = False
) -> TextTable:
    """Findings as a table; below it the settings, each once, and the claims that the runs say
    nothing of.

    Rows that differ in their settings alone are one.

    Args:
        parts: a row for every part, instead of the one that decides.
        once: a statement stands in the first of its rows alone.
    """
    title = describe_counts(findings)
    untested = _describe_untested(findings)
    tested = [f for f in findings if f.parts]
    if not tested:
        return TextTable([], [], title, untested)
    settings = list(dict.fromkeys((f.places, f.settings) for f in tested))
    shown = [(f, part) for f in tested for part in (f.parts if parts else [f.deciding])]
    rows = []
    for f, part in shown:
        row = {
            "claim": f.claim.id,
            "statement": f.claim.statement,
            "verdict": f.verdict,
            "parts": f"{f.held}/{len(f.parts)}",
            "paper": part.paper,
            "ours": f"{part.what}: {format_estimate(part)}",
            "seeds": describe_seeds(part),
            "setting": str(settings.index((f.places, f.settings)) + 1),
        }
        if parts:
            row |= {"verdict": part.verdict, "parts": ""}
        if f.rates:
            row["self-replication"] = f"{f.rates.holds:.0%}, wrong in {f.rates.contradicted:.0%}"
        rows.append(row)

    # One row of those that differ in their setting alone, with the settings in it.
    frame = pd.DataFrame(rows).fillna("").drop_duplicates()
    others = frame.columns.drop("setting").tolist()
    merged = frame.groupby(others, sort=False)["setting"].agg(", ".join).reset_index()
    if once:
        merged.loc[merged.duplicated(["claim", "statement"]), "statement"] = ""
    columns = frame.columns.tolist()
    if len(settings) == 1:
        columns = others
    notes = [NOTE]
    if any(has_p(part) for _, part in shown):
        notes.append(P_NOTE)
    note = "\n".join(filter(None, ["; ".join(notes), *_describe_settings(settings), untested]))
    return TextTable(columns, merged[columns].to_numpy().tolist(), title, note, left=len(columns))


def _describe_settings(settings: Sequence[tuple[str, str]]) -> list[str]:
    """A line with what all settings (places, words) share, and a numbered one each with the
    rest.
    """
    # R is a metric, too.
    lists = [
        (places, re.sub(r"(?<!\S)(?=R )", "parameter ", text).split(", "))
        for places, text in settings
    ]
    common = set.intersection(*(set(words) for _, words in lists))
    shared = ", ".join(word for word in lists[0][1] if word in common)
    if len(settings) == 1:
        return [f"setting: {settings[0][0]}: {shared}"]
    lines = []
    if shared:
        lines.append(f"all settings: {shared}")
    for i, (places, words) in enumerate(lists, 1):
        line = f"setting {i}: {places}"
        if own := ", ".join(word for word in words if word not in common):
            line += f": {own}"
        lines.append(line)
    return lines


def _describe_untested(findings: Sequence[Finding]) -> str:
    """A line with the claims that are not in the runs; what they need, of few, and where the runs
    have the problem. "" for none.
    """
    untested = [f for f in findings if not f.parts]
    if not untested:
        return ""
    explained = untested
    if len(untested) > FEW:
        explained = [f for f in untested if f.near]
    others = ", ".join(f.claim.id for f in untested if f not in explained)
    texts = [f"{f.claim.id} {f.note}" for f in explained]
    if others:
        texts.append(f"{others} need other problems (--format json says which)")
    return f"not in these runs: {'; '.join(texts)}"


def as_record(finding: Finding) -> dict[str, Any]:
    """A finding as JSON; numbers have six digits, NaN becomes null, infinity a string."""
    names = ("id", "statement", "quote", "source", "figure")
    return {name: getattr(finding.claim, name) for name in names} | {
        "verdict": finding.verdict,
        "held": finding.held,
        "rates": finding.rates and finding.rates._asdict(),
        "where": finding.places,
        "problems": finding.problems,
        "settings": finding.settings,
        "n": finding.n,
        "expected": finding.expected,
        "note": finding.note,
        "parts": [
            {name: _round(value) for name, value in asdict(part).items()} for part in finding.parts
        ],
    }


def _round(value: Any) -> Any:
    if isinstance(value, float):
        value = float(f"{value:.6g}")
    return to_json_value(value)
