"""Cells that fail: rows with a reason, never a stopped sweep."""

from __future__ import annotations

import os

import pytest

import cbobench

BROKEN = '''
from dataclasses import dataclass
from cbobench.algorithms.ckb import CKBUCB
from cbobench.params import param


@dataclass(kw_only=True)
class Broken(CKBUCB):
    """Fails on purpose in some replicates."""

    how: str = param("raise", "how")

    def learn(self, t, chosen, feedback):
        super().learn(t, chosen, feedback)
        bad = self.setting.norm[:, 0] > 5.0
        if t == 20 and bad.any():
            if self.how == "raise":
                raise ValueError("on purpose")
            if self.how == "exit":
                raise SystemExit(0)
            if self.how == "nan":
                self.dual[bad] = float("nan")

    def ask(self, t):
        actions = super().ask(t)
        if t == 20 and self.how == "range":
            actions = actions.copy()
            actions[self.setting.norm[:, 0] > 5.0] = -1
        return actions
'''


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "ValueError: on purpose"),
        ("exit", "SystemExit: 0"),
        ("nan", "not finite|not a number"),
        ("range", "round 20: action -1"),
    ],
)
def test_a_failed_cell_is_a_row_and_the_others_stand(write_suite, tmp_path, monkeypatch, how, message):
    (tmp_path / "mine_broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = (
        f"suite: b\nhorizon: 60\nseeds: 12\nproblems: [rkhs-1d]\nalgorithms:\n  - mine_broken:Broken: {{how: {how}}}\n"
    )
    outcome = cbobench.run(write_suite(text), out=tmp_path / "b", cpus=0)
    frame = cbobench.load_cells(tmp_path / "b")
    failed = frame[frame["status"] == "failed"]
    assert 0 < len(failed) < 12
    assert outcome.failed == len(failed)
    assert failed["error"].str.contains(message).all()
    assert failed["traceback"].str.contains("Traceback").all()
    assert failed["regret"].isna().all()
    assert set(cbobench.load_rounds(tmp_path / "b")["cell"]) == set(frame.loc[frame["status"] == "ok", "cell"])
    good = text.replace(f"mine_broken:Broken: {{how: {how}}}", "mine_broken:Broken: {how: not}")
    cbobench.run(write_suite(good, "good.yaml"), out=tmp_path / "g", cpus=0)
    fine = cbobench.load_cells(tmp_path / "g").set_index("seed")["regret"]
    spared = frame[frame["status"] == "ok"].set_index("seed")["regret"]
    assert len(spared) == len(fine.loc[spared.index])


@pytest.mark.parametrize(
    "players", ["as it comes", pytest.param("fresh workers", marks=pytest.mark.slow),
                pytest.param("ray", marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_cell_that_crashes_its_worker_is_found_and_the_others_stand(write_suite, tmp_path, command, players):
    """The block is cut in two until the cell at fault is alone; it is tried three times."""
    (tmp_path / "mine_crash.py").write_text(
        "import os\nfrom cbobench.algorithms.references import Random\n\n\nclass Crash(Random):\n"
        "    def ask(self, t):\n"
        "        if t == 3 and any(scope[-1] == 2 for scope in self.setting.streams.scopes):\n"
        "            os._exit(1)\n        return super().ask(t)\n"
    )
    text = "suite: c\nhorizon: 5\nseeds: 4\nproblems: [rkhs-1d]\nalgorithms: [mine_crash:Crash, random]\n"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = command("run", write_suite(text), "--out", tmp_path / "c", "--cpus", 2, env=environment, players=players)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("c, T = 5"), done.stderr  # only the table is on standard output
    assert "raylet" not in done.stdout
    frame = cbobench.load_cells(tmp_path / "c")
    failed = frame[frame["status"] == "failed"]
    assert failed[["algorithm", "seed"]].values.tolist() == [["mine_crash:Crash", 2]]
    assert failed["error"].item() == "the cell crashed its worker 3 times"
    assert len(frame) == 8


def test_failed_cells_are_played_again_on_request(write_suite, tmp_path, monkeypatch):
    (tmp_path / "mine_again.py").write_text(
        BROKEN.replace("t == 20 and bad.any()", "t == 20 and bad.any() and not __import__('os').environ.get('WELL')")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "suite: b\nhorizon: 30\nseeds: 12\nproblems: [rkhs-1d]\nalgorithms: [mine_again:Broken]\n"
    suite = write_suite(text)
    failed = cbobench.run(suite, out=tmp_path / "b", cpus=0).failed
    assert failed > 0
    assert cbobench.run(suite, out=tmp_path / "b", cpus=0).played == 0
    monkeypatch.setenv("WELL", "yes")
    again = cbobench.run(suite, out=tmp_path / "b", cpus=0, again=["failed"])
    assert (again.played, again.failed) == (failed, 0)
    frame = cbobench.load_cells(tmp_path / "b")
    assert (frame["status"] == "ok").all()
    assert len(frame) == 12
    assert frame["attempt"].value_counts().to_dict() == {1: 12 - failed, 2: failed}
    assert len(cbobench.load_rounds(tmp_path / "b")) == 12 * 30
