"""How often the maximiser of a score over a box is beaten by a dense search: a table.

    python -m benchmarks.quality.maximiser [WORD ...] [--rounds N] [--seeds S]

Every setting is played, and in sampled rounds the played score is held against the best of a dense
search: 2¹⁵ Sobol points, 2¹⁴ more on faces, edges and corners, then the best and the played one
zoomed into by shrinking random boxes and polished. A round is missed where the search finds more by
over 1e-6 of the range of the score's smooth part.

Of `cei` the score is a logarithm, and its maxima are narrow. There the search shares nothing with
the maximiser: Sobol points, faces, clouds around all observations and lines through them along the
axes, then shrinking random boxes. A round is missed where it finds more by over 0.1, a tenth of the
expected improvement.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np

from benchmarks.speed.cases import make_problem
from benchmarks.speed.rounds import watch
from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.gp.beliefs import Parts
from cbobench.gp.box_actions import sobol
from cbobench.gp.kernels import Array
from cbobench.gp.maximise import WALL, Surface, polish
from cbobench.play.play import Play, PlayOptions
from cbobench.threads import single_thread

MISSED, NATS = 1e-6, 0.1
ONE = {"beta": 1.0}
SOME = {"beta_scale": 0.5}
LAGGING = {"beta": 1.0, "cutoff": 25, "lag": 0.01}
ROUGH = {"kernel": "matern12"}
SMOOTH = {"kernel": "matern52", "noise_g": 0.0}
WIDE = {"kernel": "matern52", "lengthscale": 0.5}
MOVING = {"first_change": 40, "second_change": 80}
WINDOW = {"beta": 1.0, "window": 40, "variation": "none"}
SCALED = {"scaled": True}

# What is played: a problem and its parameters, an algorithm and its parameters; else B and G are
# sup, and λ is 0.05.
SETTINGS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "pocket, rpol-ucb": ("feasible-pocket", {}, "rpol-ucb", ONE),
    "pocket, ckb-ucb": ("feasible-pocket", {}, "ckb-ucb", ONE),
    "pocket, config": ("feasible-pocket", {}, "config", ONE),
    "pocket, half theory, ckb-ucb": ("feasible-pocket", {}, "ckb-ucb", SOME),
    "pocket, theory, rpol-ucb": ("feasible-pocket", {}, "rpol-ucb", {}),
    "pocket, theory, ckb-ucb": ("feasible-pocket", {}, "ckb-ucb", {}),
    "pocket, Matérn-1/2, rpol-ucb": ("feasible-pocket", ROUGH, "rpol-ucb", ONE),
    "pocket, Matérn-1/2, ckb-ucb": ("feasible-pocket", ROUGH, "ckb-ucb", ONE),
    "pocket, Matérn-5/2, penalty-noiseless": (
        "feasible-pocket",
        SMOOTH,
        "penalty-noiseless",
        {"beta": 2.0},
    ),
    "rate allocation, penalty-noisy": ("rate-allocation", WIDE, "penalty-noisy", {"beta": 2.0}),
    "pocket, delayed, rpol-censored": ("feasible-pocket-delayed", {}, "rpol-censored", LAGGING),
    "pocket, delayed, ckb-ucb": ("feasible-pocket-delayed", {}, "ckb-ucb", ONE),
    "pocket, drifting, rpol-sw": ("feasible-pocket-drift", MOVING, "rpol-sw", WINDOW),
    "pocket, drifting, ckb-restart": (
        "feasible-pocket-drift",
        MOVING,
        "ckb-restart",
        ONE | {"restart": 40},
    ),
    "gramacy, rpol-ucb": ("gramacy", {}, "rpol-ucb", ONE),
    "gramacy, ckb-ucb": ("gramacy", {}, "ckb-ucb", ONE),
    "gramacy, config": ("gramacy", {}, "config", ONE),
    "tension-spring, rpol-ucb": ("tension-spring", SCALED, "rpol-ucb", ONE),
    "tension-spring, config": ("tension-spring", SCALED, "config", ONE),
    "hartmann-4, rpol-ucb": ("hartmann-4", SCALED, "rpol-ucb", ONE),
    "hartmann-4, ckb-ucb": ("hartmann-4", SCALED, "ckb-ucb", ONE),
    "welded-beam, rpol-ucb": ("welded-beam", SCALED, "rpol-ucb", ONE),
    "speed-reducer, rpol-ucb": ("speed-reducer", SCALED, "rpol-ucb", ONE),
}
QUIET = {"noise_f": 0.0, "noise_g": 0.0}
PUBLISHED = (
    "gardner-1",
    "gramacy",
    "hartmann-4",
    "pressure-vessel",
    "tension-spring",
    "welded-beam",
    "speed-reducer",
)
SETTINGS |= {f"{name}, cei": (name, QUIET, "cei", {"lam": "scaled"}) for name in PUBLISHED}
SHARED = {"lam": 0.05, "B": "sup", "G": "sup"}


class Check:
    """A dense search for the maximum of an algorithm's current score, S replicates at once."""

    def __init__(self, algorithm: ScoreAlgorithm, d: int, size: int = 2**15) -> None:
        self.algorithm = algorithm
        self.d = d
        # what lies beyond the box falls on its faces
        beyond = np.clip(1.5 * sobol(d, size // 2) - 0.25, 0.0, 1.0)
        corners = np.array([*itertools.product((0.0, 1.0), repeat=d)])
        self.dense = np.concatenate([sobol(d, size), beyond, corners])
        self.radius = 2 * size ** (-1 / d)

    def parts(self, mean: Array, variance: Array, points: Array) -> Parts:
        return self.algorithm.parts(self.algorithm.view(mean, variance, points)).kinks()

    def score(self, points: Array) -> tuple[Array, Array]:
        """The score and its smooth part (S, k) at points (S, k, d); a set that must not be left
        costs as in a climb.
        """
        scores = []
        smooth = []
        for some in np.split(points, range(2048, points.shape[1], 2048), axis=1):
            parts = self.parts(*self.algorithm.posterior.at(some), some)
            price = np.minimum(parts.price, WALL)[:, :, None]
            scores.append(parts.smooth - (price * np.maximum(parts.kinked, 0.0)).sum(axis=1))
            smooth.append(parts.smooth)
        return np.concatenate(scores, axis=1), np.concatenate(smooth, axis=1)

    def shortfall(self, chosen: Array, centres: int = 16) -> Array:
        """By how much the score at the chosen points (S, d) is beaten, in units of the range,
        (S,).
        """
        replicates = len(chosen)
        points = np.broadcast_to(self.dense, (replicates, *self.dense.shape))
        values, smooth = self.score(points)
        span = np.ptp(smooth, axis=1)
        span = np.where(span > 0, span, np.ptp(values, axis=1))
        played = self.score(chosen[:, None])[0][:, 0]
        best = np.maximum(played, values.max(axis=1))
        starts = np.empty((replicates, centres, self.d))
        left = values.copy()
        for i in range(centres):  # half of them far apart
            top = points[np.arange(replicates), left.argmax(axis=1)]
            starts[:, i] = top
            near = self.radius if i % 2 else 2.5 * self.radius
            left[np.abs(points - top[:, None]).max(axis=2) < near] = -np.inf
        starts = np.concatenate([starts, chosen[:, None]], axis=1)
        zoomed, reached = self.zoom(starts)
        best = np.maximum(best, reached.max(axis=1))
        for begin in (starts, zoomed):
            surface = Surface(self.parts, self.algorithm.posterior.jet, self.radius)
            best = np.maximum(best, self.score(polish(surface, begin)[0])[0].max(axis=1))
        # Where nothing is known yet all points tie up to rounding, whatever their range.
        return np.asarray((best - played) / np.maximum(span, 1e-6 * np.abs(best) + 1e-300))

    def zoom(self, centres: Array, cloud: int = 48, steps: int = 30) -> tuple[Array, Array]:
        """Shrinking random search around centres (S, k, d): where it ends, and the scores there (S,
        k).
        """
        rng = np.random.default_rng(0)
        replicates, k, d = centres.shape
        best = self.score(centres)[0]
        side = np.full(
            (replicates, k), min(self.radius, 0.1) if isinstance(self, NarrowCheck) else self.radius
        )
        for _ in range(steps):
            moves = (
                side[..., None, None]
                * rng.uniform(-1, 1, (cloud, d))
                * (rng.random((cloud, d)) < 0.7)
            )
            around = np.clip(centres[:, :, None] + moves, 0.0, 1.0)
            found = self.score(around.reshape(replicates, -1, d))[0].reshape(replicates, k, cloud)
            top = found.argmax(axis=2)[..., None]
            value = np.take_along_axis(found, top, axis=2)[..., 0]
            better = value > best
            where = np.take_along_axis(around, top[..., None], axis=2)[:, :, 0]
            centres = np.where(better[..., None], where, centres)
            best = np.maximum(best, value)
            side = np.where(better, side, 0.6 * side)
        return centres, best


class NarrowCheck(Check):
    """A dense search for the maximum of a score that is a logarithm; it shares nothing with the
    maximiser.
    """

    def shortfall(self, chosen: Array, centres: int = 16) -> Array:
        """By how much the score at the chosen points (S, d) is beaten, (S,)."""
        rng, rows = np.random.default_rng(0), np.arange(len(chosen))
        held = self.algorithm.posterior.at_observations()[2][..., None]
        seen = np.where(held, self.algorithm.posterior.observations(), chosen[:, None])
        dense = self.dense[::4]
        points = [np.broadcast_to(dense, (len(chosen), *dense.shape))]
        for side in (0.3, 0.1, 0.02, 0.004, 0.0008):
            cloud = seen[:, :, None] + side * rng.uniform(-1, 1, (*seen.shape[:2], 16, self.d))
            points.append(np.clip(cloud, 0.0, 1.0).reshape(len(chosen), -1, self.d))
        for axis in range(self.d):
            line = np.repeat(seen, 16, axis=1)
            line[..., axis] = rng.random(line.shape[:2])
            points.append(line)
        tried = np.concatenate(points, axis=1)
        left = self.score(tried)[0]
        starts = [chosen]
        for i in range(centres):  # half of them far apart
            starts.append(tried[rows, left.argmax(axis=1)])
            left[
                np.abs(tried - starts[-1][:, None]).max(axis=2) < (0.01 if i % 2 else 0.1)
            ] = -np.inf
        best = self.zoom(np.stack(starts, axis=1), steps=50)[1].max(axis=1)
        return np.asarray(best - self.score(chosen[:, None])[0][:, 0])


def measure(
    setting: tuple[str, dict[str, Any], str, dict[str, Any]], rounds: int, seeds: int
) -> tuple[Array, float]:
    """Shortfalls in about as many rounds of all seeds together, and ms per seed-round of the
    maximiser (CPU time).
    """
    name, values, method, chosen = setting
    problem = make_problem(name, **values)
    known = {p.name for p in params.params_of(ALGORITHMS.get(method))}
    algorithm = params.build(
        ALGORITHMS.get(method), {k: v for k, v in SHARED.items() if k in known} | chosen
    )
    narrow = algorithm.narrow
    horizon, first, design = (60, 11, {"sobol": 10}) if narrow else (120, 3, None)
    checked = set(np.linspace(first, horizon, max(1, rounds // seeds)).astype(int).tolist())
    check = (NarrowCheck if narrow else Check)(algorithm, problem.actions.d)
    shortfalls = []
    seconds: list[float] = []
    ask = algorithm.ask

    def spy(t: int) -> Any:
        action = ask(t)
        if t in checked and algorithm.played:  # before, all points tie
            shortfalls.append(check.shortfall(algorithm.chosen))
        return action

    algorithm.ask = spy
    algorithm.maximise = watch(algorithm.maximise, seconds)
    for _ in Play(
        problem,
        "maximiser",
        algorithm,
        method,
        list(range(seeds)),
        horizon,
        PlayOptions(initial=design),
    ):
        pass
    return np.concatenate(shortfalls), 1e3 * float(np.mean(seconds)) / seeds


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser()
    options.add_argument("words", nargs="*", help="only settings whose name has one of these")
    options.add_argument("--rounds", type=int, default=100, help="per setting, all seeds together")
    options.add_argument("--seeds", type=int, default=4)
    asked = options.parse_args()
    print(f"{'setting':38} {'rounds':>6} {'missed':>6} {'share':>7} {'worst':>9} {'ms/round':>9}")
    for name, setting in SETTINGS.items():
        if asked.words and not any(word in name for word in asked.words):
            continue
        with single_thread():
            shortfalls, cost = measure(setting, asked.rounds, asked.seeds)
        missed = int((shortfalls > (NATS if ALGORITHMS.get(setting[2]).narrow else MISSED)).sum())
        share = f"{100 * missed / len(shortfalls):.1f} %"
        worst = f"{max(0.0, shortfalls.max()):9.1e}"
        print(
            f"{name:38} {len(shortfalls):6d} {missed:6d} {share:>7} {worst} {cost:9.2f}", flush=True
        )


if __name__ == "__main__":
    main()
