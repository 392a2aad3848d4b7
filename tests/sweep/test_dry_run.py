"""`--dry-run` says what a sweep takes, by what cells in the folder took."""

from __future__ import annotations

from dataclasses import replace

from cbobench.suite.call import Call
from cbobench.sweep import dry_run
from cbobench.sweep.plan import plan

SUITE = "suite: t\nhorizon: 50\nseeds: 2\nproblems: [rkhs-1d, {rkhs-1d: {h: 0.3}}]\n"


def test_what_was_played_tells_the_time_of_what_is_like_it(write_suite, tmp_path):
    todo = plan(
        Call(write_suite(SUITE + "algorithms: [random, oracle]\n"), out=tmp_path / "r", cpus=0)
    )
    assert "\ntime: not known of random, oracle; play a seed " in dry_run.estimate(todo, 2)
    first, other = (cells.pair for cells in todo.tasks.by_pair[:2])
    measured = replace(todo, measured=[(first, 3600.0, 100)])
    assert "\ntime: not known of oracle; play a seed " in dry_run.estimate(measured, 2)
    # cells of 100 rounds each: one hour of either problem by random, two of either by oracle
    measured = replace(todo, measured=[(first, 3600.0, 100), (other, 7200.0, 100)])
    line = dry_run.estimate(measured, 2).splitlines()[1]
    assert line.startswith("time: about 3.0 h on 2 CPU(s) (6.0 h of work), by what cells ")
