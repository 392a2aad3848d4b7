"""`cbobench best`: which configurations a run recommends, by how many seeds, and what they are
worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.report.formats import Comparison
from cbobench.report.groups import Group, group_by
from cbobench.report.load import Run, RunLike, to_column
from cbobench.report.numbers import find_gap, format_number
from cbobench.report.quantities import is_in_spreads, read_objective
from cbobench.report.selection import Selection
from cbobench.report.text_table import TextTable
from cbobench.results.schema import RECOMMENDED

NOTE = (
    "{name} in its own units and violation as the g are played, without noise, or means where it "
    "was simulated; "
    "feasible: in how many of its seeds; by: seeds that recommend it, of how many"
)


def best(run: RunLike, *, top: int = 5, only: str | None = None) -> Comparison:
    """The configurations that a run's cells recommend in the end, the best of each problem first.

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        top: how many of each problem.
        only: a glob over "problem/algorithm", by title, name or label.

    Returns:
        `frame`: one row per problem and configuration with `problem`, `problem_label`, `rank`, the
        inputs by their names, `f` as tables of results have it, `objective` and `value` (the user's
        name for it, and f in the user's units and with its sign), `violation`, `feasible` and
        `seeds`, `by`; `str()` is the table.

    Raises:
        Misuse: no run there, nothing that matches, or no cell that says what it recommends.

    Example:
        >>> import cbobench
        >>> print(cbobench.best("runs/quickstart", top=3))  # doctest: +SKIP
    """
    if top < 1:
        raise Misuse(f"top is {top}; it must be at least 1")
    selection = Selection.of(run, only)
    opened, groups = selection.run, selection.groups
    recommendations = find_recommendations(opened, groups)
    if recommendations.empty:
        raise Misuse(
            f"{opened} holds no recommendation: no cell is done, or they are of an earlier version"
        )
    recommendations["rank"] = recommendations.groupby("problem", sort=False).cumcount() + 1
    top_rows = recommendations[recommendations["rank"] <= top]
    configurations = top_rows["configuration"].tolist()
    names = dict.fromkeys(name for configuration in configurations for name in configuration)
    inputs = pd.DataFrame(
        {
            name: to_column([configuration.get(name, np.nan) for configuration in configurations])
            for name in names
        }
    )
    inputs.index = top_rows.index
    # An input may be called like a column of the frame; renamed, it hides none.
    clashing = {
        name: f"input {name}"
        for name in inputs.columns
        if name in {*recommendations.columns, "rank"}
    }
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


COLUMNS = [
    "problem",
    "problem_label",
    "configuration",
    "f",
    "objective",
    "value",
    "violation",
    "feasible",
    "seeds",
    "by",
]
DIGITS = 6  # significant digits of a coordinate, if it is no larger than its side
ALL_DIGITS = 17  # of a float


def name_inputs(inputs: Sequence[Sequence[Any]] | None, action: Any, x: Any) -> dict[str, Any]:
    """The inputs of one action by their names.

    Args:
        inputs: of its problem (`Variant.inputs`); None if they are not known.
        action, x: an index of a finite set or None, a point of a box or None.
    """
    if x is not None:
        names = [name for name, _ in inputs] if inputs else [f"x_{i}" for i in range(1, len(x) + 1)]
        return dict(zip(names, x, strict=True))
    return {name: values[action] for name, values in inputs} if inputs else {"action": action}


def describe_configurations(
    configurations: Sequence[Mapping[str, Any]], inputs: Sequence[Sequence[Any]] | None
) -> list[str]:
    """Configurations of one problem in words, "width 64, rate 0.003", with as many digits as tell
    them apart.

    Args:
        inputs: of their problem (`Variant.inputs`); digits are relative to the sides of its box.
            None if not known.
    """
    sides = {name: _find_side(values) for name, values in inputs or ()}
    count = len({tuple(configuration.values()) for configuration in configurations})
    for extra in range(ALL_DIGITS):
        texts = [
            ", ".join(
                f"{name} {_format_input(value, sides.get(name, 0.0), extra)}"
                for name, value in values.items()
            )
            for values in configurations
        ]
        if len({*texts}) >= count:
            break
    return texts


def _find_side(values: Any) -> float:
    """The length of an input's range, by its values or its type; 0 if it has none."""
    ends = values.get("float") if isinstance(values, dict) else values
    numbers = [end for end in ends or () if isinstance(end, int | float) and math.isfinite(end)]
    return float(max(numbers) - min(numbers)) if numbers else 0.0


def _format_input(value: Any, side: float, extra_digits: int) -> str:
    """A number with six digits, as many more as it is larger than its side, and extra ones;
    anything else as it is.
    """
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    larger = math.ceil(math.log10(abs(value) / side)) if value and side else 0
    return f"{value:.{min(DIGITS + max(larger, 0) + extra_digits, ALL_DIGITS)}g}"


def find_recommendations(run: Run, groups: Sequence[Group]) -> pd.DataFrame:
    """The configurations that the good cells of some groups recommend, the best of each problem
    first.

    Returns:
        One row per problem (title) and point, equal to the last bit: `configuration` (a mapping),
        `f` and `violation` (means over the cells that recommend it; NaN if only observed values are
        known), `objective` and `value` (the user's name for f, and f in the user's units and with
        its sign), `feasible` and `seeds` (how many of these cells), `by` (the algorithms' labels,
        with how many cells of how many). Feasible ones come first, by f; then the others, by
        violation.
    """
    rows = []
    variants = run.record.variants("problems")
    for problem, problem_groups in group_by(groups, "problem").items():
        name, zero, unit = read_objective(variants[problem])
        inputs, by_point = variants[problem].inputs, dict[tuple[Any, ...], dict[str, Any]]()
        for group in problem_groups:
            for cell in _list_recommending(group):
                action, x = cell["recommended_action"], cell["recommended_x"]
                values = name_inputs(inputs, action, x)
                point = (action,) if x is None else tuple(x)
                row = by_point.setdefault(
                    point, {"configuration": values, "f": [], "violation": [], "by": {}}
                )
                g = cell["recommended_g"]
                row["f"].append(np.nan if cell["recommended_f"] is None else cell["recommended_f"])
                row["violation"].append(np.nan if g is None else np.maximum(g, 0.0).sum())
                by = row["by"].setdefault(group.algorithm_label, [0, group.n])
                by[0] += 1
        for row in by_point.values():
            feasible = sum(v <= 0 for v in row["violation"])
            f, violation = (float(np.mean(row[name])) for name in ("f", "violation"))
            objective_columns = {"objective": name, "value": zero + unit * f}
            by = {
                label: (k, n)
                for label, (k, n) in sorted(row["by"].items(), key=lambda item: -item[1][0])
            }
            rows.append(
                {
                    "problem": problem,
                    "problem_label": problem_groups[0].problem_label,
                    "configuration": row["configuration"],
                    "f": f,
                    **objective_columns,
                    "violation": violation,
                    "feasible": feasible,
                    "seeds": len(row["f"]),
                    "by": by,
                }
            )
    frame = pd.DataFrame(rows, columns=COLUMNS)
    order = [
        frame["problem"].map({title: i for i, title in enumerate(variants)}),
        frame["violation"].fillna(np.inf),
        -frame["f"],
        -frame["seeds"],
    ]
    # lexsort takes the first key last
    keys = [np.asarray(key, dtype=np.float64) for key in reversed(order)]
    return frame.iloc[np.lexsort(keys)].reset_index(drop=True)


def _list_recommending(group: Group) -> list[dict[str, Any]]:
    """The cells of a group that recommend an action, by column; None for what is not stored."""
    if not {*RECOMMENDED} <= {*group.good.columns}:
        return []
    cells = []
    for action, x, f, g in zip(*(group.good[name].to_numpy() for name in RECOMMENDED), strict=True):
        if x is not None or not pd.isna(action):
            cells.append(
                {
                    "recommended_action": None if pd.isna(action) else int(action),
                    "recommended_x": None if x is None else [float(value) for value in x],
                    "recommended_f": None if pd.isna(f) else float(f),
                    "recommended_g": g,
                }
            )
    return cells


def describe_by(by: Mapping[str, tuple[int, int]]) -> str:
    """Who recommends a configuration: "cei 20/20, random 3/20"."""
    return ", ".join(f"{label} {k}/{n}" for label, (k, n) in by.items())


def find_best(run: Run, groups: Sequence[Group]) -> pd.DataFrame:
    """The best configuration of each problem whose inputs have names and whose function is the same
    for all seeds.

    The best is feasible in the mean, without noise; a problem where none is has no row.

    Returns:
        A row per problem as of `find_recommendations`, with a `line` for readers.
    """
    variants = run.record.variants("problems")
    several = len({group.problem for group in groups}) > 1
    suitable = [
        group for group in groups if variants[group.problem].inputs is not None and _is_fixed(group)
    ]
    frame = find_recommendations(run, suitable).drop_duplicates("problem")
    frame = frame[frame["violation"] <= 0]
    lines = []
    for _, best in frame.iterrows():
        variant = variants[best["problem"]]
        suffix = f" of {best['problem_label']}" if several else ""
        value = _compare_to_optimum(best, groups, read_objective(variant))
        value += ", in its own units" if is_in_spreads(variant) else ""
        (configuration,) = describe_configurations([best["configuration"]], variant.inputs)
        by = describe_by(best["by"])
        lines.append(f"best{suffix}: {configuration}: {value} (recommended by {by})")
    return frame.assign(line=lines)


def describe_best(run: Run, groups: Sequence[Group]) -> list[str]:
    """The lines of `find_best`."""
    return [*find_best(run, groups)["line"]]


def _compare_to_optimum(
    best: pd.Series, groups: Sequence[Group], objective: tuple[str, float, float]
) -> str:
    """What a configuration is worth, and how far that is from the optimum of its problem, where
    that is known.
    """
    name, zero, unit = objective
    stars = pd.concat(
        [group.good["f_star"] for group in groups if group.problem == best["problem"]]
    ).dropna()
    if stars.empty:
        return f"{name} = {format_number(best['value'])}"
    if np.isclose(best["f"], stars.iloc[0], rtol=1e-9, atol=1e-12):
        return f"{name} = {format_number(best['value'])}, the optimum"
    ends = [best["value"], zero + unit * stars.iloc[0]]
    value, star = (format_number(end, apart=find_gap(ends)) for end in ends)
    return f"{name} = {value}, {'f*' if name == 'f' else 'optimum'} = {star}"


def _is_fixed(group: Group) -> bool:
    """Whether all seeds have one reference of regret, or none."""
    return len(np.unique(group.numbers("f_star"))) <= 1
