"""How far a sweep is, and when the rest will be over, from the receipts that have come."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from cbobench.play.task import Receipt
from cbobench.results.lease import SeedRanges, pair_id, seed_ranges
from cbobench.sweep.blocks import Tasks


class Left(NamedTuple):
    """Seconds that a sweep still takes, and between what bounds that is likely to lie."""

    seconds: float
    low: float
    high: float


class Forecast:
    """Counts receipts.

    Args:
        tasks: all that are to be played.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.total, self.again = tasks.rounds, _again(tasks)
        self.cells = self.over = 0
        self.began = time.monotonic()

    def add(self, receipt: Receipt) -> None:
        """A task is over."""
        self.cells += receipt.ok + receipt.failed
        self.over += receipt.rounds

    def rounds(self) -> int:
        """Seed-rounds that are over."""
        return self.over

    def left(self) -> Left | None:
        """Seconds to the end, if the rest goes on as it went so far; None before a task is over."""
        if not self.over:
            return None
        seconds = (time.monotonic() - self.began) * (self.total - self.over) / self.over
        return Left(seconds, seconds / 1.3, seconds * 1.3)

    def news(self) -> dict[str, Any]:
        """As a sign of life carries it."""
        seconds, left = time.monotonic() - self.began, self.left()
        return {
            "seconds": round(seconds, 1), "cells": self.cells, "rounds": self.over, "total": self.total,
            "rate": round(self.over / max(seconds, 1e-3), 1), "again": self.again,
            "left": None if left is None else [round(each, 1) for each in left],
        }  # fmt: skip


def _again(tasks: Tasks) -> SeedRanges:
    """Cells that were played before: ranges of seeds [first, end) with how often, by a hash of pair and horizon."""
    found: SeedRanges = {}
    for strip, before in zip(tasks.strips, tasks.attempts, strict=True):
        for often in () if before is None else np.unique(before[before > 0]).tolist():
            some = seed_ranges(np.asarray(strip.seeds)[before == often].tolist())
            found.setdefault(pair_id(strip.pair, strip.horizon), []).extend([*one, often] for one in some)
    return found
