"""What a page holds, as one value for JSON: tables as `cbobench compare` makes them, curves,
claims, failed cells.

Beside the numbers it says what was played with which settings by whom, and what went wrong. An
algorithm looks as in every figure (`report.style`), in the library's words, and on black. Curves
are those of `cbobench figures`, at some rounds.
"""

from __future__ import annotations

import base64
import csv
import io
import math
import shlex
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench import __version__
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError, Misuse, mask_secrets, printable, reraise_stop
from cbobench.metrics import METRICS, Metric
from cbobench.page.paths import shorten_paths
from cbobench.papers.claim_maps import VERDICT_STYLES, Map, maps_of
from cbobench.papers.claim_tables import claims_of, tabulate_findings
from cbobench.papers.claims import DECISIVE, Finding, findings, format_value, is_off
from cbobench.report.compare import compare
from cbobench.report.curves import STATISTICS, centre, stale, turn
from cbobench.report.formats import Comparison, to_json_value
from cbobench.report.groups import Group, find_groups, unit_of
from cbobench.report.load import Run, read_values, recorded_rounds
from cbobench.report.notes import describe_failures, describe_horizons, find_arithmetic, find_cpus
from cbobench.report.numbers import format_number
from cbobench.report.profiles import Profile
from cbobench.report.quantities import quantities
from cbobench.report.selection import Selection
from cbobench.report.style import PALETTE, SHADES, looks, mix_colour
from cbobench.report.text_table import Best, Marked, TextTable, explain_bold
from cbobench.results.lease import read_players
from cbobench.results.manifest import VARIANT_KINDS, Manifest
from cbobench.results.provenance import mixed_note
from cbobench.words import count_noun

Array = NDArray[np.float64]
REDUCED = (
    "a bundle: no claims are tested, no tracebacks, and curves go through the rounds that it holds"
)
PLACED = ("median", "median_low", "median_high", "low", "high", "defined")
"""What a plane shows of a metric, beside its mean; the last is in how many seeds it has a value."""
FAILURES = 300
"""How many failed cells a page lists with their tracebacks."""
LONGEST = 200  # characters of a parameter's value
UNITS = {"problems": "problem", "algorithms": "method"}
ROUNDS = 80
"""How many rounds the curves of a page have at most; `SEED_ROUNDS` those of single seeds."""
SEED_ROUNDS = 40
VALUES = 1_000_000
"""How many numbers the curves of single seeds of one page have at most; where there are more, some
seeds are shown.
"""
SYMBOLS = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
    "p": "pentagon",
    "<": "triangle-left",
    ">": "triangle-right",
}
WIDTH = 2.0  # of lines, pixels
# The palette on black: each within five degrees of its hue on white (OKLCH), each more than four
# units of CIELAB lightness from the next; with normal sight, deuteranopia and protanopia every two
# of them are at least 20 units apart.
ON_BLACK = {
    "violet": "#ac90fe",
    "rust": "#e57452",
    "slate": "#a7c2fe",
    "sage": "#b7f8c5",
    "blue": "#2473f8",
    "amber": "#e7a318",
    "teal": "#7ee8ea",
    "pink": "#a64c9b",
}
FAINTER = 0.7  # shades of variants, beside those on white


