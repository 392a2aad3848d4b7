"""What a sweep did, for who called it: a program, or a notebook that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from cbobench.results.folder import RunFolder


@dataclass(frozen=True)
class Outcome:
    """What a sweep did; of its `tasks`, the `absent` ones said that they were done and are not in the folder.

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
        import cbobench  # a sweep knows no table but by the package's public names

        return cbobench.compare(self)._repr_html_()
