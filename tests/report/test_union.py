"""Several runs and bundles as one table: the cells of all, each once; what has one name for two things is refused."""

from __future__ import annotations

import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.results.export import export

SUITE = {"suite": "whole", "horizon": 5, "seeds": 6, "algorithms": ["cei", "random", "sobol"], "problems": ["gramacy"]}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A run of everything; a run of one method, and a bundle of two, one of them also in the run."""
    folder = tmp_path_factory.mktemp("union")
    for name, methods in (("whole", SUITE["algorithms"]), ("mine", ["cei", "random"]), ("theirs", ["random", "sobol"])):
        cbobench.run(SUITE | {"algorithms": methods}, out=folder / name, cpus=0)
    bundle = export(folder / "theirs", folder / "theirs.zip").file
    return folder / "whole", folder / "mine", bundle


@pytest.mark.parametrize("options", [{"ranks": True}, {"profile": True}, {"against": "random"}, {}])
def test_a_union_is_compared_as_one_run(parts, options):
    whole, *rest = parts
    frames = [cbobench.compare(run, **options).frame for run in (whole, rest)]
    keys = [name for name in ("problem", "algorithm", "metric", "target", "goal") if name in frames[0]]
    left, right = (
        frame.drop(columns=[name for name in frame if "us_per" in name]).sort_values(keys, ignore_index=True)
        for frame in frames
    )
    pd.testing.assert_frame_equal(left, right)


def test_the_command_reads_several_as_one_where_only_that_can_be_meant(parts, capsys):
    whole, mine, bundle = map(str, parts)
    assert main(["compare", mine, bundle, "--ranks"]) == 0
    assert "6 cells of several runs: the first named counts\n" in capsys.readouterr().out
    assert main(["compare", mine, "--union", bundle, whole]) == 0
    assert "sobol" in capsys.readouterr().out
    assert main(["compare", mine, bundle]) in (1, 3), "two runs are before and after"
    assert "only before" in capsys.readouterr().out
    assert main(["compare", mine, bundle, whole]) == 2
    assert "3 runs are given; allowed: two" in capsys.readouterr().err
    assert main(["compare", mine, bundle, "--ranks", "--only-changed"]) == 2
    assert "about two runs" in capsys.readouterr().err


def test_a_damaged_run_is_named_and_the_rest_goes_on(parts, tmp_path, capsys):
    _, mine, bundle = map(str, parts)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(b"PK")
    assert main(["compare", mine, str(cut), bundle, "--union"]) == 1
    out, err = capsys.readouterr()
    assert "sobol" in out
    assert err.startswith(f"left out: {cut} is a damaged bundle")
    assert main(["compare", str(cut), "--union"]) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"problems": [{"gramacy": {"noise_f": 0.5, "label": "gramacy"}}]}, "'gramacy' is another problem in "),
        ({"algorithms": [{"cei": {"delta": 0.2, "label": "cei"}}]}, "'cei' stands for two settings, from "),
    ],
)
def test_one_name_for_two_things_is_refused(parts, tmp_path, capsys, change, said):
    other = cbobench.run(SUITE | {"algorithms": ["random"]} | change, out=tmp_path / "other", cpus=0)
    assert main(["compare", str(parts[1]), str(other.folder), "--ranks"]) == 2
    assert said in capsys.readouterr().err


def test_other_results_of_one_cell_are_said(parts, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cbobench.algorithms.references.uniform", lambda gen, shape: gen.random(shape) ** 2)
    other = cbobench.run(SUITE | {"algorithms": ["random"]}, out=tmp_path / "other", cpus=0)
    assert main(["compare", str(parts[1]), str(other.folder), "--union"]) == 0
    assert "6 cells of several runs: the first named counts, though the results of 6 differ" in capsys.readouterr().out
