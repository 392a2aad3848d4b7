"""The kinds of panels and of figures that there are, and which metrics each is of."""

from __future__ import annotations

from collections.abc import Iterable

from cbobench.errors import Misuse, unknown
from cbobench.report.panels import Boxes, Panel
from cbobench.report.planes import Plane
from cbobench.report.profiles import Profile
from cbobench.report.quantities import drawable
from cbobench.report.targets import CURVE

AnyPanel = Panel | Boxes | Plane | Profile

KINDS = {
    "curves": ("regret", "violation_hard", "violations"),
    "plane": ("regret", "violation_hard"),
    "profile": (CURVE,),
}
"""What a figure may be of, and the metrics that it shows by default."""


def metrics_of(kind: str, given: str | Iterable[str] | None = None) -> list[str]:
    """The names of the metrics that a figure of some kind shows.

    Args:
        given: names, symbols or labels, the kind's own by default.

    Raises:
        Misuse: an unknown kind or metric, or metrics that the kind cannot show.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    names = drawable(given) if given else list(KINDS[kind])
    if kind == "plane" and len(names) != 2:
        raise Misuse(
            f"a plane is of two metrics, not of {', '.join(names)}; give the horizontal and the vertical one, such as "
            f"{' '.join(KINDS[kind])}"
        )
    if kind == "profile" and names != [CURVE]:
        raise Misuse(f"profiles are of {CURVE}, which has targets, not of {', '.join(names)}; leave the metric out")
    return names
