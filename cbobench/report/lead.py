"""Which methods of a crowded figure are drawn in colour: those that are asked for, or the best; the others are grey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.metrics import METRICS, Array
from cbobench.report.load import Run
from cbobench.report.quantities import SIMPLE_REGRET, SIMPLE_VALUE, UNREACHED
from cbobench.words import count_noun

MOST = 8  # methods in colour: more cannot be told apart
CLOSE = 0.005  # of a panel's height: less than the width of a line


@dataclass(frozen=True)
class Lead:
    """The methods of a figure by title.

    Attributes:
        coloured: those in colour, the best first.
        grey: the others, the best first; none where all have a colour.
    """

    coloured: tuple[str, ...]
    grey: tuple[str, ...] = ()


def choose_lead(run: Run, titles: Iterable[str], highlight: Sequence[str] = ()) -> Lead:
    """Tell the methods in colour from those in grey.

    Args:
        run: whose problems, all of them, rank the methods.
        titles: of the methods that are drawn.
        highlight: titles, labels or registered names of the methods in colour. By default all are where there are at
            most `MOST`, else the best: those of the lowest mean rank over problems (see `rank_titles`).

    Raises:
        Misuse: a name of no method of the run, or more than `MOST` methods to highlight.
    """
    drawn = list(dict.fromkeys(titles))
    asked = set(run.titles("algorithm", highlight)) if highlight else set()
    if len(asked) > MOST:
        raise Misuse(f"highlight names {count_noun(len(asked), 'method')}; allowed: {MOST}, so many colours there are")
    if not asked and len(drawn) <= MOST:
        return Lead(tuple(drawn))
    ranked = rank_titles(run, drawn)
    coloured = [title for title in ranked if title in asked] if asked else ranked[:MOST]
    return Lead(tuple(coloured), tuple(title for title in ranked if title not in coloured))


def rank_titles(run: Run, titles: Sequence[str]) -> list[str]:
    """The methods by their mean rank over problems, the best first; of equal ones the suite's order counts.

    On each problem they rank by the median over seeds of simple regret in the end, or of the best feasible value where
    no optimum is known. A seed that failed or found nothing feasible is worse than any value; a method without a cell
    is last.
    """
    good = run.cells[run.cells["algorithm"].isin(titles)]
    ranks = [
        _rank_medians(part[part["horizon"] == run.horizon_of(str(problem))], titles)
        for problem, part in good.groupby("problem", sort=False)
    ]
    mean = np.mean(ranks, axis=0) if ranks else np.zeros(len(titles))
    return [titles[i] for i in np.argsort(mean, kind="stable")]


def _rank_medians(cells: pd.DataFrame, titles: Sequence[str]) -> Array:
    """Ranks of the methods on one problem, (methods,)."""
    name = SIMPLE_VALUE if cells[SIMPLE_REGRET].isna().all() else SIMPLE_REGRET
    values = -METRICS[name].sign * cells[name].where(cells["status"] == "ok")
    medians = values.fillna(UNREACHED).groupby(cells["algorithm"]).median()
    return np.asarray(medians.reindex([*titles]).fillna(2 * UNREACHED).rank(), dtype=np.float64)


def find_coinciding(frame: pd.DataFrame, statistic: str, is_log: bool = False) -> list[list[str]]:
    """Labels of curves that lie upon each other in a panel, a list for each place.

    Curves coincide if in every round they are less than `CLOSE` of the panel's height apart.

    Args:
        frame: rows of `curves`.
        statistic: the column that is drawn.
        is_log: whether the axis is logarithmic.
    """
    if frame.empty:
        return []
    wide = frame.pivot_table(index="t", columns="algorithm", values=statistic, sort=False, dropna=False)
    values = wide.to_numpy(dtype=np.float64).T
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log10(values) if is_log else values
    values = np.where(np.isfinite(values), values, np.nan)
    known = ~np.isnan(values)
    if not known.any():
        return []
    height = float(np.nanmax(values) - np.nanmin(values))
    labels = frame.groupby("algorithm", sort=False)["label"].first()
    places: list[list[int]] = []
    for i in range(len(values)):
        if not known[i].any():
            continue
        for place in places:
            first = place[0]
            apart = np.abs(values[i] - values[first])[known[i] & known[first]]
            if (known[i] == known[first]).all() and (apart <= CLOSE * height).all():
                place.append(i)
                break
        else:
            places.append([i])
    return [[str(labels[wide.columns[i]]) for i in place] for place in places if len(place) > 1]
