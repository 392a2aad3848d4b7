"""Claims of Guo, Zhu & Liu (2022), "Rectified Pessimistic-Optimistic Learning for Stochastic
Continuum-armed Bandit".

cbobench claims RUN... --recipe guo_zhu_liu_2022
"""

from collections.abc import Callable, Iterator

from cbobench.papers.claims import Case, Claim
from cbobench.papers.evidence import Part
from cbobench.papers.rules import below

# claim: setting, problem, the paper's method, those it is compared with, figure, quotation
SETTINGS = {
    "GZL1": (
        "at once",
        "feasible-pocket",
        "rpol-ucb",
        ("ckb-ucb", "config"),
        "Figures 1a, 1b",
        "RPOL-UCB achieves the best performance w.r.t. both regret and cumulative violation in "
        "SCBwC",
    ),
    "GZL2": (
        "delayed",
        "feasible-pocket-delayed",
        "rpol-censored",
        ("rpol-ucb", "ckb-ucb", "config"),
        "Figures 2a, 2b",
        "RPOL-CensoredUCB also outperforms all existing baselines",
    ),
    "GZL3": (
        "drifting",
        "feasible-pocket-drift",
        "rpol-sw",
        ("ckb-ucb", "config", "ckb-restart"),
        "Figures 3a, 3b",
        "we again observe that RPOL-SWUCB has the best performance",
    ),
}


def best(method: str, baselines: tuple[str, ...]) -> Callable[[Case], Iterator[Part]]:
    """The method is below every other in regret and in V⁺, at T (so in the averages, too)."""

    def test(case: Case) -> Iterator[Part]:
        for problem in case.problems:
            for metric in ("regret", "violation_hard"):
                play = case.play_of(method, problem)
                yield from (
                    below(metric, play, case.play_of(baseline, problem)) for baseline in baselines
                )

    return test


claims = [
    Claim(
        id,
        f"pocket, {setting}: {method} has the lowest average regret and the lowest average V⁺",
        "Guo, Zhu & Liu (2022) Section 7",
        figure,
        (problem,),
        (method, *baselines),
        best(method, baselines),
        quote=quote,
    )
    for id, (setting, problem, method, baselines, figure, quote) in SETTINGS.items()
]
