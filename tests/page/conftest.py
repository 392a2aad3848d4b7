"""A small run that a page shows, with labels that no page should obey."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.page.browsing import chromium
from tests.report.made import make

SCRIPT = "</script><script>window.hurt = 1</script>"
IMAGE = "<img src=x onerror=window.hurt=2>"
PLAIN = "plain & simple"
SEEDS, ROUNDS = 6, 120


def make_page_run(folder: Path, scale: float = 1.0, seed: int = 0, failed: int = 1) -> Path:
    """A run of two problems and three algorithms, which get better in their order; some cells
    failed.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(1, ROUNDS + 1)
    cells, rounds = {}, {}
    for problem in (SCRIPT, "easy {{title}}"):
        for position, algorithm in enumerate((IMAGE, PLAIN, "third")):
            steps = scale * rng.random((SEEDS, ROUNDS)) * (3 - position)
            regret, simple = steps.cumsum(axis=1), np.minimum.accumulate(steps, axis=1)
            hard = (rng.random((SEEDS, ROUNDS)) < 0.2 * position).cumsum(axis=1).astype(float)
            names = {
                "regret": regret,
                "simple_regret": simple,
                "violation_hard": hard,
                "violations": hard,
            }
            rounds[problem, algorithm] = {"t": t, **names}
            cells[problem, algorithm] = {name: values[:, -1] for name, values in names.items()}
    broken = {(SCRIPT, PLAIN): range(failed)}
    return make(folder, cells, seeds=range(SEEDS), horizon=ROUNDS, rounds=rounds, failed=broken)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_page_run(tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as program:
        yield program
