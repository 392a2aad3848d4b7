"""How often `cbobench compare BEFORE AFTER` ends with 0 (passes), 1 (closes) and 3 (too few seeds), by simulation.

    python benchmarks/gate_level.py [--pairs 200] [--seeds 10 20] [--problems 2] [--methods 3] [--shift 0 0.5]

Two runs of one law, so that a gate that closes is wrong; then the same with one method worse by half a spread
(`--shift`) on every problem and in every metric. A latent value per seed, metric, problem and method has deviation 1:
half of its variance is the instance, which both runs share, half the play, which they do not. R is that value; r, V⁺
and N are cut off at 0, as those of methods that reach the optimum or stay feasible, and N is a whole number. So many of
their seeds are ties; `ties` is their share. Rates have 95 % intervals (Clopper and Pearson). Every pair is written as
two run folders, and the command itself decides.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from pathlib import Path

import cbobench as cbobench  # before NumPy, because it chooses the arithmetic

# isort: split
import numpy as np
from scipy.stats import binomtest

sys.path.append(str(Path(__file__).parents[1]))

from cbobench.cli import main
from tests.report.made import make

METRICS = ("simple_regret", "regret", "violation_hard", "violations")
CODES = (0, 1, 3)


def observed(latent):
    """The four metrics (4, ...) of latent values (4, ...)."""
    simple, _, hard, rounds = np.maximum(latent, 0.0)
    return np.stack([simple, 10 + latent[1], hard, np.floor(2 * rounds)])


def simulated_pair(generator, problems, methods, seeds, shift):
    """Metrics before and after, (4, problems, methods, seeds) each; the first method is worse by `shift` after."""
    instance = generator.normal(size=(4, problems, 1, seeds))
    plays = generator.normal(size=(2, 4, problems, methods, seeds))
    before, after = np.sqrt(0.5) * (instance + plays)
    after[:, :, 0] += shift
    return observed(before), observed(after)


def write_run(folder, values):
    """A run folder with these metrics."""
    _, problems, methods, seeds = values.shape
    cells = {
        (f"P{i}", f"A{j}"): dict(zip(METRICS, values[:, i, j], strict=True))
        for i in range(problems)
        for j in range(methods)
    }
    return str(make(folder, cells, seeds=range(seeds)))


def exit_code(before, after):
    """What the command ends with."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        runs = [write_run(Path(folder) / name, values) for name, values in (("before", before), ("after", after))]
        with contextlib.redirect_stderr(io.StringIO()):
            return main(["compare", *runs, "--only-changed"])


def describe_rate(count, pairs):
    """A rate with its interval, in percent."""
    interval = binomtest(count, pairs).proportion_ci(0.95)
    return f"{100 * count / pairs:5.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--problems", type=int, default=2)
    parser.add_argument("--methods", type=int, default=3)
    parser.add_argument("--shift", type=float, nargs="+", default=[0.0, 0.5])
    given = parser.parse_args()
    print("seeds  shift  ties    exit 0                exit 1                exit 3", flush=True)
    for seeds in given.seeds:
        for shift in given.shift:
            generator, codes, ties = np.random.default_rng(20_240), Counter(), []
            for _ in range(given.pairs):
                before, after = simulated_pair(generator, given.problems, given.methods, seeds, shift)
                ties.append((before == after)[[0, 2, 3]].mean())
                codes[exit_code(before, after)] += 1
            rates = "  ".join(f"{describe_rate(codes[code], given.pairs):20}" for code in CODES)
            print(f"{seeds:5}  {shift:5}  {100 * np.mean(ties):2.0f} %  {rates}", flush=True)
