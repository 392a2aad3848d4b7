"""What each command does: call the library, print the answer, return the exit code.

pandas is imported only by commands that read results, Ray only where tasks are played.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cbobench.errors import unknown
from cbobench.report.formats import TextTable, render

if TYPE_CHECKING:
    from cbobench.results.record import RunRecord
    from cbobench.results.status import Status
    from cbobench.sweep.run import Outcome

SHOWN_FAILURES = 5


def do_run(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench run`."""
    from cbobench.threads import pin_threads

    pin_threads()
    from cbobench.sweep import run as sweep
    from cbobench.sweep.estimate import estimate
    from cbobench.sweep.progress import Progress

    todo = sweep.plan(
        options.suite, out=options.out, seeds=options.seeds, horizon=options.horizon, only=options.only,
        data=options.data, cpus=options.cpus, address=options.address, block=options.block, again=options.again,
        imports=not options.no_imports, command=["cbobench", *given],
    )  # fmt: skip
    if options.dry_run:
        print(estimate(todo, options.cpus))
        return 0
    code = 0
    again = ["cbobench", *given]
    out = sys.stdout
    with Progress(todo) as progress, contextlib.redirect_stdout(sys.stderr):  # Ray prints of crashed workers

        def finish(outcome: sweep.Outcome) -> None:
            nonlocal code
            progress.close()
            code = _report(outcome, todo.done, shlex.join(again), options.fail_fast, out)

        sweep.execute(
            todo, cpus=options.cpus, address=options.address, fail_fast=options.fail_fast,
            on_receipt=progress.add, when_played=finish,
        )  # fmt: skip
    return code


def _report(outcome: Outcome, done: int, command: str, fail_fast: bool, out: TextIO) -> int:
    """Print what a sweep came to, its table to `out`; the exit code."""
    for error in outcome.errors[:SHOWN_FAILURES]:
        print(f"failed: {error}", file=sys.stderr)
    if outcome.stopped:
        good = done + outcome.played - outcome.failed
        bad = f", {outcome.failed} failed" if outcome.failed else ""
        print(f"stopped: {good} of {outcome.cells} cells are done{bad}; to go on: {command}", file=sys.stderr)
        return 1 if fail_fast and outcome.failed else 130
    from cbobench.report.compare import compare as table
    from cbobench.report.load import Run

    finished = Run(outcome.folder.uri)
    print(table(finished), file=out)
    print(f"results: {outcome.folder.uri}", file=out, flush=True)
    see = f"see: cbobench status {shlex.quote(outcome.folder.uri)}"
    failed = int((finished.cells["status"] == "failed").sum())
    if failed:
        print(f"{failed} cells failed; {see}", file=sys.stderr)
    if outcome.absent:
        some = f"{len(outcome.absent)} of {outcome.tasks} tasks were played but are not in {outcome.folder.uri}"
        print(
            f"absent: {some} (first {outcome.absent[0]}); does every worker reach the same folder? {see}",
            file=sys.stderr,
        )
    return 1 if failed or outcome.absent else 0


