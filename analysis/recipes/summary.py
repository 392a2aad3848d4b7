"""Any run: simple regret, regret, stronger violation and rounds in violation of every problem,
medians with quartiles.

Of the kind "plane": regret against violation in the end, a figure per problem. Of the kind
"profile": the performance and the data profile over all problems.

cbobench figures RUN --recipe summary [--out OUT]
"""

from collections.abc import Sequence

from cbobench.metrics import METRICS
from cbobench.report.figures.figures import (
    Figure,
    Panel,
    Plane,
    Profile,
    metrics_of,
    problems_played,
    scale_of,
    slug,
)
from cbobench.report.load import Run
from cbobench.report.quantities import LACKS, NO_UNIT, SIMPLE_VALUE, VIOLATION, lacks_unit


def replace_unmeasured(run: Run, problem: str, names: Sequence[str]) -> list[str]:
    """The metrics, with the best feasible value in place of regrets if the problem has no known
    optimum.
    """
    good = run.cells[(run.cells["problem"] == problem) & (run.cells["status"] == "ok")]
    lacks = len(good) > 0 and good["f_star"].isna().all()
    return list(dict.fromkeys(SIMPLE_VALUE if lacks and METRICS[n].relative else n for n in names))


def figures(run: Run, metrics: Sequence[str] = (), kind: str = "curves") -> list[Figure]:
    """One figure per problem, of curves with one panel per metric; of profiles one in all."""
    suite, good = run.record.suite, problems_played(run)
    names = metrics_of(kind, metrics)
    if kind == "profile":
        return [
            Figure(
                f"profile_{slug(suite)}",
                f"{suite}: profiles",
                [Profile("performance"), Profile("data")],
            )
        ]
    result = []
    for title, label in run.record.labels("problems").items():
        panel_metrics = names if metrics else replace_unmeasured(run, title, names)
        name, caption = f"_{slug(suite)}_{slug(label)}", f"{suite}: {label}"
        if kind == "curves" and not metrics and lacks_unit(run.record.variants("problems")[title]):
            panel_metrics = [metric for metric in panel_metrics if metric != VIOLATION]
            caption += f". V⁺: {LACKS[NO_UNIT][0].format(label)}"
        if title in good and kind == "plane":
            result.append(
                Figure(
                    f"plane{name}",
                    f"{caption}, in the end",
                    [Plane(panel_metrics[0], panel_metrics[1], title)],
                )
            )
        elif title in good:
            panels = [
                Panel(metric, title, title=label, statistic="median", log=scale_of(metric))
                for metric in panel_metrics
            ]
            result.append(Figure(f"summary{name}", caption, panels))
    return result
