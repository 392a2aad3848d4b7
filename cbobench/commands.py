"""What each command does: call the library, print the answer, return the exit code.

pandas is imported only by commands that read results, Ray only where it plays.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cbobench.catalogue import do_data, do_list, do_show
from cbobench.errors import CbobenchError, Misuse, masked, printable
from cbobench.words import counted

if TYPE_CHECKING:
    from cbobench.results.record import RunRecord
    from cbobench.results.status import Status
    from cbobench.sweep.run import Outcome

__all__ = [
    "do_audit",
    "do_claims",
    "do_compact",
    "do_compare",
    "do_data",
    "do_figures",
    "do_list",
    "do_run",
    "do_show",
    "do_status",
    "do_verify",
]

SHOWN_FAILURES = 5


def do_run(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench run`."""
    from cbobench.threads import pin_threads

    pin_threads()
    from cbobench.sweep import run as sweep
    from cbobench.sweep.estimate import estimate
    from cbobench.sweep.interrupt import interruptible
    from cbobench.sweep.progress import Progress

    with interruptible():
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
            try:
                code = _report(outcome, todo.done, masked(shlex.join(again)), options.fail_fast, out)
            except OSError:
                if not outcome.stopped:
                    raise
                code = 130  # the terminal that was closed takes no last words

        try:
            sweep.execute(
                todo, cpus=options.cpus, address=options.address, fail_fast=options.fail_fast, budget=options.budget,
                on_receipt=progress.add, on_note=progress.note, when_played=finish,
            )  # fmt: skip
        except CbobenchError as error:
            progress.close()
            if isinstance(error, Misuse):
                raise
            print(f"cbobench: {error}; what is published stays, to go on: {masked(shlex.join(again))}", file=sys.stderr)
            return error.exit_code
    return code


def _report(outcome: Outcome, done: int, command: str, fail_fast: bool, out: TextIO) -> int:
    """Print what a sweep came to, its table to `out`; the exit code."""
    from cbobench.sweep.tally import Tally

    tally = Tally(outcome.errors)
    for error in tally.examples():
        print(f"failed: {printable(masked(error))}", file=sys.stderr)
    if tally.total > 1:
        print(printable(masked(str(tally))), file=sys.stderr)
    if outcome.stopped:
        good = done + outcome.played - outcome.failed
        bad = f", {outcome.failed} failed" if outcome.failed else ""
        cells = counted(outcome.cells, "cell")
        print(f"stopped: {good} of {cells} done{bad}; to go on: {printable(command)}", file=sys.stderr)
        return 1 if fail_fast and outcome.failed else 130
    from cbobench.report.compare import compare
    from cbobench.report.load import Run

    finished = Run(outcome.folder.uri)
    print(compare(finished), file=out)
    print(f"results: {outcome.folder}", file=out, flush=True)
    see = f"see: cbobench status {shlex.quote(str(outcome.folder))}"
    failed = int((finished.cells["status"] == "failed").sum())
    if outcome.spent:
        good = done + outcome.played - outcome.failed
        print(f"the budget is spent: {good} of {outcome.cells} cells are done; to go on: {command}", file=sys.stderr)
    if failed:
        print(f"{counted(failed, 'cell')} failed; {see}", file=sys.stderr)
    if outcome.absent:
        some = f"{len(outcome.absent)} of {counted(outcome.tasks, 'task')} played but not in {outcome.folder}"
        print(
            f"absent: {some} (first {outcome.absent[0]}); does every worker reach the same folder? {see}",
            file=sys.stderr,
        )
    return 1 if failed or outcome.absent else 0


def _import_if_asked(options: argparse.Namespace, *runs: str) -> None:
    """With `--imports`, import the modules that runs name, so that their cells can be compared with the code now."""
    if options.imports:
        from cbobench.results.folder import RunFolder
        from cbobench.results.record import RunRecord
        from cbobench.results.staleness import import_named

        for run in runs:
            import_named(pair for grid in RunRecord.read(RunFolder.at(run)).grids for pair in grid.pairs)


