"""How many calls of Python and built-in functions a round of a method makes: exact, so that a test
can hold them.

    python -m benchmarks.speed.calls

Calls are counted by cProfile over two plays, of T and 2T rounds; their difference over T is a
round's share, without what a play does once. They do not depend on the machine, nor on what else
runs there. They are taken from the profiler itself: pstats keeps one of several functions that
share file, line and name, as the `__init__` of all dataclasses do.
"""

from __future__ import annotations

import cProfile
from collections import defaultdict
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


def count_calls(problem: Problem, method: str, seeds: int) -> dict[Any, float]:
    """Count the calls of a method's rounds on a problem, for some seeds in lock step.

    Returns:
        Calls a round by function: a built-in one by its name, others by their code.
    """
    called: dict[Any, float] = defaultdict(float)
    for rounds, share in ((HORIZON, -1 / HORIZON), (2 * HORIZON, 1 / HORIZON)):
        algorithm = params.build(ALGORITHMS.get(method), {})
        play = Play(problem, "calls", algorithm, method, range(seeds), rounds)
        profiler = cProfile.Profile()
        profiler.runcall(list, play)
        for entry in profiler.getstats():
            called[entry.code] += share * entry.callcount
    return called


def main() -> None:
    """Print a line per method of `HELD`."""
    problem = make_problem("rkhs", **PROBLEM)
    print(f"{'method':20} {'seeds':>5} {'calls a round':>14} {'held':>6}")
    for (name, seeds), most in HELD.items():
        calls = sum(count_calls(problem, name, seeds).values())
        print(f"{name:20} {seeds:5} {calls:14.1f} {most:6}", flush=True)


if __name__ == "__main__":
    main()
