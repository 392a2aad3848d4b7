"""Makes suites/costs.json from runs of shipped suites: `python docs/costs.py RUN ... [--speed SECONDS]`.

What `cbobench run --dry-run` knows of the pairs of these suites. A run of a few seeds is enough; play it with
`--cpus 0` on a machine that does nothing else, and give what `cbobench.sweep.costs.speed()` is there if it is another.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cbobench import resources
from cbobench.report.load import Run
from cbobench.suite.load import load
from cbobench.sweep.costs import FILE, gathered, speed
from cbobench.words import counted


def main() -> None:
    """Read runs, write the table."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("runs", nargs="+")
    given.add_argument("--speed", type=float)
    given.add_argument("--data", type=Path)
    options = given.parse_args()
    measured = []
    for where in options.runs:
        run = Run(where)
        suite = load(resources.find_suite(run.record.suite.replace("-", "_")), data=options.data)
        for (problem, algorithm, horizon), cells in run.cells.groupby(["problem", "algorithm", "horizon"]):
            pair = next((p for p in suite.grid.pairs if p.title == f"{problem}/{algorithm}"), None)
            good = cells[cells["status"] == "ok"]
            if pair is None or not len(good):
                why = "no cell of it is ok" if pair is not None else f"the suite {suite.name} has no pair of that name"
                print(f"left out: {problem}/{algorithm} (T = {horizon}) of {where}: {why}")
                continue
            each = float(good["seconds"].mean()) / int(horizon)
            block = min(run.record.block, len(cells))
            measured.append((pair, suite.problems[pair.problem.title], int(horizon), block, each))
    content = gathered(measured, options.speed or speed())
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(some)}" for name, some in content["costs"].items())
    path = resources.folder("suites") / FILE
    path.write_text(f'{{"speed": {content["speed"]:.3g}, "costs": {{\n{rows}\n}}}}\n')
    print(f"{path}: {counted(sum(map(len, content['costs'].values())), 'pair')}")


if __name__ == "__main__":
    main()
