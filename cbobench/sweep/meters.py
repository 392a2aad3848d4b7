"""Counters of a sweep on Ray, for Prometheus: every node of a cluster exports them at its metrics port."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from cbobench.play.task import Receipt


class Meters:
    """`cbobench_cells` by status, `cbobench_rounds`, and `cbobench_tasks_in_flight`, each by run.

    Args:
        metrics: Ray's module `ray.util.metrics`.
        run: the run folder's address; its last part is the label.
    """

    def __init__(self, metrics: Any, run: str) -> None:
        self.run = {"run": PurePosixPath(run).name}
        self.cells = metrics.Counter("cbobench_cells", "cells published", tag_keys=("run", "status"))
        self.rounds = metrics.Counter("cbobench_rounds", "seed-rounds of finished tasks", tag_keys=("run",))
        self.flight = metrics.Gauge("cbobench_tasks_in_flight", "tasks that Ray holds", tag_keys=("run",))

    def in_flight(self, count: int) -> None:
        """So many tasks are handed out."""
        self.flight.set(count, tags=self.run)

    def played(self, receipt: Receipt) -> None:
        """A task is over."""
        self.rounds.inc(receipt.rounds, tags=self.run)
        for status, count in (("ok", receipt.ok), ("failed", receipt.failed)):
            if count:
                self.cells.inc(count, tags=self.run | {"status": status})
