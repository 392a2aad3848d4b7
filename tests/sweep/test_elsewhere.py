"""Where a process cannot be forked and Linux's files and calls are missing, as on macOS, a run
plays the same.
"""

from __future__ import annotations

import pytest

import cbobench
from tests.helpers import assert_same_rows
from tests.sweep.helpers import environment_of

# Read by every interpreter that is started, so that workers lack the same; each leaves a mark.
# `/proc` cannot be opened or listed, by Python at least; libraries in C do not ask there.
HIDES = """\
import os, resource, sys
from pathlib import Path

(Path(__file__).parent / f"began-{os.getpid()}").touch()
for name in ("fork", "forkpty", "sched_getaffinity", "sched_setaffinity", "waitid", "getresuid",
             "getresgid"):
    delattr(os, name)
for name in [name for name in vars(resource) if "RLIM" in name.upper()]:
    delattr(resource, name)
HIDDEN = ("/proc", "/sys/fs/cgroup")


def refuse(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(HIDDEN):
        raise FileNotFoundError(2, "hidden", arguments[0])


stat = os.stat


def hide(path, *words, **options):
    refuse("open", [path])
    return stat(path, *words, **options)


os.stat = hide
sys.addaudithook(refuse)
"""
SUITE = """\
suite: elsewhere
horizon: 8
seeds: 2
problems: [rkhs-1d]
algorithms: [ckb-ucb, random]
"""


@pytest.mark.slow
def test_without_fork_proc_affinity_and_limits_a_run_is_the_same(write_suite, command, tmp_path):
    """Natively both, as the CPU's features are among what is hidden."""
    hiding, runs = tmp_path / "hiding", [tmp_path / name for name in ("here", "elsewhere")]
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(HIDES)
    words = ["--cpus", 1, "--engine", "processes", "--arithmetic", "native"]
    hidden = {"env": environment_of(hiding)}
    for run, options in zip(runs, ({}, hidden), strict=True):
        done = command("run", write_suite(SUITE), "--out", run, *words, **options)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert len([*hiding.glob("began-*")]) >= 2, "the driver and a fresh interpreter"
    assert_same_rows(*runs)
    cells = cbobench.load_cells(runs[1])
    assert cells["arithmetic"].str.startswith("native: ").all()
    assert (cells["status"] == "ok").sum() == len(cells) == 4
    again = command("run", write_suite(SUITE), "--out", runs[1], *words, **hidden)
    assert "(4 done before)" in again.stderr, "the first driver's lock has ended"
