"""Past measurements of a suite (`initial: {file: past.csv}`): methods are told them before round 1.

Rows are kept as they are written, so that a cell, its replay and a bundle need no file; each
problem reads them in its own inputs and units. Rows that were measured twice are told twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cbobench.errors import Misuse, show
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.gp.mixed_actions import Mixed
from cbobench.problems.base import Actions, Problem
from cbobench.problems.data import sha256
from cbobench.problems.tables.columns import compose, is_number, numbers
from cbobench.problems.tables.configurations import orient
from cbobench.problems.tables.read import read_frame
from cbobench.words import count_noun, list_names

FILE = "file"
"""Name of the initial design that is a file of past measurements."""
MOST_ROWS = 1000  # they stand in every cell's identity, and models grow with their square
FIX = "leave such rows out"


class PastRows(dict[str, Any]):
    """What a cell's identity holds of a file: its columns, its rows as text, and its hash.

    Attributes:
        file: its name; what a run has stored knows none.
    """

    file: str = ""

    def describe(self) -> str:
        """Return a line for tables."""
        count = count_noun(len(self["rows"]), "past measurement")
        return (
            f"methods that learn were told {count} of {self.file} before round 1, "
            "which count as no round and enter no metric"
        )


def read_past(file: Path, location: str) -> PastRows:
    """Read a CSV or Parquet file.

    Raises:
        Misuse: what `read_frame` refuses, a name that stands twice, or too many rows; `location`
            (file and line of a suite) starts the message.
    """
    role = f"{location}initial"
    # Texts stand for themselves: a problem may have the categories 1.10 and None.
    frame = read_frame(file, role, read_frame(file, role).columns)
    if len(frame) > MOST_ROWS:
        raise Misuse(
            f"{role} {file.name!r} has {len(frame):,} rows; allowed: {MOST_ROWS:,}; keep the best "
            "and the most different of them"
        )
    rows = [[str(value) for value in row] for row in frame.to_numpy(dtype=object).tolist()]
    past = PastRows(columns=[*frame.columns], rows=rows, sha256=sha256(file))
    past.file = file.name
    return past


def take_past(problem: Problem, past: Mapping[str, Any]) -> tuple[Actions, Array]:
    """Return past measurements as a prepared problem plays them: actions (c,) of a finite set or
    points (c, d) of a box, and (f, g_1, ..., g_m) in the units played, (c, 1 + m).

    Args:
        past: what `read_past` gave, or a run has stored of it.

    Raises:
        Misuse: a problem that takes none, columns of other names, or a row that is none of its
            actions or has no finite values.
    """
    import pandas as pd

    file = getattr(past, "file", "")
    source = f"initial {file!r}" if file else "initial"
    inputs = problem.describe_inputs()
    units = problem.measured_in()
    if inputs is None or units is None or "feedback at once" not in problem.offers():
        raise Misuse(
            "it takes no past measurements (initial: file): formulas on a box, simulators and "
            "tables of configurations do, unless they drift or delay; play it in another suite, or "
            "give {sobol: 10}"
        )

    # Names before values, as one that is missing or unknown says that the file is another one.
    rules, shift, divisor = units
    needed = list(dict.fromkeys([*inputs, *(rule.column for rule in rules)]))
    spelt = {compose(name): name for name in needed}
    columns = [spelt.get(compose(name), name) for name in past["columns"]]
    frame = pd.DataFrame(past["rows"], columns=columns)
    unlike = [f"no column {show(name)}" for name in needed if name not in frame]
    unlike += [f"a column {show(name)} without a role" for name in frame if name not in needed]
    if unlike:
        raise Misuse(
            f"{source} has {list_names(unlike)}; needed: {list_names(needed, 20)}, and no others; "
            "play problems with other columns in another suite"
        )

    # Of a finite set an input may be text, which no number has to stand for.
    box = problem.actions if isinstance(problem.actions, Box) else None
    bounded = {rule.column for rule in rules}
    choices = {n: kinds["choice"] for n, kinds in inputs.items() if box and "choice" in kinds}
    numeric = [n for n in needed if n not in inputs or n in bounded or (box and n not in choices)]
    fix_text = f"{FIX} (the first: {{place}})"
    values = numbers(frame[numeric], source, fix=FIX, fix_text=fix_text)
    measured = dict(zip(numeric, values.T, strict=True))
    if box is None:
        actions = _find_actions([frame[name].tolist() for name in inputs], [*inputs.values()])
        inside = actions >= 0
        known = "and no near one takes its place"
    else:
        for name, values_of in choices.items():
            measured[name] = _find_actions([frame[name].tolist()], [values_of]).astype(float)
        actions = np.stack([measured[name] for name in inputs], axis=1)
        inside = np.asarray(((actions >= box.low) & (actions <= box.high)).all(axis=1))
        inside &= (box.round(actions) == actions).all(axis=1) & ~box.forbids(actions)
        known = f"whose box is from {box.low.tolist()} to {box.high.tolist()}"
        if isinstance(box, Mixed):
            known = f"whose inputs are {show(inputs)}"
        if box.known is not None:
            known += " and has known constraints"

    # A near action would be told a value that it does not have.
    if not inside.all():
        row = int(inside.argmin())
        point = ", ".join(f"{name} = {frame[name].iloc[row]}" for name in inputs)
        raise Misuse(
            f"{source}, row {row + 1}: {show(point)} is no action of the problem, {known}; {FIX}"
        )
    functions = np.stack([measured[rule.column] for rule in rules], axis=1)
    return actions, (orient(functions, rules) - shift) / divisor


def _find_actions(rows: Sequence[Sequence[Any]], inputs: Sequence[Sequence[Any]]) -> Actions:
    """The configuration that each row is, (c,), or -1: the same texts, and numbers that agree to
    twelve digits. Both are by input.
    """
    is_text = [all(isinstance(value, str) for value in values) for values in inputs]
    keys, told = (
        [*zip(*map(_write_keys, columns, is_text), strict=True)] for columns in (inputs, rows)
    )
    # Reversed, so that of equal configurations the first one stays.
    actions = {key: action for action, key in reversed([*enumerate(keys)])}
    return np.array([actions.get(key, -1) for key in told], dtype=np.intp)


def _write_keys(column: Sequence[Any], is_text: bool) -> list[str]:
    """Values of an input as texts that are equal where the values are."""
    texts = map(str, column)
    # Adding 0.0 makes 0 of -0.
    return [t if is_text or not is_number(t) else f"{float(t) + 0.0:.12g}" for t in texts]
