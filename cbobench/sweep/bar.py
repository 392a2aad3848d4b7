"""The progress bar of a sweep on a terminal: it moves with rounds, and asks how far they are whenever it is drawn."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from cbobench.sweep.forecast import Forecast
from cbobench.words import time_left


class Bar(Progress):
    """A bar over the seed-rounds of a sweep.

    Args:
        forecast: what knows how many are over.
    """

    def __init__(self, forecast: Forecast) -> None:
        self.forecast = forecast
        super().__init__(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(), _Left(forecast), console=Console(stderr=True), refresh_per_second=4,
        )  # fmt: skip
        self.only = self.add_task("playing", total=forecast.total)

    def say(self, text: str) -> None:
        """Words before the bar."""
        self.update(self.only, description=text)

    def get_renderables(self) -> Iterable[RenderableType]:
        """What rich draws, with the rounds of now."""
        for task in self.tasks:
            task.completed = self.forecast.rounds()
        yield from super().get_renderables()


class _Left(ProgressColumn):
    """How long the rest will take, between which times, or that this is not known."""

    max_refresh = 0.5

    def __init__(self, forecast: Forecast) -> None:
        super().__init__()
        self.forecast = forecast

    def render(self, task: Task) -> Text:
        left = self.forecast.left()
        return Text("left: unknown" if left is None else f"left: {time_left(*left)}")
