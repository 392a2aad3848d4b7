"""What pairs of the shipped suites cost over their whole horizon, measured once: `suites/costs.json`.

It holds CPU seconds per seed-round, without what a round costs however many seeds are played, and how long a fixed loop
took on the machine that measured: the same loop is timed here, so that a slower machine is told slower. Made anew by
`python docs/costs.py RUN ...` from runs of the suites.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

import numpy as np

from cbobench import resources
from cbobench.gp.actions import Finite
from cbobench.problems.base import Problem
from cbobench.results.lease import pair_id
from cbobench.suite.cells import Pair
from cbobench.sweep.blocks import SHARED_ROUND
from cbobench.threads import single_thread

FILE = "costs.json"
ALIKE = 1.6  # how far costs of pairs of the same names and size may lie apart, so that their mean stands for others
FAR = 2.0  # times a horizon, up to which its mean cost stands for another one


@cache
def speed() -> float:
    """CPU seconds of a fixed loop like the rounds of a play: small arrays, and Python between them (0.05 s in all)."""
    a = np.linspace(0, 1, 100)[:, None] * np.ones((1, 20))
    k = np.exp(-((a[:, :1] - a[:, :1].T) ** 2))[None] * np.ones((20, 1, 1))
    took = []
    with single_thread():
        for _ in range(5):
            began = time.thread_time()
            for i in range(300):
                b = np.exp(-0.5 * a * a) + 0.1 * i
                c = np.matmul(k, b.T[:, :, None])[:, :, 0]
                np.sqrt(np.maximum(c, 1e-9)).take(c.argmax(axis=1))
            took.append(time.thread_time() - began)
    return float(np.median(took))


def size(problem: Problem) -> int:
    """Of a finite set its number of actions, of a box minus its dimension."""
    return problem.actions.n if isinstance(problem.actions, Finite) else -problem.actions.d


def without_shared(per_round: float, cells: int, finite: bool) -> float:
    """Seconds of a seed-round that are its own, where so many cells were played in lock step."""
    return max(0.05 * per_round, per_round - SHARED_ROUND[finite] / cells)


class Costs:
    """What is known of pairs.

    Args:
        content: of `costs.json`; what is shipped by default.
    """

    def __init__(self, content: dict[str, Any] | None = None) -> None:
        path = resources.folder("suites") / FILE
        if content is None:
            content = json.loads(path.read_text()) if path.is_file() else {"speed": 1.0, "costs": {}}
        self.content = content

    @cached_property
    def slower(self) -> float:
        """How many times longer this machine takes than the one that measured."""
        return speed() / float(self.content["speed"])

    def per_round(self, pair: Pair, problem: Problem, horizon: int, cells: int) -> float | None:
        """Seconds of a seed-round of a pair in blocks of so many cells; None where nothing like it was measured."""
        entries = self.content["costs"].get(f"{pair.problem.name}/{pair.algorithm.name}", ())
        exact = [own for key, _, _, own in entries if key == pair_id(pair, horizon)]
        near = [
            own for _, n, rounds, own in entries if n == size(problem) and 1 / FAR <= horizon / rounds <= FAR
        ]  # fmt: skip
        own = exact or (near if near and max(near) <= ALIKE**2 * min(near) else [])
        if not own:
            return None
        shared = SHARED_ROUND[isinstance(problem.actions, Finite)] / cells
        return self.slower * (float(np.exp(np.log(own).mean())) + shared)


def gathered(measured: Iterable[tuple[Pair, Problem, int, int, float]], took: float) -> dict[str, Any]:
    """The content of `costs.json`; of what was measured several times, the geometric mean.

    Args:
        measured: pair, problem, horizon, cells in lock step, and seconds of a seed-round.
        took: what `speed` was on that machine.
    """
    known: dict[tuple[str, str, int, int], list[float]] = {}
    for pair, problem, horizon, cells, each in measured:
        own = without_shared(each, cells, isinstance(problem.actions, Finite))
        names = f"{pair.problem.name}/{pair.algorithm.name}"
        known.setdefault((names, pair_id(pair, horizon), size(problem), horizon), []).append(own)
    costs: dict[str, list[Any]] = {}
    for (names, *what), some in known.items():
        costs.setdefault(names, []).append([*what, float(f"{np.exp(np.log(some).mean()):.3g}")])
    return {"speed": took, "costs": {name: sorted(some) for name, some in sorted(costs.items())}}
