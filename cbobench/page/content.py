"""What a page holds, as one value for JSON: tables as `cbobench compare` makes them, curves, claims, failed cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from cbobench import __version__
from cbobench.errors import CbobenchError, Misuse, mask_secrets, printable, reraise_stop
from cbobench.metrics import METRICS
from cbobench.page import facts, looks
from cbobench.page.paths import shorten_paths
from cbobench.page.series import curves, pack_numbers
from cbobench.papers.claim_maps import VERDICT_STYLES, maps_of
from cbobench.papers.claim_tables import claims_of, tabulate_findings
from cbobench.papers.claims import DECISIVE, findings
from cbobench.report.compare import Comparison, compare
from cbobench.report.formats import Best, Marked, TextTable, explain_bold, to_json_value
from cbobench.report.groups import describe_horizons
from cbobench.report.load import Run
from cbobench.report.profiles import Profile
from cbobench.report.quantities import quantities
from cbobench.results.bundle import Bundle

REDUCED = "a bundle: no claims are tested, no tracebacks, and curves go through the rounds that it holds"
PLACED = ("median", "median_low", "median_high", "low", "high", "defined")
"""What a plane shows of a metric, beside its mean; the last is in how many seeds it has a value."""


def content(runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that a page says of some runs; of the machines that played them no more than numbers depend on.

    Raises:
        CbobenchError: a run without any published cell, or damaged.
    """
    for run in runs:
        if run.cells.empty:
            raise CbobenchError(f"{run.folder} has no cell yet, so there is nothing to show; see cbobench status")
    labels = labels_of(runs)
    size = max(1, sum(len(run.cells) for run in runs))
    names = ", ".join(dict.fromkeys(run.record.suite for run in runs))
    tested, maps, why = _test_claims(runs)
    page = {
        "title": names or "cbobench",
        "by": f"cbobench {__version__}",
        "metrics": {
            m.name: {
                "symbol": m.symbol,
                "label": m.label,
                "better": m.better,
                "whole": m.is_count,
                "censored": m.censored,
            }
            for m in METRICS.values()
        },
        "runs": [_describe_run(run, label, len(run.cells) / size) for run, label in zip(runs, labels, strict=True)],
        "changes": [
            _compare_runs(runs[0], run, labels[0], label) for run, label in zip(runs[1:], labels[1:], strict=True)
        ],
        "claims": tested,
        "maps": maps,
        "unclaimed": why,
    }
    shortened: dict[str, Any] = shorten_paths(page, [str(run.folder) for run in runs])
    return shortened


def labels_of(runs: Sequence[Run]) -> list[str]:
    """What tells runs apart: suites, else names of folders, else the folders."""
    choices = [
        [run.record.suite for run in runs],
        [str(run.folder).rstrip("/").rsplit("/", 1)[-1] for run in runs],
        [str(run.folder) for run in runs],
    ]
    labels = next((choice for choice in choices if len(set(choice)) == len(runs) and all(choice)), choices[-1])
    return [printable(mask_secrets(label)) for label in labels]


def _describe_run(run: Run, label: str, share: float) -> dict[str, Any]:
    comparisons, tables = _compare_tables(run)
    problems = run.record.labels("problems")
    stale = facts.describe_stale(run)
    reduced = REDUCED if isinstance(run.folder, Bundle) else ""
    settings = facts.knowledge(run, DECISIVE), facts.settings(run, DECISIVE), facts.settings(run), facts.calls(run)
    return {
        "label": label,
        "facts": facts.facts(run),
        "ends": {title: describe_horizons(run, [title]) for title in problems},
        "end": describe_horizons(run, problems),
        "notes": [note for note in (facts.describe_running(run), facts.describe_incomplete(run), reduced) if note]
        + [f"not played: {line}" for line in run.record.unplayable],
        "problems": problems,
        "algorithms": looks.page_styles(run.record),
        "settings": [as_table(table) for table in settings],
        "tables": tables,
        "finals": _collect_finals(comparisons["Results"]),
        **curves(run, share),
        "ranks": _list_records(comparisons["Ranks"]) if "Ranks" in comparisons else [],
        "profiles": _collect_profiles(run) if "Profiles" in comparisons else [],
        "failures": facts.failures(run),
        "stale": as_table(stale) if stale else None,
    }


def as_table(table: TextTable, kind: str = "", comparison: Comparison | None = None) -> dict[str, Any]:
    """A table as the page shows it, and by row what is downloaded of it: the numbers behind it, or what is shown."""
    return {
        "kind": kind,
        "title": table.title,
        "note": explain_bold(table.note),
        "left": table.left,
        "columns": [printable(name) for name in table.columns],
        "rows": [[printable(cell) for cell in row] for row in table.rows],
        **{name: _find_cells(table, kind) for name, kind in (("marked", Marked), ("best", Best))},
        "digits": _split_csv(comparison) if comparison else [],
    }


def _find_cells(table: TextTable, kind: type[Marked]) -> list[list[int]]:
    """Rows and columns of the cells of one kind."""
    return [[i, j] for i, row in enumerate(table.rows) for j, cell in enumerate(row) if isinstance(cell, kind)]


def _split_csv(comparison: Comparison) -> list[list[list[str]]]:
    """The CSV of a comparison: its heading, then the lines behind each row of its table."""
    head, *lines = csv.reader(io.StringIO(comparison.render("csv")))
    rows = comparison.table.rows
    if len(lines) == len(rows):
        return [[head], *([line] for line in lines)]
    whose = comparison.frame["algorithm_label"]  # ranks have a line for each metric, and a row for each algorithm
    return [[head], *([line for line, label in zip(lines, whose, strict=True) if label == row[0]] for row in rows)]


