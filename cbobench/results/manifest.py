"""The manifest of a run, `run.json`: the cells that were asked for, the calls that asked, and an
index of the cells. Each call writes it under the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import (
    DamagedRun,
    Misuse,
    one_line,
    printable,
    refuse_strange,
    show,
    unknown,
)
from cbobench.results.folder import RunFolder
from cbobench.results.schema import SCHEMA_VERSION, refuse_version
from cbobench.suite.cells import NO_POSITION as NO_POSITION
from cbobench.suite.cells import Cell, Cells, Grid, PairCells, Suite, locate
from cbobench.suite.cells import Pair as Pair
from cbobench.suite.cells import as_numbers as as_numbers
from cbobench.suite.cells import as_words as as_words
from cbobench.suite.values import is_floor
from cbobench.suite.variants import DIGEST, INITIAL, content_digest, difference
from cbobench.suite.variants import Variant as Variant
from cbobench.suite.variants import short as short
from cbobench.suite.yamlio import texts
from cbobench.words import count_noun, list_names

FILE = "run.json"
CHANGED = "is not what was written: something has changed it since"
REMAKE = "cbobench run SUITE --again damaged begins it anew"
VariantKind = Literal["problems", "algorithms"]
VARIANT_KINDS: tuple[VariantKind, VariantKind] = ("problems", "algorithms")


@dataclass(frozen=True)
class Manifest:
    """The content of `run.json`.

    Attributes:
        suite, about: of the suite.
        keep: number of recorded rounds, None for all.
        grids: what was asked for, latest last; a grid contained in a later one is dropped.
        invocations: provenance of each call.
        floor: below which differences count as ties, as the suite said before the first play; None
            where it said nothing.
        leftovers: a line on what earlier suites of the folder named, where that is left out.
    """

    suite: str
    about: str
    keep: int | None
    grids: tuple[Grid, ...]
    invocations: tuple[dict[str, Any], ...]
    floor: float | None = None
    leftovers: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: RunFolder) -> Manifest:
        """Read the manifest of a run.

        Raises:
            Misuse: no run there.
            DamagedRun: not what cbobench writes, changed since, or another schema.
        """
        # Cells without any record are a run that was damaged: reading it as none would play them
        # again.
        if not folder.exists(FILE) and folder.names("cells"):
            raise DamagedRun(
                f"{folder.path(FILE)} is missing, its cells are there; the next cbobench run "
                "of the suite that played them makes it again"
            )
        content = folder.read_json(FILE)
        return cls.from_json(content, folder.path(FILE))

    @classmethod
    def from_json(cls, content: dict[str, Any], path: str) -> Manifest:
        """Return the manifest that a file holds.

        Raises:
            DamagedRun: it is not what cbobench writes, or was changed since.
        """
        refuse_version(path, content.get("schema"))
        try:
            # Its texts are printed, and whoever made the file chose them.
            for text_name, text, _ in texts(content):
                refuse_strange(text, text_name, lines=True)
            manifest = cls(
                suite=content["suite"],
                about=content["about"],
                keep=content["keep"],
                grids=tuple(Grid.from_json(g) for g in content["grids"]),
                invocations=tuple(content["invocations"]),
                floor=content.get("floor"),
            )

            # None stands for all rounds, and is as good as a number of them.
            keep = 1 if manifest.keep is None else manifest.keep
            for name, is_valid in (
                ("suite", isinstance(manifest.suite, str)),
                ("about", isinstance(manifest.about, str)),
                ("keep", type(keep) is int and keep > 0),
                ("grids", manifest.grids),
                ("floor", manifest.floor is None or is_floor(manifest.floor)),
                ("invocations", all(isinstance(call, dict) for call in manifest.invocations)),
            ):
                if not is_valid:
                    raise ValueError(f"{name} is {show(content.get(name))}")
            # The digest is looked at last: the name of a wrong field says more.
            is_unchanged = content[DIGEST] == content_digest(content)
        except (KeyError, TypeError, ValueError, RecursionError, Misuse) as error:
            reason = one_line(error)
            raise DamagedRun(f"{path} is not what cbobench writes ({reason})") from error
        if not is_unchanged:
            raise DamagedRun(f"{path} {CHANGED}; {REMAKE}")
        return manifest

    def to_json(self) -> dict[str, Any]:
        """Return the content of `run.json`, with its digest."""
        content = {
            "schema": SCHEMA_VERSION,
            "suite": self.suite,
            "about": self.about,
            "keep": self.keep,
            "grids": [grid.to_json() for grid in self.grids],
            "invocations": list(self.invocations),
        }
        if self.floor is not None:
            content["floor"] = self.floor
        return content | {DIGEST: content_digest(content)}

    def write(self, folder: RunFolder) -> None:
        """Publish it as `run.json`."""
        folder.write_json(FILE, self.to_json())

    def add_call(
        self, new: Grid, suite: Suite, invocation: dict[str, Any], location: str
    ) -> Manifest:
        """Return this manifest with another call.

        Raises:
            Misuse: the call is of another suite, records other rounds, or says another floor.
        """
        if self.suite != suite.name:
            raise Misuse(
                f"{location} holds the suite {self.suite!r}, not {suite.name!r}; give another --out"
            )
        if self.keep != suite.keep:
            recorded = "all rounds" if self.keep is None else count_noun(self.keep, "round")
            raise Misuse(
                f"{location} records {recorded}, the suite now asks otherwise; restore `record:` "
                "or give another --out"
            )
        if self.floor != suite.floor:
            raise Misuse(
                f"{location} was begun with the floor {show(self.floor)}, the suite now says "
                f"{show(suite.floor)}; a floor stands before the play: restore `floor:` or give "
                "another --out"
            )
        self._refuse_namesakes(new, location)
        return self.append_call(new, suite.about, invocation)

    def append_call(self, new: Grid, about: str, invocation: dict[str, Any]) -> Manifest:
        """Return this manifest with another call's grid as its latest."""
        earlier = tuple(g for g in self.grids if not new.covers(g))
        grids = (*earlier, new)
        calls = (*self.invocations, invocation)
        return replace(self, about=about, grids=grids, invocations=calls)

    def _refuse_namesakes(self, new: Grid, location: str) -> None:
        """Raise `Misuse` if a title or label would name two things, because tables and figures
        group by it.
        """
        spelt = self.append_call(new, "", {})._spelt
        for kind in VARIANT_KINDS:
            earlier = {v.title: v for g in self.grids for v in getattr(g, kind)}
            for variant in getattr(new, kind):
                others = [*spelt[kind].values()]
                if variant.title in earlier:
                    others.insert(0, earlier[variant.title])
                namesake = find_namesake(variant, others)
                if namesake is not None:
                    raise Misuse(
                        f"{location} holds {show(variant.label)} with other parameters "
                        f"({describe_changes(namesake, variant)}); give another --out or another "
                        "label"
                    )

    @cached_property
    def cells(self) -> CellIndex:
        """Every requested cell by id, under its latest spelling."""
        by_pair: list[PairCells] = []
        parts_by_pair: dict[tuple[tuple[str, str], int], list[PairCells]] = {}
        for g in self.grids:
            for pair_cells in g.cells.by_pair:
                key = pair_cells.pair.key
                earlier = parts_by_pair.setdefault((key, g.horizon), [])
                # A cell for which several grids ask counts once.
                if earlier:
                    earlier_seeds = np.concatenate(
                        [np.asarray(part.seeds, dtype=np.int64) for part in earlier]
                    )
                    pair_cells = pair_cells.only(
                        ~np.isin(np.asarray(pair_cells.seeds, dtype=np.int64), earlier_seeds)
                    )
                if len(pair_cells):
                    pair = self._latest(pair_cells.pair)
                    if pair != pair_cells.pair:
                        pair_cells = replace(pair_cells, pair=pair)
                    earlier.append(pair_cells)
                    by_pair.append(pair_cells)
        return CellIndex(by_pair)

    @cached_property
    def _spelt(self) -> dict[str, dict[str, Variant]]:
        return {kind: {v.key: v for v in self.variants(kind).values()} for kind in VARIANT_KINDS}

    def _latest(self, pair: Pair) -> Pair:
        """Return a pair under its latest spelling, or as it is if no other is known (see
        `only`).
        """
        variants = zip(VARIANT_KINDS, (pair.problem, pair.algorithm), strict=True)
        return Pair(*(self._spelt[kind].get(variant.key, variant) for kind, variant in variants))

    @cached_property
    def of_latest_suite(self) -> Manifest:
        """The manifest of the pairs that the latest suite names, whatever `--only` its call had."""
        latest = self.grids[-1]
        problems = {variant.key for variant in latest.problems}
        algorithms = {variant.key for variant in latest.algorithms}
        left = [
            part
            for part in self.cells.by_pair
            if part.pair.problem.key not in problems or part.pair.algorithm.key not in algorithms
        ]
        # Where the suite names nothing of what can be played, all is shown.
        shown = self.without({part.pair.key for part in left}) if left else None
        if shown is None:
            return self
        names = list_names(dict.fromkeys(printable(part.pair.label) for part in left))
        cells = count_noun(sum(map(len, left)), "cell")
        line = f"not shown: {cells} of {names}, which the suite no longer names"
        return replace(shown, leftovers=(f"{line}; to see them, name them in it again",))

    @cached_property
    def unplayable(self) -> list[str]:
        """Pairs that cannot be played: algorithm, problems and reason, a line each."""
        played = {pair.key for grid in self.grids for pair in grid.pairs}
        problems_by_reason: dict[tuple[str, str], dict[str, None]] = {}
        for grid in self.grids:
            for pair, why in grid.unplayable:
                if pair.key not in played:
                    latest = self._latest(pair)
                    problems_by_reason.setdefault((latest.algorithm.label, why), {})[
                        latest.problem.label
                    ] = None
        return [
            printable(f"{algorithm} on {', '.join(problems)}: {why}")
            for (algorithm, why), problems in problems_by_reason.items()
        ]

    def only(self, glob: str) -> Manifest:
        """Return the manifest of the matching pairs, by their latest names.

        Args:
            glob: "problem/algorithm", or one of them, each by title, name or label; * and ? are
                wildcards.

        Raises:
            Misuse: it matches nothing.
        """
        if not isinstance(glob, str):
            raise Misuse(
                f"only is {show(glob)}; give a glob over problem/algorithm, such as 'rkhs-1d/*'"
            )
        grids = self._grids_of(lambda pair: self._latest(pair).matches(glob), variants_of="pairs")
        if not grids:
            pairs = (self._latest(pair) for grid in self.grids for pair in grid.pairs)
            names = {
                name
                for pair in pairs
                for v in (pair.problem, pair.algorithm)
                for name in (v.label, v.name)
            }
            raise unknown("pair", glob, names, then="* and ? are wildcards")
        return replace(self, grids=grids)

    def without(self, keys: set[tuple[str, str]]) -> Manifest | None:
        """Return the manifest without some pairs, by their keys; None if no playable pair is
        left.
        """
        grids = self._grids_of(lambda pair: pair.key not in keys, variants_of="named")
        if grids:
            return replace(self, grids=grids)
        return None

    def _grids_of(
        self, selects: Callable[[Pair], bool], variants_of: Literal["pairs", "named"]
    ) -> tuple[Grid, ...]:
        """Return the grids with the selected pairs; grids without a playable pair are dropped.

        Args:
            variants_of: "named" keeps problems and algorithms that occur only in unplayable pairs;
                "pairs" does not.
        """
        grids = []
        for grid in self.grids:
            pairs = tuple(filter(selects, grid.pairs))
            unplayable = tuple((pair, why) for pair, why in grid.unplayable if selects(pair))
            left = replace(grid, pairs=pairs, unplayable=unplayable)
            named: Sequence[Pair] = getattr(left, variants_of)
            problems = tuple(v for v in grid.problems if any(v == pair.problem for pair in named))
            algorithms = tuple(
                v for v in grid.algorithms if any(v == pair.algorithm for pair in named)
            )
            if pairs:
                grids.append(replace(left, problems=problems, algorithms=algorithms))
        return tuple(grids)

    def variants(self, kind: VariantKind) -> dict[str, Variant]:
        """Return the run's problems or algorithms by title, in the suite's order, each under its
        latest spelling.
        """
        result: dict[str, Variant] = {}
        for g in reversed(self.grids):
            variants: Iterable[Variant] = getattr(g, kind)
            listed_keys = {variant.key for variant in result.values()}
            for variant in variants:
                if variant.key not in listed_keys:
                    result.setdefault(variant.title, variant)
        return result

    def shared(self, kind: VariantKind) -> dict[str, Any]:
        """Return the settings that the suite gives to all of several variants."""
        given = [variant.given for variant in self.variants(kind).values()]
        # One alone shares nothing: its label keeps its settings.
        if len(given) < 2:
            return {}
        return {
            name: value
            for name, value in given[0].items()
            if all(name in g and g[name] == value for g in given)
        }

    def labels(self, kind: VariantKind) -> dict[str, str]:
        """Return labels by title, in the suite's order, without the settings that all share. Equal
        labels get the parameters in which their variants differ.

        Control characters are escaped.
        """
        # A label is for readers: what all variants share tells none apart.
        alike: dict[str, list[Variant]] = {}
        shared = self.shared(kind)
        for variant in self.variants(kind).values():
            own = {name: value for name, value in variant.given.items() if name not in shared}
            is_named = variant.label != variant.title
            label = variant.label if is_named else replace(variant, given=own).title
            alike.setdefault(label, []).append(variant)
        labels = {}
        for label, variants in alike.items():
            values = difference(variants)
            for i, variant in enumerate(variants):
                text = label
                if len(variants) > 1:
                    parameters = ", ".join(
                        f"{name} = {short(column[i])}" for name, column in values.items()
                    )
                    text = f"{label} ({parameters or variant.title})"
                labels[variant.title] = printable(text)
        # Groups of equal labels have lost the order of the suite.
        return {title: labels[title] for title in self.variants(kind)}


