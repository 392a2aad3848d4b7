"""Any run: regret, stronger violation and rounds in violation of every problem, medians with quartiles.

python analysis/summary.py RUN [OUT]
"""

from cbobench.report.compare import compare
from cbobench.report.figures import Figure, Panel, main, problems_played, slug
from cbobench.report.load import Run

METRICS = ("regret", "violation_hard", "violations")


def figures(run: Run, metrics: list[str] | tuple[str, ...] = METRICS) -> list[Figure]:
    """One figure per problem, with one panel per metric."""
    good = problems_played(run)
    return [
        Figure(
            f"summary_{slug(run.record.suite)}_{slug(label)}",
            f"{run.record.suite}: {label}",
            [Panel(metric, title, statistic="median") for metric in metrics],
        )
        for title, label in run.record.labels("problems").items()
        if title in good
    ]


if __name__ == "__main__":
    main(__file__, before=lambda run: print(compare(run)))
