"""Replays the points of a run on COCO's functions under COCO's observer, whose logs COCO's own
post-processing reads.

python -m analysis.field.to_coco RUN OUT [--algorithm LABEL] [--seed SEED]

Each method becomes a folder of OUT, which `python -m cocopp` opens beside COCO's archive. Written
are functions that were played as COCO has them: in its units, without a grid, and without noise.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pandas as pd

from cbobench.errors import CbobenchError, Misuse, printable
from cbobench.problems.formulas.coco import SUITE, Coco
from cbobench.report.load import Run

COCOS_OWN = {"grid": None, "noise_f": 0.0, "noise_g": 0.0, "scaled": False}
"""Settings by which x, f and every g are COCO's."""
TRIPLE = ["function", "dimension", "instance"]
"""Settings that name one of COCO's functions."""


def read_rounds(run: Run, filters: dict[str, Any]) -> pd.DataFrame:
    """Every round on COCO's functions at the latest T: `label`, `x` and `f`, with its `TRIPLE`.

    Args:
        filters: of the cells, such as algorithm="cobyla"; by default the first seed alone.

    Raises:
        Misuse: no such round, or some are not stored.
    """
    settings = {
        title: variant.settings
        for title, variant in run.record.variants("problems").items()
        if variant.name == "coco" and COCOS_OWN.items() <= variant.settings.items()
    }
    cells = {
        "problem": [*settings],
        "seed": int(run.cells["seed"].min()),
        "horizon": run.horizon,
        "status": "ok",
    } | filters
    wanted = len(run.select(**cells)) * run.horizon
    if run.is_thinned or not 0 < wanted == len(rounds := run.rounds(["label", "x", "f"], **cells)):
        raise Misuse(
            f"{run} does not hold every x on COCO's functions without noise; give the folder of a "
            "run with record: all, such as one of field_coco_2"
        )
    return rounds.join(pd.DataFrame(settings, TRIPLE).T, on="problem")


def log_rounds(rounds: pd.DataFrame, out: Path, name: str) -> str:
    """Evaluate a method's points, constraints before f; the folder of the logs.

    Raises:
        Misuse: COCO is not installed, or its f is not the run's.
    """
    Coco().validate()
    import cocoex

    cocoex.log_level("warning")
    suite = cocoex.Suite(SUITE, "", "")  # kept, as its functions do not outlive it
    options = f'outer_folder: "{out}" result_folder: {name} algorithm_name: {name}'
    observer = cocoex.Observer("bbob", options)
    for (*triple, _), play in rounds.groupby([*TRIPLE, "problem"]):
        problem = suite.get_problem_by_function_dimension_instance(*triple)
        problem.observe_with(observer)
        values = []
        for x in play["x"]:
            problem.constraint(x)
            values.append(-problem(x))
        problem.free()  # before the next one is observed
        if values != play["f"].tolist():
            raise Misuse(
                f"f of COCO's function {triple} is not the run's; install the version that played"
            )
    return observer.result_folder


def write_logs(run: Run, out: Path, filters: dict[str, Any]) -> None:
    """Write a folder for each method, and say how many functions are in it."""
    for label, rounds in read_rounds(run, filters).groupby("label"):
        name = re.sub("[^a-zA-Z0-9_.-]+", "-", str(label))  # a word of COCO's options
        print(f"{log_rounds(rounds, out, name)}: {rounds['problem'].nunique()} functions")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A run for COCO's post-processing.")
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--algorithm", metavar="LABEL", default=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=argparse.SUPPRESS)
    given = vars(parser.parse_args())
    try:
        write_logs(Run(given.pop("run")), given.pop("out"), given)
    except CbobenchError as error:
        raise SystemExit(f"to_coco: {printable(str(error))}") from None
