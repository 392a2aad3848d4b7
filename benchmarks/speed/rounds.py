"""CPU time of a round on a box, our methods beside BoTorch's: a JSON line per setting.

    python -m benchmarks.speed.rounds [--out published/rounds.json]

Every method is told the same n points of a Sobol design, and then plays on. Of ours, n/10 rounds
are timed, because later fits of hyperparameters are that far apart; of BoTorch's, which fits in
every round, one. A round is a question and what is learned from its answer. Everything runs on one
core; the time is the process's CPU time.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commands import make_parser
from benchmarks.machine import describe_machine, write_record
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.gp.kernels import Array
from cbobench.play.play import Play, PlayOptions
from cbobench.problems.data import DataFolder
from cbobench.problems.formulas.box import BoxProblem, Reference

METHODS = ("cei", "botorch-cei", "scbo", "botorch-scbo")
INPUTS = (2, 7, 10, 20)
CONSTRAINTS = (1, 5, 11)
OBSERVATIONS = (30, 100)


@dataclass(kw_only=True)
class Waves(BoxProblem):
    """A bowl with a wave, and linear constraints with waves: smooth, with any number of inputs and
    constraints.
    """

    source = "ours"
    about = "a bowl under waves"
    # Regret is not read here: 1 is above every value.
    reference = Reference(x=(), f=1.0, slater=1.0, share=0.5, accuracy=0.0, how="not derived")

    def prepare(self, data: DataFolder) -> None:
        """Hold no stated optimum against the formula."""

    def formula(self, x: Array) -> Array:
        f = -((x - 0.3) ** 2).mean(axis=-1) + 0.1 * np.sin(8 * x[..., 0])
        columns = [f]
        for j in range(self.m):
            slopes = np.cos(np.arange(1, x.shape[-1] + 1) * (j + 1.0)) / math.sqrt(x.shape[-1])
            columns.append(
                (x * slopes).sum(axis=-1) + 0.1 * np.sin(6 * x[..., j % x.shape[-1]]) - 0.3
            )
        return np.stack(columns, axis=-1)


def watch(call: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Return the same call, which adds the CPU seconds of each to a list."""

    def timed(*given: Any) -> Any:
        started = time.process_time()
        answer = call(*given)
        spent.append(time.process_time() - started)
        return answer

    return timed


def measure_round(name: str, d: int, m: int, n: int) -> float:
    """Return the CPU milliseconds of a round after n observations, as a mean over the rounds that
    were timed. Only the algorithm's own questions and lessons count.
    """
    problem: Any = type("Waves", (Waves,), {"low": (0.0,) * d, "high": (1.0,) * d, "m": m})(
        noise_f=0.0, noise_g=0.0
    )
    algorithm: Any = params.build(ALGORITHMS.get(name), {})
    spent: list[float] = []
    algorithm.ask = watch(algorithm.ask, spent)
    algorithm.tell = watch(algorithm.tell, spent)
    rounds = 1 if name.startswith("botorch") else math.ceil(n / 10)
    play = Play(
        problem, "waves", algorithm, name, [0], n + rounds, PlayOptions(initial={"sobol": n})
    )
    for _ in play:
        pass
    return round(1e3 * sum(spent) / rounds, 1)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--out", type=Path, help="a JSON file for all rows, as docs/speed.md shows them"
    )
    arguments = parser.parse_args()
    rows = []
    settings = itertools.product(OBSERVATIONS, CONSTRAINTS, INPUTS, METHODS)
    for n, m, d, name in settings:
        ms = measure_round(name, d, m, n)
        rows.append({"method": name, "d": d, "m": m, "n": n, "ms": ms})
        print(json.dumps(rows[-1]), flush=True)
    if arguments.out:
        write_record(arguments.out, describe_machine() | {"rows": rows})


if __name__ == "__main__":
    main()
