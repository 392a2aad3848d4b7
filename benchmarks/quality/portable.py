"""Whether every method plays the same bits on every x86-64 machine: short plays under several kinds
of CPU.

    make portable [ARGS="--only cei scbo --machines native haswell"]

Kinds of CPU are set from outside, by the variables of OpenBLAS and NumPy, or emulated by QEMU
(package qemu-user), and each plays in a process of its own. The last two of the variables' kinds
are played natively, so that their kernels are
really used. Exit code 1: a play differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = (
    "CBOBENCH_ARITHMETIC",
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
    "MKL_CBWR",
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
)
BEYOND = "X86_V4 AVX512_ICL AVX512_SPR"
# a finite set and two boxes: one on which methods may know everything, one with plateaus
PROBLEMS = {
    "rkhs": {"n": 60, "d": 2, "m": 2, "full_information": True},
    "feasible-pocket": {"candidates": 64, "full_information": True},
    "tension-spring": {"candidates": 64},
}
REPLICATES = {
    1: {"rkhs": 14, "feasible-pocket": 3, "tension-spring": 14},
    10: {"rkhs": 4, "tension-spring": 2},
}
"""Rounds by problem, for plays of one seed and of ten in lock step. A design of ten points comes
before a region.
"""


@dataclass(frozen=True)
class Machine:
    """A kind of CPU: variables that are set from outside, or an emulated model."""

    variables: dict[str, str] = field(default_factory=dict)
    model: str = ""


V2 = {"NPY_DISABLE_CPU_FEATURES": f"X86_V3 {BEYOND}"}
NATIVE = {"CBOBENCH_ARITHMETIC": "native", "NPY_DISABLE_CPU_FEATURES": BEYOND}
MACHINES = {
    "native": Machine(),
    "x86-v2": Machine(V2),
    "x86-v3": Machine({"NPY_DISABLE_CPU_FEATURES": BEYOND}),
    "haswell": Machine({"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"}),
    "zen": Machine({"OPENBLAS_CORETYPE": "Zen"}),
    "skylakex": Machine({"OPENBLAS_CORETYPE": "SkylakeX", "OPENBLAS_NUM_THREADS": "2"}),
    "haswell-kept": Machine({"OPENBLAS_CORETYPE": "Haswell", **NATIVE}),
    "zen-kept": Machine({"OPENBLAS_CORETYPE": "Zen", **NATIVE}),
    "epyc-rome": Machine(V2, "EPYC-Rome"),  # with AVX2, NumPy's sort crashes under QEMU 7.2
    "intel-haswell": Machine(V2, "Haswell"),
}


def play_methods(names: list[str]) -> dict[str, str]:
    """Return the digests of the plays of some methods, or of all, by problem, method and number of
    replicates.
    """
    from benchmarks.speed.cases import make_problem
    from cbobench import params
    from cbobench.algorithms import ALGORITHMS
    from cbobench.check.trial import play_to_arrays
    from cbobench.play.play import Play, PlayOptions
    from cbobench.threads import single_thread

    found = {}
    with single_thread():
        for title, settings in PROBLEMS.items():
            problem = make_problem(title, **settings)
            for name in names or ALGORITHMS.names():
                cls = ALGORITHMS.get(name)
                if getattr(cls, "missing", str)() or not cls.needs <= problem.offers():
                    continue
                for replicates, rounds in REPLICATES.items():
                    if title not in rounds:
                        continue
                    algorithm, horizon = params.build(cls, {}), rounds[title]
                    options = PlayOptions(range(1, horizon))
                    play = Play(
                        problem, title, algorithm, name, range(replicates), horizon, options
                    )
                    digest = hashlib.sha256()
                    for what, values in sorted(play_to_arrays(play).items()):
                        digest.update(f"{what} {values.shape} {values.dtype}".encode())
                        digest.update(values.tobytes())
                    found[f"{title} / {name} S={replicates}"] = digest.hexdigest()[:16]
    return found


def run_on(machine: Machine, names: list[str]) -> dict[str, str] | str:
    """Return the digests on a kind of CPU, and under "" the arithmetic; in words why there are
    none.
    """
    emulator = [shutil.which("qemu-x86_64") or "", "-cpu", machine.model] if machine.model else []
    if emulator and not emulator[0]:
        return "skipped: qemu-x86_64 is missing (package qemu-user)"
    clean = {name: value for name, value in os.environ.items() if name not in OURS}
    environment = (
        clean
        | machine.variables
        | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(len(str(machine)))}
    )
    command = [*emulator, sys.executable, "-m", "benchmarks.quality.portable", "--play", *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return (
            f"failed ({done.returncode}): "
            f"{(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def digest_of(plays: dict[str, str]) -> str:
    """Return one digest of all plays."""
    return hashlib.sha256(json.dumps(plays, sort_keys=True).encode()).hexdigest()[:16]


def main() -> int:
    """Play on every machine; print a digest for each and the plays that differ."""
    options = argparse.ArgumentParser()
    options.add_argument(
        "--only", nargs="*", default=[], help="methods (default: all that are installed)"
    )
    options.add_argument(
        "--machines", nargs="*", choices=MACHINES, default=[*MACHINES], help="kinds of CPU"
    )
    options.add_argument("--play", nargs="*", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.play is not None:
        from cbobench.arithmetic import arithmetic_kind

        print(json.dumps(play_methods(given.play) | {"": arithmetic_kind()}))
        return 0
    first: dict[str, str] = {}
    wrong = False
    for name in given.machines:
        plays = run_on(MACHINES[name], given.only)
        if isinstance(plays, str):
            wrong |= plays.startswith("failed")
            print(f"{name:14} {plays}", flush=True)
            continue
        kind = plays.pop("")
        first = first or plays
        print(f"{name:14} {digest_of(plays)}  {len(plays)} plays  {kind}", flush=True)
        for play in sorted({*first, *plays}):
            if first.get(play) != plays.get(play):
                wrong = True
                print(f"  differs: {play}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
