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
    differences,
    find_algorithm,
    format_p,
    refuse_untestable,
    select_paired,
)
from cbobench.report.tables.ranks import rank_solvers
from cbobench.report.tables.table import TextTable, format_number
from cbobench.stats.paired_tests import SIGNIFICANT, holm, signed_rank
from cbobench.words import count_noun

MOST = 16  # rows of a table that is read at a glance, in 25 lines
FLOORS = (1e-2, 1e-4, 1e-6, 0.0)
SIDES = {"won": 1, "tied": 0, "lost": -1}
RIVAL = {"algorithm": "against", "algorithm_label": "against_label"}
RULES = (
    "problems that {name} wins/ties/loses, by the median difference over shared seeds, and p "
    "(Wilcoxon by seed, problems as strata, Holm over rivals); + {name} is significantly better, - "
    "the rival; differences below the floor are ties (in spreads of f where these are known), "
    "infeasible is worse than any number; rank: average over problems by the median, one entry per "
    "solver, its best variant; in brackets: another variant, in place of that"
)


def cut_off(apart: Array, floor: float) -> Array:
    """Differences, those that are nearer to 0 than a floor as 0."""
    return np.where(np.abs(apart) < floor, 0.0, apart)


def judge(strata: Sequence[Array], floor: float) -> dict[str, Any]:
    """Who is better over some problems, whose differences (n,) are above 0 where the one is.

    Returns:
        `n`: seeds; `won`, `tied`, `lost`: problems, by their median difference; `p`, `effect`: of
        `signed_rank` with problems as strata.
    """
    p, effect = signed_rank(*(cut_off(apart, floor) for apart in strata))
    sides = np.sign(cut_off(np.array([np.median(apart) for apart in strata]), floor))
    counts = {name: int((sides == side).sum()) for name, side in SIDES.items()}
    return {"n": sum(map(len, strata)), **counts, "p": p, "effect": effect}


def judge_rivals(tests: pd.DataFrame, floor: float) -> pd.DataFrame:
    """A row per rival over all problems, with Holm's adjustment over the rivals.

    Args:
        tests: a row per rival (`algorithm`) and problem, with `apart`.
    """
    by_rival = tests.groupby([*RIVAL], sort=False)["apart"]
    rows = [dict(zip(RIVAL, key, strict=True)) | judge([*apart], floor) for key, apart in by_rival]
    frame = pd.DataFrame(rows).rename(columns=RIVAL)
    return frame.assign(floor=floor, p_holm=holm(frame["p"]))


def find_apart(selection: Selection, title: str) -> pd.DataFrame:
    """The rows of `differences` of each other method and problem; `apart` is above 0 where the one
    is better than that, and in spreads of f where these are known.
    """
    tests = differences(selection, title)
    if tests.empty or not tests["n"].any():
        raise Misuse(f"{show(title)} shares no seed of a problem with another method")
    tests = tests[tests["n"] > 0]
    units = dict.fromkeys(tests["problem"], 1.0)
    if selection.shown[0].name in OF_REWARD:
        variants = selection.run.record.variants("problems")
        units = {problem: find_spread(variants[problem]) for problem in units}
    apart = [
        -values / units[problem]
        for values, problem in zip(tests["apart"], tests["problem"], strict=True)
    ]
    return tests.assign(apart=apart)


