"""Figures of Shi & Eryilmaz (2022), "A Bayesian Approach for Stochastic Continuum-armed Bandit with ... Constraints".

Figure 1: the trade-off of regret and violation over the rounds per epoch. Figures 2, 4, 6, 8: box plots of the averages
for each of three methods. Figures 3, 5, 7, 9: their means in the first 100 rounds. Which of them a run gives depends on
its problem (the pocket, or rate allocation) and on whether Algorithm 2 (noiseless) or 3 (noisy constraints) is in it.

python analysis/shi_eryilmaz_2022.py RUN [OUT]
"""

from cbobench.report.figures import Boxes, Figure, Panel, TradeOff, main, problems_named, seeds_note
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


def figures(run: Run) -> list[Figure]:
    """Those of the nine figures whose problem and methods the run holds."""
    titles = run.record.labels("algorithms")
    result = []
    for (problem, method), (boxes, means, quality) in EXPERIMENTS.items():
        variants = run.named("algorithm", [method])
        others = run.named("algorithm", BASELINES)
        for title, label in problems_named(run, problem):
            if method == "penalty-noiseless" and len(variants) > 2:
                panel = TradeOff("regret", "violation", title, method)
                result.append(_figure(run, 1, f"trade-off of Algorithm 2, {label}", [panel], 1))
            elif variants and others:
                shown = [variants[0], *others]
                panels = [
                    _boxes(run, metric, title, each, titles[each])
                    for each in shown
                    for metric in (quality, "violation")
                ]
                result.append(_figure(run, boxes, f"time averages, {label}", panels, 2))
                curves = [
                    Panel(metric, title, (method, *BASELINES), average, last=FIRST)
                    for average in (False, True)
                    for metric in (quality, "violation")
                ]
                result.append(_figure(run, means, f"means, first {FIRST} rounds, {label}", curves, 2))
    return result


def _boxes(run: Run, metric: str, problem: str, algorithm: str, label: str) -> Boxes:
    """Every 20 rounds to 350; for ADMMBO, which stops early in the paper, every 5 to 90 or, on rates, to 50."""
    step, last = 20, 350
    if run.record.variants("algorithms")[algorithm].name == "admmbo":
        step, last = 5, 50 if run.record.variants("problems")[problem].name == "rate-allocation" else 90
    return Boxes(metric, problem, algorithm, step, last, label)


def _figure(run: Run, number: int, what: str, panels: list, columns: int) -> Figure:  # type: ignore[type-arg]
    note = seeds_note(run, "boxes" if isinstance(panels[0], Boxes) else "means")
    caption = f"{PAPER}, Figure {number}: {what}\n({note})"
    return Figure(f"shi_eryilmaz_2022_fig{number}", caption, panels, columns)


if __name__ == "__main__":
    main(__file__)
