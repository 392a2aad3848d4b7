"""Pairs, cells and grids: one identity, computed once."""

from __future__ import annotations

import json
import pickle
import tracemalloc

import numpy as np
import pytest

from cbobench.results.manifest import Manifest
from cbobench.suite.cells import Cell, Cells, Grid, Pair, PairCells, as_numbers
from cbobench.suite.variants import Variant, canonical
from cbobench.sweep.blocks import Tasks
from tests.conftest import calls


def variant(name, **values):
    return Variant(name, values, {"a": 1, **values}, name.upper(), values)


@pytest.fixture
def grid():
    problems = (variant("p"), variant("p", h=0.5))
    algorithms = (variant("a"), variant("b", x=[1, 2]))
    pairs = tuple(Pair(p, a) for p in problems for a in algorithms)
    return Grid(problems, algorithms, 7, (3, 1), pairs, ("cbobench", "run"))


def test_the_spec_is_canonical_json_and_the_id_its_hash(grid):
    cell = grid.cells[-1]
    p, a = cell.pair.problem, cell.pair.algorithm
    content = {
        "problem": {"name": p.name, "values": p.values},
        "algorithm": {"name": a.name, "values": a.values},
        "horizon": 7,
        "seed": 1,
    }
    assert cell.spec == canonical(content)
    assert json.loads(cell.spec) == content
    import hashlib

    assert cell.id == hashlib.sha256(canonical(content).encode()).hexdigest()[:16]
    assert str(cell) == "P / B seed 1"


def test_a_grid_survives_its_file_and_a_worker(grid):
    reread = Grid.from_json(json.loads(json.dumps(grid.to_json())))
    assert reread == grid
    assert [c.id for c in pickle.loads(pickle.dumps(grid)).cells] == [c.id for c in grid.cells]  # noqa: S301 - ours


def test_a_grid_covers_what_it_holds_under_any_name(grid):
    renamed = Variant("p", {}, grid.problems[1].values, "another label", {})
    part = Grid((renamed,), grid.algorithms[:1], 7, (1,), (Pair(renamed, grid.algorithms[0]),))
    assert grid.covers(part)
    assert not part.covers(grid)
    longer = Grid((renamed,), grid.algorithms[:1], 8, (1,), part.pairs)
    assert not grid.covers(longer)
    wider = Grid((renamed,), grid.algorithms[:1], 7, (1, 2), part.pairs)
    assert not grid.covers(wider)


def test_a_cell_of_two_grids_is_one_cell_spelt_as_in_the_later(grid):
    spelt = Variant("p", {"a": 1}, {"a": 1}, "P again", {})
    later = Grid((spelt,), grid.algorithms[:1], 7, (3, 5), (Pair(spelt, grid.algorithms[0]),))
    record = Manifest("s", "", None, (grid, later), ())
    assert len(record.cells) == 8 + 1
    assert record.cells[Cell(later.pairs[0], 7, 3).id].pair.problem.title == "p[a=1]"


def test_cells_of_a_pair_hash_their_ids(grid):
    """What the cells of a pair share is hashed once; the ids are those that each cell has by
    itself.
    """
    odd = Pair(variant("p", word="läuft\0"), variant("a"))
    pair_cells = PairCells(odd, 10**6, (5, 0, 2**62, 17))
    alone = [Cell(odd, 10**6, seed).id for seed in pair_cells.seeds]
    assert [f"{number:016x}" for number in pair_cells.ids.tolist()] == alone
    assert as_numbers(alone).tolist() == pair_cells.ids.tolist()
    part = pair_cells.only(np.array([2, 0]))
    assert [cell.id for cell in Cells((part,))] == [alone[2], alone[0]]
    assert [f"{number:016x}" for number in part.ids.tolist()] == [alone[2], alone[0]]
    assert [f"{number:016x}" for number in grid.cells.ids.tolist()] == [
        cell.id for cell in grid.cells
    ]
    for wrong in (["0"], ["g" * 16]):
        with pytest.raises(ValueError, match="digits|hexadecimal"):
            as_numbers(wrong)


def test_a_million_cells_are_planned_in_the_memory_of_their_seeds():
    pairs = tuple(Pair(variant("rkhs-1d", h=i), variant("random")) for i in range(20))
    grid = Grid((), (), 10, tuple(range(50_000)), pairs)

    def work():
        tasks = Tasks(grid.cells.by_pair, 10)
        assert len(tasks) == 100_000
        assert tasks.rounds == 10**7
        assert [c.seed for c in tasks[99_999].cells] == list(range(49_990, 50_000))

    work()  # imports what it needs
    assert calls(work) < 1_000_000, "not one per cell"
    tracemalloc.start()
    work()
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