def duel(
    selection: Selection,
    name: str,
    floors: Iterable[float] = FLOORS,
    rounds: Sequence[int | None] = (None,),
) -> Comparison:
    """A method against each other one over all problems, after some rounds and by some floors.

    Args:
        name: title, label or name of the method.
        floors: below one a difference is a tie; in spreads of f where these are known. The one that
            the suite states comes first; without any it is 0.
        rounds: None is the last.

    Returns:
        In `frame` a row per rival (`against`), round and floor: the fields of `judge`, `p_holm`
        over the rivals, and the `rank` of the rival (see `rank_solvers`).

    Raises:
        Misuse: no such method, several metrics, or nothing to compare it with.
    """
    title = find_algorithm(selection.run, name)
    quantity, *others = selection.shown
    if selection.metric and others:
        raise Misuse(f"one against one is by one metric; give {quantity.symbol} alone, or another")
    selection = replace(selection, metric=quantity.name)
    compared = select_paired(selection.groups, title)
    refuse_untestable(selection, compared)
    stated = selection.run.record.floor
    headline = [] if stated is None else [stated]
    floors = [*dict.fromkeys([*headline, *floors])] or [0.0]
    parts = []
    for after in rounds or (None,):
        tests = find_apart(replace(selection, after=after), title)
        parts += [judge_rivals(tests, floor).assign(round=after) for floor in floors]
    label = selection.run.record.labels("algorithms")[title]
    ranks = find_ranks(selection)
    frame = pd.concat(parts).assign(algorithm=title, algorithm_label=label, metric=quantity.name)
    frame = frame.join(ranks[["place", "rank", "is_variant"]], on="against")
    frame["is_variant"] = frame["is_variant"].eq(True)
    frame = frame.sort_values("place", kind="stable", ignore_index=True).drop(columns="place")
    ranked = ranks.to_dict("index")
    own = format_rank(ranked[title]) if title in ranked else "unknown"
    table = render_duels(frame, selection, own)
    if headline:
        table = replace(table, note=f"{table.note}; floor of the suite: {stated:g}")
    table = table.with_note(collect_notes(selection, compared))
    return Comparison(frame, table, unplayable=selection.unplayable)


def find_ranks(selection: Selection) -> pd.DataFrame:
    """The rows of `rank_solvers` by title, with their `place`; none where no two methods can be
    ranked.
    """
    try:
        ranks = rank_solvers(selection).set_index("algorithm")
    except Misuse:
        return pd.DataFrame(columns=["place", "label", "solver", "rank", "is_variant", "seeds"])
    return ranks.assign(place=range(len(ranks)))


def format_rank(row: Mapping[Any, Any]) -> str:
    """A rank, that of a variant in brackets."""
    rank = format_number(row["rank"])
    if row["is_variant"]:
        return f"({rank})"
    return rank


def render_duels(frame: pd.DataFrame, selection: Selection, rank: str) -> TextTable:
    """A row per rival, a column per round and floor, the first of which go last.

    Args:
        rank: of the method that has these rivals.
    """
    name = frame["algorithm_label"].iloc[0]
    columns: dict[str, None] = {}
    rows: dict[str, list[str]] = {}
    for row in frame.to_dict("records"):
        rival = row["against_label"]
        rows.setdefault(rival, [rival, format_rank(row)]).append(format_verdict(row))
        moment = "" if row["round"] is None else f"t = {row['round']:,}, "
        columns[f"{moment}floor {row['floor']:g}"] = None
    return TextTable(
        ["rival", "rank", *columns],
        [*rows.values()],
        title=f"{selection.title}: {name} one against one, by {selection.shown[0].symbol}",
        note=f"{RULES.format(name=name)}, of {name} {rank}",
        left=1,
        weights=[0, 0, *range(1, len(columns) + 1)],
    )


def format_verdict(row: Mapping[Any, Any]) -> str:
    """What is won, tied and lost, and p with the sign of who is significantly better."""
    sign = ""
    if row["p_holm"] < SIGNIFICANT:
        sign = "+" if row["effect"] > 0 else "-"
    p = format_p(row["p_holm"]).replace(" ", "")
    return f"{row['won']}/{row['tied']}/{row['lost']} {p}{sign}"


def shorten(compared: Comparison) -> Comparison:
    """The same with the first rows alone, and of its notes those that say what they mean."""
    table = compared.table
    rules, *_ = table.note.split("\n")
    short = replace(table, rows=table.rows[:MOST], note=rules)
    more = len(table.rows) - MOST
    if more > 0:
        short = short.with_note([f"not shown: {count_noun(more, 'rival')}; --format csv has all"])
    return replace(compared, table=short)
