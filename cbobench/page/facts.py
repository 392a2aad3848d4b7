"""What a page says of a run beside its numbers: what was played with which settings by whom, and what went wrong."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError, mask_secrets
from cbobench.papers.claims import format_value, is_off
from cbobench.report.formats import TextTable
from cbobench.report.groups import Group, describe_failures, find_arithmetic, find_cpus, find_groups
from cbobench.report.load import Run
from cbobench.report.numbers import format_number
from cbobench.results.lease import read_players
from cbobench.results.manifest import VARIANT_KINDS
from cbobench.results.provenance import mixed_note
from cbobench.words import count_noun

FAILURES = 300
"""How many failed cells a page lists with their tracebacks."""
LONGEST = 200  # characters of a parameter's value
UNITS = {"problems": "problem", "algorithms": "method"}


def facts(run: Run) -> list[tuple[str, str]]:
    """Names and values of what ran, for a list at the head of the page."""
    groups, record, cells = find_groups(run), run.record, run.cells
    expected = sum(group.expected for group in groups)
    done = sum(len(group.good) for group in groups)
    states = {word: sum(getattr(group, word) for group in groups) for word in ("failed", "stale", "unchecked")}
    states["missing"] = count_missing(groups)
    state = ", ".join(f"{count:,} {word}" for word, count in states.items() if count)
    horizons = dict.fromkeys(f"{group.horizon:,}" for group in groups)
    problems, algorithms = ({getattr(group, name) for group in groups} for name in ("problem", "algorithm"))
    seconds = cells.loc[cells["status"] == "ok", "seconds"].sum()
    cost = f"{format_number(seconds / 3600)} CPU-hours" if seconds >= 360 else f"{format_number(seconds)} s of CPU time"
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
    if failures := describe_failures(groups):
        result.append(("Failures", "; ".join(failures)))
    if mixed := mixed_note(find_arithmetic(groups)):
        result.append(("Note", mixed))
    return [(name, value) for name, value in result if value]


def describe_running(run: Run) -> str:
    """How many calls play into the run now, and since when; empty where none does."""
    since = [driver.since for driver in read_players(run.folder)]
    return f"still running: {count_noun(len(since), 'call')}, begun {'; '.join(since)}" if since else ""


def count_missing(groups: Sequence[Group]) -> int:
    """How many cells of groups are neither done nor failed."""
    return sum(group.expected - len(group.good) - group.failed for group in groups)


def describe_incomplete(run: Run) -> str:
    """How many cells are missing, empty where none is."""
    groups = find_groups(run)
    expected = count_noun(sum(group.expected for group in groups), "cell")
    return f"incomplete: {count_missing(groups):,} of {expected} are not played yet" if count_missing(groups) else ""


def calls(run: Run) -> TextTable:
    """Every call that played into the run: when, what, and with which versions."""
    rows = []
    for call in run.record.invocations:
        versions = {"python": call.get("python"), **(call.get("versions") or {})}
        commit = str(call.get("commit") or "–")[:12] + (" with changes" if call.get("dirty") else "")
        version_list = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        machine = ", ".join(str(call[name]) for name in ("cpu", "platform") if call.get(name))
        command = mask_secrets(shlex.join(map(str, call.get("command") or ())))
        rows.append([str(call.get("at", "–")), command, version_list, commit, machine])
    return TextTable(["begun", "command", "versions", "commit", "machine"], rows, "Calls", left=5)


def settings(run: Run, names: Collection[str] | None = None) -> TextTable:
    """Every parameter as it was resolved, or some, with those who have it: a row for every value."""
    rows = []
    for kind in VARIANT_KINDS:
        variants, labels = run.record.variants(kind), run.record.labels(kind)
        for name in sorted({name for v in variants.values() for name in v.values if names is None or name in names}):
            values: dict[str, list[str]] = {}
            for title, variant in variants.items():
                if name in variant.values:
                    values.setdefault(format_value(variant.values[name]), []).append(labels[title])
            for value, labels_with_value in values.items():
                everyone = len(labels_with_value) == len(variants) and len(labels_with_value) > 1
                short_value = value if len(value) <= LONGEST else f"{value[:LONGEST]}… ({len(value):,} characters)"
                owners = f"all {len(labels_with_value)}" if everyone else ", ".join(labels_with_value)
                rows.append([UNITS[kind], owners, name, short_value])
    title = "All parameters" if names is None else "Decisive choices"
    return TextTable(["of", "whose", "parameter", "value"], rows, title, left=4)


def knowledge(run: Run, decisive: Collection[str]) -> TextTable:
    """What each method is told before it plays, and what it makes of it: its decisive parameters."""
    rows, labels = [], run.record.labels("algorithms")
    for title, variant in run.record.variants("algorithms").items():
        try:
            knowledge_list = ", ".join(ALGORITHMS.get(variant.name, imports=False).knows) or "nothing"
        except CbobenchError:  # a method of somebody's own, or of another version
            knowledge_list = "not known here"
        choices = {name: format_value(value) for name, value in variant.values.items() if name in decisive}
        choice_list = ", ".join(f"{name} {value}" for name, value in choices.items() if not is_off(name, value))
        rows.append([labels[title], knowledge_list, choice_list or "–"])
    note = "B and G bound the norms of f and g, R the noise; λ and the kernel are those of the method's models"
    return TextTable(["algorithm", "is told", "its choices"], rows, "What each method is told", note, left=3)


def failures(run: Run) -> dict[str, Any]:
    """Failed cells with their errors; tracebacks that are equal are there once."""
    failed = run.cells[run.cells["status"] == "failed"]
    labels = {name: run.record.labels(kind) for name, kind in zip(("problem", "algorithm"), VARIANT_KINDS, strict=True)}
    traces: dict[str, int] = {}
    rows = []
    for row in failed.head(FAILURES).to_dict("records"):
        trace = row["traceback"] if isinstance(row.get("traceback"), str) else ""  # a bundle has none
        error = row["error"] if isinstance(row["error"], str) else ""
        position = traces.setdefault(mask_secrets(trace), len(traces))
        titles = [labels[name][row[name]] for name in labels]
        rows.append([*titles, int(row["horizon"]), int(row["seed"]), mask_secrets(error), position])
    return {"count": len(failed), "rows": rows, "traces": list(traces)}


def describe_stale(run: Run) -> TextTable | None:
    """Which cells other code played, or nobody knows; None where there are none."""
    rows = [
        [
            group.problem_label,
            group.algorithm_label,
            f"{group.horizon:,}",
            f"{group.stale}/{group.expected}",
            f"{group.unchecked}/{group.expected}",
        ]
        for group in find_groups(run)
        if group.stale or group.unchecked
    ]
    note = "stale: the code that plays these cells has changed since; unchecked: that code is not at hand"
    return TextTable(["problem", "algorithm", "T", "stale", "unchecked"], rows, "Stale cells", note) if rows else None


def _join_words(values: Any) -> str:
    texts = [str(word) for word in values]
    return "; ".join(texts[:6]) + (f" and {len(texts) - 6} more" if len(texts) > 6 else "")
