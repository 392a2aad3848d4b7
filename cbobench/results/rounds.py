"""Rows of rounds: those of some cells, the sums over rewards that a file does not hold, and what
identifies a cell's play to the last bit, a digest of its rounds.

Regret, R₊, [R]⁺ and the cumulative reward follow from f, f* and f⁺ of all rounds. They would be
more than half of a file, because sums of real numbers do not compress. Readers get them bit by bit
as they were during the play: the same steps are added in the same order.

A digest covers the recorded rounds in order: the round, the action (an index, or the point's
coordinates), and what was observed of f and every g_j; then the final recommendation. All are
little-endian 64-bit numbers; what was observed later, or never, is NaN. A cell's row holds it, so
that a bundle, which has not all of its rounds, says what was played.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cbobench.errors import DamagedRun, printable
from cbobench.metrics import REWARD_STEPS, Array

SOURCES = ("cell", "t", "f", "f_star", "f_plus")
SMALL = 20_000  # rows below which threads cost more than they save
OF_SEVERAL_LINES = ("traceback",)
WORDS = ("host", "cpu", "arithmetic", "source", "libraries")
"""Columns of a few words, of which a stranger's file may hold millions."""
MOST_CHARACTERS = 1_000  # of one of them
KEYS = {"cell", "problem", "algorithm", "seed", "horizon", "status", "t", "attempt"}
"""Columns in which every row has something."""
STATES = {"ok", "failed"}
_LENGTH = 32  # hexadecimal digits of a digest
SUSPECT = r"[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]"  # a quick look: more than `printable` escapes


