"""What a sweep did, as `cbobench.run` returns it."""

from __future__ import annotations

from dataclasses import dataclass

from cbobench.results.folder import RunFolder
from cbobench.surface import load_name


@dataclass(frozen=True)
class Outcome:
    """What a sweep did; of its `tasks`, the `absent` ones said that they were done and are not in
    the folder.

    Where its budget was `spent`, cells are left to play. A notebook shows the run's comparison.
    """

    folder: RunFolder
    cells: int
    played: int
    failed: int
    errors: tuple[str, ...]
    stopped: bool
    tasks: int
    absent: tuple[str, ...]
    spent: bool = False

    def _repr_html_(self) -> str:
        # a sweep knows no table but by the package's public names
        return str(load_name("compare")(self)._repr_html_())
