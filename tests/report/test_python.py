"""What a notebook does: suites as mappings, runs as what `run` returned, a table, a frame, a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

import cbobench
from cbobench.errors import CbobenchError, Misuse
from tests.report.made import make

SUITE = {
    "suite": "mine",
    "horizon": 20,
    "seeds": 6,
    "shared": {"beta_scale": 0.2},
    "problems": [{"rkhs-1d": {"h": 0.25, "label": "quarter"}}],
    "algorithms": ["ckb-ucb", {"ckb-rand": {"slack": {"sweep": [0.0, 0.1]}}}],
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return cbobench.run(SUITE, out=tmp_path_factory.mktemp("mine") / "run", cpus=0)


def test_a_mapping_plays_what_the_same_file_plays(done, tmp_path, write_suite):
    import yaml

    other = cbobench.run(write_suite(yaml.safe_dump(SUITE)), out=tmp_path / "run", cpus=0)
    mine, theirs = (cbobench.load_cells(one) for one in (done, other))
    assert list(mine["cell"]) == list(theirs["cell"])
    assert list(mine["regret"]) == list(theirs["regret"])
    assert SUITE["problems"][0]["rkhs-1d"]["label"] == "quarter", "the caller's mapping stays as it was"


def test_readers_take_what_run_returns(done):
    assert len(cbobench.load_cells(done)) == 18
    assert len(cbobench.load_rounds(done, "regret", algorithm="ckb-ucb")) == 120
    assert len(cbobench.summary(done)) == 3
    assert "quarter" in str(cbobench.compare(done))


def test_no_command_line_finishes_a_mapping(done, capsys):
    from cbobench.cli import main

    for file in Path(done.folder.uri).rglob("*ckb-ucb*"):
        file.unlink()
    assert main(["status", done.folder.uri]) == 0
    assert capsys.readouterr().out == "mine: 12 of 18 cells done, 0 failed, 6 missing, 0 stale\n"
    cbobench.run(SUITE, out=done.folder.uri, cpus=0)
    assert len(cbobench.load_cells(done)) == 18


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizn": 3}, "the suite: unknown key 'horizn'; did you mean 'horizon'"),
        ({"horizon": "long"}, "the suite: horizon is 'long'; it must be a whole number"),
        ({"algorithms": ["ckb-ubc"]}, "the suite: unknown algorithm 'ckb-ubc'; did you mean 'ckb-ucb'"),
        ({3: 4}, "the suite: the key 3 is no text"),
    ],
)
def test_mistakes_in_a_mapping_are_one_line(change, message, tmp_path):
    with pytest.raises(Misuse, match=message):
        cbobench.run(SUITE | change, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_no_run_is_refused():
    with pytest.raises(Misuse, match="3 is no run; give a path, a URI, or what"):
        cbobench.load_cells(3)


@pytest.mark.parametrize(
    ("ask", "options", "message"),
    [
        (cbobench.plot, {"metric": "regrt"}, "unknown metric 'regrt'; did you mean 'regret'"),
        (cbobench.plot, {"metric": "longest_streak"}, "unknown metric of rounds 'longest_streak'"),
        (cbobench.plot, {"metric": ["regret", "violations"]}, "one metric"),
        (cbobench.plot, {"metric": "regret", "log": "z"}, "log is 'z'"),
        (cbobench.plot, {"metric": "regret", "statistic": "mode"}, "statistic is 'mode'"),
        (cbobench.plot, {"metric": "simple_regret", "average": True}, "no sum over rounds"),
        (cbobench.plot, {"problem": "quartr"}, "unknown problem 'quartr'; did you mean 'quarter'"),
        (cbobench.plot, {"kind": "plan"}, "unknown kind 'plan'; did you mean 'plane'"),
        (cbobench.plot, {"kind": "plane", "last": 3}, "last does not apply to a plane"),
        (cbobench.plot, {"kind": "plane", "metric": ["r", "V"], "average": True}, "simple_regret is no sum"),
        (cbobench.plot, {"kind": "profile", "average": True, "statistic": "mean"},
         "average and statistic do not apply to a profile"),
        (cbobench.plot, {"kind": "profile", "metric": "regret"}, "profiles are of simple_regret, which has targets"),
        (cbobench.plot, {"metric": 3}, "metric is 3; give a name, or a list of names"),
        (cbobench.plot, {"problem": 3.5}, "unknown problem 3.5; allowed: "),
        (cbobench.plot, {"last": "x"}, "last is 'x'; it must be a round, a whole number of at least 1"),
        (cbobench.compare, {"only": 3}, "only is 3; give a glob over problem/algorithm, such as 'rkhs-1d/"),
        (cbobench.compare, {"by": "binds", "ranks": True}, "leave by out"),
        (cbobench.compare, {"by": "binds", "profile": True}, "leave by out"),
        (cbobench.compare, {"against": 3}, "unknown algorithm 3; allowed: "),
        (cbobench.load_rounds, {"columns": [3]}, "columns is .3.; give a name, or a list of names"),
    ],
)  # fmt: skip
def test_what_is_no_word_is_refused(done, ask, options, message):
    with pytest.raises(Misuse, match=message):
        ask(done, **options)


def test_plot(done, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    figure = cbobench.plot(done, "V⁺", algorithm=["ckb-ucb"])
    axis = figure.axes[0]
    assert axis.get_ylabel().split() == ["Stronger", "cumulative", "violation", "V⁺,", "median"]
    assert axis.get_title(loc="left").endswith("quarter")
    figure.savefig(tmp_path / "one.png")
    average = cbobench.plot(done, "regret", problem="quarter", average=True, last=10)
    assert average.axes[0].get_ylabel().startswith("Average regret")


def test_a_plot_of_nothing(tmp_path):
    run = make(tmp_path / "run", {("P", "A"): {}}, seeds=range(2), failed={("P", "A"): range(2)})
    with pytest.raises(CbobenchError, match="no good cell of P"):
        cbobench.plot(run, "regret")
