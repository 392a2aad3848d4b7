"""How far posteriors are from an exact solve, in every round: kernels, lengthscales, λ, and what leaves or comes late.

    python benchmarks/posterior_error.py [--rounds 400] [--kernel se ...] [--lengthscale 10 ...] [--lam 1e-6 ...]
        [--mode all window delay reveal features ...] [--window 60] [--noise 0]

A function of the kernel's space (norm 6) is observed at points of the unit square: every other one uniform, the others
near a favourite, as a bandit plays them; with noise in units of √λ if one is asked for. Modes: everything is kept; a
window; one posterior per function with Poisson delays; values revealed later; what is played where a mesh resolves the
kernel; features of a grid of 100 points.

Each line holds the worst errors over all rounds, at candidates, at points between them and next to observations:

- `mean`: largest error, in units of the largest mean;
- `deviation`: largest error, in units of the prior deviation;
- `relative`: largest error of a deviation in units of sqrt(deviation² + λ), what an observation there would deviate by.

The reference is a Cholesky factor in `numpy.longdouble` (64 bits of mantissa on x86) of the kernel in the same numbers.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import squared_lengths, stationary
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.factor import SMALL
from cbobench.gp.posteriors.features import FeaturePosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.problems.base import Arrivals

KERNELS = ("se", "matern12", "matern32", "matern52")
LENGTHSCALES = (0.01, 0.1, 0.2, 1.0, 10.0)
LAMS = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1.0)
MODES = ("all", "window", "delay", "reveal", "mesh", "features")
NORM, LAG = 6.0, 7
LONG = np.longdouble


class Exact:
    """Means and variances at points, by a Cholesky factor in long double that grows by a row per observation."""

    def __init__(self, kernel, lam, at, values):
        self.kernel, self.lam, self.at = kernel, LONG(lam), at.astype(LONG)
        self.points = np.empty((0, at.shape[1]), LONG)
        self.columns = np.zeros((0, 0), LONG)  # of the factor
        self.z = np.zeros((0, len(at)), LONG)
        self.values = values

    def add(self, point):
        c, point = len(self.points), point.astype(LONG)
        column = self.kernel.profile(squared_lengths(self.points - point)) if c else np.zeros(0, LONG)
        row = np.zeros(c + 1, LONG)
        for i in range(c):
            row[i] = column[i] / self.columns[i, i]
            column[i + 1 :] -= row[i] * self.columns[i, i + 1 : c]
        row[c] = np.sqrt(1 + self.lam - (row[:c] ** 2).sum())
        if c == len(self.columns):
            grown = np.zeros((2 * c + 8, 2 * c + 8), LONG)
            grown[:c, :c] = self.columns
            self.columns = grown
        self.columns[: c + 1, c] = row
        z = self.kernel.profile(squared_lengths(self.at - point)) - row[:c] @ self.z
        self.z = np.vstack([self.z, z / row[c]])
        self.points = np.vstack([self.points, point])

    def moments(self, values):
        u = np.zeros(len(values), LONG)
        left = values.astype(LONG)
        for i in range(len(u)):
            u[i] = left[i] / self.columns[i, i]
            left[i + 1 :] -= u[i] * self.columns[i, i + 1 : len(u)]
        return u @ self.z, np.maximum(1 - (self.z**2).sum(axis=0), 0)


def setting(kernel, rounds, lam, noise, seed=0):
    """Points (T, 2), values (T,), the box, and where errors are looked at (q, 2)."""
    rng = np.random.default_rng(seed)
    box = Box(np.zeros(2), np.ones(2), kernel[0], kernel[1], 16)
    favourite = rng.random((3, 2))
    points = rng.random((rounds, 2))
    near = favourite[rng.integers(3, size=rounds)] + 1e-3 * rng.normal(size=(rounds, 2))
    points = np.clip(np.where(rng.random((rounds, 1)) < 0.5, points, near), 0, 1)
    centres, weights = rng.random((20, 2)), rng.normal(size=20)
    weights *= NORM / np.sqrt(weights @ box.kernel(centres, centres) @ weights)
    values = box.kernel(points, centres) @ weights + noise * np.sqrt(lam) * rng.normal(size=rounds)
    between = np.concatenate([rng.random((6, 2)), points[:4] + 1e-5, points[rounds // 2 :][:2], favourite])
    return points, values, box, np.clip(between, 0, 1)


def compare(found, exact, lam):
    mean, variance = found
    m, v = exact
    apart = np.abs(np.sqrt(variance) - np.sqrt(v))
    scale = max(float(np.abs(m).max()), 1e-3)
    return np.array([np.abs(mean - m).max() / scale, apart.max(), (apart / np.sqrt(v + LONG(lam))).max()], float)


def look(posterior, between):
    """Means and variances at candidates and between them, as jets and as `at` see them."""
    mean, variance = posterior.at(between[None])
    jet = posterior.jet(between[None])
    means = [posterior.mean[0, 0], mean[0, 0], jet.mean[0, 0, :, 0]]
    return np.concatenate(means), np.concatenate([posterior.variance[0], variance[0], jet.variance[0, :, 0]])


def rounds_of(mode, kernel, lam, rounds, window, noise) -> Iterator[np.ndarray]:
    """The three errors of every round that is looked at."""
    points, values, box, between = setting(kernel, rounds, lam, noise)
    at = np.concatenate([box.candidates, between, between])
    posterior = ObservationPosterior(box, lam, 1, 1, window if mode == "window" else rounds)
    if mode == "mesh":
        posterior = choice.make_cheapest(box, 1, 1, rounds, lam)
        posterior.reset(lam)
    exact = Exact(box.kernel, lam, at, values)
    due = np.arange(1, rounds + 1) + np.random.default_rng(1).poisson(LAG, rounds)
    order: list[int] = []
    for t in range(1, rounds + 1):
        told = values[:t].copy()
        if mode == "delay":
            new = np.flatnonzero(due == t)
            zeros = np.zeros(len(new), dtype=np.intp)
            posterior.receive(t, points[:t, None], Arrivals(zeros, new + 1, zeros, values[new]))
            for r in new:
                exact.add(points[r])
            order += new.tolist()
            told = values[order]
        else:
            posterior.update(points[[t - 1]], np.zeros((1, 1)) if mode == "reveal" else values[[t - 1], None])
            exact.add(points[t - 1])
        if mode == "reveal":
            if t > LAG:
                posterior.reveal(0, t - LAG, points[t - LAG - 1], 0, values[t - LAG - 1])
            told[max(0, t - LAG) :] = 0.0
        if mode == "window" and t > window:
            if t % 7 and t & (t - 1) and (t + 1) & t:
                continue
            exact = Exact(box.kernel, lam, at, values)
            for point in points[t - window : t]:
                exact.add(point)
            told = told[-window:]
        elif t > 300 and t % 10 and (t + 1) & t:
            continue
        yield np.array([t, *compare(look(posterior, between), exact.moments(told), lam)])


def rounds_in_features(kernel, lam, rounds, noise) -> Iterator[np.ndarray]:
    """As above, on a grid of 10 x 10 points."""
    axis = np.linspace(0, 1, 10)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    actions = Finite(stationary(*kernel)(grid, grid), grid)
    posterior = FeaturePosterior(actions.features, lam, 1, 1, actions.covariance.diagonal())
    rng = np.random.default_rng(0)
    played = np.where(rng.random(rounds) < 0.5, rng.integers(100, size=rounds), rng.integers(3, size=rounds))
    weights = rng.normal(size=100)
    values = actions.covariance @ weights * (NORM / np.sqrt(weights @ actions.covariance @ weights))
    told = values[played] + noise * np.sqrt(lam) * rng.normal(size=rounds)
    exact = Exact(stationary(*kernel), lam, grid, told)
    for t in range(1, rounds + 1):
        posterior.update(played[[t - 1]], told[[t - 1], None])
        exact.add(grid[played[t - 1]])
        if t <= 100 or t % 10 == 0:
            errors = compare((posterior.mean[0, 0], posterior.variance[0]), exact.moments(told[:t]), lam)
            yield np.array([t, *errors])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--window", type=int, default=60)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--kernel", nargs="+", default=KERNELS, choices=KERNELS)
    parser.add_argument("--lengthscale", nargs="+", type=float, default=LENGTHSCALES)
    parser.add_argument("--lam", nargs="+", type=float, default=LAMS)
    parser.add_argument("--mode", nargs="+", default=MODES, choices=MODES)
    options = parser.parse_args()
    print(f"{options.rounds} rounds, window {options.window}, noise {options.noise} √λ")
    head = f"{'kernel':9} {'l':>5} {'lam':>7} {'mode':8} {'mean':>8} {'deviation':>9} {'relative':>8}"
    print(head + "  first round above 1e-6 (mean, deviation); stopped by; seconds", flush=True)
    for case in itertools.product(options.kernel, options.lengthscale, options.lam, options.mode):
        name, length, lam, mode = case
        if mode == "mesh" and (name != "se" or lam < SMALL):
            continue  # what plays there is mode `all`
        kernel, start, why = (name, length), time.perf_counter(), ""
        found = []
        rounds = (
            rounds_in_features(kernel, lam, options.rounds, options.noise)
            if mode == "features"
            else rounds_of(mode, kernel, lam, options.rounds, options.window, options.noise)
        )
        try:
            with np.errstate(all="ignore"):
                found.extend(rounds)
        except (CellFailure, np.linalg.LinAlgError) as error:
            why = str(error)[:90]
        table = np.array(found)
        worst = table[:, 1:].max(axis=0)
        bad = [table[table[:, i] > 1e-6, 0] for i in (1, 2)]
        firsts = " ".join(str(int(b[0])) if len(b) else "-" for b in bad)
        line = f"{name:9} {length:5g} {lam:7.0e} {mode:8} {worst[0]:8.1e} {worst[1]:9.1e} {worst[2]:8.1e}  {firsts}"
        print(f"{line} {why} {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
