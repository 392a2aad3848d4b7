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
from cbobench.metrics import METRICS, Array, Metric
from cbobench.report.groups import Group
from cbobench.report.notes import collect_notes
from cbobench.report.quantities import OF_REWARD, UNREACHED, find_spread
from cbobench.report.selection import Selection
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.paired import (
    find_algorithm,
    format_p,
    pair_groups,
    refuse_untestable,
    select_paired,
)
from cbobench.report.tables.ranks import rank_solvers
from cbobench.report.tables.table import TextTable, format_number
from cbobench.stats.paired_tests import SIGNIFICANT, holm, signed_rank
from cbobench.words import count_noun, count_span

MOST = 15  # rows of a table that is read at a glance, in 25 lines
FLOORS = (1e-2, 1e-4, 1e-6, 0.0)
SIDES = {"won": 1, "tied": 0, "lost": -1}
RIVAL = {"algorithm": "against", "algorithm_label": "against_label"}
RULES = (
    "problems that {name} wins/ties/loses (median over shared seeds), p (Wilcoxon, problems as "
    "strata; Holm); + {name} is better, - worse; nearer than the floor ({unit}) is a tie, "
    "infeasible or failed is worst; rank: in the end, by medians over {seeds}, (of a variant in "
    "place of its solver's best)"
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


def read_seeds(group: Group, quantity: Metric) -> pd.Series:
    """A quantity by seed, higher is worse; `UNREACHED` where a seed failed, or never got there."""
    values = pd.Series(-quantity.sign * group.values(quantity), group.seeds)
    if quantity.censored:
        values = values.fillna(UNREACHED)
    failed = pd.Series(UNREACHED, sorted(group.failures), dtype=float)
    return pd.concat([values.dropna(), failed])


def find_apart(selection: Selection, title: str) -> pd.DataFrame:
    """A row per problem and other method that shares seeds with the one: `apart` (n,) is above 0
    where the one is better, in spreads of f where these are known.

    Raises:
        Misuse: none shares any.
    """
    variants = selection.run.record.variants("problems")
    rows = []
    for group, reference, quantity in pair_groups(selection, title):
        unit = find_spread(variants[group.problem]) if quantity.name in OF_REWARD else 1.0
        apart = (read_seeds(group, quantity) - read_seeds(reference, quantity)).dropna() / unit
        if apart.empty:
            continue
        row = {
            "problem": group.problem,
            "algorithm": group.algorithm,
            "algorithm_label": group.algorithm_label,
            "apart": apart.to_numpy(),
        }
        rows.append(row)
    if not rows:
        label = selection.run.record.labels("algorithms")[title]
        raise Misuse(f"{show(label)} shares no seed of a problem and T with another method")
    return pd.DataFrame(rows)


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
    if {*rounds} != {None} and quantity.name not in METRICS:
        raise Misuse(f"{quantity.symbol} is known of the end alone; leave rounds out")
    compared = select_paired(selection.groups, title)
    refuse_untestable(selection, compared)

    # What the suite stated is the headline, whatever else is asked for.
    stated = selection.run.record.floor
    headline = [] if stated is None else [stated]
    # A table names a floor by few digits.
    by_name = {f"{floor:g}": floor for floor in [*headline, *floors]} or {"0": 0.0}

    # Of a round and a floor all rivals are one family of tests.
    tests = {after: find_apart(replace(selection, after=after), title) for after in rounds}
    parts = [
        judge_rivals(of_round, floor).assign(round=after)
        for after, of_round in tests.items()
        for floor in by_name.values()
    ]

    # Ranks order the rivals, and say more where all differences are ties.
    label = selection.run.record.labels("algorithms")[title]
    ranks = find_ranks(selection)
    frame = pd.concat(parts).assign(algorithm=title, algorithm_label=label, metric=quantity.name)
    frame = frame.join(ranks[["place", "rank", "is_variant"]], on="against")
    frame["is_variant"] = frame["is_variant"].eq(True)
    frame = frame.sort_values("place", kind="stable", ignore_index=True).drop(columns="place")

    # p depends on how many problems and seeds there are, so the title says it.
    table = render_duels(frame, selection, ranks, count_seeds(pd.concat(tests.values())))
    if headline:
        table = replace(table, note=f"{table.note}; floor of the suite: {stated:g}")
    table = table.with_note(collect_notes(selection, compared))
    return Comparison(frame, table, unplayable=selection.unplayable)


def count_seeds(tests: pd.DataFrame) -> str:
    """On how many problems, and over how many seeds, methods are compared."""
    problems = count_noun(tests["problem"].nunique(), "problem")
    return f"{problems}, {count_span([*map(len, tests['apart'])], 'seed')}"


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


def render_duels(
    frame: pd.DataFrame, selection: Selection, ranks: pd.DataFrame, counts: str
) -> TextTable:
    """A row per method by rank, the one among its rivals; a column per round and floor, of which
    later floors go first where a table is narrow.

    Args:
        ranks: as of `find_ranks`.
        counts: as of `count_seeds`.
    """
    quantity, *_ = selection.shown
    title, name = frame[["algorithm", "algorithm_label"]].iloc[0]
    ranked = ranks.to_dict("index")
    own = ranked.get(title, {"rank": np.nan, "is_variant": False, "place": len(ranked)})
    places = {floor: place for place, floor in enumerate(frame["floor"].unique())}
    columns: dict[str, int] = {}
    rows: dict[str, list[str]] = {}
    for row in frame.to_dict("records"):
        begun = [row["against_label"], format_rank(row)]
        rows.setdefault(row["against"], begun).append(format_verdict(row))
        moment = "" if row["round"] is None else f"t = {row['round']:,}, "
        columns[f"{moment}floor {row['floor']:g}"] = places[row["floor"]]
    ordered = [*rows.values()]
    ordered.insert(own["place"], [name, format_rank(own), *["–"] * len(columns)])
    seeds = count_noun(ranks["seeds"].min(), "shared seed") if ranked else "seeds that all share"
    unit = "spreads of f where known" if quantity.name in OF_REWARD else "its own unit"
    return TextTable(
        ["rival", "rank", *columns],
        ordered,
        title=f"{selection.title}: {name} against all, {quantity.symbol} on {counts}",
        note=RULES.format(name=name, unit=unit, seeds=seeds),
        left=1,
        weights=[0, 0, *(1 + place for place in columns.values())],
    )


def format_verdict(row: Mapping[Any, Any]) -> str:
    """What is won, tied and lost, and p with the sign of who is significantly better."""
    sign = ""
    if row["p_holm"] < SIGNIFICANT:
        sign = "+" if row["effect"] > 0 else "-"
    p = format_p(row["p_holm"]).replace(" ", "")
    return f"{row['won']}/{row['tied']}/{row['lost']} {p}{sign}"


def shorten(compared: Comparison) -> Comparison:
    """The same with few rows, of variants the last, and of its notes what its cells mean."""
    table = compared.table
    rules, *_ = table.note.split("\n")
    own_first = sorted(table.rows, key=lambda row: (row[-1] != "–", row[1].startswith("(")))
    rows = [row for row in table.rows if row in own_first[:MOST]]
    short = replace(table, rows=rows, note=rules)
    more = len(table.rows) - len(rows)
    if more > 0:
        short = short.with_note([f"not shown: {count_noun(more, 'row')}; --format csv has all"])
    return replace(compared, table=short)
