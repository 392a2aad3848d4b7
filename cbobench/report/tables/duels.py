"""One against one: on how many problems a method wins, ties and loses against each other one, where
differences below a floor are ties.

By common seed, as in `paired`. A floor counts for wins as for losses, so that differences that are
symmetric about 0 stay so, and the test keeps its level (`benchmarks/quality/duel_level.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.metrics import Array
from cbobench.report.notes import collect_notes
from cbobench.report.quantities import OF_REWARD, find_spread
from cbobench.report.selection import Selection
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.paired import (
    ALL,
    differences,
    find_algorithm,
    format_p,
    refuse_untestable,
    select_paired,
)
from cbobench.report.tables.ranks import rank_algorithms
from cbobench.report.tables.table import TextTable, format_number
from cbobench.stats.paired_tests import SIGNIFICANT, holm, signed_rank

FLOORS = (1e-2, 1e-4, 1e-6, 0.0)
SIDES = {"won": 1, "tied": 0, "lost": -1}
RIVAL = {"algorithm": "against", "algorithm_label": "against_label"}
RULES = (
    "problems that {name} wins/ties/loses, p (Holm over rivals); + {name} is significantly better, "
    "- the rival is; a difference below the floor is a tie ({unit}), infeasible is worse than any "
    "number; a problem by its median difference over shared seeds, p by Wilcoxon's test of all "
    "seeds, problems as strata; rank: average over problems by the median"
)


def cut_off(apart: Array, floor: float) -> Array:
    """Differences, those that are nearer to 0 than a floor as 0."""
    return np.where(np.abs(apart) < floor, 0.0, apart)


def judge(strata: Sequence[Array], floor: float, is_single: bool = False) -> dict[str, Any]:
    """Who is better over some problems, whose differences (n,) are above 0 where the one is.

    Args:
        is_single: whether the seeds of the only problem are counted in place of problems.

    Returns:
        `n`: seeds; `won`, `tied`, `lost`: problems, by their median difference; `p`, `effect`: of
        `signed_rank` with problems as strata.
    """
    p, effect = signed_rank(*(cut_off(apart, floor) for apart in strata))
    values = strata[0] if is_single else np.array([np.median(apart) for apart in strata])
    sides = np.sign(cut_off(values, floor))
    counts = {name: int((sides == side).sum()) for name, side in SIDES.items()}
    return {"n": sum(map(len, strata)), **counts, "p": p, "effect": effect}


def judge_rivals(tests: pd.DataFrame, floor: float, shows_problems: bool) -> pd.DataFrame:
    """A row per rival over all problems, and where that is asked one per problem, with Holm's
    adjustment over the rows of each kind.

    Args:
        tests: a row per rival (`algorithm`) and problem, with `apart`.
    """
    keys = ["problem_label", *RIVAL]
    kinds = {False: tests.assign(problem_label=ALL)}
    if shows_problems:
        kinds[True] = tests
    frames = []
    for is_single, kind in kinds.items():
        rows = [
            dict(zip(keys, key, strict=True)) | judge([*strata], floor, is_single)
            for key, strata in kind.groupby(keys, sort=False)["apart"]
        ]
        frame = pd.DataFrame(rows)
        frames.append(frame.assign(floor=floor, p_holm=holm(frame["p"])))
    return pd.concat(frames).rename(columns=RIVAL)


def find_apart(selection: Selection, title: str) -> pd.DataFrame:
    """The rows of `differences` of each other method and problem; `apart` is above 0 where the one
    is better than that, and in spreads of f where these are known.
    """
    tests = differences(selection, [title])
    if tests.empty or not tests["n"].any():
        raise Misuse(f"{show(title)} shares no seed of a problem with another method")
    tests = tests[tests["n"] > 0]
    units = find_units(selection)
    apart = [
        -values / (units[problem] or 1.0)
        for values, problem in zip(tests["apart"], tests["problem"], strict=True)
    ]
    return tests.assign(apart=apart)


def find_units(selection: Selection) -> dict[str, float | None]:
    """The spread of f by problem; None where it is not known, or what is compared is not of f."""
    variants = selection.run.record.variants("problems")
    titles = {group.problem for group in selection.groups}
    if selection.shown[0].name not in OF_REWARD:
        return dict.fromkeys(titles)
    return {title: find_spread(variants[title]) for title in titles}


def duel(
    selection: Selection,
    name: str,
    floors: Iterable[float] = FLOORS,
    rounds: Iterable[int | None] = (None,),
    *,
    shows_problems: bool = False,
) -> Comparison:
    """A method against each other one over all problems, after some rounds and by some floors.

    Args:
        name: title, label or name of the method.
        floors: below one a difference is a tie; in spreads of f where these are known.
        rounds: None is the last.
        shows_problems: a row for each problem, too.

    Returns:
        In `frame` a row per rival (`against`), round and floor, and per problem where that is
        asked: the fields of `judge`, of a single problem with seeds in place of problems; `p_holm`
        over the rivals, of single problems over all rows of a round and floor; `rank` of the rival.

    Raises:
        Misuse: no such method, several metrics, or nothing to compare it with.
    """
    title = find_algorithm(selection.run, name)
    quantity, *others = selection.shown
    if selection.metric and others:
        raise Misuse(f"one against one is by one metric; give {quantity.symbol} alone, or another")
    selection = replace(selection, metric=quantity.name)
    compared = select_paired(selection.groups, [title])
    refuse_untestable(selection, compared)
    parts = []
    for after in rounds:
        tests = find_apart(replace(selection, after=after), title)
        parts += [
            judge_rivals(tests, floor, shows_problems).assign(round=after) for floor in floors
        ]
    frame = pd.concat(parts)
    label = selection.run.record.labels("algorithms")[title]
    frame = frame.assign(algorithm=title, algorithm_label=label, metric=quantity.name)

    # The rivals of a problem stand together, the best first.
    ranks = find_ranks(selection)
    frame["rank"] = frame["against"].map(ranks)
    frame["place"] = pd.factorize(frame["problem_label"])[0]
    frame = frame.sort_values(["place", "rank"], kind="stable", ignore_index=True)
    frame = frame.drop(columns="place")
    table = render_duels(frame, selection, ranks.get(title))
    table = table.with_note(collect_notes(selection, compared))
    return Comparison(frame, table, unplayable=selection.unplayable)


def find_ranks(selection: Selection) -> dict[str, float]:
    """Average ranks by title; nothing where no two methods can be ranked."""
    try:
        frame = rank_algorithms(selection).frame
    except Misuse:
        return {}
    return dict(zip(frame["algorithm"], frame["rank"], strict=True))


def render_duels(frame: pd.DataFrame, selection: Selection, rank: float | None) -> TextTable:
    """A row per rival (and problem), a column per round and floor, the first of which go last.

    Args:
        rank: of the method that has these rivals; None without one.
    """
    name = frame["algorithm_label"].iloc[0]
    words = ["rival", "rank"]
    if frame["problem_label"].nunique() > 1:
        words.insert(0, "problem")
    columns: dict[str, None] = {}
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in frame.to_dict("records"):
        key = (row["problem_label"], row["against_label"], format_number(row["rank"]))
        rows.setdefault(key, [*key[-len(words) :]]).append(format_verdict(row))
        moment = "" if row["round"] is None else f"t = {row['round']:,}, "
        columns[f"{moment}floor {row['floor']:g}"] = None

    quantity = selection.shown[0]
    units = find_units(selection).values()
    unit = "in spreads of f"
    if None in units:
        known = " where the spread of f is not known, else in spreads" if any(units) else ""
        unit = f"in units of {quantity.symbol}{known}"
    note = RULES.format(name=name, unit=unit)
    if rank is not None:
        note += f", of {name} {format_number(rank)}"
    return TextTable(
        [*words, *columns],
        [*rows.values()],
        title=f"{selection.title}: {name} one against one, by {quantity.symbol}{selection.units}",
        note=note,
        left=len(words) - 1,
        weights=[*[0] * len(words), *range(1, len(columns) + 1)],
    )


def format_verdict(row: Mapping[Any, Any]) -> str:
    """What is won, tied and lost, and p with the sign of who is significantly better."""
    sign = ""
    if row["p_holm"] < SIGNIFICANT:
        sign = "+" if row["effect"] > 0 else "-"
    p = format_p(row["p_holm"]).replace(" ", "")
    return f"{row['won']}/{row['tied']}/{row['lost']} {p}{sign}"