def _compare_tables(run: Run) -> tuple[dict[str, Comparison], list[dict[str, Any]]]:
    """The comparisons of `cbobench compare` by kind, and their tables, or why there is none."""
    kinds: dict[str, dict[str, Any]] = {
        "Results": {},
        "Against the best of each problem": {"best": True},
        "Ranks": {"ranks": True},
        "Profiles": {"profile": True},
    }
    comparisons, tables = {}, []
    for kind, options in kinds.items():
        try:
            comparisons[kind] = compare(run, **options)
            tables.append(as_table(comparisons[kind].table, kind, comparisons[kind]))
        except CbobenchError as error:
            # The table of results has to be there; the others say why they are not.
            if not options:
                raise
            tables.append({"kind": kind, "absent": printable(str(error))})
    return comparisons, tables


def _compare_runs(before: Run, after: Run, old: str, new: str) -> dict[str, Any]:
    """What changed from one run to another."""
    comparison = compare(before, after)
    table = as_table(comparison.table, f"{old} → {new}", comparison)
    if comparison.nothing:
        table["note"] = f"nothing can be compared: {comparison.nothing}\n{table['note']}"
    return table


def _collect_finals(summary: Comparison) -> list[dict[str, Any]]:
    """Results of the cells: of every metric that some seed has, `PLACED` after the mean."""
    rows = []
    for row in summary.frame.to_dict("records"):
        final = {name: row[name] for name in ("problem", "algorithm", "n", "expected", "stale")}
        final["values"] = {
            name: [to_json_value(row[name]), *(to_json_value(row[f"{name}_{word}"]) for word in PLACED)]
            for name in METRICS
            if name in row and not math.isnan(row[name])
        }
        rows.append(final)
    return rows


def _list_records(comparison: Comparison) -> list[dict[str, Any]]:
    """The rows behind a comparison."""
    symbols = {name: quantity.symbol for name, quantity in quantities().items()}
    return [
        {str(k): to_json_value(v) for k, v in row.items()} | {"symbol": symbols.get(str(row["metric"]), "")}
        for row in comparison.frame.to_dict("records")
    ]


def _collect_profiles(run: Run) -> list[dict[str, Any]]:
    """Profiles of all problems, and the data profile of each: a curve per algorithm; `shares`: x is in units of T."""
    result = []
    alone = [("data", problem) for problem in run.record.labels("problems")]
    for kind, problem in [("performance", ""), ("data", ""), *alone]:
        try:
            frame = Profile(kind, [problem] if problem else None).data(run)  # type: ignore[arg-type]
        except Misuse:  # simple regret is not defined on this problem
            continue
        x = "at" if frame["t"].isna().any() else "t"
        by_algorithm = list(frame.groupby("algorithm", sort=False))
        curves = [
            {
                "algorithm": title,
                **{name: int(curve[name].iloc[0]) for name in ("n", "expected", "stale")},
                "share": pack_numbers(curve["share"].to_numpy()),
            }
            for title, curve in by_algorithm
        ]
        at = [float(f"{v:.6g}") for v in by_algorithm[0][1][x]]
        shares = kind == "data" and x == "at"
        result.append({"kind": kind, "problem": problem, "shares": shares, "at": at, "curves": curves})
    return result


def _test_claims(runs: Sequence[Run]) -> tuple[dict[str, Any] | None, list[dict[str, Any]], str]:
    """The verdicts on the claims that the runs can decide, their maps, and why there is none."""
    bundles = [str(run.folder) for run in runs if isinstance(run.folder, Bundle)]
    left_out = f"claims look at rounds that no bundle holds, such as {bundles[0]}" if bundles else ""
    good = [run for run in runs if (run.cells["status"] == "ok").any() and not isinstance(run.folder, Bundle)]
    try:
        claim_findings = [finding for finding in findings(good, claims_of()) if finding.parts]
    except CbobenchError as error:
        return None, [], printable(str(error))
    except BaseException as error:  # a recipe may fail in any way
        reraise_stop(error)
        return None, [], printable(f"a claim cannot be tested: {type(error).__name__}: {error}")
    if not claim_findings:
        return None, [], printable(left_out)
    symbols = {verdict: symbol for verdict, (_, symbol) in VERDICT_STYLES.items()}
    maps = []
    for claim_map in maps_of(claim_findings):
        if len(claim_map.cells) < 2:
            continue
        rows = []
        for i, row_label in enumerate(claim_map.rows):
            cells = [claim_map.cells.get((i, j)) for j in range(len(claim_map.columns))]
            verdict_cells = [
                "" if f is None else f"{symbols[f.verdict]} {f.held}/{len(f.parts)}, n = {f.n}/{f.expected}"
                for f in cells
            ]
            rows.append([row_label or "–", *verdict_cells])
        across = [f"{claim_map.across} {column}".strip() or "verdict" for column in claim_map.columns]
        maps.append(
            as_table(TextTable(["settings", *across], rows, claim_map.claim, claim_map.caption(), left=1), "map")
        )
    table = as_table(tabulate_findings(claim_findings), "Claims")
    return table | {"note": "\n".join(filter(None, (table["note"], printable(left_out))))}, maps, ""