def content(runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that a page says of some runs; of the machines that played them no more than
    numbers depend on.

    Raises:
        CbobenchError: a run without any published cell, or damaged.
    """
    for run in runs:
        if run.cells.empty:
            raise CbobenchError(
                f"{run.folder} has no cell yet, so there is nothing to show; see cbobench status"
            )
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
                "log": m.relative and not m.cumulative,
            }
            for m in _share_words(runs).values()
        },
        "runs": [
            _describe_run(run, label, len(run.cells) / size)
            for run, label in zip(runs, labels, strict=True)
        ],
        "changes": [
            _compare_runs(runs[0], run, labels[0], label)
            for run, label in zip(runs[1:], labels[1:], strict=True)
        ],
        "claims": tested,
        "maps": maps,
        "unclaimed": why,
    }
    shortened: dict[str, Any] = shorten_paths(page, [str(run.folder) for run in runs])
    return shortened


def _share_words(runs: Sequence[Run]) -> dict[str, Metric]:
    """The metrics in the words of all runs' users, if they share them (see `name_metrics`)."""
    first, *others = [Selection.of(run).metrics for run in runs]
    return first if all(words == first for words in others) else METRICS


def labels_of(runs: Sequence[Run]) -> list[str]:
    """What tells runs apart: suites, else names of folders, else the folders."""
    choices = [
        [run.record.suite for run in runs],
        [str(run.folder).rstrip("/").rsplit("/", 1)[-1] for run in runs],
        [str(run.folder) for run in runs],
    ]
    labels = next(
        (choice for choice in choices if len(set(choice)) == len(runs) and all(choice)), choices[-1]
    )
    return [printable(mask_secrets(label)) for label in labels]


def _describe_run(run: Run, label: str, share: float) -> dict[str, Any]:
    comparisons, tables = _compare_tables(run)
    groups, problems = find_groups(run), run.record.labels("problems")
    stale_table = tabulate_stale(groups)
    settings = (
        tabulate_knowledge(run, DECISIVE),
        tabulate_settings(run, DECISIVE),
        tabulate_settings(run),
        tabulate_calls(run),
    )
    reduced = REDUCED if run.folder.is_reduced else ""
    notes = [describe_running(run), describe_incomplete(groups), reduced]
    return {
        "label": label,
        "facts": list_facts(run, groups),
        "ends": {title: describe_horizons(run, [title]) for title in problems},
        "end": describe_horizons(run, problems),
        "notes": [*filter(None, notes), *(f"not played: {line}" for line in run.record.unplayable)],
        "problems": problems,
        "algorithms": page_styles(run.record),
        "settings": [as_table(table) for table in settings],
        "tables": tables,
        "finals": _collect_finals(comparisons["Results"]),
        **collect_curves(run, share),
        "ranks": _list_records(run, comparisons["Ranks"]) if "Ranks" in comparisons else [],
        "profiles": _collect_profiles(run) if "Profiles" in comparisons else [],
        "failures": list_failures(run),
        "stale": as_table(stale_table) if stale_table else None,
    }


def as_table(
    table: TextTable, kind: str = "", comparison: Comparison | None = None
) -> dict[str, Any]:
    """A table as the page shows it, and by row what is downloaded of it: the numbers behind it, or
    what is shown.
    """
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
    return [
        [i, j]
        for i, row in enumerate(table.rows)
        for j, cell in enumerate(row)
        if isinstance(cell, kind)
    ]


def _split_csv(comparison: Comparison) -> list[list[list[str]]]:
    """The CSV of a comparison: its heading, then the lines behind each row of its table."""
    head, *lines = csv.reader(io.StringIO(comparison.render("csv")))
    rows = comparison.table.rows
    if len(lines) == len(rows):
        return [[head], *([line] for line in lines)]
    # ranks have a line for each metric, and a row for each algorithm
    whose = comparison.frame["algorithm_label"]
    return [
        [head],
        *(
            [line for line, label in zip(lines, whose, strict=True) if label == row[0]]
            for row in rows
        ),
    ]


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
            name: [
                to_json_value(row[name]),
                *(to_json_value(row[f"{name}_{word}"]) for word in PLACED),
            ]
            for name in METRICS
            if name in row and not math.isnan(row[name])
        }
        rows.append(final)
    return rows


def _list_records(run: Run, comparison: Comparison) -> list[dict[str, Any]]:
    """The rows behind a comparison."""
    known = quantities(Selection.of(run).metrics)
    symbols = {name: quantity.symbol for name, quantity in known.items()}
    return [
        {str(k): to_json_value(v) for k, v in row.items()}
        | {"symbol": symbols.get(str(row["metric"]), "")}
        for row in comparison.frame.to_dict("records")
    ]


