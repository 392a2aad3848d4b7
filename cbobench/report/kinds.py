"""The kinds of panels and of figures that there are, and which metrics each is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cbobench.errors import Misuse, show, unknown
from cbobench.metrics import METRICS
from cbobench.report.curves import Boxes, Panel
from cbobench.report.load import Run
from cbobench.report.planes import Plane
from cbobench.report.profiles import Profile
from cbobench.report.quantities import SIMPLE_REGRET, SIMPLE_VALUE, select_metrics

AnyPanel = Panel | Boxes | Plane | Profile

KINDS = {
    "curves": (SIMPLE_REGRET, "regret", "violation_hard", "violations"),
    "plane": ("regret", "violation_hard"),
    "profile": (SIMPLE_REGRET,),
}
"""What a figure may be of, and the metrics that it shows by default."""


def replace_unmeasured(run: Run, problem: str, names: Sequence[str]) -> list[str]:
    """The metrics, with the best feasible value in place of regrets if the problem has no known optimum."""
    good = run.cells[(run.cells["problem"] == problem) & (run.cells["status"] == "ok")]
    lacks_optimum = len(good) > 0 and good["f_star"].isna().all()
    return list(dict.fromkeys(SIMPLE_VALUE if lacks_optimum and METRICS[n].relative else n for n in names))


def scale_of(metric: str) -> str:
    """Which axes of a metric's curves are logarithmic unless a reader says so: regrets that fall towards 0 need it."""
    return "y" if METRICS[metric].relative and not METRICS[metric].cumulative else ""


def scale_named(log: str | bool) -> str:
    """The logarithmic axes that a reader asks for: "x", "y" or "xy"; True is "y", False is none.

    Raises:
        Misuse: none of these.
    """
    axes = {True: "y", False: ""}.get(log, log) if isinstance(log, bool) else log
    if axes not in ("", "x", "y", "xy"):
        raise Misuse(f"log is {show(log)}; allowed: True, False, '', 'x', 'y', 'xy'")
    return axes


def metrics_of(kind: str, metrics: str | Iterable[str] | None = None) -> list[str]:
    """The names of the metrics that a figure of some kind shows.

    Args:
        metrics: names, symbols or labels, the kind's own by default.

    Raises:
        Misuse: an unknown kind or metric, or metrics that the kind cannot show.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    names = [quantity.name for quantity in select_metrics(metrics)] if metrics else list(KINDS[kind])
    if cell_only := [name for name in names if name not in METRICS]:
        raise unknown("metric of rounds", cell_only[0], METRICS)
    if kind == "plane" and len(names) != 2:
        raise Misuse(
            f"a plane is of two metrics, not of {', '.join(names)}; give the horizontal and the vertical one, such as "
            f"{' '.join(KINDS[kind])}"
        )
    if kind == "profile" and names != [SIMPLE_REGRET]:
        raise Misuse(
            f"profiles are of {SIMPLE_REGRET}, which has targets, not of {', '.join(names)}; leave the metric out"
        )
    return names
