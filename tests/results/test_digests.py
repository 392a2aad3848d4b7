"""Digests of cells: the same from a run and from its bundle, another for every play."""

from __future__ import annotations

import pytest

from cbobench.errors import DamagedRun
from cbobench.replay.differences import read_records
from cbobench.report.load import Run
from cbobench.results.rounds import Digests
from tests.helpers import play_here
from tests.results.forging import set_column

SUITE = {
    "suite": "digests",
    "horizon": 6,
    "seeds": 8,
    "algorithms": ["random"],
    "problems": [
        "gramacy",
        {"rkhs-1d": {"h": 0.25}},
        {"rkhs-1d": {"h": 0.25, "delay": 2, "label": "late"}},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digests") / "run"
    play_here(SUITE, folder, block=7)
    return folder


def records(place):
    return read_records(Run(place).played, Run(place).cells["cell"].tolist())


def test_every_bit_of_a_play_enters_its_digest(run):
    cell, record = next(iter(records(run).items()))
    final = record.final | {"recommended_action": None}

    def digest(table, final=final):
        digests = Digests()
        digests.add(table)
        return digests.finish(cell, final)

    table = record.rounds
    assert digest(table) == record.final["digest"]
    assert digest(table) != digest(table, final | {"recommended_x": [0.5, 0.5]})
    for name in ("x", "observed_f", "observed_g"):
        values = table[name].to_pylist()
        values[3] = (
            [number + 1e-15 for number in values[3]]
            if isinstance(values[3], list)
            else values[3] + 1e-15
        )
        assert digest(set_column(table, name, values)) != record.final["digest"], name
    parts = Digests()
    for part in (table[:2], table[2:]):
        parts.add(part)
    assert parts.finish(cell, final) == record.final["digest"], "however it is cut"
    with pytest.raises(DamagedRun, match="in another order"):
        digest(table.take([1, 0, 2, 3, 4, 5]))
