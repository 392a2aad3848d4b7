"""The benchmark measures two trees in turns, says what failed, and writes what it printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import machine
from benchmarks.speed import bench, curves, probe
from cbobench import arithmetic
from tests.helpers import long

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(
    path.relative_to(ROOT)
    for room in ("benchmarks", "analysis", "website")
    for path in ROOT.glob(f"{room}/**/*.py")
)
# The first script of a folder; the others of it are read in the long form.
FIRST = {path.parent: path for path in reversed(SCRIPTS)}.values()
# Runs a script up to its first import of NumPy, and says which arithmetic that process has then.
FIRST_NUMPY = """
import importlib, os, runpy, sys

def say_arithmetic():
    import numpy
    from cbobench.arithmetic import arithmetic_kind, is_as_requested
    print(arithmetic_kind(), is_as_requested(), flush=True)
    os._exit(0)

def watch(event, arguments):
    global is_over
    if event == "import" and arguments[0] == "numpy" and not is_over:
        is_over = True
        say_arithmetic()

is_over, name = False, sys.argv[1]
sys.addaudithook(watch)
if name.endswith(".py"):
    sys.path.insert(0, os.path.dirname(name))
    runpy.run_path(name, run_name="imported")
else:
    importlib.import_module(name)
import cbobench  # the script has imported nothing that needs NumPy
say_arithmetic()
"""


@pytest.mark.skipif(
    bool(arithmetic.reason_against()), reason=f"plays natively: {arithmetic.reason_against()}"
)
@pytest.mark.parametrize("script", [*FIRST, *long(*sorted({*SCRIPTS} - {*FIRST}))], ids=str)
def test_every_script_chooses_the_arithmetic_before_numpy(script):
    """Whether it plays, measures or draws, as one that draws today measures tomorrow."""
    is_module = (ROOT / script.parent / "__init__.py").exists()
    name = (
        ".".join(script.with_suffix("").parts).removesuffix(".__init__")
        if is_module
        else ROOT / script
    )
    ours = {arithmetic.CHOICE, arithmetic.DISABLED, *arithmetic.OTHERS}
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_NUMPY, name],
        env=clean | {"PYTHONPATH": str(ROOT), arithmetic.KERNEL: "Sandybridge"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [arithmetic.PORTABLE, "True"], done.stderr


def test_the_ratio_and_its_interval():
    ratio, low, high = bench.ratio_interval([1.0, 1.1, 0.9, 1.0, 1.05], [2.0, 2.2, 1.8, 2.1, 1.9])
    assert ratio == 0.5
    assert 0.4 < low < 0.5 < high < 0.6
    ratio, low, _ = bench.ratio_interval([3.0], [1.5])
    assert ratio == 2.0
    assert np.isnan(low), "too few for an interval"


@pytest.mark.long
def test_a_tree_is_measured_with_its_own_code(tmp_path):
    with pytest.raises(RuntimeError, match=r"cbobench was imported from .*, not from"):
        bench.measure("boxes", tmp_path)


def test_what_is_printed_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "measure", lambda case, tree: {"s": 2.0})
    monkeypatch.setattr(machine, "git", lambda *arguments: "1234567")
    monkeypatch.setattr(
        sys,
        "argv",
        ["bench", "--only", "tiny", "--repeats", "2", "--out", str(tmp_path / "b.json")],
    )
    bench.main()
    written = json.loads((tmp_path / "b.json").read_text())
    assert written["cases"] == {"tiny": {"figures": {"here": {"s": [2.0, 2.0]}}, "failed": {}}}
    assert {"at", "cpu", "python", "numpy", "commit", "dirty"} <= {*written}
    assert "tiny" in capsys.readouterr().out


def test_curves_are_measured_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "TRIES", 1)
    small = curves.Setting("seeds", seeds=2, actions=20, rounds=10)
    monkeypatch.setattr(
        curves, "FINITE", (small, curves.Setting("constraints", 2, 20, constraints=2, rounds=10))
    )
    monkeypatch.setattr(
        curves, "BOX", (curves.Setting("inputs", seeds=1, actions=0, inputs=1, rounds=4),)
    )
    monkeypatch.setattr(machine, "git", lambda *arguments: "1234567")
    monkeypatch.setattr(
        sys, "argv", ["curves", "--repeats", "1", "--out", str(tmp_path / "c.json")]
    )
    curves.main()
    written = json.loads((tmp_path / "c.json").read_text())
    assert {"at", "commit", "cpu", "numpy", "scipy", "repeats"} <= {*written}
    single, two = written["finite"]
    assert single["us"] > 0 < single["bare"]
    assert ("compiled" in single) == bool(probe.find_compiler())
    assert "bare" not in two, "the bare form has one constraint"
    assert written["box"][0]["ms"] > 0


@pytest.mark.skipif(not probe.find_compiler(), reason="no compiler")
def test_the_probe_plays_what_its_formulas_say():
    """The posterior is solved for anew in every round."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((30, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    truth = rng.standard_normal((2, 2, 30))
    noise = rng.standard_normal((50, 2, 2))
    played = probe.play_compiled(features, truth, noise, 1.1)
    for seed, actions in enumerate(played.T):
        observed = truth[seed][:, actions] + noise[:, seed].T
        dual = 0.0
        for t, action in enumerate(actions):
            past = features[actions[:t]]
            precision = 1.1 * np.eye(6) + past.T @ past
            solved = np.linalg.solve(precision, features.T)
            f, g = observed[:, :t] @ past @ solved
            deviation = np.sqrt(1.1 * (features.T * solved).sum(axis=0))
            gain = np.log(np.linalg.det(precision / 1.1)) / 2
            width = 1.0 + 0.5 * np.sqrt(gain + 2.0)
            lower = np.clip(g - width * deviation, -3, 3)
            scores = np.clip(f + width * deviation, -3, 3) - dual * lower
            assert scores[action] > scores.max() - 1e-9, f"round {t + 1} of seed {seed}"
            dual = np.clip(dual + 0.01 * lower[action], 0, 10)


def test_the_probe_needs_no_compiler(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    probe.main()
    assert capsys.readouterr().out == "no compiler\n"
