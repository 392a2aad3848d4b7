"""Figures without their images, for tests of what is said and of the numbers behind: most of the
time goes there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from cbobench.report.figures import figures, layout
from cbobench.report.load import Run

mpl.use("Agg")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of notes stays one line, so that tests can look for what it says."""
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are composed, and written without PDF and PNG."""
    monkeypatch.setattr(layout, "save", lambda *_: None)


@pytest.fixture
def words_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """The caption of a figure, on one line; its other files are in `words`, but for the images."""

    def draw_caption(run: Run, panels: list[figures.AnyPanel], **options: Any) -> str:
        figure = figures.Figure("words", "words", panels)
        with monkeypatch.context() as patch:
            patch.setattr(layout, "save", lambda *_: None)
            paths = figures.draw(run, figure, tmp_path / "words", figures.DrawOptions(**options))
        return " ".join(paths[-1].read_text(encoding="utf-8").split())

    return draw_caption
