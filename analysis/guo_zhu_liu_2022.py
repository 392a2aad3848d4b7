"""Figures of Guo, Zhu & Liu (2022), "Rectified Pessimistic-Optimistic Learning for Stochastic Continuum-armed Bandit".

Figures 1a, 1b: average regret and average V⁺ on the pocket; 2a, 2b: with delayed feedback; 3a, 3b: with functions that
change.

python analysis/guo_zhu_liu_2022.py RUN [OUT]
"""

from cbobench.report.figures import Figure, Panel, main, problems_named, seeds_note
from cbobench.report.load import Run

PAPER = "Guo, Zhu & Liu (2022)"
NUMBERS = {"feasible-pocket": 1, "feasible-pocket-delayed": 2, "feasible-pocket-drift": 3}
METHODS = ("rpol-ucb", "rpol-censored", "rpol-sw", "ckb-ucb", "config", "ckb-restart")


def figures(run: Run) -> list[Figure]:
    """Those of the six figures whose problem the run holds together with a method of the paper."""
    if not any(variant.name.startswith("rpol") for variant in run.record.variants("algorithms").values()):
        return []
    result = []
    for problem, number in NUMBERS.items():
        for title, label in problems_named(run, problem):
            for letter, metric, what in (("a", "regret", "regret"), ("b", "violation_hard", "violation")):
                caption = f"{PAPER}, Figure {number}{letter}: average {what}, {label}\n({seeds_note(run)})"
                panel = Panel(metric, title, METHODS, average=True)
                result.append(Figure(f"guo_zhu_liu_2022_fig{number}{letter}", caption, [panel]))
    return result


if __name__ == "__main__":
    main(__file__)
