"""CPU time of a round on a finite set in C: a bound of what a compiled core could reach.

    python -m benchmarks.speed.probe

Prints a line for each number of seeds, or "no compiler". `probe.c` has the algebra of `floor` of
cases.py, without ties, checks and records. `$CC`, or else `cc`, compiles it into a temporary
folder, for all instructions of this CPU and with sums in any order, so that its last digits are not
those of a play.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.speed.cases import make_problem, seconds

SOURCE = Path(__file__).with_name("probe.c")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
SEEDS = (1, 10, 50)
CELLS = 40_000  # rounds of all seeds together in a measurement: some 20 ms
TURNS = 7


def find_compiler() -> str | None:
    """Return the path of `$CC`, or else of `cc`; None where there is none."""
    return shutil.which(os.environ.get("CC", "cc"))


@cache
def compile_probe() -> Callable[..., int]:
    """Return `play` of probe.c, compiled once for this process.

    Raises:
        FileNotFoundError: there is no compiler.
        subprocess.CalledProcessError: it fails.
    """
    compiler = find_compiler()
    if compiler is None:
        raise FileNotFoundError("no compiler: set CC, or skip the probe")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "probe.so"
        subprocess.run([compiler, *FLAGS, SOURCE, "-o", library, "-lm"], check=True)
        function = ctypes.CDLL(str(library)).play  # stays in memory without its file
    numbers = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
    indices = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
    function.argtypes = [*[ctypes.c_int] * 4, ctypes.c_double, *[numbers] * 3, indices]
    return function


def play_compiled(
    features: np.ndarray, truth: np.ndarray, noise: np.ndarray, lam: float
) -> np.ndarray:
    """Play CKB-UCB in C.

    Args:
        features: of the actions, (n, r), with rows of length 1.
        truth: f and g on the actions, (S, 2, n).
        noise: of the observations, (T, S, 2).
        lam: the variance of the noise that the belief has.

    Returns:
        The actions, (T, S).

    Raises:
        MemoryError: there is too little memory.
    """
    rounds, seeds, _ = noise.shape
    played = np.empty((rounds, seeds), np.int64)
    failed = compile_probe()(seeds, *features.shape, rounds, lam, features, truth, noise, played)
    if failed:
        raise MemoryError("probe.c found too little memory: give it fewer seeds or actions")
    return played


def measure_probe(features: np.ndarray, seeds: int, rounds: int) -> float:
    """Return CPU microseconds per seed and round, for random functions and noise."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((seeds, 2, len(features)))
    noise = rng.standard_normal((rounds, seeds, 2))
    play_compiled(features, truth, noise[:1], 1.0)  # which compiles
    spent = seconds(play_compiled, features, truth, noise, 1 + 2 / rounds)
    return 1e6 * spent / (seeds * rounds)


def main() -> None:
    """Print the least of some turns for each number of seeds."""
    if find_compiler() is None:
        print("no compiler")
        return
    features = make_problem("rkhs", n=100).actions.features  # type: ignore[union-attr]
    for seeds in SEEDS:
        turns = [measure_probe(features, seeds, CELLS // seeds) for _ in range(TURNS)]
        print(f"S = {seeds}: {min(turns):.2f} µs per seed and round, compiled", flush=True)


if __name__ == "__main__":
    main()
