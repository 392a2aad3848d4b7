"""How often intervals hold the true value, and how wide they are: methods, laws, numbers of seeds.

    python -m benchmarks.quality.coverage [--seeds 2 3 5] [--samples 10000] [--law lognormal ...]

Each entry is the coverage in % at nominal 95 % and, behind the stroke, the median width in units of
Student's t. `interval` is `cbobench.stats.intervals.interval`, which tables and figures show;
`order` are the order statistics around the median. With 10,000 samples a coverage has a standard
error of 0.2. The laws:

- `normal`, `exponential`; `t3`: Student's t law with three degrees of freedom, symmetric with heavy
  tails;
- `lognormal`, `lognormal-1.5`: of an exponent with deviation 1 and 1.5; `pareto`: with tail index
  2.5;
- `difference`: of two lognormal ones, as between two algorithms;
- `zeros`: 0 in 60 % of the seeds, else Poisson counts of mean 5;
- `counts`: rounds in violation as seeds have them, a population of 50 of which three hold half of
  the sum. Samples mostly do not hold these three.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, stdtrit

from benchmarks.commands import make_parser
from cbobench.stats import intervals

CONFIDENCE = 0.95
# of samples (k, n): low and high, (2, k)
Method = Callable[[np.ndarray], np.ndarray]
TAIL = (1 - CONFIDENCE) / 2
FEW = np.repeat(np.arange(14), [3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1, 3, 0])
COUNTS = np.concatenate(
    [FEW, np.arange(14, 26), [27, 29, 31, 33, 35, 38, 42, 47, 60], [150, 250, 420]]
).astype(float)


@dataclass(frozen=True)
class Law:
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    mean: float
    median: float


LAWS = {
    "normal": Law(lambda gen, shape: gen.normal(size=shape), 0.0, 0.0),
    "t3": Law(lambda gen, shape: gen.standard_t(3, size=shape), 0.0, 0.0),
    "exponential": Law(lambda gen, shape: gen.exponential(size=shape), 1.0, np.log(2)),
    "lognormal": Law(lambda gen, shape: gen.lognormal(0, 1, size=shape), np.exp(0.5), 1.0),
    "lognormal-1.5": Law(lambda gen, shape: gen.lognormal(0, 1.5, size=shape), np.exp(1.125), 1.0),
    "pareto": Law(lambda gen, shape: 1 + gen.pareto(2.5, size=shape), 2.5 / 1.5, 2**0.4),
    "difference": Law(
        lambda gen, shape: gen.lognormal(size=shape) - gen.lognormal(size=shape), 0.0, 0.0
    ),
    "zeros": Law(
        lambda gen, shape: np.where(gen.random(shape) < 0.6, 0.0, gen.poisson(5, size=shape)),
        2.0,
        0.0,
    ),
    "counts": Law(
        lambda gen, shape: gen.choice(COUNTS, size=shape), COUNTS.mean(), float(np.median(COUNTS))
    ),
}


def student(x: np.ndarray) -> np.ndarray:
    n = x.shape[1]
    return x.mean(axis=1) + stdtrit(n - 1, 1 - TAIL) * x.std(axis=1, ddof=1) / np.sqrt(
        n
    ) * np.array([[-1], [1]])


def order(x: np.ndarray) -> np.ndarray:
    """The narrowest order statistics whose binomial coverage is at least nominal, or all values."""
    n = x.shape[1]
    k = max(1, int((1 - 2 * bdtr(np.arange((n + 1) // 2), n, 0.5) >= CONFIDENCE).sum()))
    x = np.sort(x, axis=1)
    return np.stack([x[:, k - 1], x[:, n - k]])


MEAN: dict[str, Method] = {
    "student": student,
    "interval": lambda x: np.stack(intervals.interval(x, "mean", axis=1)),
}
MEDIAN: dict[str, Method] = {
    # for the width only: it is not an interval of the median
    "student": student,
    "order": order,
    "interval": lambda x: np.stack(intervals.interval(x, "median", axis=1)),
}


def measured(
    law: Law, statistic: str, n: int, samples: int, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Coverage in % and median width per method, over samples of n seeds."""
    methods, truth = (MEAN, law.mean) if statistic == "mean" else (MEDIAN, law.median)
    gen = np.random.default_rng([seed, n])
    found: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    for _ in range(0, samples, 1000):
        x = law.draw(gen, (1000, n))
        for name, method in methods.items():
            found[name].append(method(x))
    result = {}
    for name, parts in found.items():
        low, high = np.concatenate(parts, axis=1)
        slack = 1e-9 * (high - low)
        result[name] = (
            100 * ((low - slack <= truth) & (truth <= high + slack)).mean(),
            np.median(high - low),
        )
    return result


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=(2, 3, 4, 5, 6, 8, 10, 20, 50))
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--law", nargs="+", default=LAWS, choices=LAWS)
    options = parser.parse_args()
    start = time.perf_counter()
    for statistic, methods in (("mean", MEAN), ("median", MEDIAN)):
        shown = [name for name in methods if statistic == "mean" or name != "student"]
        print(f"\n{statistic:14} {'n':>3} " + " ".join(f"{name:>12}" for name in shown))
        for name in options.law:
            for n in options.seeds:
                found = measured(LAWS[name], statistic, n, options.samples)
                unit = found["student"][1]
                entries = [f"{found[m][0]:5.1f} /{min(found[m][1] / unit, 99):5.2f}" for m in shown]
                print(
                    f"{name:14} {n:3} " + " ".join(f"{entry:>12}" for entry in entries), flush=True
                )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
