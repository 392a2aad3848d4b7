"""Runs and bundles whose cells are replayed: a draw of their cells, the way of each, and what
became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import CbobenchError, printable, show
from cbobench.metrics import METRICS
from cbobench.results.bundle import ABOUT, TASK, open_run
from cbobench.results.export import describe_tables
from cbobench.results.history import carries_history
from cbobench.results.manifest import NO_POSITION, Manifest
from cbobench.results.provenance import cpu_kind
from cbobench.results.query import PublishedCells, read_published
from cbobench.results.reader import Reader
from cbobench.results.rounds import cell_codes
from cbobench.results.source import other_versions
from cbobench.results.staleness import Origin
from cbobench.rng import generator
from cbobench.suite.cells import Cell, as_words
from cbobench.words import count_noun

Way = Literal["bits", "rounds"]
"""How a cell is replayed: anew and to the last bit, or round by round on its history."""
OF_THE_CPU = "torch "
"""How the name of a library begins whose bits depend on the kind of CPU, whatever instructions it
is held to.
"""


@dataclass(frozen=True, eq=False)
class Source:
    """A run or a bundle, read once."""

    folder: Reader
    manifest: Manifest
    published: PublishedCells

    @classmethod
    def open(cls, run: str) -> Source:
        """Read a run or a bundle. Raises `CbobenchError` where there is none, or a damaged one."""
        folder = open_run(run)
        return cls(folder, Manifest.read(folder), read_published(folder, None))

    @property
    def name(self) -> str:
        """The last part of its address, for lines about its cells."""
        return printable(str(self.folder).rstrip("/").rpartition("/")[2])

    @cached_property
    def absent(self) -> set[str]:
        """Columns of cells that hold nothing: metrics that are newer than the file, among others.

        A metric that the stored rounds have is not absent: nobody may leave it out of the cells
        alone.
        """
        table = self.published.table
        names = {name for name in table.column_names if table[name].null_count == len(table)}
        for task in self.folder.names("rounds"):
            if unseen := [name for name in METRICS if name in names]:
                for part in self.folder.row_groups("rounds", task, unseen):
                    names -= {name for name in unseen if part[name].null_count < len(part)}
        return names

    @cached_property
    def histories(self) -> set[str]:
        """Ids of the cells whose every round is there."""
        if not self.folder.is_reduced:
            by_pair = self.manifest.cells.by_pair
            keep = self.manifest.keep
            recorded_ids = [cells.ids for cells in by_pair if keep is None or cells.horizon <= keep]
            return {cell for ids in recorded_ids for cell in as_words(ids)}
        ids: set[str] = set()
        for name in self.folder.names("history"):
            for part in self.folder.row_groups("history", name, ["cell"]):
                ids.update(cell_codes(part).dictionary.to_pylist())
        return ids

    @cached_property
    def contradictions(self) -> list[str]:
        """Lines on what a bundle lacks, and on what its files say of each other and is not so."""
        if not self.folder.is_reduced:
            return []
        lines = []
        if self.lost_histories:
            cells = count_noun(self.lost_histories, "cell")
            lines.append(f"{self.name} is a damaged bundle: it lacks the history of {cells}")
        is_published = self.published.find(self.manifest.cells.ids) != NO_POSITION
        if strangers := len(self.published) - int(is_published.sum()):
            lines.append(
                f"{self.name} holds {count_noun(strangers, 'cell')} that its run.json does not "
                "ask for"
            )
        # What follows from the tables is computed again, as an export does.
        about, horizons = (
            self.folder.read_json(ABOUT),
            dict(zip(*self._columns("cell", "horizon"), strict=True)),
        )
        rounds: dict[str, set[int]] = {}
        for part in self.folder.row_groups("rounds", TASK, ["cell", "t"]):
            for cell, t in zip(part["cell"].to_pylist(), part["t"].to_pylist(), strict=True):
                rounds.setdefault(str(horizons.get(cell)), set()).add(t)
        description = describe_tables(
            self.manifest, self.published.table, {T: sorted(t) for T, t in rounds.items()}
        )
        description |= {"calls": list(self.manifest.invocations)}
        lines += [
            f"{self.name}: its bundle.json says that {name} is {show(about.get(name))}, its "
            f"other files {show(value)}"
            for name, value in description.items()
            if about.get(name) != value
        ]
        return [printable(line) for line in lines]

    def _columns(self, *names: str) -> list[list[Any]]:
        return [self.published.table[name].to_pylist() for name in names]

    @cached_property
    def lost_histories(self) -> int:
        """Cells that should carry their rounds, and do not: a bundle of this version leaves none of
        them out.
        """
        if not self.folder.names("history"):
            return 0
        keep = self.manifest.keep
        rows = zip(*self._columns("cell", "horizon", "status"), strict=True)
        complete = {
            cell
            for cell, horizon, status in rows
            if status == "ok" and (keep is None or horizon <= keep)
        }
        return len(set(filter(carries_history, complete)) - self.histories)


def open_sources(runs: Iterable[str]) -> tuple[list[Source], list[str]]:
    """Return the runs that can be read, and a line for each of the others.

    Raises:
        CbobenchError: none of them can be.
    """
    sources: list[Source] = []
    errors: list[CbobenchError] = []
    for run in runs:
        try:
            sources.append(Source.open(run))
        except CbobenchError as error:
            errors.append(error)
    if not sources:
        raise errors[0]
    return sources, [printable(str(error)) for error in errors]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cell that can be drawn, and how it is replayed."""

    source: Source
    cell: Cell
    way: Way
    origin: Origin

    @property
    def can_be_replayed(self) -> bool:
        """Whether it holds what its way needs."""
        return self.way == "bits" or self.cell.id in self.source.histories


