"""What has no interval, rank or difference is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.stats import intervals
from cbobench.stats.intervals import interval
from cbobench.stats.paired_tests import difference, holm, ranks

T = np.arange(1.0, 2001.0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: interval([1, np.inf]), "infinite"),
        (lambda: interval([1, 2], "mode"), "allowed: mean, median"),
        (lambda: intervals.proportion(5, 4), "0 <= successes <= n"),
        (lambda: ranks([[1, np.nan]]), "complete blocks"),
        (lambda: ranks([[1, np.inf]]), "infinite"),
        (lambda: ranks([1, 2]), "blocks, algorithms"),
        (lambda: difference([1, np.nan], [1, 2]), "complete pairs"),
        (lambda: difference([1, np.inf], [1, 2]), "infinite"),
        (lambda: difference([1, 2, 3], [1, 2]), "one length"),
        (lambda: difference([[1, 2]], [[1, 2]]), "vectors"),
        (lambda: difference([1, 2], [1, 2], "more"), "allowed: lower, higher"),
        (lambda: holm([0.1, 1.2]), "outside"),
    ],
)
def test_what_has_no_answer_is_refused_in_one_line(wrong, says):
    with pytest.raises(Misuse, match=says) as error:
        wrong()
    assert "\n" not in str(error.value)
