"""COCO's logs of a run hold what the run holds."""

import numpy as np
import pytest

import cbobench
from analysis.field.to_coco import log_rounds, read_rounds, write_logs
from cbobench.errors import Misuse
from cbobench.report.load import Run
from tests.helpers import swept

SUITE = """
suite: tiny
horizon: 12
seeds: 2
record: all
problems:
  - coco: {instance: {sweep: [1, 2]}}
  - coco: {noise_f: 0.1}
algorithms: [random, {cobyla: {label: my cobyla}}]
"""


@pytest.fixture
def cocoex():
    return pytest.importorskip("cocoex", reason="pip install 'cbobench[coco]'")


@pytest.mark.slow
def test_logs_hold_every_evaluation(cocoex, tmp_path, capsys):
    run, out = swept(tmp_path, SUITE), tmp_path / "for coco"
    capsys.readouterr()
    write_logs(Run(run), out, {"algorithm": "my cobyla", "seed": 1})
    assert capsys.readouterr().out == f"{out}/my-cobyla: 2 functions\n"
    log = out / "my-cobyla" / "data_f1" / "bbobexp_f1_DIM2.tdat"
    logged = np.loadtxt(log, comments="%", usecols=(0, 1, 3))
    problems = [f"coco[instance={k}]" for k in (1, 2)]
    rounds = cbobench.load_rounds(run, ["f"], problem=problems, algorithm="cobyla", seed=1)
    np.testing.assert_array_equal(logged[:, :2].T, [rounds["t"]] * 2)
    np.testing.assert_allclose(logged[:, 2], -rounds["f"], rtol=1e-9)
    rounds = read_rounds(Run(run), {"algorithm": "random"})
    assert {*rounds["seed"]} == {0}
    with pytest.raises(Misuse, match=r"^f of .* \[1, 2, 1\] is not the run's; install [^\n]*$"):
        log_rounds(rounds.assign(f=0.0), out, "random")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [("all", "{rounds: 5}"), ("instance: {sweep: [1, 2]}", "noise_g: 0.1")]
)
def test_a_run_that_lacks_its_points_is_refused(cocoex, tmp_path, change):
    run = Run(swept(tmp_path, SUITE.replace(*change)))
    with pytest.raises(Misuse, match=r"^\S+ does not hold every x [^\n]*record: all[^\n]*$"):
        read_rounds(run, {})
