"""How many calls of Python and built-in functions a round of a method makes: exact, so that a test
can hold them.

    python -m benchmarks.speed.calls [METHOD ...]

Calls are counted by cProfile over two plays, of T and 2T rounds; their difference over T is a
round's share, without what a play does once. They do not depend on the machine, nor on what else
runs there. They are taken from the profiler
itself: pstats keeps one of several functions that share file, line and name, as the `__init__` of
all dataclasses do.
"""

from __future__ import annotations

import argparse
import cProfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed.cases import make_problem
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.play.play import Play
from cbobench.problems.base import Problem

# rkhs: a finite set whose posterior is in feature space
PROBLEM = {"n": 100, "d": 1, "lengthscale": 0.2}
# long enough that no round is the first of its kind, and that refills of draws are a small share
HORIZON = 300
# Calls a round by method and number of seeds. A test allows 5 % more; less is written down here.
HELD = {
    ("ckb-ucb", 1): 48.4,
    ("penalty-noisy", 1): 46.1,
    ("rpol-ucb", 1): 44.1,
    ("gp-ts", 1): 40.1,
    ("config", 1): 56.1,
    ("sgp-ucb", 1): 40.5,
    ("safeopt", 10): 130.9,
}


@dataclass(frozen=True)
class Counted:
    """Calls by function of plays of two lengths."""

    short: Counter[str]
    long: Counter[str]
    horizon: int

    @property
    def per_round(self) -> float:
        return (self.long.total() - self.short.total()) / self.horizon

    def by_function(self) -> dict[str, float]:
        """Return calls a round by function, most first."""
        more = {
            name: (count - self.short[name]) / self.horizon for name, count in self.long.items()
        }
        return dict(sorted(more.items(), key=lambda item: -item[1]))


def count_calls(
    problem: Problem, method: str, seeds: int, horizon: int = HORIZON, **settings: Any
) -> Counted:
    """Count the calls of a method's rounds on a problem, for some seeds in lock step."""

    def profile(rounds: int) -> Counter[str]:
        play = Play(
            problem,
            "calls",
            params.build(ALGORITHMS.get(method), settings),
            method,
            range(seeds),
            rounds,
        )
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [None for _ in play])
        called: Counter[str] = Counter()
        for entry in profiler.getstats():
            called[_name(entry.code)] += entry.callcount
        return called

    return Counted(profile(horizon), profile(2 * horizon), horizon)


def _name(code: Any) -> str:
    """Name a function: file, line and name of Python's, and what the profiler says of a built-in
    one.
    """
    return (
        code
        if isinstance(code, str)
        else f"{Path(code.co_filename).name}:{code.co_firstlineno} {code.co_qualname}"
    )


def lines(methods: list[str], functions: int) -> Iterator[str]:
    """Return a line per method of `HELD`, or per given method at one seed, with its most called
    functions.
    """
    problem = make_problem("rkhs", **PROBLEM)
    wanted = {
        (name, seeds): most for (name, seeds), most in HELD.items() if name in (methods or [name])
    }
    wanted |= {(name, 1): 0.0 for name in methods if name not in {held for held, _ in HELD}}
    yield f"{'method':20} {'seeds':>5} {'calls a round':>14} {'held':>6}"
    for (name, seeds), most in wanted.items():
        counted = count_calls(problem, name, seeds)
        yield f"{name:20} {seeds:5} {counted.per_round:14.1f} {most or '':>6}"
        for function, calls in list(counted.by_function().items())[:functions]:
            yield f"{'':20} {calls:20.2f} {function}"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser()
    options.add_argument(
        "methods", nargs="*", help="registered names; those that are held by default"
    )
    options.add_argument(
        "--functions", type=int, default=0, help="most called functions to print per method"
    )
    given = options.parse_args()
    for line in lines(given.methods, given.functions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
