"""CPU time of a round over seeds, actions, constraints, inputs and rounds: the best of three turns,
as JSON.

    python -m benchmarks.speed.curves [--out published/curves.json] [--repeats 3]

On finite sets a round of `ckb-ucb` is measured beside the same algebra in bare NumPy (`floor` of
cases.py) and, where there is a compiler, in C (probe.py), on boxes a round of `cei` on the formula
of rounds.py. All settings take turns, so that a busy minute meets each of them once; a short
measurement is made several times in a turn. docs/speed.md shows the rows, and says how.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.commands import make_parser
from benchmarks.machine import describe_machine, write_record
from benchmarks.speed import probe, rounds
from benchmarks.speed.cases import floor, make_problem, play, seconds
from cbobench.problems.base import Problem

FINITE_METHOD, BOX_METHOD = "ckb-ucb", "cei"
REPEATS = 3
# most measurements of a setting in a turn, while they take less than so many CPU seconds
TRIES, LONG = 5, 1.0
# actions that stay in the CPU's cache; with more, the loops of probe.c wait for memory, and bound
# nothing
MOST_COMPILED = 100


@dataclass(frozen=True)
class Setting:
    """What a round is measured for.

    Attributes:
        curve: the name of what is varied.
        seeds, actions, inputs, constraints: S, n, d, m.
        rounds: T.
    """

    curve: str
    seeds: int = 10
    actions: int = 100
    inputs: int = 1
    constraints: int = 1
    rounds: int = 1000


# Fewer rounds of more work: each measurement takes a second or two.
FINITE = (
    *(Setting("seeds", seeds=s, rounds=4000 if s == 1 else 1000) for s in (1, 10, 50, 100)),
    *(
        Setting("actions", actions=n, inputs=d, rounds=rounds)
        for d in (1, 2)
        for n, rounds in ((100, 1000), (1_000, 1000), (10_000, 100), (100_000, 20))
    ),
    *(Setting("constraints", constraints=m) for m in (1, 2, 5)),
    *(Setting("rounds", rounds=t) for t in (100, 1000, 4000)),
)
# Of a box: one seed, `rounds` observations before the first round that is timed.
BOX = (
    *(Setting("inputs", seeds=1, actions=0, inputs=d, rounds=30) for d in (2, 5, 10, 20)),
    *(Setting("observations", seeds=1, actions=0, inputs=2, rounds=n) for n in (10, 30, 100, 300)),
)


@cache
def make_finite(actions: int, inputs: int, constraints: int) -> Problem:
    """Return a problem of random functions, whose features are computed once for all repeats."""
    return make_problem("rkhs", n=actions, d=inputs, m=constraints)


def measure_finite(setting: Setting) -> dict[str, float]:
    """Return CPU microseconds per seed and round: of the round loop; of bare NumPy if there is one
    constraint; and of C if there also are a compiler and few actions.
    """
    problem = make_finite(setting.actions, setting.inputs, setting.constraints)
    features, each = problem.actions.features, 1e6 / (setting.seeds * setting.rounds)  # type: ignore[union-attr]
    found = {"features": features.shape[1]}
    if setting.constraints == 1:
        found["bare"] = round(each * seconds(floor, features, setting.seeds, setting.rounds), 2)
        if setting.actions <= MOST_COMPILED and probe.find_compiler():
            compiled = probe.measure_probe(features, setting.seeds, setting.rounds)
            found["compiled"] = round(compiled, 2)
    cells = play(problem, FINITE_METHOD, setting.seeds, setting.rounds, beta_scale=0.2)
    return found | {"us": round(each * cells.seconds, 2)}


def measure_box(setting: Setting) -> dict[str, float]:
    """Return CPU milliseconds of a round after so many observations."""
    ms = rounds.measure_round(BOX_METHOD, setting.inputs, setting.constraints, setting.rounds)
    return {"ms": ms}


def measure_all(
    repeats: int, curves: list[Setting], measure: Callable[[Setting], dict[str, float]]
) -> list[dict[str, Any]]:
    """Return a row per setting: what it is, and the least that any of its measurements gave, as
    `measure` names them.

    A setting that lies on several curves is measured once a turn.
    """
    least: dict[Setting, dict[str, float]] = {replace(setting, curve=""): {} for setting in curves}
    for _ in range(repeats):
        for setting, best in least.items():
            started = time.process_time()
            for _ in range(TRIES):
                for name, value in measure(setting).items():
                    best[name] = min(value, best.get(name, value))
                if time.process_time() - started > LONG:
                    break
            print(setting, best, flush=True)
    return [asdict(one) | least[replace(one, curve="")] for one in curves]


def main() -> None:
    """Print every measurement; write the best of each."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--out", type=Path, help="a JSON file for all rows, as docs/speed.md shows them"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, help="turns")
    given = parser.parse_args()
    about = describe_machine()  # before anything else is committed
    kinds = (("finite", FINITE, measure_finite), ("box", BOX, measure_box))
    rows = {kind: measure_all(given.repeats, [*curves], measure) for kind, curves, measure in kinds}
    if given.out:
        write_record(given.out, about | {"repeats": given.repeats, **rows})


if __name__ == "__main__":
    main()
