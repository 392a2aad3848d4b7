"""`watch`: what a run says of itself while others play it, and when nobody does."""

from __future__ import annotations

import json
import os
import shlex
import time
from dataclasses import asdict, replace

import pytest

import cbobench
from cbobench.call import Call
from cbobench.cli import main
from cbobench.errors import printable
from cbobench.report import watch
from cbobench.report.watch import Live, _join_best, text
from cbobench.results import lease
from cbobench.results.bundle import open_run
from cbobench.results.export import export
from cbobench.results.folder import RunFolder
from cbobench.results.lease import EXPIRES_AFTER, Lease, pair_id
from cbobench.results.manifest import Manifest
from cbobench.suite.cells import Cells
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import UNREADABLE, WRONG
from tests.report.made import make
from tests.suite.test_fuzz import places, replaced


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A run of which one method lacks seeds."""
    folder = tmp_path_factory.mktemp("half")
    suite = {
        "suite": "half", "horizon": 20, "seeds": 4,
        "problems": ["rkhs-1d"], "algorithms": ["ckb-ucb", "random"],
    }  # fmt: skip
    cbobench.run(suite, out=folder / "run", cpus=0, block=1)
    for path in (folder / "run").glob("*/*random.2-2*.parquet"):
        path.unlink()
    return folder / "run"


@pytest.fixture
def signed():
    """Sign a run with the file of a call that plays what is missing; it is taken away in the
    end.
    """
    files = []

    def sign(run, news=None, **changes):
        grid = Manifest.read(open_run(run)).grids[-1]
        claim = Lease(open_run(run), grid.cells)
        files.append(run / "drivers" / f"{claim.id}.json")
        files[-1].parent.mkdir(exist_ok=True)
        files[-1].write_text(
            json.dumps(asdict(replace(claim.driver, holds=True, **changes)) | {"news": news or {}})
        )
        return files[-1]

    yield sign
    for file in files:
        file.unlink()


def list_complete(view):
    return [tuple(row.values()) for row in view.content["complete_seeds"]]


def test_a_run_that_nobody_plays(half, capsys):
    assert main(["watch", str(half)]) == 1
    output = capsys.readouterr().out
    assert main(["status", str(half), "--watch"]) == 1
    assert capsys.readouterr().out == output, "one code path"
    lines = output.splitlines()
    assert lines[0] == "half: idle: 7 of 8 cells ok, 0 failed"
    assert "nobody plays 1 cell of the 1" in lines[1]


def test_one_look_is_a_way_of_watching(half, capsys):
    assert main(["status", str(half), "--once"]) == 2
    assert (
        capsys.readouterr().err
        == "cbobench: --once is about watching; add --watch, or leave it out\n"
    )
    looks = []
    for arguments in (["watch", "--json"], ["status", "--watch", "--format", "json"]):
        assert main([arguments[0], str(half), *arguments[1:], "--once"]) == 1
        looks.append(json.loads(capsys.readouterr().out) | {"time": None})
    assert looks[0] == looks[1]


def test_the_comparison_is_of_seeds_that_all_have(half):
    view = Live(half).look()
    assert list_complete(view) == [("rkhs-1d", 20, 3, 4)]
    frame = view.comparison.frame
    full_run = cbobench.compare(half).frame
    assert (frame["n"].tolist(), full_run["n"].tolist()) == ([3, 3], [4, 3])
    random = [f["algorithm"].eq("random") for f in (frame, full_run)]
    assert frame[random[0]]["regret_median"].item() == full_run[random[1]]["regret_median"].item()
    cells = cbobench.load_cells(half, algorithm="ckb-ucb", seed=[0, 1, 3])
    assert frame[~random[0]]["regret_median"].item() == cells["regret"].median()


def test_a_sign_of_life_says_how_far_it_is(half, signed):
    pair = next(
        p for p in Manifest.read(open_run(half)).grids[-1].pairs if p.algorithm.name == "random"
    )
    news = {"rate": 50.0, "left": [3.0, 2.0, 5.0], "playing": {pair_id(pair, 20): [1, 7]}}
    file = signed(half, news)
    view = Live(half).look()
    assert view.content["state"] == "playing"
    assert [(p["ok"], p["playing"], p["rounds"]) for p in view.content["pairs"]] == [
        (4, 0, 80),
        (3, 1, 67),
    ]
    content = view.content
    assert content["cells"] == {
        "expected": 8,
        "ok": 7,
        "failed": 0,
        "playing": 1,
        "missing": 1,
        "of_nobody": 0,
    }
    assert content["rounds"] == {"done": 147, "total": 160, "per_second": 50.0}
    assert 2.0 < content["left"]["high"] <= 5.0
    assert "91 % of the rounds, 50 a second; left: about" in text(view)
    file.write_text(file.read_text().replace('"left": [3.0, 2.0, 5.0]', '"left": null'))
    assert Live(half).look().content["left"] is None


def test_the_status_says_who_plays_now(half, signed, capsys):
    main(["status", str(half)])
    assert "played now" not in capsys.readouterr().out, "negative control"
    signed(half)
    main(["status", str(half)])
    output = capsys.readouterr().out
    assert f"played now by process {os.getpid()} on" in output
    assert f"to follow it: cbobench watch {shlex.quote(str(half))}" in output
    main(["status", str(half), "--format", "json"])
    assert [driver["pid"] for driver in json.loads(capsys.readouterr().out)["drivers"]] == [
        os.getpid()
    ]


def test_what_is_best_so_far_and_who_plays_is_shown(half, signed):
    pairs = {
        p.algorithm.name: pair_id(p, 20) for p in Manifest.read(open_run(half)).grids[-1].pairs
    }
    news = {"playing": {pairs["random"]: [1, 7]}, "best": {pairs["random"]: [2, 1.5, 2.0]}}
    signed(half, news)
    signed(half, news | {"best": {pairs["random"]: [1, 3.0, 3.0]}})
    view = Live(half).look()
    assert [
        (p["algorithm"], p["seen"], p["best_mean"], p["best"]) for p in view.content["pairs"]
    ] == [
        ("ckb-ucb", 0, None, None),
        ("random", 3, 2.0, 3.0),
    ]
    assert _join_best([[2, 1.5, 2.0], [1, 3.0, 3.0]], "cost", 10.0, -2.0) == {
        "objective": "cost",
        "seen": 3,
        "best_mean": 6.0,
        "best": 4.0,
    }, "in the user's units: the least cost is of the highest f"
    visible = text(view)
    assert "playing now: random on rkhs-1d\n" in visible
    assert "best f (seeds)" in visible
    assert "2 (3)" in visible
    assert view.content["pairs"][1]["best"] == 3.0


def test_a_call_elsewhere_that_falls_silent_is_told(half, monkeypatch, signed):
    file = signed(half, machine="elsewhere-1")
    clock = time.monotonic()
    # a slow machine must not age the heartbeat
    monkeypatch.setattr(watch.time, "monotonic", lambda: clock)
    looking = Live(half)
    assert looking.look().content["state"] == "playing"
    for after, state in (
        (watch.SILENT_SECONDS - 1, "playing"),
        (watch.SILENT_SECONDS + 1, "silent"),
        (EXPIRES_AFTER + 1, "idle"),
    ):
        monkeypatch.setattr(watch.time, "monotonic", lambda after=after: clock + after)
        view = looking.look()
        assert view.content["state"] == state, f"after {after} s"
        assert watch.SILENT_SECONDS < 30, "told within half a minute"
    assert "stopped unexpectedly" in text(view)
    os.utime(file)
    assert looking.look().content["state"] == "playing", "it was the network"


def test_a_clock_alone_ends_no_watch(half, monkeypatch, capsys, signed):
    """The folder's clock is behind ours by more than a dead call would be silent."""
    file = signed(half, machine="elsewhere-1")
    clock = time.monotonic()
    behind = time.time() - 2 * EXPIRES_AFTER
    for sign, state in ((behind, "idle"), (behind + 10, "playing")):
        os.utime(file, (behind, behind))
        looking = Live(half)
        assert (looking.look().content["state"], looking.is_uncertain) == ("silent", True)
        os.utime(file, (sign, sign))
        monkeypatch.setattr(watch.time, "monotonic", lambda: clock + watch.CONFIRM_SECONDS + 1)
        assert (looking.look().content["state"], looking.is_uncertain) == (state, False)
        monkeypatch.undo()
    waited = []
    os.utime(file, (behind, behind))
    monkeypatch.setattr(
        watch.time, "sleep", lambda seconds: waited.append(seconds) or os.utime(file)
    )
    assert main(["watch", str(half), "--once"]) == 0
    assert capsys.readouterr().out.startswith("half: playing")
    assert waited == [watch.CONFIRM_SECONDS]


