"""`cbobench status --watch`: a run that others play, as text that is drawn again and again, once, or as JSON."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from cbobench.errors import printable
from cbobench.report.formats import TextTable, render, terminal_width
from cbobench.report.live import CONFIRM_SECONDS, DriverState, Live, PairState, View, find_beginners
from cbobench.words import count_noun, list_names, time_left

INTERVAL, REMOTE_INTERVAL = 2.0, 5.0  # seconds between looks at a local folder, and at a bucket
LINE_INTERVAL = 30.0  # seconds between lines without a terminal
LISTED = 5  # problems with missing seeds, or pairs that are played now
BEST = "best (seeds)"
ABOUT_BEST = f"{BEST}: the highest f observed so far where all constraints held, mean over the seeds that have one"


def follow(location: str, once: bool, as_json: bool, hints: Callable[[], list[str]]) -> int:
    """Look at a run until it is complete, or nobody plays it any more; the exit code.

    Args:
        location: path or URI of the run folder.
        once: look once; once more where a call may be dead.
        as_json: print an object (see docs/clusters.md), at once with `once`, else a line of it at every look.
        hints: the commands that finish the run.

    Returns:
        0: it is complete, or being played, or about to be, and no cell failed. 1: cells failed, or are missing and
        nobody plays them.
    """
    if _wait_for_beginning(location, once, as_json) and once:
        return 0
    live = Live(location)
    view = live.look()
    # One look cannot tell a call that has ended from one on a machine with another clock.
    if once and live.uncertain:
        time.sleep(CONFIRM_SECONDS)
        view = live.look()
    if not once and not as_json and sys.stdout.isatty() and view.state in ("playing", "silent"):
        view = _draw_until_done(live, view)
    else:
        printed_at = -LINE_INTERVAL
        while not once and view.state in ("playing", "silent"):
            if as_json:
                print(json.dumps(as_object(view), ensure_ascii=False), flush=True)
            elif time.monotonic() - printed_at >= LINE_INTERVAL:
                printed_at = time.monotonic()
                print("".join(summary(view)), flush=True)
            time.sleep(_choose_pause(live))
            view = live.look()
    if as_json:
        print(json.dumps(as_object(view), indent=1 if once else None, ensure_ascii=False))
    else:
        print(text(view))
        for hint in hints() if view.state == "idle" or view.orphans else ():
            print(f"to go on: {hint}")
    return 1 if view.failures.total or view.state == "idle" else 0


def _wait_for_beginning(location: str, once: bool, as_json: bool) -> bool:
    """Say that a run has not begun, if calls are about to play it, and wait until it has; whether that was so."""
    is_announced = False
    while beginners := find_beginners(location):
        if not is_announced:
            is_announced, names = True, ", ".join(map(str, beginners))
            if as_json:
                calls = [{"host": printable(d.host), "pid": d.pid, "since": d.since} for d in beginners]
                print(json.dumps({"folder": str(location), "state": "beginning", "drivers": calls}), flush=True)
            else:
                print(printable(f"{location}: it has not begun yet; {names} prepares it"), flush=True)
        if once:
            break
        time.sleep(INTERVAL)
    return is_announced


def _choose_pause(live: Live) -> float:
    return INTERVAL if live.folder.local else REMOTE_INTERVAL


def _draw_until_done(live: Live, view: View) -> View:
    """Draw a run on the terminal until it ends; the last view."""
    from rich.console import Console
    from rich.live import Live as Drawing
    from rich.text import Text

    console = Console()
    with Drawing(console=console, auto_refresh=False, transient=True) as drawing:
        while view.state in ("playing", "silent"):
            drawing.update(Text(text(view, console.height - 1), no_wrap=True, overflow="crop"), refresh=True)
            time.sleep(_choose_pause(live))
            view = live.look()
    return view


def summary(view: View) -> list[str]:
    """The state of a run in a line or two."""
    done, total = view.sum("rounds"), sum(pair.total for pair in view.pairs)
    cells = count_noun(view.sum("expected"), "cell")
    counts = f"{view.state}: {view.sum('ok'):,} of {cells} ok, {view.sum('failed'):,} failed"
    if view.state not in ("playing", "silent"):
        return [printable(f"{view.record.suite or view.folder}: {counts}")]
    rate = "" if view.rate is None else f", {view.rate:,.0f} a second"
    left = "unknown" if view.left is None else time_left(*view.left)
    first = printable(f"{view.record.suite or view.folder}: {counts}, {view.sum('playing'):,} playing")
    return [first, f"  {_format_percent(done, total)} of the rounds{rate}; left: {left}"]


def text(view: View, height: int | None = None, with_comparison: bool = True) -> str:
    """A run as a terminal shows it.

    Args:
        height: lines that there are; None for any. Pairs that are over, or have not begun, are left out first.
        with_comparison: whether the comparison so far is below.
    """
    lines = summary(view)
    lines += [printable(f"  {_describe_role(c)} {c}") for c in view.drivers]
    if view.orphans:
        lines.append(
            f"  !! nobody plays {count_noun(view.orphans, 'cell')} of the {_count_missing(view)} that are missing"
        )
    if view.failures.total:
        lines.append(printable(f"  {view.failures}"))
    if now := _name_playing(view.pairs):
        lines.append(printable(f"  playing now: {now}"))
    compared = _render_comparison(view) if with_comparison else []
    room = None if height is None else max(4, height - len(lines) - 5 - min(len(compared), height // 2))
    return "\n".join([*lines, "", *_tabulate_pairs(view.pairs, room), "", *compared]).rstrip()


def _describe_role(driver: DriverState) -> str:
    """A call whose lease holds no cells, such as `cbobench compact`, plays nothing."""
    return "!!" if driver.state != "alive" else "played by" if driver.heartbeat.driver.cells else "merged by"


def _tabulate_pairs(pairs: list[PairState], room: int | None) -> list[str]:
    """A table of pairs, of which those shown first that are being played."""
    visible, footer = pairs, ""
    if room is not None and len(pairs) > room:
        active = [pair for pair in pairs if pair.playing or 0 < pair.rounds < pair.total]
        visible = active[: room - 1] or pairs[: room - 1]
        over_count = sum(pair.rounds == pair.total and not pair.playing for pair in pairs)
        footer = (
            f"... of {count_noun(len(pairs), 'pair')} over: {over_count:,}, begun: {len(active):,} (--once shows all)"
        )
    several = len({pair.horizon for pair in pairs}) > 1
    has_best = any(pair.seen for pair in pairs)
    columns = ["problem", "algorithm", *(["T"] if several else []), "rounds", *([BEST] if has_best else [])]
    columns += ["ok", "failed", "playing", "of"]
    rows = [
        [
            pair.problem,
            pair.algorithm,
            *([f"{pair.horizon:,}"] if several else []),
            _format_percent(pair.rounds, pair.total),
            *([_format_best(pair)] if has_best else []),
            *(str(n or "–") for n in (pair.ok, pair.failed, pair.playing)),
            str(pair.expected),
        ]
        for pair in visible
    ]
    lines = render(TextTable(columns, rows), "table", terminal_width()).splitlines()
    return [*lines, *([footer] if footer else []), *([ABOUT_BEST] if has_best else [])]


def _name_playing(pairs: list[PairState]) -> str:
    """Which pairs are played now, those with the most cells first."""
    active = sorted((pair for pair in pairs if pair.playing), key=lambda pair: -pair.playing)
    return list_names((f"{pair.algorithm} on {pair.problem}" for pair in active), LISTED)


def _format_best(pair: PairState) -> str:
    return "–" if pair.best_mean is None else f"{pair.best_mean:.4g} ({pair.seen})"


def _render_comparison(view: View) -> list[str]:
    over = view.state == "complete"
    if view.comparison is None:
        return [f"no seed is {'' if over else 'complete yet: none that is '}ok for every method of a problem"]
    all_complete = all(full == expected for _, _, full, expected in view.seeds)
    parts = [f"{problem}: {full} of {expected}" for problem, _, full, expected in view.seeds if full < expected]
    suffix = f" and {len(parts) - LISTED} more" if len(parts) > LISTED else ""
    about = f"{'' if over else 'so far, '}of seeds that are ok for every method ({'; '.join(parts[:LISTED])}{suffix}):"
    return [*([] if all_complete else [printable(about)]), *view.comparison.render().splitlines()]


def as_object(view: View) -> dict[str, Any]:
    """A run as JSON; see docs/clusters.md."""
    compared = None if view.comparison is None else json.loads(view.comparison.render("json"))
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "suite": printable(view.record.suite),
        "folder": str(view.folder),
        "state": view.state,
        "cells": {
            "expected": view.sum("expected"),
            "ok": view.sum("ok"),
            "failed": view.sum("failed"),
            "playing": view.sum("playing"),
            "missing": _count_missing(view),
            "of_nobody": view.orphans,
        },
        "rounds": {
            "done": view.sum("rounds"),
            "total": sum(pair.total for pair in view.pairs),
            "per_second": view.rate,
        },
        "left": None if view.left is None else dict(zip(("seconds", "low", "high"), view.left, strict=True)),
        "drivers": [
            {
                "host": printable(c.heartbeat.driver.host),
                "pid": c.heartbeat.driver.pid,
                "since": c.heartbeat.driver.since,
                "state": c.state,
                "heard_seconds": round(c.silence, 1),
            }
            for c in view.drivers
        ],
        "pairs": [
            asdict(pair) | {"problem": printable(pair.problem), "algorithm": printable(pair.algorithm)}
            for pair in view.pairs
        ],
        "failures": [
            {"count": count, "first": printable(view.failures.first[kind])}
            for kind, count in view.failures.counts.most_common()
        ],
        "complete_seeds": [
            {"problem": printable(problem), "horizon": horizon, "complete": full, "expected": expected}
            for problem, horizon, full, expected in view.seeds
        ],
        "comparison": compared,
    }


def _count_missing(view: View) -> int:
    return view.sum("expected") - view.sum("ok") - view.sum("failed")


def _format_percent(done: int, total: int) -> str:
    return f"{math.floor(100 * done / total)} %" if total else "–"
