"""Where the time goes: µs per seed-round of every algorithm, against the bare-NumPy floor of the same shapes.

    python benchmarks/bench.py [--quick]

One run measures everything, because only ratios of numbers from one run mean something on a shared machine: each pair
of competitors takes turns, and medians are quoted. Not a test: nothing here fails.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.gp.posteriors.features import Outer
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder

SHARED = {"beta_scale": 0.2}
CORE = ("ckb-rand", "ckb-ts", "ckb-ucb", "gp-ts", "igp-ucb", "oracle", "random", "sgp-ucb", "stageopt")  # all sizes
REPEATS = 5


def problem(n: int) -> Problem:
    """The synthetic problem on n points; n = 29 is the (full-rank) look-alike of the stocks."""
    name, values = ("stocks", {"data": "look-alike"}) if n == 29 else ("rkhs", {"n": n, "constraint": "threshold"})
    made: Problem = params.build(PROBLEMS.get(name), values)
    made.prepare(DataFolder())
    return made


def play(task: Problem, name: str, replicates: int, horizon: int) -> float:
    """µs per seed-round of one algorithm, everything included but Parquet."""
    cls = ALGORITHMS.get(name)
    known = {p.name for p in params.params_of(cls)}
    algorithm = params.build(cls, {k: v for k, v in SHARED.items() if k in known})
    cells = Play(task, "bench", algorithm, name, range(replicates), horizon)
    start = time.perf_counter()
    for _ in cells:
        pass
    return 1e6 * (time.perf_counter() - start) / (replicates * horizon)


def floor(features: np.ndarray, replicates: int, rounds: int) -> tuple[float, float]:
    """µs per seed-round of (everything CKB-UCB has to compute, its linear algebra alone), in plain NumPy.

    The first is a hand-written loop over preallocated arrays with the best form of each step that we know: rank-one
    update of the r x r matrix, covariance column, means of f and g, variance, standard deviation, both bounds,
    truncation, score, argmax, and the noisy feedback. No random ties, dual history, metrics, contract or checks.
    The second is the same loop without bounds, truncation, score, argmax and feedback: products and rank-one updates.
    """
    n, r = features.shape
    s, lam, root = replicates, 1.0 + 2 / rounds, np.sqrt(1.0 + 2 / rounds)
    by_rank = np.ascontiguousarray(features.T)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((rounds, s, 2))
    truth = rng.standard_normal((s, 2, n)).reshape(-1)
    offsets = n * np.arange(2 * s).reshape(s, 2)
    rows = n * np.arange(s)
    outer_factor, outer_mean = Outer(s, r, r), Outer(s, 2, n)
    times = []
    for whole in (True, False):
        factor, mean = np.tile(np.eye(r), (s, 1, 1)), np.zeros((s, 2, n))
        variance, dual = np.ones((s, n)), np.zeros((s, 1))
        f, g, sd = np.empty((s, n)), np.empty((s, n)), np.empty((s, n))
        actions = np.arange(s) % n
        start = time.perf_counter()
        for t in range(rounds):
            if whole:
                np.sqrt(variance, out=sd)
                np.multiply(sd, 2.0, out=f)
                np.subtract(mean[:, 1], f, out=g)
                np.add(f, mean[:, 0], out=f)
                np.minimum(f, 3.0, out=f)
                np.maximum(f, -3.0, out=f)
                np.minimum(g, 3.0, out=g)
                np.maximum(g, -3.0, out=g)
                played_g = g.reshape(-1)
                np.multiply(g, dual, out=sd)
                np.subtract(f, sd, out=f)
                actions = f.argmax(axis=1)
                dual = np.maximum(dual + 0.01 * played_g.take(rows + actions)[:, None], 0)
                values = noise[t] + truth.take(offsets + actions[:, None])
            else:
                values = noise[t]
            phi = features.take(actions, axis=0)
            u = np.matmul(phi[:, None], factor)
            square = np.matmul(u, u.transpose(0, 2, 1))[:, 0]
            total = np.sqrt(lam + square)
            lu = np.matmul(factor, u.transpose(0, 2, 1))[:, :, 0]
            lu /= total
            column = np.matmul(lu[:, None], by_rank)[:, 0]
            mean += outer_mean((values - mean.reshape(-1).take(offsets + actions[:, None])) / total, column)
            column *= column
            variance -= column
            np.maximum(variance, 1e-14, out=variance)
            factor -= outer_factor(lu, u[:, 0] / (total + root))
        times.append(1e6 * (time.perf_counter() - start) / (s * rounds))
    return times[0], times[1]


def scikit(t: int) -> float:
    """µs per round of the same work (f and g, 100 actions) with scikit-learn's GP refitted on t observations."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 100)[:, None]
    x, y = grid[rng.integers(0, 100, t)], rng.standard_normal((t, 2))
    start = time.perf_counter()
    for j in range(2):
        gp = GaussianProcessRegressor(RBF(0.2), alpha=1.0, optimizer=None).fit(x, y[:, j])
        gp.predict(grid, return_std=True)
    return 1e6 * (time.perf_counter() - start)


