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
    8 20]

What a star of a table promises: how often the truly best method, or one of several that are equally
best, keeps its star (level), and how many of the truly worse ones lose theirs (power). By the rule
of before (not significantly different, two-sided and by Holm, from the method of the best median),
and by that of `stats.paired_tests.find_beaten`.
A dash: so few seeds that nothing is marked.
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
from numpy.typing import NDArray
from scipy.stats import binomtest

from cbobench.cli import main
from cbobench.gp.kernels import Array
from cbobench.stats.paired_tests import (
    SIGNIFICANT,
    compare_sides,
    decidable,
    find_beaten,
    holm,
    signed_rank,
)
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
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        runs = [
            write_run(Path(folder) / name, values)
            for name, values in (("before", before), ("after", after))
        ]
        with contextlib.redirect_stderr(io.StringIO()):
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


LAWS: dict[str, Callable[[Draw, int], tuple[Array, Array]]] = {
    "all alike": lambda draw, k: draw.normal(k),
    "one best, the others 1 worse": lambda draw, k: draw.normal(k, shifts_of(k)),
    "two best, the others 1 worse": lambda draw, k: draw.normal(k, shifts_of(k, 2)),
    "each 0.5 worse than the last": lambda draw, k: draw.normal(k, shifts_of(k, 1, 0.5, 0.5)),
    "seeds differ by 5, one best": lambda draw, k: draw.normal(k, shifts_of(k), 5.0),
    "heavy tails (Cauchy), alike": lambda draw, k: draw.cauchy(k),
    "heavy tails, the others 3 worse": lambda draw, k: draw.cauchy(k, shifts_of(k, far=3.0)),
    "many ties, alike": lambda draw, k: draw.counts(k),
    "many ties, the others 1 worse": lambda draw, k: draw.counts(k, shifts_of(k)),
}


def starred_before(values: Array) -> NDArray[np.bool_] | None:
    """Which methods had a star: the best median, and what is not significantly different from it;
    None if none had.
    """
    methods, seeds = values.shape
    if not decidable(seeds, methods - 1):
        return None
    best = int(np.median(values, axis=1).argmin())
    tests = np.array([signed_rank(row - values[best]) for row in np.delete(values, best, axis=0)])
    return np.insert(~((holm(tests[:, 0]) < SIGNIFICANT) & (tests[:, 1] > 0)), best, True)


def starred_now(values: Array) -> NDArray[np.bool_] | None:
    """Which methods have a star: no other is significantly better; None where none has one."""
    beaten, is_judged = find_beaten(*compare_sides(values))
    return ~beaten if is_judged.all() else None


def print_marks(tables: int, seed_counts: Sequence[int], method_counts: Sequence[int]) -> None:
    """The table of levels and powers, old rule beside new."""
    print(f"{'':33}{'':14}the best keep  the worse lose")
    print(f"{'law':33}methods  seeds  old     new    old     new", flush=True)
    for name, law in LAWS.items():
        for methods in method_counts:
            for seeds in seed_counts:
                draw = Draw(np.random.default_rng([methods, seeds]), seeds)
                kept: tuple[list[float], ...] = ([], [])
                lost: tuple[list[float], ...] = ([], [])
                for _ in range(tables):
                    values, shifts = law(draw, methods)
                    for i, rule in enumerate((starred_before, starred_now)):
                        stars = rule(values)
                        if stars is not None:
                            kept[i].append(stars[shifts == 0].mean())
                        if stars is not None and shifts.any():
                            lost[i].append(1 - stars[shifts > 0].mean())
                shares = [
                    f"{100 * np.mean(part):5.1f} %" if part else f"{'–':>7}"
                    for part in (*kept, *lost)
                ]
                print(f"{name:33}{methods:7}  {seeds:5}  {' '.join(shares)}", flush=True)


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
    parser.add_argument("--rivals", type=int, nargs="+", default=[2, 3, 8, 20])
    given = parser.parse_args()
    if given.marks:
        print_marks(given.tables, given.seeds or [5, 10, 20], given.rivals)
    else:
        print_gates(
            given.pairs, given.seeds or [10, 20], given.problems, given.methods, given.shift
        )


if __name__ == "__main__":
    choose_table()