def read_row_groups(
    file: pq.ParquetFile, fields: list[pa.Field], cells: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yield some columns of each row group of a file, of some cells or of all.

    Missing columns are computed, or null.
    """
    names = [field.name for field in fields]
    stored = set(file.schema_arrow.names)
    # Sums can be made where the file has the rewards; where it has the sums they are read.
    sums = RewardSums(
        [
            name
            for name in names
            if name in REWARD_STEPS and name not in stored and "f_star" in stored
        ]
    )
    needed: Sequence[str] = ()
    if sums.names:
        needed = SOURCES
    elif cells is not None:
        needed = ("cell",)
    read_columns = [*names, *(name for name in needed if name not in names)]

    for number in range(file.num_row_groups):
        part = file.read_row_group(number, read_columns, use_threads=file.metadata.num_rows > SMALL)
        # Checked before anything is computed: a stranger may have made the file.
        part.validate(full=True)
        refuse_forged(part)
        part = make_printable(part)
        # Cells are selected first, so that only theirs are summed.
        if cells is not None:
            part = select_cells(part, cells)
        if sums.names:
            part = sums.add_to(part)
        # What another version or a bundle lacks is null.
        part_columns = set(part.column_names)
        columns = [
            part[f.name] if f.name in part_columns else pa.nulls(len(part), f.type) for f in fields
        ]
        yield pa.table(columns, names=names)


def refuse_forged(part: pa.Table) -> None:
    """Raise `ArrowInvalid` for rows that cbobench never writes: whoever made a file chose them."""
    for name in part.column_names:
        if name in KEYS and part[name].null_count:
            raise pa.ArrowInvalid(f"it has a row without {name}")
    if "status" in part.column_names and {*pc.unique(part["status"]).to_pylist()} - STATES:
        raise pa.ArrowInvalid("it has a status other than ok and failed")
    if "t" in part.column_names and pc.any(pc.less(part["t"], 1)).as_py():
        raise pa.ArrowInvalid("it has a round before the first")


def make_printable(part: pa.Table) -> pa.Table:
    """Escape what a terminal would act on in a table's texts, and cut words that are too long to be
    ours.

    Whoever wrote the file chose its texts. All readers of Parquet files come through here: none
    prints them raw.
    """
    for number, field in enumerate(part.schema):
        column = part.column(number)
        if pa.types.is_dictionary(field.type) and pa.types.is_string(field.type.value_type):
            # a text stands once in a dictionary, however many rows have it
            chunks = [
                pa.DictionaryArray.from_arrays(
                    chunk.indices, _printable_texts(chunk.dictionary, field.name)
                )
                for chunk in column.chunks
            ]
            changed = pa.chunked_array(chunks, field.type)
        elif pa.types.is_string(field.type):
            changed = pa.chunked_array(
                [_printable_texts(chunk, field.name) for chunk in column.chunks], field.type
            )
        else:
            continue
        part = part.set_column(number, field.name, changed)
    return part


def _printable_texts(texts: pa.StringArray, name: str) -> pa.StringArray:
    """Return the texts of a column as a terminal may see them."""
    if name in WORDS and (pc.max(pc.utf8_length(texts)).as_py() or 0) > MOST_CHARACTERS:
        texts = pc.utf8_slice_codeunits(texts, 0, MOST_CHARACTERS)
    # One quick look spares most columns the way through Python.
    if not pc.any(pc.match_substring_regex(texts, SUSPECT)).as_py():
        return texts
    escaped = []
    for text in texts.to_pylist():
        if text is not None and name in OF_SEVERAL_LINES:
            text = "\n".join(map(printable, text.split("\n")))
        elif text is not None:
            text = printable(text)
        escaped.append(text)
    return pa.array(escaped, pa.string())


class _Rewards(NamedTuple):
    f: Array
    f_star: Array
    f_plus: Array


class RewardSums:
    """Adds sums over rewards to the row groups of a file, in their order; a cell may span several
    groups.

    Args:
        names: of the sums.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        # by cell: rounds so far, and the sums after them
        self.before: dict[str, tuple[int, Array]] = {}

    def add_to(self, part: pa.Table) -> pa.Table:
        """Return a row group, which holds `SOURCES`, with the sums.

        Raises:
            ArrowInvalid: rounds of a cell are missing, so that the file is not what was written.
        """
        codes = cell_codes(part)
        ids = codes.dictionary.to_pylist()
        codes_of_rows = codes.indices.to_numpy()
        # a shard's row group may hold a cell in several places
        order = np.argsort(codes_of_rows, kind="stable")
        starts = np.flatnonzero(np.diff(codes_of_rows[order], prepend=-1))
        lengths = np.diff(starts, append=len(codes_of_rows))
        t, *rewards = (part[name].to_numpy() for name in SOURCES[1:])
        sums = np.empty((len(self.names), len(codes_of_rows)))
        for length in np.unique(lengths).tolist():  # cells of as many rounds together
            rows = order[starts[lengths == length] + np.arange(length)[:, None]]  # (rounds, cells)
            cell_ids = [ids[code] for code in codes_of_rows[rows[0]].tolist()]
            # A cell goes on from its sums so far, in the order of its play: so to the same bits.
            before = [self.before.get(cell, (0, np.zeros(len(self.names)))) for cell in cell_ids]
            count, start = (np.array(column) for column in zip(*before, strict=True))
            if (t[rows] != count + np.arange(1, length + 1)[:, None]).any():
                raise pa.ArrowInvalid("it lacks rounds of a cell, or they are in another order")
            rewards_played = _Rewards(*(values[rows] for values in rewards))
            for total, name, so_far in zip(sums, self.names, start.T, strict=True):
                total[rows] = np.concatenate(
                    [so_far[None], REWARD_STEPS[name](rewards_played)]
                ).cumsum(axis=0)[1:]
            after = zip(cell_ids, (count + length).tolist(), sums[:, rows[-1]].T, strict=True)
            self.before |= {cell: (rounds, values) for cell, rounds, values in after}
        for name, total in zip(self.names, sums, strict=True):
            part = part.append_column(name, pa.array(total, from_pandas=True))
        return part


def equal_or_nan(left: Any, right: Any) -> bool:
    """Return whether two values are equal; NaN equals NaN."""
    return bool(left == right or (left != left and right != right))


def select_cells(table: pa.Table, cells: Sequence[str]) -> pa.Table:
    """Return the rows of some cells."""
    codes = cell_codes(table)
    is_selected = np.isin(codes.dictionary.to_numpy(zero_copy_only=False), cells)
    if is_selected.all():
        return table
    return table.filter(pa.array(is_selected[codes.indices.to_numpy()]))


def rows_by_cell(table: pa.Table) -> dict[str, NDArray[np.int64]]:
    """Return the positions of each cell's rows, in order."""
    codes = cell_codes(table)
    code = codes.indices.to_numpy()
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    ids = codes.dictionary.to_pylist()
    return {ids[code[rows[0]]]: rows for rows in np.split(order, starts)[1:]}


def cell_codes(table: pa.Table) -> pa.DictionaryArray:
    """Return the cells of a table as codes into their ids."""
    column = table["cell"]
    if not pa.types.is_dictionary(column.type):
        return column.combine_chunks().dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


class Digests:
    """Digests of cells, from the row groups of their rounds in order; a cell may span several."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        # the last round of each cell, as the next must be later
        self._last: dict[str, int] = {}

    def add(self, part: pa.Table) -> None:
        """Add a row group with the columns `PLAYED` and `cell`.

        Raises:
            DamagedRun: the rounds of a cell are not in order.
        """
        # A number for each pair of lengths, as rows of equal ones are an array of bytes.
        lengths = [_lengths(part[name]) for name in ("x", "observed_g")]
        shape = lengths[0] * (1 + int(lengths[1].max(initial=0))) + lengths[1]
        # a shard's row group may hold cells of several problems
        for value in np.unique(shape).tolist():
            alike = shape == value
            self._add_alike(part if alike.all() else part.filter(pa.array(alike)))

    def _add_alike(self, part: pa.Table) -> None:
        t = part["t"].to_numpy()
        content = _as_bytes(part)
        for cell, rows in rows_by_cell(part).items():
            if (np.diff(t[rows], prepend=self._last.get(cell, 0)) <= 0).any():
                raise DamagedRun(
                    f"the rounds of the cell {cell} are in another order than they were played"
                )
            self._last[cell] = int(t[rows[-1]])
            self._hashes.setdefault(cell, hashlib.sha256()).update(content[rows].tobytes())

    def finish(self, cell: str, final: Mapping[str, Any]) -> str:
        """Return the digest of a cell, whose rounds were all added.

        Args:
            final: its row among the cells, with the columns of the recommendation.
        """
        digest = self._hashes.get(cell, hashlib.sha256()).copy()
        action, x = (final.get(f"recommended_{name}") for name in ("action", "x"))
        # a cell that recommends nothing has neither
        if action is not None:
            digest.update(np.array(action, dtype="<i8").tobytes())
        elif x is not None:
            digest.update(np.array(x, dtype="<f8").tobytes())
        return str(digest.hexdigest()[:_LENGTH])


def _lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the lengths of lists, (rows,); 0 for null."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def _as_bytes(part: pa.Table) -> NDArray[np.uint8]:
    """Return the bytes of the columns `PLAYED`, (rows, bytes), of rows whose lists have equal
    lengths.
    """
    rows = len(part)
    columns: list[NDArray[Any]] = [part["t"].to_numpy().astype("<i8")[:, None]]
    if part["action"].null_count == 0:
        columns.append(part["action"].to_numpy().astype("<i8")[:, None])
    # On finite sets x has no numbers, and is left out at the end.
    for name in ("x", "observed_f", "observed_g"):
        column = pc.list_flatten(part[name]) if pa.types.is_list(part[name].type) else part[name]
        values = np.array(column.to_numpy(), dtype="<f8")
        values[np.isnan(values)] = np.nan  # one of the many bit patterns
        columns.append(values.reshape(rows, -1))
    parts = [
        np.ascontiguousarray(column).view(np.uint8).reshape(rows, -1)
        for column in columns
        if column.size
    ]
    return np.concatenate(parts, axis=1)


def digest_of(cell: str, rounds: pa.Table, final: Mapping[str, Any]) -> str:
    """Return the digest of a cell's rounds and of the recommendation in a row of the cells."""
    digests = Digests()
    digests.add(rounds)
    return digests.finish(cell, final)
