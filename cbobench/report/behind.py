"""The numbers behind a figure, as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cbobench.report.kinds import AnyPanel


class Rows:
    """The rows behind the panels of a figure, as one CSV.

    Rows of panels that are alike are written one by one, and not kept; columns of unlike ones are joined.
    """

    def __init__(self, panels: Sequence[AnyPanel], path: Path) -> None:
        self.path, self.part = path, path.with_suffix(".part")
        kinds = {(type(panel), panel.metric == "reward", getattr(panel, "statistic", "")) for panel in panels}
        self.alike, self.first = len(kinds) == 1, True
        self.kept: list[pd.DataFrame] = []

    def __enter__(self) -> Rows:
        self.file = self.part.open("w", newline="", encoding="utf-8")
        return self

    def add(self, panel: AnyPanel, frame: pd.DataFrame) -> None:
        """The rows of the next panel."""
        frame.insert(0, "problem", panel.problem)
        frame.insert(1, "metric", panel.quantity)
        if self.alike:
            frame.to_csv(self.file, index=False, header=self.first)
            self.first = False
        else:
            self.kept.append(frame)

    def publish(self) -> None:
        """Put the file where it belongs."""
        if self.kept:
            pd.concat(self.kept).to_csv(self.file, index=False)
        self.file.close()
        self.part.replace(self.path)

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.part.unlink(missing_ok=True)