def do_status(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench status`."""
    from cbobench.results.folder import RunFolder
    from cbobench.results.source import libraries
    from cbobench.results.status import status as read

    folder = RunFolder.at(options.run)
    record, state = read(folder)
    hints = _finishing(record, state)
    failures = [
        {
            "cell": c.id,
            "problem": c.pair.problem.title,
            "algorithm": c.pair.algorithm.title,
            "seed": c.seed,
            "error": e,
        }
        for c, e in state.failed
    ]
    if options.format == "json":
        content = {"suite": record.suite, "folder": folder.uri, "expected": len(record.cells), **state.counts()}
        content["other_libraries"] = len(state.other)
        print(json.dumps(content | {"failures": failures, "finish": hints}, indent=1, ensure_ascii=False))
        return 1 if failures else 0
    print(f"{record.suite}: {len(state.done)} of {len(record.cells)} cells done, {len(state.failed)} failed, "
          f"{len(state.missing)} missing, {len(state.stale)} stale")  # fmt: skip
    for failure in failures[:SHOWN_FAILURES]:
        print(f"  failed: {failure['problem']} / {failure['algorithm']} seed {failure['seed']}: {failure['error']}")
    if len(failures) > SHOWN_FAILURES:
        print(f"  ... and {len(failures) - SHOWN_FAILURES} more (--format json lists all)")
    if state.stale:
        print("  stale: the code that plays these cells has changed since")
    if state.other:
        print(f"  {len(state.other)} cells were played with another NumPy or SciPy than this machine's {libraries()}")
    for hint in hints:
        print(f"  to go on: {hint}")
    return 1 if failures else 0


def _finishing(record: RunRecord, state: Status) -> list[str]:
    """The commands that finish a run: those of the grids that hold what is missing, failed or stale."""
    open_cells = {"": state.missing, "failed": [c for c, _ in state.failed], "stale": state.stale}
    open_ids = {word: {c.id for c in some} for word, some in open_cells.items() if some}
    hints = []
    for grid in record.grids if open_ids else ():
        held = {cell.id for cell in grid.cells}
        wanted = [word for word, some in open_ids.items() if held & some]
        command = _without_again(list(grid.command))
        if wanted and command:
            hints.append(shlex.join([*command, *[part for word in wanted if word for part in ("--again", word)]]))
    return hints


def _without_again(command: list[str]) -> list[str]:
    """A command line without what concerned that call only."""
    kept: list[str] = []
    skip = False
    for word in command:
        if skip or word in ("--fail-fast", "--dry-run") or word.startswith("--again="):
            skip = False
        elif word == "--again":
            skip = True  # its value, too
        else:
            kept.append(word)
    return kept


def do_compare(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench compare`."""
    from cbobench.report.compare import compare as table
    from cbobench.report.load import Run

    print(table(Run(options.run), options.format))
    return 0


def do_figures(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench figures`."""
    from cbobench.report.figures import draw_all
    from cbobench.report.load import Run

    finished = Run(options.run)
    out = options.out
    if out is None:
        out = Path(finished.folder.uri) / "figures" if finished.folder.local else Path("figures")
    for figure, paths in draw_all(finished, out, options.recipe):
        print(f"{figure.name}: {paths[0].with_suffix('')} {' '.join(path.suffix for path in paths)}")
    return 0


def _catalogue(what: str) -> list[dict[str, Any]]:
    from cbobench import resources
    from cbobench.algorithms import ALGORITHMS
    from cbobench.problems import PROBLEMS
    from cbobench.suite import yamlio

    if what == "suites":
        found = {name: yamlio.read(path) for name, path in resources.suites().items()}
        return [
            {"name": n, "horizon": c["horizon"], "seeds": c["seeds"], "about": c.get("about", "")}
            for n, c in found.items()
        ]
    registry = PROBLEMS if what == "problems" else ALGORITHMS
    rows = []
    for name in registry.names():
        cls = registry.get(name)
        row = {"name": name, "source": cls.source, "about": cls.about}
        if what == "algorithms":
            plays = "finite" if "a finite action set" in cls.needs else "finite, box"
            needs = sorted(cls.needs - {"a finite action set"})
            row |= {"knows": list(cls.knows), "plays": plays, "needs": needs, "cost": cls.cost}
        else:
            row |= cls.facts()
        rows.append(row)
    return rows


def do_list(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench list`."""
    rows = _catalogue(options.what)
    if options.format == "json":
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    markdown = options.format == "markdown"
    if markdown:
        rows = [row | {"name": f"`{row['name']}`"} for row in rows]
    texts = [[", ".join(v) if isinstance(v, list) else str(v) for v in row.values()] for row in rows]
    print(render(TextTable([*rows[0]], texts, left=len(rows[0])), options.format))
    return 0


def do_show(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench show`."""
    import inspect

    from cbobench import params, resources
    from cbobench.algorithms import ALGORITHMS
    from cbobench.problems import PROBLEMS
    from cbobench.registry import import_object
    from cbobench.suite import yamlio

    name = options.name
    if name in resources.suites():
        if options.format == "json":
            print(json.dumps(yamlio.read(resources.suites()[name]), indent=1, ensure_ascii=False))
        else:
            print(resources.suites()[name].read_text(encoding="utf-8").rstrip())
        return 0
    registries = {"algorithm": ALGORITHMS, "problem": PROBLEMS}
    what = next((w for w, registry in registries.items() if name in registry.names()), None)
    if what is None and ":" in name:
        what = "problem" if issubclass(import_object(name), import_object(PROBLEMS.base)) else "algorithm"
    if what is None:
        raise unknown("name", name, [*ALGORITHMS.names(), *PROBLEMS.names(), *resources.suites()])
    cls = registries[what].get(name)
    described = [p.__dict__ for p in params.params_of(cls)]
    facts = {"name": name, "kind": what, "source": cls.source, "about": cls.about, "text": inspect.getdoc(cls)}
    if what == "algorithm":
        facts["knows"] = ", ".join(cls.knows)
    else:
        facts |= {"posterior": _representations(cls), "noise": cls.noise_near_optimum()}
    if options.format == "json":
        print(json.dumps(facts | {"parameters": described}, indent=1, ensure_ascii=False))
        return 0
    print(f"{name} ({what}; {cls.source})\n\n{facts['text']}\n")
    if what == "algorithm" and facts["knows"]:
        print(f"must know: {facts['knows']}\n")
    if what == "problem" and facts["posterior"]:
        print(f"posterior: {facts['posterior']}\n")
    if what == "problem" and facts["noise"]:
        print(f"default noise on f: {facts['noise']}\n")
    texts = [[p["name"], json.dumps(p["default"]), p["type"], p["about"]] for p in described]
    print(render(TextTable(["parameter", "default", "allowed", "meaning"], texts, left=4), "table"))
    return 0


def _representations(cls: type[Any]) -> str:
    """How learners represent their posterior on a problem with default parameters, for short and long horizons."""
    from cbobench import params
    from cbobench.gp.posteriors.choice import representation
    from cbobench.problems.data import DataFolder

    try:
        problem = params.build(cls, {})
        problem.prepare(DataFolder())
    except Exception:  # a user's problem may raise anything
        return ""  # a problem that needs files, or parameters, is not there by default
    found = [representation(problem.actions, horizon) for horizon in (100, 10_000)]
    return found[0] if found[0].startswith("observations (box") else "; ".join(found)


def do_data(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench data fetch|path`."""
    from cbobench.problems.data import DATA_SETS, REPOSITORY, DataFolder, fetch

    folder = DataFolder(options.data).path
    if options.action == "path":
        print(folder)
        return 0
    names = options.names or list(DATA_SETS)
    for name in names:
        if name not in DATA_SETS:
            raise unknown("data set", name, DATA_SETS)
    for name in names:
        print(f"{name}: {fetch(name, folder, options.base_url or REPOSITORY)}")
    return 0