@dataclass(frozen=True)
class Draw:
    """The cells to replay.

    Attributes:
        candidates: those that were drawn and can be replayed, sorted by id.
        cells: how many good cells the runs hold.
        drawable: how many of them can be replayed in each way.
        unlike: how many were played with other libraries or arithmetic than are here, or by PyTorch
            on another CPU.
        unchecked: how many were drawn that can only be asked by round, and carry no history.
        seed: of the draw.
        failed: how many cells failed, which are not drawn.
    """

    candidates: tuple[Candidate, ...]
    cells: int
    drawable: dict[Way, int]
    unlike: int
    unchecked: int
    seed: int
    failed: int = 0


def is_alike(origin: Origin) -> bool:
    """Return whether the libraries and the arithmetic here are those of a play, as far as it
    recorded them.
    """
    if other_versions(origin.libraries) or is_of_other_cpu(origin):
        return False
    if origin.arithmetic is not None:
        return origin.arithmetic == arithmetic_kind()
    return origin.cpu in (None, cpu_kind())


def is_of_other_cpu(origin: Origin) -> bool:
    """Return whether a play used PyTorch on another kind of CPU, where it gives other bits."""
    uses_torch = any(word.startswith(OF_THE_CPU) for word in origin.libraries.split(", "))
    return uses_torch and origin.cpu not in (None, cpu_kind())


def draw(sources: Sequence[Source], count: int, seed: int, by_round: bool = False) -> Draw:
    """Draw cells that were played to their end, each with equal probability, until enough of them
    can be compared.

    A cell that was played with the libraries and the arithmetic here is replayed to the last bit,
    another round by round. One that carries no history for that is drawn, too, and stays unchecked:
    whoever wrote a run says what played its cells, so that no choice of words may take cells out of
    the draw.

    Args:
        count: how many are compared; all, if there are fewer.
        seed: the same one draws the same cells of the same runs.
        by_round: whether all are replayed round by round.
    """
    candidates: list[Candidate] = []
    unlike = failed = 0
    for source in sources:
        published = source.published
        # Whether a play can be repeated to the last bit follows from its origin, of which there are
        # few.
        alike = [is_alike(origin) for origin in published.origins]
        for pair_cells in source.manifest.cells.by_pair:
            rows = published.find(pair_cells.ids)
            for i in np.flatnonzero(rows != NO_POSITION).tolist():
                if published.failed[rows[i]]:
                    failed += 1
                    continue
                cell, which = pair_cells.cell(i), int(published.origin[rows[i]])
                unlike += not alike[which]
                way: Way = "bits" if alike[which] and not by_round else "rounds"
                candidates.append(Candidate(source, cell, way, published.origins[which]))
    # whatever the order of the runs' suites
    candidates.sort(key=lambda candidate: candidate.cell.id)
    can_be_replayed = np.array([candidate.can_be_replayed for candidate in candidates], dtype=bool)
    # One more is drawn until enough of them can be compared.
    order = generator("replay", seed).permutation(len(candidates))
    end = int(np.searchsorted(can_be_replayed[order].cumsum(), count)) + 1
    drawn = np.sort(order[:end])
    replayed = tuple(candidates[i] for i in drawn[can_be_replayed[drawn]].tolist())
    drawable: dict[Way, int] = {"bits": 0, "rounds": 0}
    for candidate in candidates:
        drawable[candidate.way] += candidate.can_be_replayed
    return Draw(
        replayed, len(candidates), drawable, unlike, len(drawn) - len(replayed), seed, failed
    )


State = Literal["equal", "differs", "unplayable"]
Recommendation = Literal["same", "older", "other", "unknown"]


class Unplayable(CbobenchError):
    """A cell cannot be replayed here."""


class Rounds(NamedTuple):
    """How many rounds of a history a method answers with the recorded action, with a tie, or
    otherwise.
    """

    same: int = 0
    ties: int = 0
    others: int = 0

    @property
    def total(self) -> int:
        """All rounds."""
        return self.same + self.ties + self.others

    def add_one(self, kind: str) -> Rounds:
        """Return the numbers after one more round of a kind."""
        return self._replace(**{kind: getattr(self, kind) + 1})


@dataclass(frozen=True)
class Outcome:
    """What became of a drawn cell.

    Attributes:
        candidate: the cell.
        state: "unplayable" where it cannot be replayed here, which is no difference.
        text: the first difference, or why it cannot be replayed.
        digest: whether a digest of it is published.
        rounds: of a cell that was asked round by round.
        is_ours: whether its method needs no other library, so that another action is a difference.
        recommendation: whether it is the one made here: "older" if an older rule made it, and it is
            another one; "other" where it depends on the method's arithmetic, so that it is no
            difference; "unknown" where the method was not asked for one.
        unstored: columns of which nothing is stored, and the play gives something.
    """

    candidate: Candidate
    state: State
    text: str = ""
    digest: bool = True
    rounds: Rounds = Rounds()
    is_ours: bool = True
    recommendation: Recommendation = "unknown"
    unstored: frozenset[str] = frozenset()

    @property
    def is_checked(self) -> bool:
        """Whether it was compared."""
        return self.state != "unplayable"
