"""What is recorded of a play does not depend on how many rounds are, nor on where chunks end."""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.metrics import METRICS, Rounds
from tests.helpers import play_here

SUITE = """\
suite: recorded
horizon: 90
seeds: 3
record: {keep}
problems:
  - rkhs: {{n: 25, m: 2}}
  - feasible-pocket-drift: {{grid: 12}}
algorithms: [ckb-ucb, random]
"""


def grown(f, g, f_star, *, cut, recommended=None, moving=False):
    """Every metric after each round of hand-made sequences f (T, S), g (T, S, m)."""
    T = len(f)
    star = np.full(f.shape, float(f_star))
    recommended = (
        np.full((*f.shape, 1 + g.shape[2]), np.nan) if recommended is None else recommended
    )
    running = {name: metric.running() for name, metric in METRICS.items()}
    parts = []
    for i in range(0, T, cut):
        p = slice(i, i + cut)
        rounds = Rounds(
            i + 1, f[p], g[p], star[p], star[p], (g[p] > 0).any(axis=2), recommended[p], moving
        )
        parts.append({name: after(rounds) for name, after in running.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in METRICS}


@pytest.mark.parametrize("cut", [6, 4, 1])
def test_by_hand(cut):
    # the second seed is never feasible
    f = np.array([[3.0, 0.5, 0.0, -1.0, 0.75, 0.25], [5.0] * 6]).T
    g = np.array([[0.1, -0.1, -0.2, 0.5, -0.3, -0.3], [0.25] * 6]).T[:, :, None]
    nan = np.nan
    recommended = np.array(
        [[(nan, nan), (0.5, -0.1), (2.0, 0.3), (0.5, 0.0), (nan, nan), (1.0, -1.0)]] * 2
    ).swapaxes(0, 1)
    got = grown(f, g, 1.0, cut=cut, recommended=recommended)
    first = {
        "regret": [-2, -1.5, -0.5, 1.5, 1.75, 2.5],
        "regret_positive": [0, 0.5, 1.5, 3.5, 3.75, 4.5],
        "simple_regret": [nan, 0.5, 0.5, 0.5, 0.25, 0.25],
        "recommended_regret": [nan, 0.5, nan, 0.5, nan, 0.0],
        "recommended_violation": [nan, 0.0, 0.3, 0.0, nan, 0.0],
        "violations": [1, 1, 1, 2, 2, 2],
        "violation_hard": [0.1, 0.1, 0.1, 0.6, 0.6, 0.6],
    }
    for name, expected in first.items():
        np.testing.assert_allclose(got[name][:, 0], expected, atol=1e-12, err_msg=name)
    assert np.isnan(got["simple_regret"][:, 1]).all()
    np.testing.assert_allclose(got["regret_positive"][:, 1], 0, atol=1e-12)
    moved = grown(f, g, 1.0, cut=cut, moving=True)
    assert np.isnan([moved[name] for name in ("simple_regret", "simple_value")]).all()


@pytest.mark.slow
def test_thinned_rounds_are_rounds_of_the_whole(tmp_path):
    frames = []
    for keep in ("all", "{rounds: 7}"):
        (tmp_path / "suite.yaml").write_text(SUITE.format(keep=keep))
        folder = tmp_path / keep.strip("{}").replace(": ", "-")
        play_here(tmp_path / "suite.yaml", folder)
        frames.append((cbobench.load_rounds(folder), cbobench.load_cells(folder)))
    (all_rounds, cells), (thin, thin_cells) = frames
    assert len(thin) == 7 * len(cells)
    same = all_rounds.merge(thin[["cell", "t"]], on=["cell", "t"]).sort_values(
        ["cell", "t"], ignore_index=True
    )
    thin = thin.sort_values(["cell", "t"], ignore_index=True)
    names = [*METRICS, "first_feasible", "longest_streak", "positive_dual", "binds"]
    for name in METRICS:
        np.testing.assert_array_equal(same[name], thin[name], err_msg=name)
    for name in names:
        np.testing.assert_array_equal(
            cells[name].astype(float), thin_cells[name].astype(float), err_msg=name
        )
    assert cells["recommended_violation"].notna().all()
    assert (cells["simple_regret"].isna() == cells["first_feasible"].isna()).all(), (
        "functions move after round 100"
    )
