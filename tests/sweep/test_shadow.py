"""Modules in the current folder that are called as installed ones are not run, whatever plays."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cbobench
from cbobench.cli import main
from cbobench.sweep import children
from tests.conftest import PLAYERS
from tests.sweep.test_cluster import cluster

SHADOWS = ("json", "pandas", "scipy", "yaml")
SHADOW = "from pathlib import Path\nPath({marker!r}).touch()\n"
MINE = "from cbobench.algorithms.references import Random\n\n\nclass MyMethod(Random):\n    pass\n"
SUITE = "suite: s\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [{name}]\n"


@pytest.fixture
def shadowed(tmp_path):
    """A folder with a suite, a module of the user's, and shadows; whoever runs one of these leaves
    a file.

    Beside it is a folder of shadows alone.
    """
    folder = tmp_path / "shadowed"
    for place in (folder, tmp_path / "away"):
        place.mkdir()
        for name in SHADOWS:
            (place / f"{name}.py").write_text(SHADOW.format(marker=str(tmp_path / f"ran-{name}")))
    (folder / "mine.py").write_text(MINE)
    (folder / "own.yaml").write_text(SUITE.format(name="mine:MyMethod"))
    (folder / "plain.yaml").write_text(SUITE.format(name="random"))
    return folder


def play(folder, suite, out, players="as it comes", options=(), environment=None):
    """As the script `cbobench` does, in whose path there is no current folder."""
    code = f"import sys; {PLAYERS[players]}\nfrom cbobench.cli import entry; entry()"
    options = ["run", folder / suite, "--out", out, *options]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, options)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert_fine(done.returncode, out, done.stderr)


def assert_fine(code, out, message):
    assert sorted(path.name for path in out.parent.glob("ran-*")) == [], message
    assert code == 0, message
    assert [*cbobench.load_cells(out)["status"]] == ["ok", "ok"]


WAYS = [
    pytest.param(
        "as it comes",
        "plain.yaml",
        ["--cpus", 2, "--no-imports"],
        id="forked",
        marks=pytest.mark.long,
    ),
    pytest.param("fresh workers", "own.yaml", ["--cpus", "1"], id="fresh"),
    pytest.param("ray", "own.yaml", ["--cpus", 2], id="ray", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("players", "suite", "options"), WAYS)
def test_shadow_modules_are_not_run(
    shadowed, tmp_path, monkeypatch, capsys, players, suite, options
):
    """A fresh worker finds the module beside the suite, in whatever folder it is started, and no
    shadow.
    """
    if players != "fresh workers":
        play(shadowed, suite, tmp_path / "run", players, options)
        return
    monkeypatch.setattr(children, "can_fork", lambda: False)
    monkeypatch.chdir(tmp_path / "away")
    monkeypatch.setattr(sys, "path", [*sys.path, ""])  # which a fault would put first
    code = main(["run", str(shadowed / suite), "--out", str(tmp_path / "run"), *options])
    assert_fine(code, tmp_path / "run", capsys.readouterr().err)


@pytest.mark.long
def test_shadow_modules_are_not_run_on_a_cluster_that_is_joined(shadowed, tmp_path):
    with cluster(tmp_path) as (address, environment):
        for i, (suite, options) in enumerate(
            [("plain.yaml", ["--no-imports"]), ("own.yaml", ["--ship"])]
        ):
            play(
                shadowed,
                suite,
                tmp_path / f"run-{i}",
                options=["--address", address, *options],
                environment=environment,
            )