def test_a_call_here_that_is_stopped_is_told(half, monkeypatch, signed):
    signed(half, {"left": [3.0, 2.0, 5.0]})
    looking = Live(half)
    clock = time.monotonic()
    assert looking.look().content["left"] is not None
    monkeypatch.setattr(watch.time, "monotonic", lambda: clock + EXPIRES_AFTER + 1)
    view = looking.look()
    assert (view.content["state"], view.content["left"], view.drivers[0].state) == (
        "silent",
        None,
        "silent",
    )
    assert "has sent no heartbeat for 15" in text(view)


def test_who_merges_plays_nothing(half, capsys):
    with Lease(open_run(half), Cells()):
        assert main(["watch", str(half), "--once"]) == 1
    output = capsys.readouterr().out
    assert output.startswith("half: idle: 7 of 8 cells ok")
    assert f"merged by process {os.getpid()}" in output
    assert "nobody plays 1 cell" in output


def test_what_a_call_said_of_a_pair_counts_once(tmp_path, signed):
    """Two grids ask for it, and both lack seeds."""
    run, settings = (
        tmp_path / "run",
        {"suite": "s", "horizon": 20, "problems": ["rkhs-1d"], "algorithms": ["random"]},
    )
    for seeds in (2, 4):
        both_methods = {"algorithms": ["random", "ckb-ucb"]} if seeds == 2 else {}
        cbobench.run(settings | {"seeds": seeds} | both_methods, out=run, cpus=0, block=1)
    for path in [*run.glob("*/*random.1-1*.parquet"), *run.glob("*/*random.3-3*.parquet")]:
        path.unlink()
    record = Manifest.read(open_run(run))
    assert len(record.grids) == 2
    pair = record.grids[-1].pairs[0]
    signed(run, {"playing": {pair_id(pair, 20): [2, 33]}})
    view = Live(run).look()
    assert [
        (p["algorithm"], p["expected"], p["ok"], p["playing"], p["rounds"])
        for p in view.content["pairs"]
    ] == [
        ("random", 4, 2, 2, 40 + 33),
        ("ckb-ucb", 2, 2, 0, 40),
    ]


