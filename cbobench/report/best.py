"""`cbobench best`: the configurations that a run recommends, by how many seeds, and what they are worth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.report.columns import to_column
from cbobench.report.compare import Comparison
from cbobench.report.formats import TextTable
from cbobench.report.groups import find_groups, select_latest
from cbobench.report.load import RunLike, open_run
from cbobench.report.numbers import find_gap, format_number
from cbobench.report.recommended import (
    describe_best,
    describe_by,
    describe_configurations,
    find_recommendations,
)

NOTE = (
    "{name} in its own units and violation as the g are played, without noise, or means where it was simulated; "
    "feasible: in how many of its seeds; by: seeds that recommend it, of how many"
)


def best(run: RunLike, *, top: int = 5, only: str | None = None) -> Comparison:
    """The configurations that a run's cells recommend in the end, the best of each problem first.

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        top: how many of each problem.
        only: a glob over "problem/algorithm", by title, name or label.

    Returns:
        `frame`: one row per problem and configuration with `problem`, `problem_label`, `rank`, the inputs by their
        names, `f` as tables of results have it, `objective` and `value` (the user's name for it, and f in the user's
        units and with its sign), `violation`, `feasible` and `seeds`, `by`; `str()` is the table.

    Raises:
        Misuse: no run there, nothing that matches, or no cell that says what it recommends.

    Example:
        >>> import cbobench
        >>> print(cbobench.best("runs/quickstart", top=3))  # doctest: +SKIP
    """
    if top < 1:
        raise Misuse(f"top is {top}; it must be at least 1")
    opened = open_run(run)
    groups = select_latest(opened, find_groups(opened, only))
    recommendations = find_recommendations(opened, groups)
    if recommendations.empty:
        raise Misuse(f"{opened.folder} holds no recommendation: no cell is done, or they are of an earlier version")
    recommendations["rank"] = recommendations.groupby("problem", sort=False).cumcount() + 1
    top_rows = recommendations[recommendations["rank"] <= top]
    configurations = top_rows["configuration"].tolist()
    names = dict.fromkeys(name for configuration in configurations for name in configuration)
    inputs = pd.DataFrame(
        {name: to_column([configuration.get(name, np.nan) for configuration in configurations]) for name in names}
    )
    inputs.index = top_rows.index
    # An input may be called like a column of the frame; renamed, it hides none.
    clashing = {name: f"input {name}" for name in inputs.columns if name in {*recommendations.columns, "rank"}}
    frame = pd.concat(
        [
            top_rows[["problem", "problem_label", "rank"]],
            inputs.rename(columns=clashing),
            top_rows[["f", "objective", "value", "violation", "feasible", "seeds"]],
            top_rows["by"].map(describe_by),
        ],
        axis=1,
    ).reset_index(drop=True)
    objectives = set(top_rows["objective"])
    name = objectives.pop() if len(objectives) == 1 else "objective"
    gaps = top_rows.groupby("problem", sort=False)["value"].agg(find_gap)
    variants = opened.record.variants("problems")
    texts = [
        text
        for problem, rows in top_rows.groupby("problem", sort=False)
        for text in describe_configurations([*rows["configuration"]], variants[str(problem)].inputs)
    ]
    rows = [
        (
            row["problem_label"],
            text,
            ("" if name == row["objective"] else f"{row['objective']} ")
            + format_number(row["value"], apart=gaps[row["problem"]]),
            format_number(row["violation"]),
            f"{row['feasible']}/{row['seeds']}",
            describe_by(row["by"]),
        )
        for row, text in zip(top_rows.to_dict("records"), texts, strict=True)
    ]
    columns = ("problem", "configuration", name, "violation", "feasible", "by")
    hidden_count = len(recommendations) - len(top_rows)
    note = NOTE.format(name=name)
    if hidden_count:
        note += f"; {hidden_count:,} more: --top {int(recommendations['rank'].max())}"
    note = "\n".join([note, *describe_best(opened, groups)])
    return Comparison(frame, TextTable(columns, rows, opened.record.suite, note, left=2))