def do_status(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench status`."""
    from cbobench.results.folder import RunFolder
    from cbobench.results.source import libraries
    from cbobench.results.status import status as read

    _import_if_asked(options, options.run)
    folder = RunFolder.at(options.run)
    record, state = read(folder)
    hints = [printable(hint) for hint in _finishing(record, state)]
    failures = [
        {
            "cell": c.id,
            "problem": printable(c.pair.problem.title),
            "algorithm": printable(c.pair.algorithm.title),
            "seed": c.seed,
            "error": printable(e),
        }
        for c, e in state.failed
    ]  # fmt: skip
    if options.format == "json":
        content = {"suite": record.suite, "folder": str(folder), "expected": len(record.cells), **state.counts()}
        content |= {"unchecked": len(state.unchecked), "other_libraries": len(state.other)}
        print(json.dumps(content | {"failures": failures, "finish": hints}, indent=1, ensure_ascii=False))
        return 1 if failures else 0
    cells = counted(len(record.cells), "cell")
    print(printable(f"{record.suite}: {len(state.done)} of {cells} done, {len(state.failed)} failed, "
                  f"{len(state.missing)} missing, {len(state.stale)} stale"))  # fmt: skip
    for failure in failures[:SHOWN_FAILURES]:
        pair = f"{failure['problem']} / {failure['algorithm']}"
        print(f"  failed: {pair} seed {failure['seed']}: {failure['error']}")
    if len(failures) > SHOWN_FAILURES:
        print(f"  ... and {len(failures) - SHOWN_FAILURES} more (--format json lists all)")
    if state.stale:
        print("  stale: the code that plays these cells has changed since")
    if state.unchecked:
        names = {name for c in state.unchecked for name in (c.pair.problem.name, c.pair.algorithm.name)}
        absent = ", ".join(sorted(name for name in names if ":" in name))
        cells = counted(len(state.unchecked), "cell")
        why = "cannot be imported here" if options.imports else "is not imported to read a run, unless with --imports"
        print(f"  {cells} could not be checked for staleness: {absent} {why}")
    if state.other:
        cells = counted(len(state.other), "cell")
        print(f"  {cells} played with another NumPy or SciPy than this machine's {libraries()}")
    for hint in hints:
        print(f"  to go on: {printable(hint)}")
    return 1 if failures else 0


def do_compact(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench compact`."""
    from cbobench.results.compact import compact
    from cbobench.results.folder import RunFolder

    folder = RunFolder.at(options.run)
    print("{}: {} files of cells, now {}".format(folder, *compact(folder)))
    return 0


def do_verify(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench verify`."""
    from cbobench.results.folder import RunFolder
    from cbobench.results.status import status
    from cbobench.results.verify import repair, verify

    folder = RunFolder.at(options.run)
    found = verify(folder)
    moved = repair(folder, found) if options.repair else []
    if options.format == "json":
        content = {"folder": str(folder), "files": found.files, "cells": found.cells, "expected": found.asked}
        content |= {"damaged": [vars(damage) for damage in found.damaged], "orphans": found.orphans, "moved": moved}
        print(json.dumps(content, indent=1, ensure_ascii=False))
        return 1 if found.damaged and not options.repair else 0
    print(f"{len(found.damaged)} of {found.files} files are damaged; {found.cells} of {found.asked} cells are whole")
    for damage in found.damaged:
        print(f"  {damage.file}: {damage.why}")
    if found.twice:
        print(f"  {found.twice} cells were played twice, with the same results; each counts once")
    if found.orphans:
        print(f"  {len(found.orphans)} tasks have rounds and no cells yet; they do not count, and the next run goes on")
    if not options.repair:
        if found.damaged:
            print(f"  to move them into quarantine/: {masked(shlex.join(['cbobench', *given, '--repair']))}")
        return 1 if found.damaged else 0
    print(f"  moved into quarantine/: {len(moved)} files")
    for hint in _finishing(*status(folder)) if moved else ():
        print(f"  to go on: {hint}")
    return 0


def _finishing(record: RunRecord, state: Status) -> list[str]:
    """The commands that finish a run: those of the grids that hold what is missing, failed or stale."""
    from cbobench.results.asked import as_numbers

    failed = as_numbers([c.id for c, _ in state.failed])
    open_ids = {"": state.missing.ids, "failed": failed, "stale": state.stale.ids}
    hints = []
    for grid in record.grids if any(map(len, open_ids.values())) else ():
        wanted = [word for word, some in open_ids.items() if grid.cells.hold_any(some)]
        command = _without_again(list(grid.command))
        if wanted and command[:2] == ["cbobench", "run"]:  # nothing else that a folder holds is a command to advise
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


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No search for cycles: imports and syntax trees are a million objects with hardly one, a sixth of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@_uncollected()
def do_compare(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench compare`."""
    from cbobench.report.compare import compare

    _import_if_asked(options, *filter(None, (options.run, options.other)))
    asked = {k: v for k, v in vars(options).items() if k not in ("command", "format", "run", "other", "imports")}
    found = compare(options.run, options.other, **asked)
    print(found.render(options.format))
    if found.nothing:
        both = printable(f"{options.run} and {options.other}")
        print(f"nothing of {both} can be compared: {printable(found.nothing)}", file=sys.stderr)
    return 1 if found.worse or found.nothing else 0


def do_audit(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench audit`."""
    from cbobench.report.audit import audit
    from cbobench.report.load import Run

    _import_if_asked(options, options.run)
    finished = Run(options.run)
    print(audit(finished, options.format))
    if options.figures is not None:
        from cbobench.report.bound import draw_bounds

        for path in draw_bounds(finished, options.figures):
            print(path, file=sys.stderr)
    return 0


def do_figures(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench figures`."""
    from cbobench.report.figures import draw_all, problems_played
    from cbobench.report.load import Run

    _import_if_asked(options, options.run)
    finished = Run(options.run)
    out = options.out
    if out is None:
        out = Path(finished.folder.uri) / "figures" if finished.folder.local else Path("figures")
    part = finished if options.only is None else finished.only(options.only)
    look = {"kind": options.kind, "metrics": options.metric, "size": options.size, "statistic": options.statistic}
    drawn = False
    for figure, paths in draw_all(part, out, options.recipe, **look):
        drawn = True
        print(f"{figure.name}: {paths[0].with_suffix('')} {' '.join(path.suffix for path in paths)}")
    good, labels = problems_played(part), part.record.labels("problems")
    if absent := [label for title, label in labels.items() if title not in good]:
        print(f"not drawn, without a good cell of T = {part.horizon:,}: {', '.join(absent)}", file=sys.stderr)
    if not drawn:
        none = f"{options.recipe} has no" if options.recipe else "no recipe has a"
        print(f"nothing drawn: {none} figure of {', '.join(labels.values())}", file=sys.stderr)
    return 0 if drawn else 1


def do_claims(options: argparse.Namespace, given: list[str]) -> int:
    """`cbobench claims`."""
    from cbobench.report.claimtable import command

    _import_if_asked(options, *options.runs)
    return command(
        options.runs, options.format, options.recipe, options.only, options.parts, options.strict, options.map
    )
