"""Figures of Shi & Eryilmaz (2022), "A Bayesian Approach for Stochastic Continuum-armed Bandit with
... Constraints".

Figure 1: the trade-off of regret and violation over the rounds per epoch. Figures 2, 4, 6, 8: box
plots of the averages for each of three methods. Figures 3, 5, 7, 9: their means in the first 100
rounds. Which of them a run gives depends on its problem (the pocket, or rate allocation) and on
whether Algorithm 2 (noiseless) or 3 (noisy constraints) is in it.

They show the first variant of each method, and ADMMBO until where it stops in the paper. Figures of
a suite NAME-fit end in _fit.

cbobench figures RUN --recipe shi_eryilmaz_2022 [--out OUT]
"""

from cbobench.report.figures.figures import (
    AnyPanel,
    Boxes,
    Figure,
    Panel,
    Plane,
    numbered,
    problems_named,
)
from cbobench.report.load import Run

PAPER = "Shi & Eryilmaz (2022)"
# (problem, method): numbers of the box plots and of the means, and what stands for quality
EXPERIMENTS = {
    ("feasible-pocket", "penalty-noiseless"): (2, 3, "regret"),
    ("feasible-pocket", "penalty-noisy"): (4, 5, "regret"),
    ("rate-allocation", "penalty-noiseless"): (6, 7, "reward"),
    ("rate-allocation", "penalty-noisy"): (8, 9, "reward"),
}
BASELINES = ("bandit-oco", "admmbo")
FIRST = 100  # rounds shown in the figures of means
LAST = 350


def figures(run: Run) -> list[Figure]:
    """Those of the nine figures whose problem and methods the run holds."""
    all_variants = run.record.variants("algorithms")
    result = []
    for (problem, method), (boxes, means, quality) in EXPERIMENTS.items():
        variants, baselines = run.named("algorithm", [method]), run.named("algorithm", BASELINES)
        swept = len({all_variants[variant].values["S"] for variant in variants}) > 1
        for title, label in problems_named(run, problem):
            if method == "penalty-noiseless" and swept:
                result.append(
                    _figure(
                        run,
                        1,
                        "trade-off of Algorithm 2",
                        label,
                        Plane(
                            "regret",
                            "violation",
                            title,
                            variants,
                            statistic="mean",
                            average=True,
                            joined=True,
                        ),
                    )
                )
            elif variants and baselines:
                titles = [variants[0], *baselines]
                panels = [
                    _boxes(run, metric, title, algorithm)
                    for algorithm in titles
                    for metric in (quality, "violation")
                ]
                result.append(_figure(run, boxes, "time averages", label, *panels))
                curves = [
                    Panel(metric, title, average=average, last=FIRST, algorithms=titles)
                    for average in (False, True)
                    for metric in (quality, "violation")
                ]
                result.append(_figure(run, means, f"first {FIRST} rounds", label, *curves))
    return result


def _stops(run: Run, algorithm: str) -> bool:
    return run.record.variants("algorithms")[algorithm].name == "admmbo"


def _boxes(run: Run, metric: str, problem: str, algorithm: str) -> Boxes:
    """Every 20 rounds to 350; for ADMMBO, which stops early in the paper, every 5 to 90 or, on
    rates, to 50.
    """
    step, last = 20, LAST
    if _stops(run, algorithm):
        step, last = (
            5,
            50 if run.record.variants("problems")[problem].name == "rate-allocation" else 90,
        )
    return Boxes(metric, problem, algorithm, step, last, run.record.labels("algorithms")[algorithm])


def _figure(run: Run, number: int, quantity: str, label: str, *panels: AnyPanel) -> Figure:
    return Figure(*numbered(run, PAPER, str(number), quantity, label), panels, columns=2)