def find_namesake(variant: Variant, others: Iterable[Variant]) -> Variant | None:
    """Return another variant, of some, whose title or label is one of its own."""
    names = {variant.title, variant.label}
    return next((v for v in others if v.key != variant.key and {v.title, v.label} & names), None)


def describe_changes(before: Variant, after: Variant) -> str:
    """Return the parameters in which two variants differ, or their names: "h 0.25 → 0.5".

    Of files of past measurements their hashes alone, as rows are long.
    """
    changes = difference([before, after]) if before.name == after.name else {}
    changes = changes or {"name": [before.name, after.name]}
    return ", ".join(
        f"{name} {show(old)} → {show(new)}"
        for name, (old, new) in changes.items()
        if name != f"{INITIAL}.file.rows"
    )


def count_recorded(horizon: int, keep: int | None) -> int:
    """Return how many rounds of a cell are recorded, where `keep` are (None: all)."""
    if keep is None:
        return horizon
    return min(horizon, keep)


class CellIndex(Mapping[str, Cell]):
    """The cells that a run was asked for, by id, in the suite's order. A cell is made on lookup.

    Args:
        by_pair: without duplicate cells.

    Attributes:
        by_pair: the same.
        of: (n,) the index in `by_pair` of each cell.
    """

    def __init__(self, by_pair: Iterable[PairCells]) -> None:
        self.by_pair = tuple(by_pair)
        self._cells = Cells(self.by_pair)
        self._order = np.argsort(self._cells.ids, kind="stable")
        self._sorted = self._cells.ids[self._order]
        self.of = np.repeat(
            np.arange(len(self.by_pair)), [len(pair_cells) for pair_cells in self.by_pair]
        )

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(as_words(self.ids))

    def __getitem__(self, cell: str) -> Cell:
        position = NO_POSITION
        with suppress(ValueError, TypeError):  # not an id
            position = int(self.positions_of([cell])[0])
        if position == NO_POSITION:
            raise KeyError(cell)
        return self._cells[position]

    @property
    def ids(self) -> NDArray[np.uint64]:
        """(n,) the ids as numbers, in order."""
        return self._cells.ids

    def positions_of(self, ids: Sequence[str] | NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return (k,) the positions of cells by their ids, `NO_POSITION` for cells that were not
        asked for.
        """
        numbers = ids if isinstance(ids, np.ndarray) else as_numbers(ids)
        return locate(numbers, self._sorted, self._order)

    def pairs(self, ids: Sequence[str]) -> list[Pair]:
        """The pairs of the requested cells."""
        return [self.by_pair[i].pair for i in self.of[self.positions_of(ids)].tolist()]
