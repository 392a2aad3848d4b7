"""Measure the table of the problem `tuning-under-deadline`: a small network on scikit-learn's
digits, trained for real.

    python -m benchmarks.quality.measure_tuning [--repetitions 12] [--out FOLDER]

Every configuration is trained once per repetition. A repetition has its own split into training and
validation images and its own initial weights, the same for all configurations; all trainings are
run one after the other in random order, so that a slow moment of the machine is no property of a
configuration. Needs scikit-learn (`pip install .[test]`), takes a minute or two on one thread, and
writes `tuning.csv` with `tuning.json` (what, where and when) beside it.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from benchmarks.commands import make_parser
from benchmarks.machine import name_processor
from cbobench.problems.tables.measured import MEASURED
from cbobench.rng import generator

HIDDEN = (8, 16, 32, 64, 128)
RATE = (1e-3, 10**-2.5, 1e-2, 10**-1.5, 1e-1)
PASSES = (3, 6, 12, 24)
HEADER = "hidden,rate,passes,repetition,error,wall_ms,cpu_ms"


def train(
    images: np.ndarray, digits: np.ndarray, hidden: int, rate: float, passes: int, seed: int
) -> tuple[float, ...]:
    """(validation error, wall-clock milliseconds, CPU milliseconds) of one training."""
    split = train_test_split(images, digits, test_size=0.25, random_state=seed, stratify=digits)
    train_images, validation_images, train_digits, validation_digits = split
    model = MLPClassifier(
        (hidden,),
        learning_rate_init=rate,
        max_iter=passes,
        batch_size=64,
        tol=1e-3,
        n_iter_no_change=3,
        random_state=seed,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(train_images, train_digits)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return 1 - model.score(validation_images, validation_digits), 1e3 * wall, 1e3 * cpu


def measure(repetitions: int) -> list[str]:
    """Lines of the table, sorted by configuration and repetition."""
    images, digits = load_digits(return_X_y=True)
    images = images / 16
    jobs = list(itertools.product(HIDDEN, RATE, PASSES, range(repetitions)))
    order = generator("tuning-under-deadline", "order").permutation(len(jobs))
    lines = [""] * len(jobs)
    train(images, digits, 8, 1e-2, 3, 0)  # the first training of a process also loads libraries
    for done, job in enumerate(order.tolist()):
        hidden, rate, passes, repetition = jobs[job]
        error, wall, cpu = train(images, digits, hidden, rate, passes, repetition)
        lines[job] = f"{hidden},{rate:.6g},{passes},{repetition},{error:.6f},{wall:.3f},{cpu:.3f}"
        if done % 100 == 0:
            print(f"{done} of {len(jobs)} trainings", flush=True)
    return lines


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--out", type=Path, default=MEASURED.parent)
    given = parser.parse_args()
    started, load = time.perf_counter(), os.getloadavg()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of passes is what is tuned
        lines = measure(given.repetitions)
    about = {
        "what": "scikit-learn MLPClassifier on the digits data set (1797 images, a random "
        "stratified "
        "75/25 split per "
        "repetition): validation error and training time of one training",
        "model": "one hidden layer, Adam, batches of 64, stops after `passes` passes over the "
        "training images or after "
        "3 passes that lower the loss by less than 0.001",
        "columns": {
            "hidden": "hidden units",
            "rate": "initial learning rate",
            "passes": "largest number of passes",
            "repetition": "seed of the split and of the initial weights",
            "error": "share of validation images that are misread",
            "wall_ms": "training time by the clock, milliseconds",
            "cpu_ms": "training time of the processor, milliseconds",
        },
        "command": f"python -m benchmarks.quality.measure_tuning --repetitions {given.repetitions}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": round(time.perf_counter() - started),
        "threads": 1,
        "load_before": round(load[0], 2),
        "load_after": round(os.getloadavg()[0], 2),
        "cpu": name_processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "tuning.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    (given.out / "tuning.json").write_text(json.dumps(about, indent=2) + "\n")
    print(
        f"{len(lines)} trainings in {about['seconds']} s: {given.out / 'tuning.csv'}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
