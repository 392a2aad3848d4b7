"""The image that every figure is drawn on: it looks the same whoever saves it, and pyplot does not
know it.

matplotlib reads its settings when a figure is drawn and when it is saved, which users do after
`cbobench.plot` has returned. So an image brings its settings along: its size, and fonts that
publishers take, hold under any matplotlibrc. An image that pyplot knew would be shown a second time
by notebooks, which show all that pyplot has open.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cbobench.report.figures.style import Size


class Image(Figure):
    """A matplotlib figure that is drawn and saved with the settings of its size.

    Args:
        size: whose width it has.
        height: in inches.
        layout: a layout engine, or its name.
    """

    def __init__(self, size: Size, height: float, layout: Any = "constrained") -> None:
        self.size = size
        with size.context():
            super().__init__(figsize=(size.width, height), layout=layout)
            # In place of the canvas that matplotlib gives every figure, which prints with the
            # settings of the user.
            Canvas(self)

    def draw(self, renderer: Any) -> None:
        """Draw it. Ticks are made now, which would take the user's settings."""
        with self.size.context():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save it, as matplotlib does; a PNG has the size's resolution by default."""
        with self.size.context():
            super().savefig(fname, **options)

    def show(self, warn: bool = True) -> None:
        """Open a window, in a program that has windows; pyplot knows the image from then on, and
        `plt.show` waits.
        """
        import matplotlib.pyplot as plt

        # pyplot opens windows only for figures that it makes itself, so it is handed this one as
        # new.
        if self.canvas.manager is None:
            plt.figure(FigureClass=lambda **_: self)  # type: ignore[arg-type]
        super().show(warn)

    def _repr_png_(self) -> bytes:
        """What a notebook shows, if matplotlib's own way of it has not begun."""
        sink = BytesIO()
        self.savefig(sink, format="png", dpi=self.dpi)
        return sink.getvalue()


class Canvas(FigureCanvasAgg):
    """Prints with the image's settings where its `savefig` is passed over, as IPython does."""

    figure: Image

    def print_figure(self, *args: Any, **options: Any) -> Any:
        """Save the image."""
        with self.figure.size.context():
            return super().print_figure(*args, **options)
