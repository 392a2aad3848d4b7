"""Modules in the current folder that are called as installed ones are not run, by whomever cells are played."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import cbobench
from tests.conftest import PLAYERS
from tests.sweep.test_cluster import cluster

SHADOWS = ("json", "pandas", "scipy", "yaml")
SHADOW = "from pathlib import Path\nPath({marker!r}).touch()\n"
MINE = "from cbobench.algorithms.references import Random\n\n\nclass MyMethod(Random):\n    pass\n"
SUITE = "suite: s\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [{name}]\n"


@pytest.fixture
def shadowed(tmp_path):
    """A folder with a suite, a module of the user's, and shadows; whoever runs one of these leaves a file."""
    folder = tmp_path / "shadowed"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(SHADOW.format(marker=str(tmp_path / f"ran-{name}")))
    (folder / "mine.py").write_text(MINE)
    (folder / "own.yaml").write_text(SUITE.format(name="mine:MyMethod"))
    (folder / "plain.yaml").write_text(SUITE.format(name="random"))
    return folder


def play(folder, suite, out, players="as it comes", words=(), environment=os.environ):
    """As the script `cbobench` does, in whose path there is no current folder."""
    code = f"import sys; {PLAYERS[players]}\nfrom cbobench.cli import entry; entry()"
    words = ["run", folder / suite, "--out", out, *words]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, words)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert sorted(path.name for path in out.parent.glob("ran-*")) == [], done.stderr
    assert done.returncode == 0, done.stderr
    assert [*cbobench.load_cells(out)["status"]] == ["ok", "ok"]


WAYS = [
    pytest.param("as it comes", ["--cpus", 0], id="inline"),
    pytest.param("as it comes", ["--cpus", 2], id="forked"),
    pytest.param("fresh workers", ["--cpus", 2], id="fresh"),
    pytest.param("ray", ["--cpus", 2], id="ray", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("suite", ["plain.yaml", "own.yaml"])
@pytest.mark.parametrize(("players", "words"), WAYS)
def test_shadow_modules_are_not_run(shadowed, tmp_path, players, words, suite):
    refuse = ["--no-imports"] if suite == "plain.yaml" else []
    play(shadowed, suite, tmp_path / "run", players, [*words, *refuse])


@pytest.mark.slow
def test_shadow_modules_are_not_run_on_a_cluster_that_is_joined(shadowed, tmp_path):
    with cluster(tmp_path) as (address, environment):
        for i, (suite, words) in enumerate(
            [("plain.yaml", ["--no-imports"]), ("own.yaml", []), ("own.yaml", ["--ship"])]
        ):
            play(shadowed, suite, tmp_path / f"run-{i}", words=["--address", address, *words], environment=environment)
