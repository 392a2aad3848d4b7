"""A small run that a page shows, with labels that no page should obey."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.page.browsing import chromium
from tests.report.made import asked_again, make

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


FEASIBLE = {"late": 1, "half": 4}  # in how many seeds a feasible action was ever played
MANY = ("good", "lost", *FEASIBLE, "0.5", "0.05", "0.25", "huge", *(f"other {i}" for i in range(4)))


def odd(folder: Path) -> Path:
    """A run with whatever a figure may lack, of which T = 240 was asked later and nothing is
    played.
    """
    rng = np.random.default_rng(5)
    t = np.arange(1, ROUNDS + 1)
    cells, rounds = {}, {}
    for position, algorithm in enumerate(MANY):
        steps = rng.random((SEEDS, ROUNDS)) * (position - 0.4)  # the first one's regret is negative
        simple = np.minimum.accumulate(rng.random((SEEDS, ROUNDS)), axis=1)
        simple[FEASIBLE.get(algorithm, SEEDS) :] = np.nan
        simple[:, : 10 * (algorithm in FEASIBLE)] = np.nan
        hard = (rng.random((SEEDS, ROUNDS)) < 0.3).cumsum(axis=1).astype(float)
        size = 1e40 if algorithm == "huge" else 1.0
        names = {
            "regret": size * steps.cumsum(axis=1),
            "simple_regret": simple,
            "violation_hard": hard,
        }
        rounds["P", algorithm] = {"t": t, **names}
        cells["P", algorithm] = {name: values[:, -1] for name, values in names.items()}
    lost = {("P", "lost"): range(SEEDS)}

    def first() -> None:
        make(folder, cells, seeds=range(SEEDS), horizon=ROUNDS, rounds=rounds, failed=lost)

    return asked_again(folder, first, 2 * ROUNDS)


def crowd(folder: Path, count: int = 60) -> Path:
    """A run of many algorithms on one problem."""
    rng = np.random.default_rng(1)
    t = np.arange(1, ROUNDS + 1)
    steps = {("P", f"method-{i:02}"): rng.random((2, ROUNDS)).cumsum(axis=1) for i in range(count)}
    cells = {key: {"regret": values[:, -1]} for key, values in steps.items()}
    return make(
        folder,
        cells,
        seeds=range(2),
        horizon=ROUNDS,
        rounds={k: {"t": t, "regret": v} for k, v in steps.items()},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_page_run(tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as program:
        yield program
