"""Curves of a page: what `cbobench figures` draws, at some rounds."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.metrics import METRICS
from cbobench.report.curves import STATISTICS, centre, stale
from cbobench.report.load import Run, read_values, recorded_rounds

Array = NDArray[np.float64]
ROUNDS = 80
"""How many rounds the curves of a page have at most; `SEED_ROUNDS` those of single seeds."""
SEED_ROUNDS = 40
VALUES = 1_000_000
"""How many numbers the curves of single seeds of one page have at most; where there are more, some seeds are shown."""


def pack_numbers(values: Array) -> str:
    """Numbers as little-endian float32 in base64, row by row: seven digits. Float64 after ":" where one is beyond."""
    wide = (np.abs(values[np.isfinite(values)]) > np.finfo("<f4").max).any()
    text = base64.b64encode(np.ascontiguousarray(values, dtype="<f8" if wide else "<f4").tobytes()).decode()
    return ":" * bool(wide) + text


def thin_positions(count: int, most: int) -> NDArray[np.int64]:
    """At most so many positions of 0..count-1, the first and the last among them: half even, half denser early on."""
    if count <= most:
        return np.arange(count)
    # Curves change most in the first rounds: half of the positions are even, the others denser there.
    even = np.linspace(0, count - 1, min(most, max(2, most // 2)))
    early = np.geomspace(1, count, most - len(even)) - 1
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


def curves(run: Run, share: float = 1.0) -> dict[str, Any]:
    """Every pair's curves.

    Args:
        share: of `VALUES` that this run may take.

    Returns:
        `rounds`, lists of t; `pairs`: titles `problem` and `algorithm`, `n`, `expected`, `stale`, `seconds`
        (CPU time of a round on average, the median of the seeds; None where it is not known), `t` and `seeds_t`
        (positions in `rounds`), `seeds` (which ones are shown), and by metric that some seed has a value of `curves`
        (packed: median, quartiles, mean, ends of its interval; each as long as t), `by_seed` (packed, seeds x rounds)
        and `lacking`, in how many seeds it has no value in the end.
    """
    good = run.cells[run.cells["status"] == "ok"]
    names = [name for name in METRICS if name in good and good[name].notna().any()]
    expected_pairs = [
        (problem, algorithm, expected)
        for problem in run.record.labels("problems")
        for algorithm, expected in run.expected_of(problem).items()
    ]
    played = sum(len(run.good(problem, algorithm)) > 0 for problem, algorithm, _ in expected_pairs)
    seeds_per_pair = VALUES * share / max(1, len(names) * played * SEED_ROUNDS)
    rounds: list[list[int]] = []

    def place(t: NDArray[np.int64]) -> int:
        if (listed := t.tolist()) not in rounds:
            rounds.append(listed)
        return rounds.index(listed)

    pairs = []
    for problem, algorithm, expected in expected_pairs:
        cells = run.good(problem, algorithm).sort_values("cell")  # the order of `Run.series`
        seed_positions = thin_positions(len(cells), max(1, int(seeds_per_pair)))
        pair: dict[str, Any] = {"problem": problem, "algorithm": algorithm, "n": len(cells), "expected": expected}
        pair |= {"stale": stale(run, problem, algorithm), "curves": {}, "by_seed": {}, "lacking": {}}
        seconds = cells["seconds_per_round"].median()
        pair["seconds"] = None if np.isnan(seconds) else float(f"{seconds:.6g}")
        t = recorded_rounds(run, problem, algorithm)
        curve_positions, coarse_positions = thin_positions(len(t), ROUNDS), thin_positions(len(t), SEED_ROUNDS)
        read = np.union1d(curve_positions, coarse_positions)
        for name, values in zip(names, read_values(run, names, problem, algorithm, t[read]), strict=True):
            if np.isnan(values).all():
                continue
            drawn = values[np.searchsorted(read, curve_positions)]
            parts = [part for word in reversed(STATISTICS) for part in centre(drawn, name, word)]
            pair["curves"][name] = pack_numbers(np.array(parts))
            coarse = values[np.ix_(np.searchsorted(read, coarse_positions), seed_positions)]
            pair["by_seed"][name] = pack_numbers(coarse.T)
            pair["lacking"][name] = int(np.isnan(values[-1]).sum())
        pair |= {
            "t": place(t[curve_positions]),
            "seeds_t": place(t[coarse_positions]),
            "seeds": cells["seed"].to_numpy()[seed_positions].tolist(),
        }
        pairs.append(pair)
    return {"rounds": rounds, "pairs": pairs, "metrics": names}