def _collect_profiles(run: Run) -> list[dict[str, Any]]:
    """Profiles of all problems, and the data profile of each: a curve per algorithm; `shares`: x is
    in units of T.
    """
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
        result.append(
            {"kind": kind, "problem": problem, "shares": shares, "at": at, "curves": curves}
        )
    return result


def _test_claims(runs: Sequence[Run]) -> tuple[dict[str, Any] | None, list[dict[str, Any]], str]:
    """The verdicts on the claims that the runs can decide, their maps, and why there is none."""
    bundles = [str(run.folder) for run in runs if run.folder.is_reduced]
    left_out = (
        f"claims look at rounds that no bundle holds, such as {bundles[0]}" if bundles else ""
    )
    # What the runs cannot tell is no news on a page: only claims with parts are shown.
    good = [
        run for run in runs if (run.cells["status"] == "ok").any() and not run.folder.is_reduced
    ]
    try:
        claim_findings = [finding for finding in findings(good, claims_of()) if finding.parts]
    except CbobenchError as error:
        return None, [], printable(str(error))
    except BaseException as error:  # a recipe may fail in any way
        reraise_stop(error)
        return None, [], printable(f"a claim cannot be tested: {type(error).__name__}: {error}")
    if not claim_findings:
        return None, [], printable(left_out)
    # A map of one cell says no more than its row in the table of claims.
    maps = [_tabulate_map(map) for map in maps_of(claim_findings) if len(map.cells) > 1]
    table = as_table(tabulate_findings(claim_findings), "Claims")
    return table | {"note": "\n".join(filter(None, (table["note"], printable(left_out))))}, maps, ""


def _tabulate_map(map: Map) -> dict[str, Any]:
    """A map of a claim as a table."""

    def describe(finding: Finding | None) -> str:
        if finding is None:
            return ""
        symbol, parts = VERDICT_STYLES[finding.verdict][1], f"{finding.held}/{len(finding.parts)}"
        return f"{symbol} {parts}, n = {finding.n}/{finding.expected}"

    rows = [
        [label or "–", *(describe(map.cells.get((i, j))) for j in range(len(map.columns)))]
        for i, label in enumerate(map.rows)
    ]
    columns = [f"{map.across} {column}".strip() or "verdict" for column in map.columns]
    return as_table(
        TextTable(["settings", *columns], rows, map.claim, map.caption(), left=1), "map"
    )


# What was played, with which settings, by whom ----------------------------------------------------


