"""Pairs, cells and grids: one identity, computed once."""

from __future__ import annotations

import json
import pickle

import pytest

from cbobench.report.compare import compare
from cbobench.report.load import Run
from cbobench.results.record import RunRecord
from cbobench.suite import cells as identity
from cbobench.suite.cells import Cell, Grid, Pair
from cbobench.suite.variants import Variant, canonical
from cbobench.sweep.run import execute, plan


def variant(name, **given):
    return Variant(name, given, {"a": 1, **given}, name.upper(), given)


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
        "problem": {"name": p.name, "values": p.values}, "algorithm": {"name": a.name, "values": a.values},
        "horizon": 7, "seed": 1,
    }  # fmt: skip
    assert cell.spec == canonical(content)
    assert json.loads(cell.spec) == content
    import hashlib

    assert cell.id == hashlib.sha256(canonical(content).encode()).hexdigest()[:16]
    assert str(cell) == "p[h=0.5] / b[x=[1,2]] seed 1"


def test_a_grid_survives_its_file_and_a_worker(grid):
    again = Grid.from_json(json.loads(json.dumps(grid.to_json())))
    assert again == grid
    assert [c.id for c in pickle.loads(pickle.dumps(grid)).cells] == [c.id for c in grid.cells]  # noqa: S301 - ours


def test_a_grid_covers_what_it_holds_under_any_name(grid):
    renamed = Variant("p", {}, grid.problems[1].values, "another label", {})
    part = Grid((renamed,), grid.algorithms[:1], 7, (1,), (Pair(renamed, grid.algorithms[0]),))
    assert grid.covers(part)
    assert not part.covers(grid)
    longer = Grid((renamed,), grid.algorithms[:1], 8, (1,), part.pairs)
    assert not grid.covers(longer)
    more = Grid((renamed,), grid.algorithms[:1], 7, (1, 2), part.pairs)
    assert not grid.covers(more)


def test_a_cell_of_two_grids_is_one_cell_spelt_as_in_the_later(grid):
    spelt = Variant("p", {"a": 1}, {"a": 1}, "P again", {})
    later = Grid((spelt,), grid.algorithms[:1], 7, (3, 5), (Pair(spelt, grid.algorithms[0]),))
    record = RunRecord("s", "", None, 1, (grid, later), ())
    assert len(record.cells) == 8 + 1
    assert record.cells[Cell(later.pairs[0], 7, 3).id].pair.problem.title == "p[a=1]"


def test_each_id_is_hashed_once_by_a_plan_and_once_by_a_table(small_suite, tmp_path, monkeypatch):
    digest, hashed = identity._digest, []
    monkeypatch.setattr(identity, "_digest", lambda spec: hashed.append(spec) or digest(spec))
    todo = plan(small_suite(seeds=20), out=tmp_path / "run", cpus=0)
    assert len(hashed) == len(set(hashed)) == 60
    execute(todo, cpus=0)
    assert len(hashed) == 60, "a task knows the ids of its cells"
    hashed.clear()
    run = Run(tmp_path / "run")
    compare(run)
    run.rounds(["regret"], seed=3)
    assert len(hashed) == len(set(hashed)) == 60
    hashed.clear()
    plan(small_suite(seeds=20), out=tmp_path / "run", cpus=0)
    assert len(hashed) == 60
