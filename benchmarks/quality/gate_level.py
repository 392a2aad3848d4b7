"""How often `cbobench compare BEFORE AFTER` ends with 0 (passes), 1 (closes) and 3 (too few seeds),
by simulation.

    python -m benchmarks.quality.gate_level [--pairs 200] [--seeds 10 20] [--problems 2] [--methods
    3] [--shift 0 0.5]

Two runs of one law, so that a gate that closes is wrong; then the same with one method worse by
half a spread (`--shift`) on every problem and in every metric. A latent value per seed, metric,
problem and method has deviation 1: half of its variance is the instance, which both runs share,
half the play, which they do not. R is that value; r, V⁺ and N are cut off at 0, as those of methods
that reach the optimum or stay feasible, and N is a whole number. So many of their seeds are ties;
`ties` is their share. Rates have 95 % intervals (Clopper and Pearson). Every pair is written as two
run folders, and the command itself decides.

    python -m benchmarks.quality.gate_level --marks [--tables 1000] [--seeds 5 10 20] [--rivals 2 3
    8]

What a star of a table promises, as a table in Markdown: in how many of the tables the method of the
best true median, or one of several, keeps its star, and of how many of the others it is taken (in
%), by `stats.paired_tests.find_beaten`. That promises 95 % where differences by seed are symmetric;
the last two laws are others. A dash: so few seeds that nothing is marked.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from cbobench.cli import main
from cbobench.gp.kernels import Array
from cbobench.stats.paired_tests import compare_sides, find_beaten
from tests.report.made import make

METRICS = ("simple_regret", "regret", "violation_hard", "violations")
CODES = (0, 1, 3)


def observed(latent: Array) -> Array:
    """The four metrics (4, ...) of latent values (4, ...)."""
    simple, _, hard, rounds = np.maximum(latent, 0.0)
    return np.stack([simple, 10 + latent[1], hard, np.floor(2 * rounds)])


def simulated_pair(
    generator: np.random.Generator, problems: int, methods: int, seeds: int, shift: float
) -> tuple[Array, Array]:
    """Metrics before and after, (4, problems, methods, seeds) each; the first method is worse by
    `shift` after.
    """
    instance = generator.normal(size=(4, problems, 1, seeds))
    plays = generator.normal(size=(2, 4, problems, methods, seeds))
    before, after = np.sqrt(0.5) * (instance + plays)
    after[:, :, 0] += shift
    return observed(before), observed(after)


def write_run(folder: Path, values: Array) -> str:
    """A run folder with these metrics."""
    _, problems, methods, seeds = values.shape
    cells = {
        (f"P{i}", f"A{j}"): dict(zip(METRICS, values[:, i, j], strict=True))
        for i in range(problems)
        for j in range(methods)
    }
    return str(make(folder, cells, seeds=range(seeds)))


def exit_code(before: Array, after: Array) -> int:
    """What the command ends with."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        runs = [
            write_run(Path(folder) / "before", before),
            write_run(Path(folder) / "after", after),
        ]
        return main(["compare", *runs, "--only-changed"])


def describe_rate(count: int, pairs: int) -> str:
    """A rate with its interval, in percent."""
    interval = binomtest(count, pairs).proportion_ci(0.95)
    return f"{100 * count / pairs:5.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def shifts_of(methods: int, best: int = 1, step: float = 0.0, far: float = 1.0) -> Array:
    """How much worse methods are than the best ones: by `far`, and `step` more from one to the
    next.
    """
    return np.concatenate([np.zeros(best), far + step * np.arange(methods - best)])


class Draw:
    """Values of methods by seed, (methods, seeds), lower is better, and how much worse each truly
    is, (methods,).
    """

    def __init__(self, generator: np.random.Generator, seeds: int) -> None:
        self.generator, self.seeds = generator, seeds

    def normal(
        self, methods: int, shifts: Array | None = None, spread: float = 1.0
    ) -> tuple[Array, Array]:
        """Plays of deviation 1 on instances of deviation `spread`, which all methods share."""
        shifts = np.zeros(methods) if shifts is None else shifts
        instance = spread * self.generator.normal(size=self.seeds)
        plays = self.generator.normal(size=(methods, self.seeds))
        return instance + plays + shifts[:, None], shifts

    def cauchy(self, methods: int, shifts: Array | None = None) -> tuple[Array, Array]:
        """Plays whose law has no mean."""
        shifts = np.zeros(methods) if shifts is None else shifts
        return self.generator.standard_cauchy((methods, self.seeds)) + shifts[:, None], shifts

    def counts(self, methods: int, shifts: Array | None = None) -> tuple[Array, Array]:
        """Whole numbers that are never below 0."""
        values, shifts = self.normal(methods, shifts)
        return np.floor(np.maximum(values, 0.0)), shifts

    def skewed(self, methods: int) -> tuple[Array, Array]:
        """The best median has a heavy tail above it (half a Cauchy law), the others have none."""
        values, shifts = self.normal(methods, shifts_of(methods, far=0.1), 0.0)
        values[0] = np.abs(self.generator.standard_cauchy(self.seeds)) - 1
        return values, shifts

    def infeasible(self, methods: int) -> tuple[Array, Array]:
        """The best median, 0.61, has no feasible point in a quarter of its seeds; the others, 0.65,
        have one in all.
        """
        values, shifts = self.normal(methods, shifts_of(methods, far=0.65))
        values[0, self.generator.random(self.seeds) < 0.25] = 1e9
        return values, shifts


