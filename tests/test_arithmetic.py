"""The arithmetic is chosen before NumPy is imported: the same instructions on every x86-64 machine,
or what it has.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cbobench import arithmetic
from cbobench.arithmetic import PORTABLE, arithmetic_kind, portable_variables, reason_against
from cbobench.cli import main
from tests.conftest import ROOT

WIDE = {"avx2", "fma", "avx512f"}
portable_machine = pytest.mark.skipif(
    bool(reason_against()), reason=f"plays natively: {reason_against()}"
)


def say(program, **environment):
    """What a program prints in a process of its own whose environment says nothing else of
    arithmetic.
    """
    ours = {
        arithmetic.KERNEL,
        arithmetic.DISABLED,
        arithmetic.ENABLED,
        arithmetic.CHOICE,
        *arithmetic.OTHERS,
    }
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def native():
    """What a process computes with on this CPU whose environment chooses OpenBLAS's kernel and
    nothing of NumPy's.
    """
    features = (
        "import numpy; print(*numpy.show_config(mode='dicts')['SIMD Extensions'].get('found', ()))"
    )
    return f"native: Sandybridge, {say(features).split()[-1]}"


CALLS = "arithmetic_kind(), is_as_requested(), *describe_arithmetic()"
KIND = f"import numpy; from cbobench.arithmetic import *; print({CALLS})"


def test_every_name_is_one_of_the_installed_numpy():
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    names = portable_variables(WIDE, arithmetic._numpy_version(), {})[arithmetic.DISABLED].split()
    assert {*names} <= {*__cpu_features__}
    assert {name for name in __cpu_dispatch__ if name.startswith(("AVX512", "X86_V4"))} <= {*names}


def test_what_the_environment_disables_stays_disabled():
    variables = portable_variables(
        WIDE, "2.4.0", {arithmetic.DISABLED: "X86_V3,X86_V4", arithmetic.ENABLED: "X86_V4"}
    )
    assert variables[arithmetic.DISABLED] == "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
    assert variables[arithmetic.ENABLED] is None, "NumPy refuses both"


@portable_machine
def test_hostile_variables_are_replaced_and_said():
    line = "replaced OPENBLAS_CORETYPE=SkylakeX: plays are portable; --arithmetic native keeps it"
    assert (
        say("import cbobench; " + KIND, OPENBLAS_CORETYPE="SkylakeX") == f"{PORTABLE} True {line}"
    )
    assert say("import cbobench; " + KIND) == f"{PORTABLE} True"


@portable_machine
def test_native_leaves_the_environment_alone(native):
    environment = {arithmetic.CHOICE: "native", "OPENBLAS_CORETYPE": "Sandybridge"}
    assert say("import cbobench; " + KIND, **environment) == f"{native} True"
    later = "import cbobench; from cbobench.arithmetic import *; set_arithmetic('native'); "
    assert say(later + KIND, OPENBLAS_CORETYPE="Sandybridge") == f"{native} True"


@portable_machine
def test_numpy_that_was_imported_before_is_told(native):
    output = say("import numpy, os; import cbobench; " + KIND, OPENBLAS_CORETYPE="Sandybridge")
    assert output.startswith(f"{native} False ")
    assert (
        "NumPy was imported before cbobench; import cbobench first, or let workers play" in output
    )


@pytest.fixture
def asked_anew():
    """What this process plays with is found again, and again after the test."""
    arithmetic.arithmetic_kind.cache_clear()
    yield
    arithmetic.arithmetic_kind.cache_clear()


@pytest.mark.usefixtures("asked_anew")
@pytest.mark.parametrize(("flags", "machine", "reason"), [
    ("sse2 avx", "x86_64", "this CPU is not known to have AVX2 and FMA"),
    ("fp asimd", "aarch64", "this CPU is aarch64"),
    ("", "x86_64", "this CPU is not known to have AVX2 and FMA"),
])  # fmt: skip
def test_other_cpus_play_natively(monkeypatch, flags, machine, reason):
    monkeypatch.setattr(arithmetic, "_cpu_flags", lambda: frozenset(flags.split()))
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.delenv(arithmetic.CHOICE, raising=False)
    assert reason_against() == reason
    assert arithmetic_kind().startswith("native: " if machine == "x86_64" else "aarch64: ")
    assert [reason in line for line in arithmetic.describe_arithmetic()] == [True]
    monkeypatch.delenv(arithmetic.KERNEL, raising=False)
    before = dict(os.environ)
    arithmetic.set_arithmetic()
    assert arithmetic.KERNEL not in os.environ
    assert {*before} <= {*os.environ}


@pytest.mark.usefixtures("asked_anew")
def test_another_blas_plays_natively(monkeypatch):
    monkeypatch.setattr(arithmetic, "blas_kernels", lambda: ["mkl Intel(R) AVX2"])
    assert "mkl" in arithmetic_kind()
    assert ["BLAS is not OpenBLAS" in line for line in arithmetic.describe_arithmetic()] in (
        [True],
        [],
    )
    assert arithmetic_kind() != PORTABLE


def test_a_wrong_word_is_refused_in_one_line(monkeypatch, small_suite, capsys):
    monkeypatch.setenv(arithmetic.CHOICE, "portabel")
    assert main(["run", str(small_suite())]) == 2
    assert "unknown arithmetic in CBOBENCH_ARITHMETIC 'portabel'" in capsys.readouterr().err


PLAYS = """from benchmarks.quality import portable
portable.PROBLEMS = {"rkhs": portable.PROBLEMS["rkhs"]}
print(portable.play_methods(["ckb-ucb", "gp-ts", "scbo"]))"""


@portable_machine
@pytest.mark.slow
def test_hostile_variables_change_no_bit_of_a_play():
    hostile = {
        "OPENBLAS_CORETYPE": "SkylakeX",
        "OPENBLAS_NUM_THREADS": "2",
        "MKL_CBWR": "COMPATIBLE",
    }
    held = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(("X86_V3", *arithmetic.BEYOND)),
        "PYTHONHASHSEED": "7",
    }
    if arithmetic._names_beyond(arithmetic._numpy_version()) != arithmetic.BEYOND:
        held = {"NPY_DISABLE_CPU_FEATURES": " ".join(("FMA3", "AVX2", *arithmetic.BEYOND_BEFORE))}
    assert say(PLAYS) == say(PLAYS, **hostile, **held)


PLAY = """import cbobench
suite = {"suite": "late", "horizon": 8, "seeds": 2, "record": "all", "problems": ["rkhs-1d"], "algorithms": ["gp-ts"]}
for cpus in map(int, "CPUS"):
    done = cbobench.run(suite, out=f"run{cpus}", cpus=cpus, on_note=print)
    print(*set(cbobench.load_cells(done)["arithmetic"]))"""  # noqa: E501


@portable_machine
@pytest.mark.slow
def test_workers_of_a_process_that_was_late_are_portable(tmp_path, native):
    import cbobench

    lines = say(
        "import numpy; " + PLAY.replace("CPUS", "10"), OPENBLAS_CORETYPE="Sandybridge"
    ).splitlines()
    assert lines[2] == PORTABLE
    assert f"plays here are not {PORTABLE} but {native}" in lines[4]
    assert lines[6] == native
    of_worker = cbobench.load_rounds(tmp_path / "run1")
    (tmp_path / "run0").rename(tmp_path / "native")
    assert say(PLAY.replace("CPUS", "0")).splitlines()[-1] == PORTABLE
    of_portable = cbobench.load_rounds(tmp_path / "run0")
    assert (of_worker["observed_f"].to_numpy() == of_portable["observed_f"].to_numpy()).all()
    assert (of_worker["action"] == of_portable["action"]).all()