MOODY = """
from pathlib import Path

from cbobench.algorithms.references import Random


class Moody(Random):
    def ask(self, t):
        bad = any(scope[-1] in (1, 2) for scope in self.setting.streams.scopes)
        if t == 3 and bad and not Path({place!r}).exists():
            raise ValueError("on purpose")
        return super().ask(t)
"""


def test_cells_that_are_played_again_are_yet_to_be_done(tmp_path, monkeypatch):
    run, mood = tmp_path / "run", tmp_path / "good"
    (tmp_path / "moody_watch.py").write_text(MOODY.format(place=str(mood)))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(lease, "FIRST_HEARTBEAT", 0.0)
    suite = {
        "suite": "s",
        "horizon": 20,
        "seeds": 4,
        "problems": ["rkhs-1d"],
        "algorithms": ["moody_watch:Moody", "random"],
    }
    assert cbobench.run(suite, out=run, cpus=0, block=1).failed == 2
    mood.touch()
    views = []

    def look(receipt):
        (file,) = (run / "drivers").glob("*.json")
        time.sleep(0.1)
        lease.send_heartbeat(RunFolder(str(run), file.stem))
        views.append(Live(run).look())

    cbobench.run(suite, out=run, cpus=0, again=("failed",), on_receipt=look)
    observed = [
        [(p["ok"], p["failed"], p["rounds"]) for p in view.content["pairs"]] for view in views
    ]
    assert observed == [[(3, 1, 60), (4, 0, 80)], [(4, 0, 80), (4, 0, 80)]]
    assert [view.content["state"] for view in views] == ["playing", "playing"]
    assert views[0].content["left"] is not None
    assert [view.content["cells"]["of_nobody"] for view in views] == [0, 0]
    assert Live(run).look().content["state"] == "complete"


