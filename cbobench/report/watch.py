"""`cbobench status --watch`: a run that others play, as text or JSON; it reads the folder alone,
and writes nothing.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from cbobench.errors import Misuse, printable
from cbobench.report.formats import Comparison, render, terminal_width
from cbobench.report.groups import KEY, Arena, find_groups, group_by_arena
from cbobench.report.load import Run
from cbobench.report.quantities import read_objective
from cbobench.report.selection import Selection
from cbobench.report.summary import tabulate
from cbobench.report.text_table import TextTable
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.lease import (
    HEARTBEAT_SECONDS,
    Heartbeat,
    pair_id,
    read_heartbeats,
    read_players,
)
from cbobench.results.manifest import Manifest
from cbobench.results.query import FailureCounts
from cbobench.results.store import machine_id
from cbobench.words import count_noun, list_names, time_left

SILENT_SECONDS = 2.5 * HEARTBEAT_SECONDS  # a call is silent after so long without a heartbeat
# a call elsewhere is dead only after this time by our own clock
CONFIRM_SECONDS = 1.5 * HEARTBEAT_SECONDS
COMPARE_SHARE = 0.1  # the largest share of time that comparisons take
INTERVAL, REMOTE_INTERVAL = 2.0, 5.0  # seconds between looks at a local folder, and at a bucket
LINE_INTERVAL = 30.0  # seconds between lines without a terminal
LISTED = 5  # problems with missing seeds, or pairs that are played now
BEST = "best {} (seeds)"
ABOUT_BEST = (
    f"{BEST}: the best observed so far where all constraints held, in its own units, mean over the "
    "seeds that have one"
)


class CachedRunFolder(RunFolder):
    """A run folder whose published files are read once: they never change."""

    @cached_property
    def _tables(self) -> dict[Any, tuple[dict[str, Any], pa.Table]]:
        return {}

    def read_file(
        self, kind: str, task: str, columns: list[str] | None = None
    ) -> tuple[dict[str, Any], pa.Table]:
        key = kind, task, None if columns is None else tuple(columns)
        if key not in self._tables:
            self._tables[key] = super().read_file(kind, task, columns)
        return self._tables[key]


class DriverState(NamedTuple):
    """A call with a lease: "alive", "silent" (stopped, or cut off) or "dead", and seconds of
    silence.
    """

    heartbeat: Heartbeat
    state: str
    silence: float

    def __str__(self) -> str:
        driver = self.heartbeat.driver
        if self.state == "dead":
            return (
                f"!! {driver} stopped unexpectedly; its last heartbeat was {self.silence:.0f} s ago"
            )
        if self.state == "silent":
            due = f"one is due every {HEARTBEAT_SECONDS:.0f} s"
            return f"!! {driver} has sent no heartbeat for {self.silence:.0f} s; {due}"
        # A call whose lease holds no cells, such as `cbobench compact`, plays nothing.
        return f"{'played' if driver.cells else 'merged'} by {driver}"


class View(NamedTuple):
    """A run at a moment.

    Attributes:
        content: what `--format json` prints, but for the comparison (see docs/clusters.md).
        drivers, failures: of these in words.
        comparison: over the seeds that are ok for all methods of their problem; None without any.
    """

    content: dict[str, Any]
    drivers: list[DriverState]
    failures: FailureCounts
    comparison: Comparison | None

    @property
    def is_active(self) -> bool:
        """Whether calls play it, as far as is known."""
        return self.content["state"] in ("playing", "silent")

    def render_json(self, indent: int | None = None) -> str:
        """All of it as JSON."""
        rows = None if self.comparison is None else json.loads(self.comparison.render("json"))
        return json.dumps(self.content | {"comparison": rows}, indent=indent, ensure_ascii=False)


class Live:
    """Looks at a run again and again.

    Args:
        location: path or URI of the run folder.

    Attributes:
        is_uncertain: whether a call may be dead; a look `CONFIRM_SECONDS` later decides it.

    Raises:
        Misuse: not a run folder, or a bundle. DamagedRun: a truncated or foreign file in it.
    """

    def __init__(self, location: Any) -> None:
        self.folder, self.is_uncertain = CachedRunFolder(_open_folder(location).uri), False
        self._heartbeats: dict[str, tuple[int | None, float, float]] = {}
        self._stamp: Any = None  # of what is compared
        self._compared: tuple[list[dict[str, Any]], Comparison | None] = [], None
        self._next_comparison = 0.0
        try:
            Manifest.read(self.folder)
        except Misuse as error:
            raise Misuse(f"{error}; while a run is being planned, nothing is there yet") from error

    def look(self) -> View:
        """The run as it is now."""
        drivers = self._read_drivers()  # before the cells: who has ended has published them
        run = Run(self.folder)
        pairs, orphans = count_pairs(run, [driver for driver in drivers if driver.state != "dead"])
        cells = {
            name: sum(p[name] for p in pairs) for name in ("expected", "ok", "failed", "playing")
        }
        missing = cells["expected"] - cells["ok"] - cells["failed"]
        holding = [d for d in drivers if d.heartbeat.driver.cells and d.state != "dead"]
        rates: list[Any] = [d.heartbeat.progress.get("rate") for d in holding if d.state == "alive"]
        unplayed = "idle" if missing else "complete"
        state = ("playing" if rates else "silent") if holding else unplayed
        failures = _tally_failures(run)
        complete_seeds, comparison = self._compare(run, state)
        content = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "suite": printable(run.record.suite),
            "folder": str(self.folder),
            "state": state,
            "cells": cells | {"missing": missing, "of_nobody": orphans},
            "rounds": {
                "done": sum(pair["rounds"] for pair in pairs),
                "total": sum(pair["expected"] * pair["horizon"] for pair in pairs),
                "per_second": None if None in rates or not rates else float(sum(rates)),
            },
            "left": _find_time_left(holding),
            "drivers": [
                {
                    "host": printable(driver.host),
                    "pid": driver.pid,
                    "since": driver.since,
                    "state": state,
                }
                | {"heard_seconds": round(silence, 1)}
                for (driver, _, _), state, silence in drivers
            ],
            "pairs": pairs,
            "failures": [
                {"count": count, "first": printable(failures.first[kind])}
                for kind, count in failures.counts.most_common()
            ],
            "complete_seeds": complete_seeds,
        }
        return View(content, drivers, failures, comparison)

    def _read_drivers(self) -> list[DriverState]:
        """The calls with a lease: alive by process here, elsewhere by the time since a heartbeat.

        The folder's clock differs from ours. So the first look alone trusts it; later ones time the
        changes by our own clock. The folder's clock alone never makes a call dead.
        """
        clock, drivers, self.is_uncertain = time.monotonic(), [], False
        for heartbeat in read_heartbeats(self.folder):
            driver, written = heartbeat.driver, heartbeat.written
            age = max(0.0, (time.time_ns() - (written or time.time_ns())) / 1e9)
            earlier = self._heartbeats.get(driver.id, (written, clock - age, clock))
            since = earlier[1] if earlier[0] == written else clock
            self._heartbeats[driver.id] = written, since, earlier[2]
            silence = clock - since
            state = "silent" if silence >= SILENT_SECONDS else "alive"
            if not driver.alive(silence):
                is_new = driver.machine != machine_id() and clock - earlier[2] < CONFIRM_SECONDS
                self.is_uncertain |= is_new
                state = "silent" if is_new else "dead"
            drivers.append(DriverState(heartbeat, state, silence))
        return drivers

    def _compare(self, run: Run, state: str) -> tuple[list[dict[str, Any]], Comparison | None]:
        """How many seeds are complete, and their comparison: where they are others, and not too
        often.
        """
        started = time.monotonic()
        if started >= self._next_comparison or state != "playing":
            counts, seeds = find_complete(run)
            # A cell that is played again changes the numbers.
            stamp = counts, seeds, int(run.played.attempt.sum())
            if stamp != self._stamp:
                selection = Selection(run, horizon="all", seeds=seeds)
                self._compared = counts, tabulate(selection) if seeds else None
                self._stamp = stamp
            # However long a comparison takes, the pause after it keeps to the share of the time.
            seconds = time.monotonic() - started
            self._next_comparison = time.monotonic() + seconds / COMPARE_SHARE
        return self._compared


def _open_folder(location: Any) -> RunFolder:
    return open_run(location).refuse_bundle("nobody plays a bundle; its state: cbobench status")


def count_pairs(run: Run, drivers: list[DriverState]) -> tuple[list[dict[str, Any]], int]:
    """The state of every pair and horizon, and how many missing cells nobody plays.

    A cell that is played again is ok or failed as before until its new row is published; its rounds
    are yet to be done.

    Args:
        drivers: the calls that may be alive.
    """
    labels = run.record.labels("problems"), run.record.labels("algorithms")
    problems = run.record.variants("problems")
    # Several grids may ask for one pair.
    seeds_of_key: dict[tuple[str, str, int], list[int]] = {}
    ids = {}
    for pair_cells in run.record.cells.by_pair:
        key = pair_cells.pair.problem.title, pair_cells.pair.algorithm.title, pair_cells.horizon
        seeds_of_key.setdefault(key, []).extend(map(int, pair_cells.seeds))
        ids[key] = pair_id(pair_cells.pair, pair_cells.horizon)
    published = dict(list(run.cells.groupby([*KEY], sort=False)))
    progress = [driver.heartbeat.progress for driver in drivers]
    pairs, orphans = [], 0
    for key, seeds in seeds_of_key.items():
        pair, horizon = ids[key], key[2]
        rows = published.get(key, run.cells.iloc[:0])
        attempts = dict(zip(rows["seed"].tolist(), rows["attempt"].tolist(), strict=True))
        missing = [seed for seed in seeds if seed not in attempts]
        held = [range(*ends) for d in drivers for ends in d.heartbeat.driver.cells.get(pair, ())]
        orphans += sum(not any(seed in seeds for seeds in held) for seed in missing)
        # A cell that is played again is due until a later attempt is published.
        repeated = [row for report in progress for row in report.get("again", {}).get(pair, ())]
        due = len(missing) + sum(
            any(first <= seed < end and attempt <= latest for first, end, latest in repeated)
            for seed, attempt in attempts.items()
        )
        # What has come meanwhile is in both.
        reports = [report.get("playing", {}).get(pair, (0, 0)) for report in progress]
        playing = min(sum(count for count, _ in reports), due)
        rounds = min(sum(count for _, count in reports), due * horizon)
        ok = int((rows["status"] == "ok").sum())
        pairs.append(
            {
                "problem": printable(labels[0][key[0]]),
                "algorithm": printable(labels[1][key[1]]),
                "horizon": horizon,
                "expected": len(seeds),
                "ok": ok,
                "failed": len(rows) - ok,
                "playing": playing,
                "rounds": (len(seeds) - due) * horizon + rounds,
                **_join_best(
                    [report.get("best", {}).get(pair) for report in progress],
                    *read_objective(problems[key[0]]),
                ),
            }
        )
    return pairs, orphans


def _join_best(
    reports: list[list[float] | None], name: str, zero: float, unit: float
) -> dict[str, Any]:
    """Of the cells of a pair that have seen a feasible point, by all calls: the best values of the
    objective so far, which is zero + unit · f.
    """
    rows = [row for row in reports if row and row[0]]
    objective = {"objective": printable(name)}
    if not rows:
        return objective | {"seen": 0, "best_mean": None, "best": None}
    cell_count = int(sum(row[0] for row in rows))
    mean = sum(row[0] * row[1] for row in rows) / cell_count
    ends = {"best_mean": zero + unit * mean, "best": zero + unit * max(row[2] for row in rows)}
    return {**objective, "seen": cell_count, **ends}


def _find_time_left(holding: list[DriverState]) -> dict[str, float] | None:
    """When the last call will be done, as heartbeats report it; None unless each of them does."""
    ends: list[list[float]] = []
    for driver in holding:
        progress = driver.heartbeat.progress
        if driver.state != "alive" or progress.get("left") is None:
            return None
        # Where no rounds are left it only merges files.
        if "total" not in progress or progress["total"] != progress.get("rounds"):
            ends.append([max(0.0, float(end) - driver.silence) for end in progress["left"]])
    if not ends:
        return None
    return dict(zip(("seconds", "low", "high"), map(max, zip(*ends, strict=True)), strict=True))


def _tally_failures(run: Run) -> FailureCounts:
    """The errors of the failed cells, with their pairs by label."""
    labels = run.record.labels("problems"), run.record.labels("algorithms")
    failed = run.cells[run.cells["status"] == "failed"]
    return FailureCounts(
        f"{labels[0][row['problem']]} / {labels[1][row['algorithm']]} seed {row['seed']}: "
        f"{row['error']}"
        for row in failed[["problem", "algorithm", "seed", "error"]].to_dict("records")
    )


def find_complete(run: Run) -> tuple[list[dict[str, Any]], dict[Arena, frozenset[int]]]:
    """How many seeds are ok for every method of a problem; and which, at the latest T that has
    some.
    """
    counts = []
    latest: dict[str, tuple[Arena, frozenset[int]]] = {}
    for groups in group_by_arena(find_groups(run)):
        problem, horizon, _ = arena = groups[0].arena
        complete = frozenset.intersection(*(frozenset(group.seeds.tolist()) for group in groups))
        expected = frozenset[int]().union(*(group.expected_seeds for group in groups))
        count = {"horizon": horizon, "complete": len(complete), "expected": len(expected)}
        counts.append({"problem": printable(groups[0].problem_label)} | count)
        if complete and (problem not in latest or latest[problem][0][1] < horizon):
            latest[problem] = arena, complete
    return counts, dict(latest.values())


def follow(location: str, once: bool, as_json: bool, hints: Callable[[], list[str]]) -> int:
    """Look at a run until it is complete, or nobody plays it any more; the exit code.

    Args:
        location: path or URI of the run folder.
        once: look once; once more where a call may be dead.
        as_json: print an object at every look.
        hints: the commands that finish the run.

    Returns:
        0: it is complete, or being played, or about to be, and no cell failed. 1: cells failed, or
        are missing and nobody plays them.
    """
    if _wait_for_beginning(location, once, as_json) and once:
        return 0
    live = Live(location)
    view = live.look()
    # One look cannot tell a call that has ended from one on a machine with another clock.
    if once and live.is_uncertain:
        time.sleep(CONFIRM_SECONDS)
        view = live.look()
    if view.is_active and not once:
        view = _follow_until_done(live, view, as_json)
    is_idle = view.content["state"] == "idle"
    print(view.render_json(1 if once else None) if as_json else text(view))
    if not as_json and (is_idle or view.content["cells"]["of_nobody"]):
        for hint in hints():
            print(f"to go on: {hint}")
    return 1 if view.failures.total or is_idle else 0


def _wait_for_beginning(location: str, once: bool, as_json: bool) -> bool:
    """Wait until a run has begun that calls are about to play, and say so; whether that was so.

    A call says who it is before it starts its workers, and writes the record afterwards: on a
    cluster, minutes later.
    """
    folder, is_announced = _open_folder(location), False
    while not Manifest.exists(folder) and (drivers := read_players(folder)):
        if not is_announced and as_json:
            calls = [{"host": printable(d.host), "pid": d.pid, "since": d.since} for d in drivers]
            content = {"folder": str(location), "state": "beginning", "drivers": calls}
            print(json.dumps(content), flush=True)
        elif not is_announced:
            names = ", ".join(map(str, drivers))
            print(printable(f"{location}: it has not begun yet; {names} prepares it"), flush=True)
        is_announced = True
        if once:
            break
        time.sleep(INTERVAL)
    return is_announced


def _follow_until_done(live: Live, view: View, as_json: bool) -> View:
    """Draw a run on the terminal, or print it, until it ends; the last view."""
    from rich.console import Console
    from rich.live import Live as Drawing
    from rich.text import Text

    console, printed_at = Console(), -math.inf
    is_drawn = not as_json and sys.stdout.isatty()
    drawing = Drawing(console=console, auto_refresh=False, transient=True) if is_drawn else None
    with drawing or nullcontext():
        while view.is_active:
            if drawing is not None:
                lines = Text(text(view, console.height - 1), no_wrap=True, overflow="crop")
                drawing.update(lines, refresh=True)
            elif as_json:
                print(view.render_json(), flush=True)
            elif time.monotonic() - printed_at >= LINE_INTERVAL:
                printed_at = time.monotonic()
                print("\n".join(summary(view)), flush=True)
            time.sleep(INTERVAL if live.folder.local else REMOTE_INTERVAL)
            view = live.look()
    return view


def summary(view: View) -> list[str]:
    """The state of a run in a line or two."""
    content, cells, rounds = view.content, view.content["cells"], view.content["rounds"]
    expected = count_noun(cells["expected"], "cell")
    counts = f"{content['state']}: {cells['ok']:,} of {expected} ok, {cells['failed']:,} failed"
    first = f"{content['suite'] or printable(content['folder'])}: {counts}"
    if not view.is_active:
        return [first]
    rate = "" if rounds["per_second"] is None else f", {rounds['per_second']:,.0f} a second"
    left = "unknown" if content["left"] is None else time_left(*content["left"].values())
    share = _format_percent(rounds["done"], rounds["total"])
    return [
        f"{first}, {cells['playing']:,} playing",
        f"  {share} of the rounds{rate}; left: {left}",
    ]


def text(view: View, height: int | None = None, with_comparison: bool = True) -> str:
    """A run as a terminal shows it.

    Args:
        height: lines that there are; None for any. Pairs that are over, or have not begun, are left
            out first.
        with_comparison: whether the comparison so far is below.
    """
    cells, pairs = view.content["cells"], view.content["pairs"]
    lines = summary(view) + [printable(f"  {driver}") for driver in view.drivers]
    if cells["of_nobody"]:
        orphans = count_noun(cells["of_nobody"], "cell")
        lines.append(f"  !! nobody plays {orphans} of the {cells['missing']} that are missing")
    if view.failures.total:
        lines.append(printable(f"  {view.failures}"))
    playing = sorted((p for p in pairs if p["playing"]), key=lambda pair: -pair["playing"])
    if playing:
        names = [f"{pair['algorithm']} on {pair['problem']}" for pair in playing]
        lines.append(f"  playing now: {list_names(names, LISTED)}")
    compared = _render_comparison(view) if with_comparison else []
    room = len(pairs)
    if height is not None:
        room = max(4, height - len(lines) - 5 - min(len(compared), height // 2))
    return "\n".join([*lines, "", *_tabulate_pairs(pairs, room), "", *compared]).rstrip()


def _tabulate_pairs(pairs: list[dict[str, Any]], room: int) -> list[str]:
    """A table of pairs, of which those shown first that are being played."""
    shares = [_format_percent(pair["rounds"], pair["expected"] * pair["horizon"]) for pair in pairs]
    visible, below = [*zip(pairs, shares, strict=True)], list[str]()
    if len(pairs) > room:
        begun = [row for row in visible if row[0]["playing"] or row[1] not in ("0 %", "100 %", "–")]
        over = sum(share == "100 %" and not pair["playing"] for pair, share in visible)
        counts = f"over: {over:,}, begun: {len(begun):,} (--once shows all)"
        below.append(f"... of {count_noun(len(pairs), 'pair')} {counts}")
        visible = (begun or visible)[: room - 1]
    columns = {name: [pair[name] for pair, _ in visible] for name in ("problem", "algorithm")}
    if len({pair["horizon"] for pair in pairs}) > 1:
        columns["T"] = [f"{pair['horizon']:,}" for pair, _ in visible]
    columns["rounds"] = [share for _, share in visible]
    if any(pair["seen"] for pair in pairs):
        names = {pair["objective"] for pair in pairs}
        name = names.pop() if len(names) == 1 else "objective"
        columns[BEST.format(name)] = [
            f"{pair['best_mean']:.4g} ({pair['seen']})" if pair["seen"] else "–"
            for pair, _ in visible
        ]
        below.append(ABOUT_BEST.format(name))
    for name in ("ok", "failed", "playing"):
        columns[name] = [str(pair[name] or "–") for pair, _ in visible]
    columns["of"] = [str(pair["expected"]) for pair, _ in visible]
    table = TextTable([*columns], list(zip(*columns.values(), strict=True)))
    return [*render(table, "table", terminal_width()).splitlines(), *below]


def _render_comparison(view: View) -> list[str]:
    so_far = "" if view.content["state"] == "complete" else "so far, "
    if view.comparison is None:
        return [
            f"no seed is {so_far and 'complete yet: none that is '}ok for every method of a problem"
        ]
    parts = [
        f"{row['problem']}: {row['complete']} of {row['expected']}"
        for row in view.content["complete_seeds"]
        if row["complete"] < row["expected"]
    ]
    about = f"{so_far}of seeds that are ok for every method ({list_names(parts, LISTED, '; ')}):"
    return [*([about] if parts else []), *view.comparison.render().splitlines()]


def _format_percent(done: int, total: int) -> str:
    return f"{math.floor(100 * done / total)} %" if total else "–"
