"""What `bench.py` measures: each case gives figures by name, with the unit at the end of the name.

    PYTHONPATH=TREE python benchmarks/speed/cases.py CASE

Two commits are compared by the same cases, so a case uses only what both have: commands, and
`Play`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbobench  # before NumPy, because it chooses the arithmetic

# isort: split
import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.gp.posteriors.features import Outer
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder

Figures = dict[str, float]
TINY = """{suite: tiny, horizon: 10, seeds: %d, record: all, problems: [rkhs-1d],
algorithms: [ckb-ucb, ckb-rand, igp-ucb, random]}"""
BIG = """{suite: big, horizon: 10000, seeds: 50, record: all, shared: {beta_scale: 0.2}, problems: [rkhs-1d],
algorithms: [ckb-ucb, ckb-ts, ckb-rand, igp-ucb, sgp-ucb]}"""  # noqa: E501
# One of each: optimism and samples without constraints, optimism under constraints, dual variables,
# penalties that rise in a round or in epochs, a safe set and its expansion.
FAMILIES = (
    "igp-ucb",
    "gp-ts",
    "config",
    "primal-dual-bo",
    "rpol-ucb",
    "penalty-noisy",
    "sgp-ucb",
    "safeopt",
)
ON_BOXES = {
    "speed-reducer": (("cei", "scbo", "nei"), 60),
    "feasible-pocket": (("ckb-ucb",), 200),
}


def make_problem(name: str, **values: object) -> Problem:
    made: Problem = params.build(PROBLEMS.get(name), values)
    made.prepare(DataFolder())
    return made


def play(task: Problem, name: str, replicates: int, horizon: int, **values: object) -> Play:
    """Play an algorithm to its end, everything included but Parquet."""
    algorithm = params.build(ALGORITHMS.get(name), values)
    cells = Play(task, "bench", algorithm, name, range(replicates), horizon)
    for _ in cells:
        pass
    return cells


def seconds(call: Callable[..., object], *args: Any, **options: Any) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    call(*args, **options)
    return time.process_time() - start


def measure_round(
    s: int, rounds: int, call: Callable[..., object], *args: Any, **options: Any
) -> float:
    """CPU microseconds per seed and round, the median of three calls: `call(*args, s, rounds)`."""
    turns = [seconds(call, *args, s, rounds, **options) for _ in range(3)]
    return 1e6 * statistics.median(turns) / (s * rounds)


def floor(features: np.ndarray, s: int, rounds: int) -> None:
    """Everything that CKB-UCB has to compute and a play has to keep, in plain NumPy over
    preallocated arrays.

    Rank-one update of the r x r matrix, covariance column, means of f and g, variance, information
    gain, width, standard deviation, both bounds, truncation, score, argmax with ties broken at
    random, dual step and the noisy feedback, each in the best form that we know; then actions,
    observations, duals and the metrics of all rounds. No streams of random numbers by name,
    recommendation, contract or checks.
    """
    n, r = features.shape
    lam, root = 1.0 + 2 / rounds, np.sqrt(1.0 + 2 / rounds)
    by_rank = np.ascontiguousarray(features.T)
    rng = np.random.default_rng(0)
    noise, truth = rng.standard_normal((rounds, s, 2)), rng.standard_normal((s, 2, n)).reshape(-1)
    offsets, rows = n * np.arange(2 * s).reshape(s, 2), n * np.arange(s)
    outer_factor, outer_mean = Outer(s, r, r), Outer(s, 2, n)
    factor, mean = np.tile(np.eye(r), (s, 1, 1)), np.zeros((s, 2, n))
    variance, dual, gain = np.ones((s, n)), np.zeros((s, 1)), np.zeros((s, 1))
    above, below, cap = np.full((s, 1), 3.0), np.full((s, 1), -3.0), np.full((s, 1), 10.0)
    f, g, sd, near = np.empty((s, n)), np.empty((s, n)), np.empty((s, n)), np.empty((s, n), bool)
    played, observed = np.empty((rounds, s), np.intp), np.empty((rounds, s, 2))
    duals, coins = np.empty((rounds, s, 1)), rng.random((rounds, s))
    for t in range(rounds):
        np.sqrt(variance, out=sd)
        np.multiply(sd, 1.0 + 0.5 * np.sqrt(gain + 2.0), out=f)
        np.subtract(mean[:, 1], f, out=g)
        np.add(f, mean[:, 0], out=f)
        for bounded in (f, g):
            np.minimum(bounded, above, out=bounded)
            np.maximum(bounded, below, out=bounded)
        played_g = g.reshape(-1)
        np.multiply(g, dual, out=sd)
        np.subtract(f, sd, out=f)
        actions = f.argmax(axis=1)
        top = f.reshape(-1).take(rows + actions)
        np.greater_equal(f, (top - 1e-10 * np.abs(top))[:, None], out=near)
        if np.count_nonzero(near) > s:  # scores tie
            hits = near.reshape(-1).nonzero()[0]
            ties = np.bincount(hits // n, minlength=s)
            picked = ties.cumsum() - ties + (coins[t] * ties).astype(np.intp)
            actions = hits[picked] - rows
        dual = np.maximum(dual + 0.01 * played_g.take(rows + actions)[:, None], 0)
        dual = np.minimum(dual, cap)
        values = noise[t] + truth.take(offsets + actions[:, None])
        played[t], observed[t], duals[t] = actions, values, dual
        u = np.matmul(features.take(actions, axis=0)[:, None], factor)
        square = np.matmul(u, u.transpose(0, 2, 1))[:, 0]
        total = np.sqrt(lam + square)
        gain += 0.5 * np.log1p(square / lam)
        lu = np.matmul(factor, u.transpose(0, 2, 1))[:, :, 0]
        lu /= total
        column = np.matmul(lu[:, None], by_rank)[:, 0]
        mean += outer_mean(
            (values - mean.reshape(-1).take(offsets + actions[:, None])) / total, column
        )
        column *= column
        variance -= column
        np.maximum(variance, 1e-14, out=variance)
        factor -= outer_factor(lu, u[:, 0] / (total + root))
    add_up_metrics(*np.moveaxis(truth.take(offsets + played[:, :, None]), 2, 0))


def add_up_metrics(f: np.ndarray, g: np.ndarray) -> None:
    """Compute the metrics of `cbobench.metrics`, but those of recommendations, of all rounds."""
    gaps, worst = 1.0 - f, np.maximum(g, 0.0)
    for steps in (gaps, gaps + 1.0, np.maximum(gaps, 0.0), worst, (g > 0).astype(float), f):
        steps.cumsum(axis=0)
    np.maximum(g.cumsum(axis=0), 0.0)
    best = np.maximum.accumulate(np.where(g > 0, -np.inf, f))
    np.where(best > -np.inf, 1.0 - best, np.nan)


def run_command(*words: object) -> float:
    """Return the CPU seconds of a cbobench command, its workers included.

    Raises:
        RuntimeError: it fails; the message is its last line.
    """
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "cbobench", *map(str, words)],
            cwd=tempfile.gettempdir(),  # a tree would come first
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status):
            said.seek(0)
            raise RuntimeError((said.read().strip().splitlines() or ["no message"])[-1])
    return usage.ru_utime + usage.ru_stime


class Sweep:
    """A suite played into a folder: its CPU seconds, and the seconds of its cells."""

    def __init__(self, folder: Path, suite: str, *options: object) -> None:
        self.run = folder / "run"
        name = suite
        if suite.startswith("{"):
            name = str(folder / "suite.yaml")
            Path(name).write_text(suite)
        self.cpu = run_command("run", name, "--out", self.run, *options)
        self.cells = float(cbobench.load_cells(self.run)["seconds"].sum())


# The cases ----------------------------------------------------------------------------------------


def dispatch(folder: Path) -> Figures:
    """A round of ckb-ucb on 100 actions against the same algebra in bare NumPy."""
    task = make_problem("rkhs", n=100, constraint="threshold")
    features, found = task.actions.features, Figures()  # type: ignore[union-attr]
    for s, rounds in ((50, 1000), (10, 2000), (1, 4000)):
        bare = measure_round(s, rounds, floor, features)
        ours = measure_round(s, rounds, play, task, "ckb-ucb", beta_scale=0.2)
        found |= {
            f"S = {s}, µs per seed-round": ours,
            f"S = {s}, bare NumPy, µs per seed-round": bare,
            f"S = {s}, over bare NumPy, ratio": ours / bare,
        }
    return found


def families(folder: Path) -> Figures:
    """A round of ten seeds on 100 actions, for a method of each family."""
    task = make_problem("rkhs", n=100)
    return {
        f"{name}, µs per seed-round": measure_round(10, 1000, play, task, name) for name in FAMILIES
    }


def tiny(folder: Path) -> Figures:
    """Twenty thousand cells of ten rounds."""
    sweep = Sweep(folder, TINY % 5000, "--cpus", 0)
    return {
        "play, ms per cell": 1e3 * sweep.cells / 20_000,
        "whole, ms per cell": 1e3 * sweep.cpu / 20_000,
    }


def quickstart(folder: Path) -> Figures:
    """The demo, table included."""
    sweep = Sweep(folder, "quickstart", "--cpus", 0)
    return {"CPU, s": sweep.cpu, "CPU over cells', ratio": sweep.cpu / sweep.cells}


def big(folder: Path) -> Figures:
    """2.5 million recorded rows: play on two workers, table, figures."""
    sweep = Sweep(folder, BIG, "--cpus", 2)
    return {
        "CPU over cells', ratio": sweep.cpu / sweep.cells,
        "figures, CPU s": run_command("figures", sweep.run),
        "compare, CPU s": run_command("compare", sweep.run),
    }


def boxes(folder: Path) -> Figures:
    """A round on a box, one seed."""
    found = {}
    for task, (methods, rounds) in ON_BOXES.items():
        made = make_problem(task)
        for name in methods:
            spent = seconds(play, made, name, 1, rounds)
            found[f"{name} on {task}, ms per round"] = 1e3 * spent / rounds
    return found


CASES = {case.__name__: case for case in (dispatch, families, tiny, quickstart, big, boxes)}


def main() -> None:
    """Measure one case; print its figures and where cbobench was imported from as JSON."""
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        figures = CASES[sys.argv[1]](Path(folder))
    print(json.dumps({"tree": str(Path(cbobench.__file__).parents[1]), "figures": figures}))


if __name__ == "__main__":
    main()
