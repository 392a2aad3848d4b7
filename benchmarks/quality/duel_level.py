"""How often one against one (`report.tables.duels`) finds a method significantly better or worse,
by simulation.

    python -m benchmarks.quality.duel_level [--tables 500] [--problems 7 20] [--seeds 3 10]

A table in Markdown: the share of tables, in %, in which the one is found better / worse, by each
floor. The logarithms of regret have a middle of their own on each problem, from 1e-8 to 1, and
deviate by one and a half decades from seed to seed. The last column is of a field: in how many
tables any of ten such rivals is found better or worse (Holm).
"""

from __future__ import annotations

import argparse

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.report.quantities import UNREACHED
from cbobench.report.tables.duels import FLOORS, judge
from cbobench.stats.paired_tests import SIGNIFICANT, holm

RIVALS = 10


SHIFTS = {  # decades by which the one is better: on the first half of the problems, on the others
    "equal": (0.0, 0.0),
    "two decades better on half of the problems": (2.0, 0.0),
    "two decades better on all problems": (2.0, 2.0),
    "two decades better on half, worse on the others": (2.0, -2.0),
}
LOST = {  # shares of seeds without a feasible point: of the one, of its rival
    "all seeds feasible": (0.0, 0.0),
    "30 % infeasible in both": (0.3, 0.3),
    "10 % infeasible, 40 % of the rival": (0.1, 0.4),
}
CASES = [
    *((name, "all seeds feasible") for name in SHIFTS),
    ("equal", "30 % infeasible in both"),
    ("two decades better on half of the problems", "30 % infeasible in both"),
    ("equal", "10 % infeasible, 40 % of the rival"),
]


def draw(
    generator: np.random.Generator, case: tuple[str, str], problems: int, seeds: int, rivals: int
) -> Array:
    """By how much the one is better than each rival, (rivals, problems, seeds)."""
    middles = generator.uniform(-8, 0, (problems, 1))
    is_first = np.arange(problems)[:, None] < problems // 2
    shift = np.where(is_first, *SHIFTS[case[0]])
    own, rival = (
        10.0 ** (middles + step + 1.5 * generator.normal(size=(count, problems, seeds)))
        for count, step in ((1, -shift / 2), (rivals, shift / 2))
    )
    for values, share in zip((own, rival), LOST[case[1]], strict=True):
        values[generator.random(values.shape) < share] = UNREACHED
    return rival - own


def find_rates(case: tuple[str, str], problems: int, seeds: int, tables: int) -> list[str]:
    """By floor how often the one is found better and worse; and how often any of ten is, without a
    floor.
    """
    generator = np.random.default_rng([problems, seeds])
    found = np.zeros((len(FLOORS), 2))
    any_of_ten = 0.0
    for _ in range(tables):
        apart = draw(generator, case, problems, seeds, RIVALS)
        for row, floor in zip(found, FLOORS, strict=True):
            verdict = judge([*apart[0]], floor)
            if verdict["p"] < SIGNIFICANT:
                row[int(verdict["effect"] < 0)] += 1
        adjusted = holm([judge([*one], 0.0)["p"] for one in apart])
        any_of_ten += (adjusted < SIGNIFICANT).any()
    cells = [" / ".join(f"{share:.1f}" for share in row) for row in 100 * found / tables]
    return [*cells, f"{100 * any_of_ten / tables:.1f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--problems", type=int, nargs="+", default=[7, 20])
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 10])
    given = parser.parse_args()
    heads = ["law", "seeds", "problems x seeds", *(f"floor {floor:g}" for floor in FLOORS)]
    heads.append("any of ten")
    print(f"| {' | '.join(heads)} |\n| :-- | :-- |{' --: |' * (len(heads) - 2)}")
    for problems in given.problems:
        for seeds in given.seeds:
            for case in CASES:
                rates = find_rates(case, problems, seeds, given.tables)
                cells = [*case, f"{problems} x {seeds}", *rates]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
