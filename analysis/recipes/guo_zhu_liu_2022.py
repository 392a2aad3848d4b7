"""Figures of Guo, Zhu & Liu (2022), "Rectified Pessimistic-Optimistic Learning for Stochastic
Continuum-armed Bandit".

Figures 1a, 1b: average regret and average V⁺ on the pocket; 2a, 2b: with delayed feedback; 3a, 3b:
with functions that change. Each shows the first variant of every method in the suite's order; where
there are more, a figure of its own shows all. Figures of a suite NAME-fit end in _fit.

cbobench figures RUN --recipe guo_zhu_liu_2022 [--out OUT]
"""

from cbobench.report.figures.figures import Figure, Panel, numbered, problems_named
from cbobench.report.load import Run

PAPER = "Guo, Zhu & Liu (2022)"
NUMBERS = {"feasible-pocket": 1, "feasible-pocket-delayed": 2, "feasible-pocket-drift": 3}
METHODS = ("rpol-ucb", "rpol-censored", "rpol-sw", "ckb-ucb", "config", "ckb-restart")


def figures(run: Run) -> list[Figure]:
    """Those of the six figures whose problem the run holds together with a method of the paper."""
    if not run.named("algorithm", [name for name in METHODS if name.startswith("rpol")]):
        return []
    every = run.named("algorithm", METHODS)
    first = [titles[0] for titles in (run.named("algorithm", [name]) for name in METHODS) if titles]
    result = []
    for problem, number in NUMBERS.items():
        for title, label in problems_named(run, problem):
            for letter, metric, quantity in (
                ("a", "regret", "regret"),
                ("b", "violation_hard", "violation"),
            ):
                for ending, of, titles in (("", "", first), ("_variants", ", all variants", every)):
                    if titles is every and len(every) == len(first):
                        continue
                    panel = Panel(metric, title, average=True, algorithms=titles)
                    name, caption = numbered(
                        run,
                        PAPER,
                        f"{number}{letter}",
                        f"average {quantity}{of}",
                        label,
                        ending=ending,
                    )
                    result.append(Figure(name, caption, [panel]))
    return result
