"""The key `parallel` of a suite: how many evaluations are under way at once.

    parallel: 4                        each takes as long as the others: before round t is chosen, t - 4 is told
    parallel: {points: 4, as: batch}   the answers of four rounds come together, before the next four are chosen

It is part of what a cell is. One is a round at a time, as without the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cbobench.errors import Misuse, show
from cbobench.suite.variants import PARALLEL, Variant

WAYS = ("asynchronous", "batch")


def parallel_of(given: Any, horizon: int, where: str) -> dict[str, Any]:
    """What is under way at once, {"points": q, "as": way}; empty for one round at a time.

    Raises:
        Misuse: anything else; `where` (file and line) leads.
    """
    points, way = given, WAYS[0]
    if isinstance(given, Mapping):
        if not {"points"} <= set(given) <= {"points", "as"}:
            raise Misuse(f"{where}parallel is {show(given)}; allowed: a number, or {{points: number, as: batch}}")
        points, way = given["points"], given.get("as", WAYS[0])
    if way not in WAYS:
        raise Misuse(f"{where}parallel: as is {show(way)}; allowed: {', '.join(WAYS)}")
    if not isinstance(points, int) or isinstance(points, bool) or not 1 <= points < max(2, horizon):
        most = max(1, horizon - 1)
        allowed = f"a whole number of evaluations under way, from 1 to {most}, as the horizon is {horizon}"
        raise Misuse(f"{where}parallel is {show(points)}; allowed: {allowed}")
    return {"points": points, "as": way} if points > 1 else {}


def points_of(algorithm: Variant) -> int:
    """How many evaluations an algorithm has under way at once."""
    found: int = algorithm.values.get(PARALLEL, {"points": 1})["points"]
    return found


def unspread(algorithms: Iterable[Variant]) -> tuple[str, ...]:
    """A line on the algorithms that choose as if nothing were under way, where there are some."""
    blind = [one.label for one in algorithms if points_of(one) > 1 and one.settings.get("pending") == "ignore"]
    if not blind:
        return ()
    return (
        f"{', '.join(blind)}: chosen as if nothing were under way (pending: ignore), which may be the same point "
        "again; pending: variance spreads them",
    )


def said(parallel: Mapping[str, Any]) -> str:
    """The same in words, for tables; nothing where it is one."""
    if not parallel:
        return ""
    how = "in batches" if parallel["as"] == "batch" else "a new one begins when the oldest ends"
    return f"{parallel['points']} evaluations under way at once ({how})"
