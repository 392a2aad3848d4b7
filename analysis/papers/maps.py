"""The choices that papers leave open: how many parts of each claim held in which setting.

maps.csv was played once, by the commits that its first line names, and is not played again. A part
holds that is reproduced, or stronger than claimed.
"""

from __future__ import annotations

from functools import cache

import pandas as pd

from analysis.folders import PUBLISHED

STORED = PUBLISHED / "maps.csv"


@cache
def read_settings() -> pd.DataFrame:
    """A row per claim and setting: claim, suite, setting, and how many parts hold, of how many."""
    return pd.read_csv(STORED, comment="#")


def select_settings(claim: str, *words: str) -> pd.DataFrame:
    """The settings of a claim that say all of some words, such as "lam: theory".

    Raises:
        KeyError: there is none.
    """
    settings = read_settings()
    is_asked = settings["claim"] == claim
    for word in words:
        is_asked &= settings["setting"].str.split("; ").map(set(word.split("; ")).issubset)
    if not is_asked.any():
        raise KeyError(f"{claim} has no setting with {', '.join(words)}")
    return settings[is_asked]


def count_whole(claim: str, *words: str) -> str:
    """In how many settings all parts of a claim hold: "6 of 7"."""
    settings = select_settings(claim, *words)
    whole = (settings["holds"] == settings["of"]).sum()
    return f"{whole} of {len(settings)}"


def share_of_parts(claim: str, *words: str) -> str:
    """Which share of the parts of a claim holds, over its settings: "41 %"."""
    settings = select_settings(claim, *words)
    return f"{settings['holds'].sum() / settings['of'].sum():.0%}"


def is_mapped(claim: str) -> bool:
    """Whether a claim was played over open choices."""
    return claim in {*read_settings()["claim"]}
