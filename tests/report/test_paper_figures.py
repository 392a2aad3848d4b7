"""Every figure of the papers is drawn from the shipped suites, made short."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from analysis.papers import figures as script
from cbobench.problems.data import DATA_SETS, DataFolder

FIGURES = {
    "zhou_ji_2022": {"1a", "1b", "1c", "2a", "2b", "2c"},
    "shi_eryilmaz_2022": {str(number) for number in range(1, 10)},
    "guo_zhu_liu_2022": {f"{number}{letter}" for number in (1, 2, 3) for letter in "ab"},
}
FITTED = ("zhou_ji_2022_synthetic_fit", "guo_zhu_liu_2022_classical_fit")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """All paper suites with 2 seeds and 41 rounds; of those with fitted models one of each
    recipe.
    """
    out = tmp_path_factory.mktemp("paper")
    suites = script.list_suites()
    sample = [name for name in suites if not name.endswith("_fit") or name in FITTED]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script, "list_suites", lambda: sample)
        missing = script.draw_figures(out, seeds=2, horizon=41, cpus=0)
    return out, sorted((out / "figures").glob("*.png")), missing


@pytest.mark.long
def test_all_figures_of_all_papers_are_drawn(drawn):
    out, paths, missing = drawn
    result = {}
    for path in paths:
        paper, number = re.match(r"(.+_2022)_fig(\d+[abc]?)", path.stem).groups()
        result.setdefault(paper, set()).add(number)
        assert path.with_suffix(".pdf").stat().st_size > 5_000
    if all(
        (DataFolder().path / DATA_SETS[name].file).is_file() for name in ("light-sensors", "stocks")
    ):
        assert not missing
        assert result == FIGURES
    else:
        assert set(missing) == {"zhou_ji_2022_light", "zhou_ji_2022_stocks"}
        assert result == FIGURES | {"zhou_ji_2022": {"1a"}}
    fitted = {path.stem for path in paths if path.stem.endswith("_fit")}
    assert fitted == {f"zhou_ji_2022_fig1a_h_B_{k}_fit" for k in (2, 4)} | {
        f"guo_zhu_liu_2022_fig1{k}_fit" for k in "ab"
    }


@pytest.mark.long
def test_boxes_and_trade_offs_have_their_numbers_behind_them(drawn):
    out, _, _ = drawn
    boxes = pd.read_csv(out / "figures" / "shi_eryilmaz_2022_fig2.csv")
    assert set(boxes["metric"]) == {"average_regret", "average_violation"}
    of_admmbo = boxes[boxes["algorithm"].str.startswith("admmbo")]
    assert set(of_admmbo["t"]) == set(range(5, 41, 5))
    assert not boxes["algorithm"].str.contains("keep=true").any(), (
        "the paper's figure is by the letter"
    )
    assert set(boxes[boxes["algorithm"].str.startswith("penalty")]["t"]) == {20, 40}
    assert (boxes.groupby(["algorithm", "metric", "t"]).size() == 2).all(), "one value per seed"
    trade = pd.read_csv(out / "figures" / "shi_eryilmaz_2022_fig1.csv")
    assert len(trade) == 5, "by the letter"
    assert trade["label"].str.contains("S = ").all()