def test_a_seed_that_failed_is_not_complete(tmp_path):
    cells = {("p", "a"): {"regret": [1.0, 2.0, 3.0]}, ("p", "b"): {"regret": [4.0, 50.0, 6.0]}}
    view = Live(make(tmp_path / "run", cells, seeds=[0, 1, 2], failed={("p", "a"): [1]})).look()
    assert list_complete(view) == [("p", 100, 2, 3)]
    assert view.comparison.frame["n"].tolist() == [2, 2]
    assert view.comparison.frame["regret_median"].tolist() == [2.0, 5.0]
    assert "\nof seeds that are ok for every method (p: 2 of 3):\n" in text(view)
    lost = {("p", "a"): [0, 1, 2]}
    view = Live(make(tmp_path / "lost", cells, seeds=[0, 1, 2], failed=lost)).look()
    assert (view.content["state"], view.comparison) == ("complete", None)
    assert text(view).endswith("no seed is ok for every method of a problem")


def test_a_call_here_that_is_killed_is_told(half, signed, capsys):
    """Its process has ended, and another one, which began later, may have its number."""
    signed(half, born="before that of its number")
    view = Live(half).look()
    assert view.content["state"] == "idle"
    assert "stopped unexpectedly" in text(view)
    assert main(["watch", str(half), "--json", "--once"]) == 1
    assert json.loads(capsys.readouterr().out)["drivers"][0]["state"] == "dead"


