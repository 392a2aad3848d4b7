"""`run.json`: the grids that a run folder holds, and how each invocation came about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cbobench.errors import DamagedRun, Misuse
from cbobench.sweep import grid
from cbobench.sweep.grid import Cell
from cbobench.sweep.store import SCHEMA_VERSION, RunFolder
from cbobench.sweep.variants import Suite, Variant

FILE = "run.json"


@dataclass(frozen=True)
class Grid:
    """A resolved grid: everything needed to name its cells, without problems or code; and the command behind it."""

    problems: tuple[Variant, ...]
    algorithms: tuple[Variant, ...]
    horizon: int
    seeds: tuple[int, ...]
    pairs: tuple[tuple[str, str], ...]
    command: tuple[str, ...] = ()

    @classmethod
    def of(cls, suite: Suite, only: str | None, command: Sequence[str] = ()) -> Grid:
        pairs = tuple((group[0].problem, group[0].algorithm) for group in grid.cells(suite, only))
        return cls(
            tuple(v for v, _ in suite.problems), suite.algorithms, suite.horizon, suite.seeds, pairs, tuple(command)
        )

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Grid:
        return cls(
            tuple(Variant(**v) for v in content["problems"]),
            tuple(Variant(**v) for v in content["algorithms"]),
            content["horizon"],
            tuple(content["seeds"]),
            tuple((p, a) for p, a in content["pairs"]),
            tuple(content["command"]),
        )

    def cells(self) -> list[Cell]:
        problems = {v.title: v for v in self.problems}
        algorithms = {v.title: v for v in self.algorithms}
        return [grid.cell(problems[p], algorithms[a], self.horizon, seed) for p, a in self.pairs for seed in self.seeds]


@dataclass(frozen=True)
class RunRecord:
    """What `run.json` says.

    Attributes:
        suite, about: of the suite.
        record: rounds kept, None for all.
        block: seeds per task, fixed for the life of the run.
        grids: what was asked for, latest last; a grid contained in a later one is dropped.
        invocations: provenance of each call.
    """

    suite: str
    about: str
    record: int | None
    block: int
    grids: tuple[Grid, ...]
    invocations: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, folder: RunFolder) -> RunRecord:
        """The record of a run.

        Raises:
            Misuse: no run there. DamagedRun: not what cbobench writes, or another schema.
        """
        content = folder.read_json(FILE)
        version = content.get("schema")
        if version != SCHEMA_VERSION:
            raise DamagedRun(
                f"{folder.path(FILE)} has schema version {version!r}, this cbobench reads {SCHEMA_VERSION}; "
                "use the version that wrote it, or a new run folder"
            )
        try:
            grids = tuple(Grid.from_json(g) for g in content["grids"])
            if not grids:
                raise ValueError("no grid")
            for one in grids:
                one.cells()
            return cls(
                content["suite"], content["about"], content["record"], content["block"], grids,
                tuple(content["invocations"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedRun(f"{folder.path(FILE)} is not what cbobench writes ({error!r})") from error

    def write(self, folder: RunFolder) -> None:
        folder.write_json(FILE, {"schema": SCHEMA_VERSION} | asdict(self))

    def extended(self, new: Grid, suite: Suite, invocation: dict[str, Any], where: str) -> RunRecord:
        """This record with another call added.

        Raises:
            Misuse: the call is of another suite, or records other rounds.
        """
        if self.suite != suite.name:
            raise Misuse(f"{where} holds the suite {self.suite!r}, not {suite.name!r}; give another --out")
        if self.record != suite.record:
            kept = "all rounds" if self.record is None else f"{self.record} rounds"
            raise Misuse(
                f"{where} records {kept}, the suite now asks otherwise; restore `record:` or give another --out"
            )
        self._refuse_namesakes(new, where)
        covered = {c.id for c in new.cells()}
        earlier = tuple(g for g in self.grids if not {c.id for c in g.cells()} <= covered)
        return RunRecord(
            self.suite, suite.about, self.record, self.block, (*earlier, new), (*self.invocations, invocation)
        )

    def _refuse_namesakes(self, new: Grid, where: str) -> None:
        """A title stands for one thing in a run: tables and figures group by it."""
        for what in ("problems", "algorithms"):
            known = {v.title: v for g in self.grids for v in getattr(g, what)}
            for variant in getattr(new, what):
                old = known.get(variant.title, variant)
                changed = [name for name, value in variant.values.items() if old.values.get(name) != value]
                if changed:
                    was, now = (", ".join(f"{n}={v.values.get(n)}" for n in changed) for v in (old, variant))
                    raise Misuse(
                        f"{where} holds {variant.title} with {was}, the suite now says {now}; give another --out, "
                        "or say the parameter in the suite's entry so that the two have different names"
                    )

    def cells(self) -> dict[str, Cell]:
        """Every cell that was asked for, by id."""
        return {cell.id: cell for g in self.grids for cell in g.cells()}

    def labels(self, what: str) -> dict[str, str]:
        """Label by title, of "problems" or "algorithms", in the order of the suite."""
        result: dict[str, str] = {}
        for g in reversed(self.grids):
            variants: Iterable[Variant] = getattr(g, what)
            for variant in variants:
                result.setdefault(variant.title, variant.label)
        twins = {label for label in result.values() if list(result.values()).count(label) > 1}
        return {t: f"{label} ({t})" if label in twins and label != t else label for t, label in result.items()}
