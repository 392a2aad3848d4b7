"""The bundles of the papers' suites, published: which there are, who played them, and the
commit whose replay confirmed each. What the pages about the papers say comes from these alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analysis import bundles as field_shards
from analysis.bundles import confirmed_by, digest_of, played_by, read_about, read_confirmed
from analysis.folders import PUBLISHED
from analysis.markdown import tabulate, wrap
from analysis.papers.figures import describe_origin
from cbobench.report.load import Run

LINKED = "../published"  # from a page


def bundle_of(suite: str) -> Path:
    """Where a suite is kept."""
    return PUBLISHED / f"{suite}.zip"


def is_whole(suite: str) -> bool:
    """Whether a suite's bundle is there and has all of its cells, failed ones included."""
    if not bundle_of(suite).exists():
        return False
    cells = read_about(bundle_of(suite))["cells"]
    return bool(cells["done"] + cells["failed"] >= cells["expected"])


def list_whole(suites: Iterable[str]) -> list[str]:
    """Those of some suites that a page can be computed from."""
    return [suite for suite in suites if is_whole(suite)]


def is_confirmed(suite: str) -> bool:
    """Whether drawn cells of a suite's bundle as it is were played again, all to the same bits."""
    return field_shards.is_confirmed(bundle_of(suite), read_confirmed(PUBLISHED))


def trace_origin(suites: Iterable[str]) -> dict[str, Any]:
    """Who played some bundles, as pages store it (`describe_origin`), with their digests."""
    files = {suite: bundle_of(suite) for suite in suites}
    origin = describe_origin([Run(str(file)) for file in files.values()])
    return origin | {"bundles": {suite: digest_of(file) for suite, file in files.items()}}


def tabulate_bundles(suites: Iterable[str]) -> str:
    """Who played the bundles of a page, who confirmed them, and what they cost; and which are
    missing.
    """
    names, confirmed = [*suites], read_confirmed(PUBLISHED)
    there = list_whole(names)
    rows = []
    for suite in there:
        about, file = read_about(bundle_of(suite)), bundle_of(suite)
        cells = about["cells"]
        rows.append(
            (
                f"[`{suite}`]({LINKED}/{file.name})",
                f"{cells['done']}/{cells['expected']}",
                played_by(about),
                confirmed_by(file, confirmed),
                f"{about['seconds'] / 60:.1f}",
                f"{file.stat().st_size / 1e3:.0f}",
            )
        )
    head = ("bundle", "cells", "played by", "confirmed by", "CPU-minutes", "kB")
    missing = ", ".join(f"`{suite}`" for suite in names if suite not in there)
    note = wrap(f"Not played yet: {missing}.") if missing else ""
    table = tabulate(head, rows, "lrllrr") + "\n" if rows else ""
    return "\n".join(filter(None, (table, note)))


def link_bundles(verdict: str, places: str) -> str:
    """A verdict as a link to the bundle of its places ("map-x (problem); ..."); of several, the
    others follow.
    """
    suites = dict.fromkeys(place.split(" (")[0].replace("-", "_") for place in places.split("; "))
    there = [suite for suite in suites if bundle_of(suite).exists()]
    links = [
        f"[{number if number > 1 else verdict}]({LINKED}/{suite}.zip)"
        for number, suite in enumerate(there, 1)
    ]
    return " ".join(links) or verdict
