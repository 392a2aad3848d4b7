"""A round of `scbo` on hartmann-4 against a round of SCBO in BoTorch, and one seed against ten in lock step.

    python benchmarks/scbo_round.py [--repeats N] [--seeds S]

CPU milliseconds per round, medians over data sets, one thread, in turns: the same points, values, centre and number of
candidates, in a region of side 0.8. Ours is a whole round, with its conditioning on the feedback. Kernel and noise are
given to our methods; so BoTorch plays twice, with the same kernel and noise and nothing to fit, and as in its tutorial,
with lengthscales (Matérn-5/2), amplitude and noise of both models fitted in every round. `all drawn` is our round when
the whole joint sample is drawn. Without BoTorch its columns stay empty.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Setting
from cbobench.gp import thompson
from cbobench.gp.kernels import Array
from cbobench.play.play import Play
from cbobench.problems import PROBLEMS
from cbobench.problems.box import BoxProblem
from cbobench.problems.data import DataFolder
from cbobench.rng import Streams

SIZES = (20, 50, 100, 150)
SIDE, LENGTHSCALE, NOISE = 0.8, 0.2, 0.01  # NOISE: a variance, in units of the squared amplitude
GIVEN = {"kernel": "given", "bilog": False, "candidates": 512}
Round = Callable[[], Any]


def milliseconds(call: Round) -> float:
    """CPU time."""
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def hartmann() -> BoxProblem:
    task: BoxProblem = params.build(PROBLEMS.get("hartmann-4"), {"lengthscale": LENGTHSCALE})
    task.prepare(DataFolder())
    return task


def ours(task: BoxProblem, points: Array, values: Array) -> tuple[Any, Round]:
    """A run of scbo that was told these points, and its next round."""
    one = np.ones((1, 2))
    setting = Setting(task.actions, 1, 200, one, one, one, np.ones(1), None, Streams([("benchmark",)]))
    run = params.build(ALGORITHMS.get("scbo"), GIVEN | {"initial": len(points), "length": SIDE})
    run.setting = setting
    run.start_one(setting)
    for x, (f, g) in zip(points, values, strict=True):
        run.ask_one(0)
        run.where = x[None]
        run.tell_one(0, None, f, np.array([g]))

    def play() -> None:
        f, g = task.formula(run.ask_one(0))
        run.tell_one(0, None, f, np.array([g]))

    return run, play


def botorch(points: Array, values: Array, centre: Array, candidates: int, fit: bool) -> None:
    """A round of BoTorch's SCBO tutorial: models of f and g, candidates, a joint sample of each, its best candidate."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.generation.sampling import ConstrainedMaxPosteriorSampling
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms.outcome import Standardize
    from gpytorch.constraints import Interval
    from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    x, d = torch.tensor(points), points.shape[1]
    models = []
    for column in values.T:
        y, standard = torch.tensor(column)[:, None], Standardize(m=1)
        if fit:
            kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=d, lengthscale_constraint=Interval(0.005, 4.0)))
            noise = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
            model = SingleTaskGP(x, y, covar_module=kernel, likelihood=noise, outcome_transform=standard)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        else:
            given = RBFKernel()
            given.lengthscale = LENGTHSCALE
            variance = torch.full_like(y, NOISE) * y.var()  # it is standardized with y
            model = SingleTaskGP(x, y, variance, covar_module=given, outcome_transform=standard)
        models.append(model)
    low, high = (torch.tensor(np.clip(centre + shift, 0.0, 1.0)) for shift in (-SIDE / 2, SIDE / 2))
    sobol = torch.quasirandom.SobolEngine(d, scramble=True).draw(candidates, dtype=torch.double)
    rule = ConstrainedMaxPosteriorSampling(models[0], constraint_model=ModelListGP(models[1]), replacement=False)
    with torch.no_grad():
        rule(low + (high - low) * sobol, num_samples=1)


def rounds(repeats: int) -> None:
    """Print the first table."""
    task, reach = hartmann(), thompson.REACH
    there = importlib.util.find_spec("botorch") is not None
    if not there:
        print("BoTorch is not installed: its columns stay empty; pip install botorch")
    print(f"{'t':>4} {'ours':>7} {'all drawn':>10} {'BoTorch, given':>15} {'x':>6} {'BoTorch, fitted':>16} {'x':>6}")
    for t in SIZES:
        times: dict[str, list[float]] = {"ours": [], "all": [], "given": [], "fitted": []}
        for repeat in range(repeats + 1):
            points = np.random.default_rng(repeat).random((t, 4))
            values = task.formula(points)
            run, play = ours(task, points, values)
            centre, candidates = run.model.played[run._centre()], run.most
            now = {"ours": milliseconds(play)}
            thompson.REACH = np.inf
            now["all"] = milliseconds(ours(task, points, values)[1])
            thompson.REACH = reach
            for name, fit in (("given", False), ("fitted", True)) if there else ():
                now[name] = milliseconds(lambda fit=fit: botorch(points, values, centre, candidates, fit))  # type: ignore[misc] # noqa: B023
            for name, value in now.items() if repeat else ():  # the first one warms up
                times[name].append(value)
        found = {name: statistics.median(each) for name, each in times.items() if each}
        row = f"{t:4d} {found['ours']:7.2f} {found['all']:10.2f}"
        for name, width in (("given", 15), ("fitted", 16)):
            row += f" {found[name]:{width}.1f} {found[name] / found['ours']:6.0f}" if there else ""
        print(row, flush=True)


def lock_step(seeds: int, repeats: int, horizon: int = 150) -> None:
    """Print how long a round of one seed takes, the mean of each alone, and of all together."""
    task = hartmann()

    def play(which: list[int]) -> float:
        cells = Play(task, "benchmark", params.build(ALGORITHMS.get("scbo"), GIVEN), "scbo", which, horizon)
        return milliseconds(lambda: list(cells)) / horizon

    turns = [
        (statistics.mean(play([seed]) for seed in range(seeds)), play(list(range(seeds)))) for _ in range(repeats + 1)
    ]
    alone, together = (min(times) for times in zip(*turns[1:], strict=True))
    print(f"\nT = {horizon}, ms per round: one seed {alone:.2f}, {seeds} in lock step {together:.2f} "
          f"({together / alone:.1f} x one)")  # fmt: skip


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=15, help="data sets per size")
    options.add_argument("--seeds", type=int, default=10, help="in lock step")
    given = options.parse_args()
    rounds(given.repeats)
    lock_step(given.seeds, max(3, given.repeats // 5))


if __name__ == "__main__":
    main()