def list_facts(run: Run, groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Names and values of what ran, for a list at the head of the page."""
    record, cells = run.record, run.cells
    expected = sum(group.expected for group in groups)
    done = sum(group.n for group in groups)
    states = {
        word: sum(getattr(group, word) for group in groups)
        for word in ("failed", "stale", "unchecked")
    }
    states["missing"] = count_missing(groups)
    state = ", ".join(f"{count:,} {word}" for word, count in states.items() if count)
    horizons = dict.fromkeys(f"{group.horizon:,}" for group in groups)
    problems, algorithms = (
        {getattr(group, name) for group in groups} for name in ("problem", "algorithm")
    )
    seconds = cells.loc[cells["status"] == "ok", "seconds"].sum()
    cost = (
        f"{format_number(seconds / 3600)} CPU-hours"
        if seconds >= 360
        else f"{format_number(seconds)} s of CPU time"
    )
    called = dict.fromkeys(str(call["cpu"]) for call in record.invocations if call.get("cpu"))
    result = [
        ("Suite", record.suite + (f": {record.about}" if record.about else "")),
        ("Run", mask_secrets(str(run.folder))),
        ("Cells", f"{done:,} of {expected:,} done" + (f" ({state})" if state else "")),
        (
            "Asked for",
            f"{count_noun(len(problems), 'problem')}, {count_noun(len(algorithms), 'method')}, "
            f"T = {', '.join(horizons)}",
        ),
        ("Cost", f"{cost}, of the cells that are ok"),
        ("Machines", str(cells["host"].nunique() or "") if "host" in cells else ""),
        ("CPU", _join_words(sorted(find_cpus(groups))) or _join_words(called)),
        ("Arithmetic", _join_words(sorted(find_arithmetic(groups)))),
        ("Played with", "; ".join(dict.fromkeys(cells["libraries"].dropna()))),
    ]
    # What went wrong stands last, beside what it may have done to the numbers.
    if failures := describe_failures(groups):
        result.append(("Failures", "; ".join(failures)))
    if mixed := mixed_note(find_arithmetic(groups)):
        result.append(("Note", mixed))
    return [(name, value) for name, value in result if value]


def describe_running(run: Run) -> str:
    """How many calls play into the run now, and since when; empty where none does."""
    since = [driver.since for driver in read_players(run.folder)]
    return (
        f"still running: {count_noun(len(since), 'call')}, begun {'; '.join(since)}"
        if since
        else ""
    )


def count_missing(groups: Sequence[Group]) -> int:
    """How many cells of groups are neither done nor failed."""
    return sum(group.expected - group.n - group.failed for group in groups)


def describe_incomplete(groups: Sequence[Group]) -> str:
    """How many cells are missing, empty where none is."""
    expected = count_noun(sum(group.expected for group in groups), "cell")
    return (
        f"incomplete: {count_missing(groups):,} of {expected} are not played yet"
        if count_missing(groups)
        else ""
    )


def tabulate_calls(run: Run) -> TextTable:
    """Every call that played into the run: when, what, and with which versions."""
    rows = []
    for call in run.record.invocations:
        versions = {"python": call.get("python"), **(call.get("versions") or {})}
        commit = str(call.get("commit") or "–")[:12] + (
            " with changes" if call.get("dirty") else ""
        )
        version_list = ", ".join(
            f"{name} {version}" for name, version in versions.items() if version
        )
        machine = ", ".join(str(call[name]) for name in ("cpu", "platform") if call.get(name))
        command = mask_secrets(shlex.join(map(str, call.get("command") or ())))
        rows.append([str(call.get("at", "–")), command, version_list, commit, machine])
    return TextTable(["begun", "command", "versions", "commit", "machine"], rows, "Calls", left=5)


def tabulate_settings(run: Run, names: Collection[str] | None = None) -> TextTable:
    """Every parameter as it was resolved, or some, with those who have it: a row for every
    value.
    """
    rows = []
    for kind in VARIANT_KINDS:
        variants, labels = run.record.variants(kind), run.record.labels(kind)
        for name in sorted(
            {name for v in variants.values() for name in v.values if names is None or name in names}
        ):
            values: dict[str, list[str]] = {}
            for title, variant in variants.items():
                if name in variant.values:
                    values.setdefault(format_value(variant.values[name]), []).append(labels[title])
            for value, labels_with_value in values.items():
                everyone = len(labels_with_value) == len(variants) and len(labels_with_value) > 1
                short_value = (
                    value
                    if len(value) <= LONGEST
                    else f"{value[:LONGEST]}… ({len(value):,} characters)"
                )
                owners = (
                    f"all {len(labels_with_value)}" if everyone else ", ".join(labels_with_value)
                )
                rows.append([UNITS[kind], owners, name, short_value])
    title = "All parameters" if names is None else "Decisive choices"
    return TextTable(["of", "whose", "parameter", "value"], rows, title, left=4)


def tabulate_knowledge(run: Run, decisive: Collection[str]) -> TextTable:
    """What each method is told before it plays, and what it makes of it: its decisive
    parameters.
    """
    rows, labels = [], run.record.labels("algorithms")
    for title, variant in run.record.variants("algorithms").items():
        try:
            knowledge_list = (
                ", ".join(ALGORITHMS.get(variant.name, imports=False).knows) or "nothing"
            )
        except CbobenchError:  # a method of somebody's own, or of another version
            knowledge_list = "not known here"
        choices = {
            name: format_value(value) for name, value in variant.values.items() if name in decisive
        }
        choice_list = ", ".join(
            f"{name} {value}" for name, value in choices.items() if not is_off(name, value)
        )
        rows.append([labels[title], knowledge_list, choice_list or "–"])
    note = (
        "B and G bound the norms of f and g, R the noise; λ and the kernel are those of the "
        "method's models"
    )
    return TextTable(
        ["algorithm", "is told", "its choices"], rows, "What each method is told", note, left=3
    )


def list_failures(run: Run) -> dict[str, Any]:
    """Failed cells with their errors; tracebacks that are equal are there once."""
    failed = run.cells[run.cells["status"] == "failed"]
    labels = {
        name: run.record.labels(kind)
        for name, kind in zip(("problem", "algorithm"), VARIANT_KINDS, strict=True)
    }
    traces: dict[str, int] = {}
    rows = []
    for row in failed.head(FAILURES).to_dict("records"):
        # a bundle has none
        trace = row["traceback"] if isinstance(row.get("traceback"), str) else ""
        error = row["error"] if isinstance(row["error"], str) else ""
        position = traces.setdefault(mask_secrets(trace), len(traces))
        titles = [labels[name][row[name]] for name in labels]
        rows.append([*titles, int(row["horizon"]), int(row["seed"]), mask_secrets(error), position])
    return {"count": len(failed), "rows": rows, "traces": list(traces)}


def tabulate_stale(groups: Sequence[Group]) -> TextTable | None:
    """Which cells other code played, or nobody knows; None where there are none."""
    rows = [
        [
            group.problem_label,
            group.algorithm_label,
            f"{group.horizon:,}",
            f"{group.stale}/{group.expected}",
            f"{group.unchecked}/{group.expected}",
        ]
        for group in groups
        if group.stale or group.unchecked
    ]
    note = (
        "stale: the code that plays these cells has changed since; unchecked: that code is not "
        "at hand"
    )
    return (
        TextTable(["problem", "algorithm", "T", "stale", "unchecked"], rows, "Stale cells", note)
        if rows
        else None
    )


def _join_words(values: Any) -> str:
    texts = [str(word) for word in values]
    return "; ".join(texts[:6]) + (f" and {len(texts) - 6} more" if len(texts) > 6 else "")


# Looks and curves ---------------------------------------------------------------------------------


def page_styles(record: Manifest) -> dict[str, dict[str, Any]]:
    """By title of the algorithm: label, colour on white ("light") and on black ("dark"), dash and
    symbol.
    """
    look_by_title, labels = looks(record), record.labels("algorithms")
    dark = {PALETTE[name]: colour for name, colour in ON_BLACK.items()}
    base_by_name: dict[str, str] = {}
    last_position: dict[str, int] = {}
    result = {}
    for title, variant in record.variants("algorithms").items():
        look = look_by_title[title]
        # The first variant has the algorithm's own colour, of which the others are shades.
        base = base_by_name.setdefault(variant.name, dark.get(look.colour, look.colour))
        position = last_position[variant.name] = last_position.get(variant.name, -1) + 1
        result[title] = {
            "label": labels[title],
            "light": look.colour,
            "dark": mix_colour(base, FAINTER * SHADES[position % len(SHADES)]),
            "dash": ",".join(f"{WIDTH * length:g}px" for length in look.dash) or "solid",
            "symbol": SYMBOLS[look.marker] + ("" if look.filled else "-open"),
            "width": WIDTH,
        }
    return result


def pack_numbers(values: Array) -> str:
    """Numbers as little-endian float32 in base64, row by row: seven digits. Float64 after ":" where
    one is beyond.
    """
    wide = (np.abs(values[np.isfinite(values)]) > np.finfo("<f4").max).any()
    text = base64.b64encode(
        np.ascontiguousarray(values, dtype="<f8" if wide else "<f4").tobytes()
    ).decode()
    return ":" * bool(wide) + text


def thin_positions(count: int, most: int) -> NDArray[np.int64]:
    """At most so many positions of 0..count-1, the first and the last among them: half even, half
    denser early on.
    """
    if count <= most:
        return np.arange(count)
    # Curves change most in the first rounds: half of the positions are even, the others denser
    # there.
    even = np.linspace(0, count - 1, min(most, max(2, most // 2)))
    early = np.geomspace(1, count, most - len(even)) - 1
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


def collect_curves(run: Run, share: float = 1.0) -> dict[str, Any]:
    """Every pair's curves.

    Args:
        share: of `VALUES` that this run may take.

    Returns:
        `rounds`, lists of t; `pairs`: titles `problem` and `algorithm`, `n`, `expected`, `stale`,
        `seconds` (CPU time of a round on average, the median of the seeds; None where it is not
        known), `t` and `seeds_t` (positions in `rounds`), `seeds` (which ones are shown), and by
        metric that some seed has a value of `curves` (packed: median, quartiles, mean, ends of its
        interval; each as long as t), `by_seed` (packed, seeds x rounds) and `lacking`, in how many
        seeds it has no value in the end.
    """
    good, words = run.cells[run.cells["status"] == "ok"], Selection.of(run).metrics
    names = [name for name in METRICS if name in good and good[name].notna().any()]
    expected_pairs = [
        (problem, algorithm, expected)
        for problem in run.record.labels("problems")
        for algorithm, expected in run.expected_of(problem).items()
    ]
    # A page of many methods would be too large to open: single seeds share what there is room for.
    played = sum(len(run.good(problem, algorithm)) > 0 for problem, algorithm, _ in expected_pairs)
    seeds_per_pair = VALUES * share / max(1, len(names) * played * SEED_ROUNDS)
    rounds: list[list[int]] = []

    def place(t: NDArray[np.int64]) -> int:
        if (listed := t.tolist()) not in rounds:
            rounds.append(listed)
        return rounds.index(listed)

    pairs = []
    for problem, algorithm, expected in expected_pairs:
        cells = run.good(problem, algorithm).sort_values("cell")  # the order of `Run.series`
        seed_positions = thin_positions(len(cells), max(1, int(seeds_per_pair)))
        pair: dict[str, Any] = {
            "problem": problem,
            "algorithm": algorithm,
            "n": len(cells),
            "expected": expected,
        }
        pair |= {
            "stale": stale(run, problem, algorithm),
            "curves": {},
            "by_seed": {},
            "lacking": {},
        }
        seconds = cells["seconds_per_round"].median()
        pair["seconds"] = None if np.isnan(seconds) else float(f"{seconds:.6g}")
        t = recorded_rounds(run, problem, algorithm)
        curve_positions, coarse_positions = (
            thin_positions(len(t), ROUNDS),
            thin_positions(len(t), SEED_ROUNDS),
        )
        # Rounds are read once for both kinds of curves, as reading is what takes long.
        read = np.union1d(curve_positions, coarse_positions)
        for name, values in zip(
            names, read_values(run, names, problem, algorithm, t[read]), strict=True
        ):
            if np.isnan(values).all():
                continue
            drawn = values[np.searchsorted(read, curve_positions)]
            unit = unit_of(words[name])
            parts = [
                part
                for word in reversed(STATISTICS)
                for part in turn(centre(drawn, name, word), unit)
            ]
            pair["curves"][name] = pack_numbers(np.array(parts))
            coarse = unit * values[np.ix_(np.searchsorted(read, coarse_positions), seed_positions)]
            pair["by_seed"][name] = pack_numbers(coarse.T)
            pair["lacking"][name] = int(np.isnan(values[-1]).sum())
        pair |= {
            "t": place(t[curve_positions]),
            "seeds_t": place(t[coarse_positions]),
            "seeds": cells["seed"].to_numpy()[seed_positions].tolist(),
        }
        pairs.append(pair)
    return {"rounds": rounds, "pairs": pairs, "metrics": names}
