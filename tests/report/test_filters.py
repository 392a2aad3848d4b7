"""What a reader may ask a run for: titles, labels and registered names; the rest is refused with the nearest word."""

from __future__ import annotations

import pytest

import cbobench
from cbobench.errors import Misuse
from tests.helpers import swept

SUITE = """\
suite: filters
horizon: 20
seeds: 3
problems:
  - rkhs-1d: {h: 0.25, label: quarter}
  - rkhs-1d: {label: half}
algorithms:
  - ckb-rand: {beta_scale: {sweep: [0.2, 1.0]}, label: Rand}
  - ckb-ucb: {label: UCB}
  - ckb-ucb: {slack: 0.1}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("filters"), SUITE)


@pytest.mark.parametrize(
    ("filters", "cells"),
    [
        ({"algorithm": "UCB"}, 6),  # a label
        ({"algorithm": "ckb-ucb"}, 6),  # a title, which is also the name of two variants
        ({"algorithm": "ckb-ucb[slack=0.1]"}, 6),  # a title
        ({"algorithm": "ckb-rand"}, 12),  # the name of two variants, and no title
        ({"algorithm": "Rand (beta_scale = 0.2)"}, 6),
        ({"algorithm": ["UCB", "ckb-rand"]}, 18),
        ({"problem": "quarter"}, 12),
        ({"problem": "rkhs-1d[h=0.25]", "algorithm": "UCB", "seed": [0, 2]}, 2),
        ({"status": "failed"}, 0),  # none has failed: an empty frame is the answer
        ({"horizon": 20, "seed": 1}, 8),
    ],
)
def test_words_that_a_reader_may_use(run, filters, cells):
    assert len(cbobench.load_cells(run, **filters)) == cells
    assert len(cbobench.load_rounds(run, ["regret"], **filters)) == 20 * cells


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"algorithm": "UBC"}, "unknown algorithm 'UBC'; did you mean 'UCB'"),
        ({"algorithm": ["UCB", "stageopt"]}, "unknown algorithm 'stageopt'; allowed: Rand"),
        ({"problem": "quartr"}, "unknown problem 'quartr'; did you mean 'quarter'"),
        ({"seed": 3}, "unknown seed 3; allowed: 0, 1, 2"),
        ({"horizon": 21}, "unknown horizon 21; allowed: 20"),
        ({"status": "faild"}, "unknown status 'faild'; did you mean 'failed'"),
        ({"sead": 3}, "unknown filter 'sead'; did you mean 'seed'"),
    ],
)
def test_words_that_match_nothing_are_refused(run, filters, message):
    with pytest.raises(Misuse, match=message):
        cbobench.load_cells(run, **filters)
    with pytest.raises(Misuse, match=message):
        cbobench.load_rounds(run, **filters)