def test_a_finished_run_says_so_and_returns_and_its_bundle_is_a_line(small_suite, tmp_path, capsys):
    execute(plan(Call(small_suite(horizon=5, seeds=1), out=tmp_path / "run", cpus=0)))
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    assert main(["watch", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("small: complete: 3 of 3 cells ok, 0 failed\n")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == files, (
        "nothing is written"
    )
    bundle = export(tmp_path / "run", tmp_path / "run.zip").file
    assert main(["watch", bundle]) == 2
    message = f"cbobench: {bundle} is a file; nobody plays a bundle; its state: cbobench status"
    assert capsys.readouterr().err.splitlines() == [message]


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (
            None,
            "it has no run.json; give the folder of a run; while a run is being planned, nothing "
            "is there yet",
        ),
        ("{", "is not JSON"),
    ],
)
def test_what_is_no_run_is_a_line(tmp_path, capsys, content, phrase):
    (tmp_path / "run").mkdir()
    if content is not None:
        (tmp_path / "run" / "run.json").write_text(content)
    assert main(["watch", str(tmp_path / "run")]) != 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert phrase in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_run_that_has_not_begun_is_waited_for(small_suite, tmp_path, capsys, monkeypatch):
    """Its driver has said who it is, and starts its workers, which takes a cluster minutes."""
    run = tmp_path / "run"
    todo = plan(Call(small_suite(horizon=5, seeds=1), out=run, cpus=0))
    looks = []

    def begin(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            held.__exit__(None, None, None)
            execute(todo)

    monkeypatch.setattr("cbobench.report.watch.time.sleep", begin)
    with Lease(todo.folder, todo.tasks.cells) as held:
        assert main(["watch", str(run), "--once"]) == 0
        first = f"{run}: it has not begun yet; process {os.getpid()} on "
        assert capsys.readouterr().out.startswith(first)
        assert main(["watch", str(run), "--once", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "beginning"
        assert not looks
        assert main(["watch", str(run)]) == 0
    output = capsys.readouterr().out
    assert output.startswith(first)
    assert output.count("not begun yet") == 1
    assert "small: complete: 3 of 3 cells ok, 0 failed" in output


def look(watched):
    """All that a look at a run makes; the words are what a terminal may see."""
    view = watched.look()
    json.dumps(json.loads(view.render_json()), allow_nan=False)
    for line in text(view).splitlines():
        assert printable(line) == line
    lease.read_players(watched.folder)
    return view


def test_a_lease_file_of_any_content_is_read_or_left_out(half, signed):
    watched = Live(half)
    key = pair_id(Manifest.read(watched.folder).grids[-1].pairs[1], 20)
    news = {
        "seconds": 2.0, "cells": 1, "rounds": 3, "total": 20, "rate": 1.5, "left": [3.0, 2.0, 4.0],
        "again": {key: [[0, 1, 1]]}, "playing": {key: [1, 4]}, "best": {key: [1, 0.5, 0.5]},
    }  # fmt: skip
    file = signed(half, news)
    good = json.loads(file.read_text())
    view = look(watched)
    content = view.content
    assert (content["state"], content["cells"]["playing"]) == ("playing", 1)
    assert (content["rounds"]["per_second"], len(content["left"])) == (1.5, 3)
    variants = [replaced(good, place, wrong) for place in places(good) for wrong in WRONG][::4]
    assert len(variants) > 100
    for content in variants:
        file.write_text(json.dumps(content))
        assert look(watched).content["cells"]["expected"] == 8


@pytest.mark.parametrize(
    "arguments",
    [["watch"], ["status", "--watch"], ["status"], ["status", "--watch", "--format", "json"]],
)
def test_commands_end_in_words_whatever_lies_beside_the_leases(half, signed, arguments, capsys):
    file = signed(half, {"left": ["a", None, {}], "rate": "fast", "best": [1], "playing": {"x": 5}})
    rivals = [file.with_name(f"other{i}.json") for i in range(len(UNREADABLE))]
    for second, content in zip(rivals, UNREADABLE.values(), strict=True):
        second.write_bytes(content)
    places_of = {
        name: file.with_name(f"{name}.json")
        for name in ("folder", "pipe", "loop", "nowhere", "device", "up")
    }
    places_of["folder"].mkdir()
    os.mkfifo(places_of["pipe"])
    places_of["loop"].symlink_to(places_of["loop"])
    places_of["nowhere"].symlink_to("nothing")
    places_of["device"].symlink_to("/dev/zero")
    places_of["up"].symlink_to("..")
    try:
        once = ["--once"] if "watch" in arguments[0] or "--watch" in arguments else []
        assert main([arguments[0], str(half), *arguments[1:], *once]) in (0, 1)
        assert "Traceback" not in capsys.readouterr().err
        assert [driver.id for driver in lease.read_players(RunFolder(str(half)))] == [file.stem]
    finally:
        places_of.pop("folder").rmdir()
        for second in (*rivals, *places_of.values()):
            second.unlink()


def test_an_extended_run_is_compared_at_the_latest_horizon_that_all_have(tmp_path):
    """Of the longer one, one method has nothing yet."""
    suite = {"suite": "s", "seeds": 2, "problems": ["rkhs-1d"], "algorithms": ["ckb-ucb", "random"]}
    for horizon in (20, 25):
        files = {*(tmp_path / "run").glob("*/*random*.parquet")}
        cbobench.run(suite | {"horizon": horizon}, out=tmp_path / "run", cpus=0)
    assert set(Live(tmp_path / "run").look().comparison.frame["horizon"]) == {25}
    for path in {*(tmp_path / "run").glob("*/*random*.parquet")} - files:
        path.unlink()
    view = Live(tmp_path / "run").look()
    assert list_complete(view) == [("rkhs-1d", 20, 2, 2), ("rkhs-1d", 25, 0, 2)]
    assert set(view.comparison.frame["horizon"]) == {20}
    assert view.comparison.table.title == "s, T = 20, n = 2/2"
