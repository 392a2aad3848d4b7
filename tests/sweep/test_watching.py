"""What a run says of itself while it plays: its log, and counters on Ray."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from types import SimpleNamespace

import cbobench
from cbobench.errors import CbobenchError
from cbobench.play.task import Receipt
from cbobench.sweep import journal
from cbobench.sweep.ray_executor import SweepMetrics
from cbobench.sweep.run import plan


def logs(run):
    """The events of each call, oldest first."""
    files = sorted((run / "log").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in files]


BAD = """
from cbobench.algorithms.references import Random


class Bad(Random):
    def ask(self, t):
        if t == 3 and any(scope[-1] == 1 for scope in self.setting.streams.scopes):
            raise ValueError("on purpose")
        return super().ask(t)
"""


def test_a_call_writes_a_line_per_event(write_suite, tmp_path, monkeypatch):
    (tmp_path / "bad_watch.py").write_text(BAD)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "suite: w\nhorizon: 5\nseeds: {}\nproblems: [rkhs-1d]\nalgorithms: [random, bad_watch:Bad]\n"
    cbobench.run(write_suite(text.format(3)), out=tmp_path / "run", cpus=0, block=1)
    cbobench.run(write_suite(text.format(4)), out=tmp_path / "run", cpus=0)
    first, second = logs(tmp_path / "run")
    words = [line["event"] for line in first]
    assert words[:2] + words[-1:] == ["started", "note", "ended"]
    assert Counter(words[2:-1]) == {"played": 6, "failed": 1}
    assert first[0] | {"cells": 6, "done": 0, "tasks": 6} == first[0]
    failed = words.index("failed")
    assert first[failed - 1]["failed"] == 1
    assert first[failed]["cell"].startswith(
        "rkhs-1d / bad_watch:Bad seed 1: round 3: ValueError: on purpose (bad_watch.py:"
    )
    assert first[-1] | {"played": 6, "failed": 1, "absent": 0, "stopped": False} == first[-1]
    assert [line["event"] for line in second] == ["resumed", "note", "played", "played", "ended"]
    assert second[0] | {"cells": 8, "done": 6, "tasks": 2} == second[0]
    for lines in (first, second):
        seconds = [line["seconds"] for line in lines]
        assert seconds == sorted(seconds)
        assert all(datetime.fromisoformat(line["time"]).tzinfo is not None for line in lines)


def test_a_log_is_bounded(small_suite, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LINES", 6)
    cbobench.run(small_suite(horizon=3), out=tmp_path / "run", cpus=0, block=1)
    ((*lines, ended),) = logs(tmp_path / "run")
    assert len(lines) == 6
    assert ended | {"event": "ended", "played": 12} == ended


def test_a_log_that_cannot_be_written_stops_nothing(small_suite, tmp_path):
    cbobench.run(small_suite(horizon=3), out=tmp_path / "run", cpus=0)
    (tmp_path / "run" / "log").rename(tmp_path / "old")
    (tmp_path / "run" / "log").write_text("in the way")
    assert cbobench.run(small_suite(horizon=3, seeds=5), out=tmp_path / "run", cpus=0).played == 3
    assert (tmp_path / "run" / "log").read_text() == "in the way"


class Metric:
    """Stands for Ray's counters and gauges."""

    def __init__(self, name, description, tag_keys):
        self.keys, self.values = tag_keys, {}

    def inc(self, value, tags):
        assert value > 0, "as Ray has it"
        self.set(self.values.get(tuple(sorted(tags.items())), 0) + value, tags)

    def set(self, value, tags):
        assert set(tags) == set(self.keys)
        self.values[tuple(sorted(tags.items()))] = value


def test_counters_on_ray():
    class Metrics:
        Counter = Gauge = Metric

    meters = SweepMetrics(Metrics, "s3://user:secret@bucket/some/run")
    meters.count_in_flight(2)
    meters.count_receipt(Receipt("a", 3, 1, 40, ("why",)))
    meters.count_receipt(Receipt("b", 2, 0, 20, ()))
    run = ("run", "run")
    assert meters.rounds.values == {(run,): 60}
    assert meters.cells.values == {(run, ("status", "ok")): 5, (run, ("status", "failed")): 1}
    assert meters.flight.values == {(run,): 2}


def test_where_files_cannot_grow_the_log_is_uploaded_whole(small_suite, tmp_path, monkeypatch):
    """As on object stores; a store that is away does not end the sweep for its log."""
    uploads = []

    def publish(name, write):
        uploads.append(name)
        raise CbobenchError("the store does not answer")

    log = journal.Journal(plan(small_suite(horizon=3), out=tmp_path / "run", cpus=0))
    monkeypatch.setattr(log, "folder", SimpleNamespace(local=False, publish=publish))
    log.record_note("played by this process")
    log.record_receipt(Receipt("a", 1, 0, 3, ()))
    assert uploads == [], "once a minute"
    monkeypatch.setattr(journal, "UPLOAD", 0.0)
    log.record_receipt(Receipt("b", 1, 0, 3, ()))
    assert uploads == [log.name]
    assert len(log.lines) == 4, "the next upload has them all"
