"""Figures of Shi & Eryilmaz (2022), "A Bayesian Approach for Stochastic Continuum-armed Bandit with ... Constraints".

Figure 1: the trade-off of regret and violation over the rounds per epoch. Figures 2, 4, 6, 8: box plots of the averages
for each of three methods. Figures 3, 5, 7, 9: their means in the first 100 rounds. Which of them a run gives depends on
its problem (the pocket, or rate allocation) and on whether Algorithm 2 (noiseless) or 3 (noisy constraints) is in it.

They show the algorithms by the letter, which forget all data at the end of every epoch, and ADMMBO until where it stops
in the paper. Beside each, a figure `_variants` shows them with the data kept, and ADMMBO to the end.

python analysis/shi_eryilmaz_2022.py RUN [OUT]
"""

from cbobench.report.figures import AnyPanel, Boxes, Figure, Panel, TradeOff, main, numbered, problems_named
from cbobench.report.load import Run

PAPER = "Shi & Eryilmaz (2022)"
EXPERIMENTS = {  # (problem, method): numbers of the box plots and of the means, and what stands for quality
    ("feasible-pocket", "penalty-noiseless"): (2, 3, "regret"),
    ("feasible-pocket", "penalty-noisy"): (4, 5, "regret"),
    ("rate-allocation", "penalty-noiseless"): (6, 7, "reward"),
    ("rate-allocation", "penalty-noisy"): (8, 9, "reward"),
}
BASELINES = ("bandit-oco", "admmbo")
FIRST = 100  # rounds shown in the figures of means
LAST = 350
READINGS = {False: "every epoch starts anew", True: "data kept"}


def figures(run: Run) -> list[Figure]:
    """Those of the nine figures whose problem and methods the run holds."""
    known = run.record.variants("algorithms")
    result = []
    for (problem, method), (boxes, means, quality) in EXPERIMENTS.items():
        variants = run.named("algorithm", [method])
        others = run.named("algorithm", BASELINES)
        swept = len({known[each].values["S"] for each in variants}) > 1
        of = {keep: [each for each in variants if known[each].values["keep"] is keep] for keep in READINGS}
        for title, label in problems_named(run, problem):
            if method == "penalty-noiseless" and swept:
                points = [TradeOff("regret", "violation", title, of[k], READINGS[k]) for k in READINGS if of[k]]
                result.append(_figure(run, 1, "", "trade-off of Algorithm 2", label, *points))
            elif variants and others:
                every = [*variants, *others]
                letter = [*(of[False] or variants)[:1], *others]
                kept = [each for each in every if each not in letter or _stops(run, each)]
                for ending, shown, last, how in (
                    ("", letter, FIRST, READINGS[not of[False]]),
                    ("_variants", kept, LAST, "with other readings"),
                ):
                    panels = [
                        _boxes(run, metric, title, each, whole=last == LAST)
                        for each in shown
                        for metric in (quality, "violation")
                    ]
                    result.append(_figure(run, boxes, ending, f"time averages, {how}", label, *panels))
                    curves = [
                        Panel(metric, title, average=average, last=last, titles=letter if last == FIRST else every)
                        for average in (False, True)
                        for metric in (quality, "violation")
                    ]
                    result.append(_figure(run, means, ending, f"first {last} rounds, {how}", label, *curves))
    return result


def _stops(run: Run, algorithm: str) -> bool:
    return run.record.variants("algorithms")[algorithm].name == "admmbo"


def _boxes(run: Run, metric: str, problem: str, algorithm: str, *, whole: bool) -> Boxes:
    """Every 20 rounds to 350; for ADMMBO, which stops early in the paper, every 5 to 90 or, on rates, to 50."""
    step, last = 20, LAST
    if _stops(run, algorithm) and not whole:
        step, last = 5, 50 if run.record.variants("problems")[problem].name == "rate-allocation" else 90
    return Boxes(metric, problem, algorithm, step, last, run.record.labels("algorithms")[algorithm])


def _figure(run: Run, number: int, ending: str, what: str, label: str, *panels: AnyPanel) -> Figure:
    return Figure(*numbered(run, PAPER, str(number), what, label, ending=ending), panels, columns=2)


if __name__ == "__main__":
    main(__file__)
