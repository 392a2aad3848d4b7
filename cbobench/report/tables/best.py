"""`cbobench best`: which configurations a run recommends, by how many seeds, and what they are
worth.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.report.groups import Group, gather, group_by
from cbobench.report.load import Run, RunLike, read_coordinate, to_column
from cbobench.report.quantities import is_in_spreads, read_objective
from cbobench.report.selection import Selection
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.table import TextTable, find_gap, format_number
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
    opened = selection.run
    groups = selection.groups
    recommendations = find_recommendations(opened, groups)
    if recommendations.empty:
        raise Misuse(f"{opened} holds no recommendation: no cell is done")
    ranks = recommendations.groupby("problem", sort=False).cumcount() + 1
    recommendations.insert(2, "rank", ranks)
    shown = recommendations[ranks <= top].reset_index(drop=True)
    configurations = shown["configuration"].tolist()
    by = shown["by"].map(describe_by)
    # An input may be called like a column of the frame; renamed, it hides none.
    inputs = {
        f"input {name}" if name in shown else name: to_column(
            [configuration.get(name, np.nan) for configuration in configurations]
        )
        for name in dict.fromkeys(itertools.chain(*configurations))
    }
    frame = pd.concat([shown.iloc[:, :3], pd.DataFrame(inputs), shown.iloc[:, 4:]], axis=1)
    objectives = shown["objective"].unique()
    name = objectives[0]
    form = "{1}"
    if len(objectives) > 1:
        name = "objective"
        form = "{0} {1}"
    gaps = shown.groupby("problem", sort=False)["value"].transform(find_gap)
    variants = opened.record.variants("problems")
    texts = [
        text
        for problem, rows in shown.groupby("problem", sort=False)
        for text in describe_configurations([*rows["configuration"]], variants[str(problem)].inputs)
    ]
    rows = [
        (
            row["problem_label"],
            text,
            form.format(row["objective"], format_number(row["value"], apart=gap)),
            format_number(row["violation"]),
            f"{row['feasible']}/{row['seeds']}",
            by_text,
        )
        for row, text, gap, by_text in zip(shown.to_dict("records"), texts, gaps, by, strict=True)
    ]
    columns = ("problem", "configuration", name, "violation", "feasible", "by")
    note = NOTE.format(name=name)
    if hidden := len(recommendations) - len(shown):
        note += f"; {hidden:,} more: --top {ranks.max()}"
    note = "\n".join([note, *describe_best(opened, groups)])
    return Comparison(frame.assign(by=by), TextTable(columns, rows, opened.record.suite, note))


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


def name_inputs(
    inputs: Sequence[Sequence[Any]] | None, point: int | tuple[float, ...]
) -> dict[str, Any]:
    """The inputs of one action by their names.

    Args:
        inputs: of its problem (`Variant.inputs`); None if they are not known.
        point: an index of a finite set, or coordinates in a box.
    """
    if isinstance(point, int):
        if inputs:
            return {name: values[point] for name, values in inputs}
        return {"action": point}
    if not inputs:
        return {f"x_{i}": value for i, value in enumerate(point, start=1)}
    return {
        name: read_coordinate(declared, value)
        for (name, declared), value in zip(inputs, point, strict=True)
    }


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
    if numbers:
        return float(max(numbers) - min(numbers))
    return 0.0


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
        by_point = gather(
            (int(action) if x is None else tuple(x.tolist()), (group, f, g))
            for group in problem_groups
            for action, x, f, g in zip(*map(group.words, RECOMMENDED), strict=True)
            if action is not None or x is not None
        )
        for point, cells in by_point.items():
            methods, rewards, constraints = zip(*cells, strict=True)
            violations = [np.nan if g is None else np.maximum(g, 0.0).sum() for g in constraints]
            f = float(np.mean([np.nan if reward is None else reward for reward in rewards]))
            counts = Counter(group.algorithm_label for group in methods)
            sizes = {group.algorithm_label: group.n for group in methods}
            row = {
                "problem": problem,
                "problem_label": methods[0].problem_label,
                "configuration": name_inputs(variants[problem].inputs, point),
                "f": f,
                "objective": name,
                "value": zero + unit * f,
                "violation": float(np.mean(violations)),
                "feasible": sum(violation <= 0 for violation in violations),
                "seeds": len(cells),
                "by": {label: (count, sizes[label]) for label, count in counts.most_common()},
            }
            rows.append(row)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame = frame.sort_values(["violation", "f", "seeds"], ascending=[True, False, False])
    order = frame["problem"].map([*variants].index)
    return frame.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def describe_by(by: Mapping[str, tuple[int, int]]) -> str:
    """Who recommends a configuration: "cei 20/20, random 3/20"."""
    return ", ".join(f"{label} {k}/{n}" for label, (k, n) in by.items())


def find_best(run: Run, groups: Sequence[Group]) -> list[dict[Any, Any]]:
    """The best configuration of each problem whose inputs have names and whose function is the same
    for all seeds.

    The best is feasible in the mean, without noise; a problem where none is has no row.

    Returns:
        A row per problem as of `find_recommendations`, with a `line` for readers.
    """
    variants = run.record.variants("problems")
    several = len({group.problem for group in groups}) > 1
    # All seeds have one reference of regret, or none.
    suitable = [
        group
        for group in groups
        if variants[group.problem].inputs is not None
        and len(np.unique(group.numbers("f_star"))) <= 1
    ]
    frame = find_recommendations(run, suitable).drop_duplicates("problem")
    rows = []
    for best in frame[frame["violation"] <= 0].to_dict("records"):
        variant = variants[best["problem"]]
        suffix = f" of {best['problem_label']}" if several else ""
        value = _compare_to_optimum(best, groups, read_objective(variant))
        if is_in_spreads(variant):
            value += ", in its own units"
        (configuration,) = describe_configurations([best["configuration"]], variant.inputs)
        by = describe_by(best["by"])
        line = f"best{suffix}: {configuration}: {value} (recommended by {by})"
        rows.append(best | {"line": line})
    return rows


def describe_best(run: Run, groups: Sequence[Group]) -> list[str]:
    """The lines of `find_best`."""
    return [best["line"] for best in find_best(run, groups)]


def _compare_to_optimum(
    best: Mapping[Any, Any], groups: Sequence[Group], objective: tuple[str, float, float]
) -> str:
    """What a configuration is worth, and how far that is from the optimum of its problem, where
    that is known.
    """
    name, zero, unit = objective
    stars = [group.numbers("f_star") for group in groups if group.problem == best["problem"]]
    known = [star for star in np.concatenate(stars) if not np.isnan(star)]
    if not known or np.isclose(best["f"], known[0], rtol=1e-9, atol=1e-12):
        text = f"{name} = {format_number(best['value'])}"
        if known:
            return f"{text}, the optimum"
        return text
    ends = [best["value"], zero + unit * known[0]]
    value, star = (format_number(end, apart=find_gap(ends)) for end in ends)
    return f"{name} = {value}, {'f*' if name == 'f' else 'optimum'} = {star}"
