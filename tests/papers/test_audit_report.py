"""An audited run from suite to table: same cells, same rounds, a file of its own kind, and what is
refused.
"""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.papers.audit_report import findings
from cbobench.report.load import Run

SUITE = """\
suite: audited
horizon: 20
seeds: 6
{audit}
problems:
  - rkhs-1d: {{constraint: independent}}
algorithms:
  - ckb-ucb
  - ckb-ucb: {{B: 0.3, G: 0.3, R: 0.001, label: too small}}
  - ckb-ts
  - random
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    for name, audit in (("plain", ""), ("audited", "audit: true")):
        (folder / f"{name}.yaml").write_text(SUITE.format(audit=audit))
        cbobench.run(folder / f"{name}.yaml", out=folder / name, cpus=0, block=3)
    return folder


def table(path, name):
    return next(iter(sorted((path / name).glob("*.parquet"))))


def test_cells_and_rounds_are_those_of_a_run_without_audit(runs):
    plain, audited = Run(runs / "plain"), Run(runs / "audited")
    assert [*plain.record.cells] == [*audited.record.cells]
    kinds = ("rounds", "cells")
    assert all(plain.folder.names(kind) == audited.folder.names(kind) for kind in kinds)
    columns = [name for name in plain.cells if not name.startswith(("seconds", "peak"))]
    assert plain.cells[columns].equals(audited.cells[columns])
    for task in plain.folder.names("rounds"):
        assert plain.folder.read("rounds", task).equals(audited.folder.read("rounds", task))
    assert not (runs / "plain" / "audit").exists()
    assert "audit" not in json.loads((runs / "plain" / "run.json").read_text())


def test_every_cell_is_audited(runs):
    run = Run(runs / "audited")
    assert run.audit["cell"].tolist() == run.cells["cell"].tolist()
    played = run.audit[run.audit["algorithm"] != "random"]
    assert (played["rounds"] == 20).all()
    assert (run.audit[run.audit["algorithm"] == "random"]["rounds"] == 0).all()


def lines(run, algorithm, problem="rkhs-1d[constraint=independent]"):
    return {
        r["check"]: r
        for r in findings(run)
        if (r["algorithm"], r["problem"]) == (algorithm, problem)
    }


def test_shares_and_medians_are_those_of_the_cells(runs):
    run = Run(runs / "audited")
    small = next(t for t in run.record.variants("algorithms") if "B=0.3" in t)
    for algorithm in ("ckb-ucb", small):
        cells = run.audit[
            (run.audit["algorithm"] == algorithm) & (run.audit["problem"].str.startswith("rkhs"))
        ]
        checks = lines(run, algorithm)
        held = checks["bounds hold in all rounds (E^est)"]
        assert held["count"] == cells["est_always"].sum()
        assert held["of"] == 6
        assert held["n"] == 6
        assert held["expected"] == 6
        assert checks["share of rounds in which they hold"]["measured"] == np.median(cells["est"])
        played = run.select(algorithm=algorithm, problem="rkhs-1d")["regret_plus"].to_numpy()
        ratio = np.median(played / cells["regret_bound"].to_numpy())
        assert checks["R₊ / the theorem's bound"]["measured"] == pytest.approx(ratio, rel=1e-12)
    assert lines(run, "ckb-ucb")["bounds hold in all rounds (E^est)"]["count"] == 6
    assert lines(run, small)["bounds hold in all rounds (E^est)"]["verdict"] == "broken"
    assert lines(run, small)["outside the theorem: B < |f|"]["count"] == 6


def test_the_command_prints_every_format(runs, capsys):
    for style in ("table", "csv"):
        assert main(["audit", str(runs / "audited"), "--format", style]) == 0
        assert "bounds hold in all rounds" in capsys.readouterr().out
    main(["audit", str(runs / "audited"), "--format", "json"])
    assert json.loads(capsys.readouterr().out)[0]["expected"] == 6


def test_figures_hold_the_mean_bound_of_the_recorded_rounds(runs, tmp_path, capsys):
    assert (
        main(["audit", str(runs / "audited"), "--format", "csv", "--figures", str(tmp_path / "f")])
        == 0
    )
    assert "bounds_rkhs_1d_constraint_independent_ckb_ucb.pdf" in capsys.readouterr().err
    drawn = pd.read_csv(tmp_path / "f" / "bounds_rkhs_1d_constraint_independent_ckb_ucb.csv")
    run = Run(runs / "audited")
    cells = run.audit[
        (run.audit["algorithm"] == "ckb-ucb") & run.audit["problem"].str.startswith("rkhs")
    ]
    for metric, column in (("regret_plus", "curve_regret"), ("violation", "curve_violation")):
        rows = drawn[(drawn["metric"] == metric) & drawn["bound"].notna()]
        assert rows["t"].tolist() == cells["curve_t"].iloc[0].tolist()
        np.testing.assert_allclose(
            rows["bound"], np.mean(cells[column].to_list(), axis=0), rtol=1e-12
        )
    assert not list((tmp_path / "f").glob("*random*"))


def test_missing_cells_are_counted(runs, tmp_path):
    shutil.copytree(runs / "audited", tmp_path / "run")
    run = Run(tmp_path / "run")
    gone = [task for task in run.folder.names("audit") if task.startswith("rkhs-1d.random.")]
    for task in gone[:1]:
        (tmp_path / "run" / "audit" / f"{task}.parquet").unlink()
    checks = lines(Run(tmp_path / "run"), "random")
    assert {(row["n"], row["expected"]) for row in checks.values()} == {(3, 6)}
    for task in gone[1:]:
        (tmp_path / "run" / "audit" / f"{task}.parquet").unlink()
    assert [*lines(Run(tmp_path / "run"), "random")] == ["nothing was audited"]


def test_runs_without_an_audit_are_refused(runs, write_suite, capsys):
    assert main(["audit", str(runs / "plain")]) == 2
    assert "is not audited; add `audit: true`" in capsys.readouterr().err
    path = write_suite(SUITE.format(audit="audit: yes please"))
    with pytest.raises(Misuse, match="audit is 'yes please'; allowed: true, false"):
        cbobench.run(path, cpus=0)
    for name, other_folder in (("plain", "audited"), ("audited", "plain")):
        with pytest.raises(
            Misuse, match="the suite now asks otherwise; restore `audit:` or give another --out"
        ):
            cbobench.run(runs / f"{name}.yaml", out=runs / other_folder, cpus=0)


def test_one_bad_cell_leaves_the_others_audited(write_suite, tmp_path, monkeypatch):
    from cbobench.algorithms.ckb import CKB

    learn = CKB.learn

    def fail(self, t, chosen, feedback):
        if t == 5 and self.setting.norm[0, 0] > 7.5 and self.setting.replicates == 1:
            raise RuntimeError("no more")
        if t == 5 and self.setting.replicates > 1:
            raise RuntimeError("someone")
        learn(self, t, chosen, feedback)

    monkeypatch.setattr(CKB, "learn", fail)
    path = write_suite(
        "suite: x\nhorizon: 10\nseeds: 6\naudit: true\nproblems: [rkhs-1d]\nalgorithms: [ckb-ucb]\n"
    )
    outcome = cbobench.run(path, out=tmp_path / "x", cpus=0)
    run = Run(tmp_path / "x")
    assert 0 < outcome.failed < 6
    assert len(run.audit) == 6 - outcome.failed
    assert set(run.audit["cell"]) == set(run.cells[run.cells["status"] == "ok"]["cell"])


def test_the_optimistic_estimate_is_named(tmp_path):
    """Of CKB the Lagrangian: with φ = 0 it says nothing of g. Of CONFIG f and every g."""
    suite = {"suite": "two", "horizon": 10, "seeds": 2, "audit": True, "problems": ["rkhs-1d"]}
    outcome = cbobench.run(
        suite | {"algorithms": ["ckb-ucb", "config"]}, out=tmp_path / "run", cpus=0
    )
    checks = {}
    for row in findings(Run(outcome.folder.uri)):
        if "optimistic" in row["check"]:
            checks.setdefault(row["algorithm"], []).append(row["check"])
    assert checks == {
        "ckb-ucb": [
            "Lagrangian f - φ·g optimistic at x* in all rounds",
            "share of rounds with Lagrangian f - φ·g optimistic at x*",
        ],
        "config": [
            "f and every g optimistic at x* in all rounds",
            "share of rounds with f and every g optimistic at x*",
        ],
    }