Law = Callable[[Draw, int], tuple[Array, Array]]
LAWS: dict[str, Law] = {
    "all alike": lambda draw, k: draw.normal(k),
    "one best, the others 1 worse": lambda draw, k: draw.normal(k, shifts_of(k)),
    "two best, the others 1 worse": lambda draw, k: draw.normal(k, shifts_of(k, 2)),
    "each 0.5 worse than the last": lambda draw, k: draw.normal(k, shifts_of(k, 1, 0.5, 0.5)),
    "seeds differ by 5, one best": lambda draw, k: draw.normal(k, shifts_of(k), 5.0),
    "heavy tails (Cauchy), alike": lambda draw, k: draw.cauchy(k),
    "heavy tails, the others 3 worse": lambda draw, k: draw.cauchy(k, shifts_of(k, far=3.0)),
    "many ties, alike": lambda draw, k: draw.counts(k),
    "many ties, the others 1 worse": lambda draw, k: draw.counts(k, shifts_of(k)),
    "best median with a heavy tail, the others 0.1 worse": Draw.skewed,
    "best median infeasible in 25 % of seeds": Draw.infeasible,
}


def describe_stars(draw: Draw, law: Law, k: int, tables: int) -> str:
    """Which share of the best of k methods keep their star, and of the others lose it, in %."""
    kept, lost = list[float](), list[float]()
    for _ in range(tables):
        values, shifts = law(draw, k)
        beaten, is_judged = find_beaten(*compare_sides(values))
        if is_judged.all():
            kept.append(1 - beaten[shifts == 0].mean())
            if shifts.any():
                lost.append(beaten[shifts > 0].mean())
    return " / ".join(f"{100 * np.mean(part):.1f}" for part in (kept, lost) if part) or "–"


def print_marks(tables: int, seed_counts: Sequence[int], method_counts: Sequence[int]) -> None:
    """The table of levels and powers."""
    heads = ["the best keep / the others lose", "methods", *(f"{n} seeds" for n in seed_counts)]
    print(f"| {' | '.join(heads)} |\n| :-- |{' --: |' * (len(heads) - 1)}")
    for name, law in LAWS.items():
        for k in method_counts:
            draws = (Draw(np.random.default_rng([k, seeds]), seeds) for seeds in seed_counts)
            cells = [describe_stars(draw, law, k, tables) for draw in draws]
            print(f"| {' | '.join([name, str(k), *cells])} |", flush=True)


def print_gates(
    pairs: int, seed_counts: Sequence[int], problems: int, methods: int, shifts: Sequence[float]
) -> None:
    """The table of exit codes."""
    print("seeds  shift  ties    exit 0                exit 1                exit 3", flush=True)
    for seeds in seed_counts:
        for shift in shifts:
            generator, ties = np.random.default_rng(20_240), list[float]()
            codes: Counter[int] = Counter()
            for _ in range(pairs):
                before, after = simulated_pair(generator, problems, methods, seeds, shift)
                ties.append((before == after)[[0, 2, 3]].mean())
                codes[exit_code(before, after)] += 1
            rates = "  ".join(f"{describe_rate(codes[code], pairs):20}" for code in CODES)
            print(f"{seeds:5}  {shift:5}  {100 * np.mean(ties):2.0f} %  {rates}", flush=True)


def choose_table() -> None:
    """Print the table that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--problems", type=int, default=2)
    parser.add_argument("--methods", type=int, default=3)
    parser.add_argument("--shift", type=float, nargs="+", default=[0.0, 0.5])
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--rivals", type=int, nargs="+", default=[2, 3, 8])
    given = parser.parse_args()
    if given.marks:
        print_marks(given.tables, given.seeds or [5, 10, 20], given.rivals)
    else:
        print_gates(
            given.pairs, given.seeds or [10, 20], given.problems, given.methods, given.shift
        )


if __name__ == "__main__":
    choose_table()
