"""Tuning under a deadline: the measured table, and the script that measures it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cbobench.errors import Misuse
from cbobench.problems.tables.measured import MEASURED
from tests.conftest import ROOT
from tests.helpers import problem


def test_readings_are_those_of_the_table():
    frame, task = pd.read_csv(MEASURED), problem("tuning-under-deadline")
    drawn = task.draw([np.random.default_rng(0)])
    for a in (0, 37, 99):
        name = task.actions.names[a]
        hidden, passes = int(name.split()[0]), int(name.split()[-2])
        rate = float(name.split("rate ")[1].split(",")[0])
        part = frame[
            (frame.hidden == hidden)
            & (frame.passes == passes)
            & np.isclose(frame.rate, rate, rtol=0.01)
        ]
        assert len(part) == 12
        np.testing.assert_allclose(drawn.f[0, a], -part.error.mean())
        np.testing.assert_allclose(drawn.g[0, 0, a], part.wall_ms.mean() - 50)
        np.testing.assert_allclose(task.rows[:, 0, a], -part.sort_values("repetition").error)
    first, last = task.actions.points[[0, 99]]
    np.testing.assert_allclose([first, last], [[0, 0, 0], [1, 1, 1]])
    assert len(np.unique(task.actions.points, axis=0)) == 100


def test_instances():
    task = problem("tuning-under-deadline")
    drawn = task.draw([np.random.default_rng(s) for s in range(2)])
    assert np.isfinite(drawn.norm).all()
    assert 0.3 <= (drawn.g[0, 0] <= 0).mean() <= 0.6
    assert (drawn.f_star < drawn.f.max(axis=1)).all(), "the best configuration is too slow"
    assert (drawn.slater == 1).all(), "capped"
    by_cpu_time = problem("tuning-under-deadline", clock="cpu").draw([np.random.default_rng(0)])
    assert not np.array_equal(by_cpu_time.g[0], drawn.g[0])
    np.testing.assert_array_equal(by_cpu_time.f[0], drawn.f[0])
    assert task.identity()["trainings"]


def test_a_limit_that_nothing_keeps_is_refused():
    with pytest.raises(
        Misuse, match="limit is 5 ms, but no action keeps it; the best needs 15.03 ms"
    ):
        problem("tuning-under-deadline", limit=5.0)


def test_the_script_measures_what_the_table_holds():
    """One cheap training again: the same error where the versions are the same, and a time above
    0.
    """
    sklearn = pytest.importorskip("sklearn")
    from benchmarks.quality import measure_tuning as script

    frame = pd.read_csv(MEASURED)
    assert ",".join(frame.columns) == script.HEADER
    assert len(frame) == len(script.HIDDEN) * len(script.RATE) * len(script.PASSES) * 12
    images, digits = script.load_digits(return_X_y=True)
    with pytest.warns(script.ConvergenceWarning):
        error, wall, cpu = script.train(images / 16, digits, 8, 1e-2, 3, 0)
    assert min(wall, cpu) > 0
    about = json.loads(MEASURED.with_suffix(".json").read_text())["versions"]
    row = frame[
        (frame.hidden == 8)
        & np.isclose(frame.rate, 0.01)
        & (frame.passes == 3)
        & (frame.repetition == 0)
    ]
    if about["scikit-learn"] == sklearn.__version__ and about["numpy"] == np.__version__:
        assert error == pytest.approx(float(row.error.iloc[0]), abs=0.02)


def test_playing_needs_no_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; from tests.helpers import problem; "
        "problem(sys.argv[1])"
    )
    command = [sys.executable, "-c", code, "tuning-under-deadline"]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