def median(measure: Callable[[], float], repeats: int = REPEATS) -> float:
    return statistics.median(measure() for _ in range(repeats))


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true", help="fewer sizes and shorter horizons")
    quick = options.parse_args().quick
    warnings.filterwarnings("ignore", module="sklearn")
    sizes = [(s, n) for n in ((100,) if quick else (29, 100, 1000)) for s in ((50,) if quick else (1, 10, 50))]
    names = list(CORE)
    print("µs per seed-round (median of turns); floor: bare NumPy for ckb-ucb, algebra: its products and updates alone")
    print(f"{'n':>5} {'S':>3} {'floor':>7} {'algebra':>7} " + " ".join(f"{name:>8}" for name in names))
    for s, n in sizes:
        task = problem(n)
        horizon = max(400, min(4000, 20_000_000 // (n * s)))
        turns: dict[str, list[float]] = {name: [] for name in ("floor", "algebra", *names)}
        for _ in range(REPEATS):
            bare, algebra = floor(task.actions.features, s, horizon)
            turns["floor"].append(bare)
            turns["algebra"].append(algebra)
            for name in names:
                turns[name].append(play(task, name, s, horizon))
        m = {name: statistics.median(values) for name, values in turns.items()}
        row = " ".join(f"{m[name]:8.2f}" for name in names)
        print(f"{n:5d} {s:3d} {m['floor']:7.2f} {m['algebra']:7.2f} {row}")
        if (s, n) == (50, 100):
            main_case = m
    print("\nS = 50, n = 100:")
    for over, under in (("ckb-ucb", "floor"), ("ckb-ucb", "algebra"), ("ckb-rand", "ckb-ucb"), ("ckb-ts", "ckb-ucb")):
        print(f"  {over} / {under}: {main_case[over] / main_case[under]:.2f}")
    others()
    boxes(100 if quick else 500)
    rounds_of_a_box()
    recommending(5 if quick else 25)
    long_horizon(10_000 if quick else 100_000)
    ours = main_case["ckb-ucb"]
    print("\nthe same work with scikit-learn's GP refitted each round (f and g, n = 100):")
    for t in (200, 1000):
        refit = median(lambda t=t: scikit(t), 3)  # type: ignore[misc]
        print(f"  t = {t}: {refit:,.0f} µs per round, {refit / ours:,.0f} x ckb-ucb")


def others() -> None:
    """All other algorithms, on 100 points with everything an algorithm may need, ten seeds, the first 200 rounds."""
    values = {"n": 100, "constraint": "threshold", "full_information": True}
    task: Problem = params.build(PROBLEMS.get("rkhs"), values)
    task.prepare(DataFolder())
    print("\nthe others, n = 100, S = 10, T = 200, µs per seed-round:")
    for name in ALGORITHMS.names():
        if name not in CORE:
            print(f"  {name:18} {median(lambda name=name: play(task, name, 10, 200), 3):10,.1f}")  # type: ignore[misc]


def boxes(horizon: int) -> None:
    """Seconds per cell on the feasible pocket."""
    task: Problem = params.build(PROBLEMS.get("feasible-pocket"), {})
    task.prepare(DataFolder())
    print(f"\nfeasible-pocket, T = {horizon}, seconds per cell, alone and ten together:")
    for name in ("igp-ucb", "rpol-ucb", "ckb-ucb", "config"):
        alone, together = (horizon * 1e-6 * play(task, name, s, horizon) for s in (1, 10))
        print(f"  {name:18} {alone:6.2f} {together:6.2f}")


def rounds_of_a_box(horizon: int = 2000) -> None:
    """CPU milliseconds of a round of rpol-ucb on the feasible pocket, near t = 200 and near the end."""
    task: Problem = params.build(PROBLEMS.get("feasible-pocket"), {})
    task.prepare(DataFolder())
    cells = Play(task, "bench", params.build(ALGORITHMS.get("rpol-ucb"), {"beta": 1.0}), "bench", [0], horizon)
    clock: list[float] = []
    cells.watch = lambda t: clock.append(1e3 * time.process_time())
    for _ in cells:
        pass
    spent = np.diff(clock)
    early, late = np.median(spent[150:250]), np.median(spent[-100:])
    print(f"\nrpol-ucb, ms per round (medians of 100): {early:.2f} near t = 200, {late:.2f} near t = {horizon:,} "
          f"(ratio {late / early:.2f})")  # fmt: skip


def recommending(turns: int) -> None:
    """CPU time that it takes to be asked what is recommended, after every tenth round (of a box: every round)."""
    print("\nasked for recommendations against not asked, CPU time of turns about (lower quartiles):")
    for what, name, replicates, horizon, every in (
        ("rkhs", "ckb-ucb", 50, 1000, 10), ("rkhs", "ckb-ucb", 100, 1000, 10),
        ("feasible-pocket", "rpol-ucb", 10, 60, 1),
        ("feasible-pocket", "igp-ucb", 10, 60, 1), ("gardner-1", "cei", 10, 60, 1),
    ):  # fmt: skip
        task: Problem = params.build(PROBLEMS.get(what), {})
        task.prepare(DataFolder())
        spent: dict[int, list[float]] = {horizon: [], every: []}
        for _ in range(turns):
            for step, times in spent.items():
                algorithm = params.build(ALGORITHMS.get(name), {})
                cells = Play(task, "bench", algorithm, name, range(replicates), horizon, range(step, horizon, step))
                start = time.process_time()
                for _ in cells:
                    pass
                times.append(time.process_time() - start)
        without, asked = (statistics.quantiles(times, n=4)[0] for times in spent.values())
        print(f"  {name:10} {what:18} S = {replicates:3}: {100 * (asked / without - 1):5.1f} %")


def long_horizon(horizon: int) -> None:
    """First against last thousand rounds, each the median over its own chunks."""
    task = problem(100)
    algorithm = params.build(ALGORITHMS.get("ckb-ucb"), SHARED)
    cells = Play(task, "bench", algorithm, "long", range(50), horizon)
    seconds, before = [], 0.0
    for _ in cells:
        seconds.append(cells.seconds - before)
        before = cells.seconds
    first, last = seconds[0] / 50e3 * 1e6, seconds[-1] / 50e3 * 1e6
    head, tail = (statistics.median(part) / 50e3 * 1e6 for part in (seconds[:10], seconds[-10:]))
    print(f"\nT = {horizon:,}, ckb-ucb, S = 50: first thousand rounds {first:.2f}, last {last:.2f} µs "
          f"(ratio {last / first:.2f}); medians of the first and last ten thousands {head:.2f}, {tail:.2f} "
          f"(ratio {tail / head:.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
