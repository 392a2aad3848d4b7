"""The planted faults: each can be planted, nightly plants all of them, and what no test finds is
said.
"""

from __future__ import annotations

from collections import Counter

import pytest
import yaml

from tests import mutations
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "cbobench").is_dir(), reason="faults are planted in a checkout"
)


@pytest.fixture(scope="module")
def records():
    return mutations.read_mutations(early=False)


def test_every_fault_can_be_planted(records):
    """Who changes the text that a fault changes, or renames a test, mends its record."""
    assert [f"{record.name}: {why}" for record in records if (why := record.why_stale(ROOT))] == []
    assert [record.name for record in records if record.old == record.new] == []


def test_nightly_plants_every_fault_once(records):
    jobs = yaml.safe_load(
        (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    )["jobs"]
    job = jobs["mutations"]
    shards = job["strategy"]["matrix"]["shard"]
    planted = Counter(
        record.name for shard in shards for record in mutations.select(records, shard.split())
    )
    assert planted == Counter(record.name for record in records)
    assert job["steps"][-1]["run"] == 'make mutations ARGS="${{ matrix.shard }}"'


PASSES = mutations.Verdict(None, 1.0)


@pytest.mark.parametrize(
    ("verdict", "code", "lines"),
    [
        (PASSES, 1, ("| **survives** | 1.0 |", "0 of 1 are found", "not found: ckb-slack-sign")),
        (
            mutations.Verdict("a.py::test_b", 2.0),
            0,
            ("| `a.py::test_b` | 2.0 |", "1 of 1 are found"),
        ),
        (
            mutations.Verdict(None, 3.0, "too slow"),
            1,
            ("| **no verdict**: too slow | 3.0 |", "0 of 1 are found"),
        ),
    ],
    ids=["survives", "found", "no verdict"],
)
def test_what_survives_is_said_and_ends_with_1(monkeypatch, capsys, tmp_path, verdict, code, lines):
    """Without a mutation the tests pass; with it they do as they are told here."""
    fault = next(
        record
        for record in mutations.read_mutations(early=False)
        if record.name == "ckb-slack-sign"
    )
    (tmp_path / fault.file).parent.mkdir(parents=True)
    (tmp_path / fault.file).write_text(f"before\n{fault.old}\nafter\n")
    monkeypatch.setattr(mutations, "copy_checkout", lambda root, to: tmp_path)
    planted = []

    def run_tests(copy, tests, limited=True):
        planted.append(fault.new in (copy / fault.file).read_text())
        return verdict if planted[-1] else PASSES

    monkeypatch.setattr(mutations, "run_tests", run_tests)
    assert mutations.main([fault.name]) == code
    output = capsys.readouterr()
    assert all(line in output.out + output.err for line in lines)
    assert planted == [False, True]
    assert fault.old in (tmp_path / fault.file).read_text()


def test_a_control_that_fails_and_a_name_that_there_is_not_are_one_line(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(mutations, "copy_checkout", lambda root, to: tmp_path)
    failing = mutations.Verdict("a.py::test_b", 1.0)
    monkeypatch.setattr(mutations, "run_tests", lambda copy, tests, limited=True: failing)
    assert mutations.main(["ckb-slack-sign"]) == 2
    assert capsys.readouterr().err.startswith(
        "the control fails, without any mutation: a.py::test_b fails; mend "
    )
    assert mutations.main(["ckb-slack-sgn"]) == 2
    assert (
        capsys.readouterr().err
        == "no mutation is called 'ckb-slack-sgn'; did you mean 'ckb-slack-sign'?\n"
    )
