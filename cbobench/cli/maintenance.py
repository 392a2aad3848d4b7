"""Commands about a run folder: what is done, whether its files are whole, merging small ones,
exporting results.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cbobench.cli.arguments import print_json, tell
from cbobench.cli.parser import UNDECIDED
from cbobench.errors import Misuse, printable
from cbobench.words import count_noun, part_of

if TYPE_CHECKING:
    from cbobench.report.tables.status import Status
    from cbobench.results.folder import RunFolder
    from cbobench.results.manifest import Manifest
    from cbobench.results.verify import Verification


def import_if_asked(options: argparse.Namespace, *runs: str) -> None:
    """With `--imports`, import the modules that runs name, so that their cells can be compared with
    the code now.
    """
    if options.imports:
        from cbobench.results.folder import open_run
        from cbobench.results.manifest import Manifest
        from cbobench.results.source import import_named

        for run in runs:
            import_named(pair for grid in Manifest.read(open_run(run)).grids for pair in grid.pairs)


def do_status(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench status`; the exit code is 0 where all cells are done."""
    from cbobench.report.tables.status import look

    import_if_asked(options, options.run)
    now = look(options.run)
    hints = finishing(now.record, now.state, now.folder)
    if options.format == "json":
        print_json(now.to_json() | {"finish": hints})
    else:
        when = "once that has ended" if now.player else "to go on"
        lines = now.describe()
        lines += _describe_origins(now.state, options.imports)
        lines += [f"  {when}: {hint}" for hint in hints]
        # Whoever made the folder chose its texts: all lines are made printable at once.
        print("\n".join(map(printable, lines)))
    if now.is_complete:
        return 0
    return 1


def _describe_origins(state: Status, imports: bool) -> list[str]:
    """Return lines on the code, the libraries and the arithmetic that played the cells, where they
    are not today's.

    Args:
        imports: whether modules of the user's own were imported to look at their code.
    """
    from cbobench.results.provenance import mixed_note
    from cbobench.results.source import find_imports, libraries, registered_names

    lines = []
    if state.stale:
        lines.append("  stale: the code that plays these cells has changed since")
    if state.unchecked:
        # A name that this cbobench does not have says more than a module that is not imported.
        pairs = [cell.pair for cell in state.unchecked]
        imported = {name for pair in pairs for name in find_imports(pair)}
        unregistered = {
            name for pair in pairs for name in (pair.problem.name, pair.algorithm.name)
        } - imported
        unregistered -= registered_names()
        if unregistered:
            why = "is nothing that this cbobench has; look with the version that played them"
        elif imports:
            why = "cannot be imported (from the path of Python, or this folder)"
        else:
            why = "is not imported to read a run, unless with --imports"
        absent = ", ".join(sorted(unregistered or imported))
        cells = count_noun(len(state.unchecked), "cell")
        lines.append(f"  {cells} could not be checked for staleness: {absent} {why}")
    if state.other_libraries:
        cells = count_noun(len(state.other_libraries), "cell")
        lines.append(f"  {cells} played with other libraries than this machine's {libraries()}")
    if mixed := mixed_note(state.arithmetic):
        lines.append(f"  {mixed}")
    return lines


def do_export(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench export`."""
    from cbobench.results.export import export

    bundle = export(options.run, options.out, options.rounds)
    for path in bundle.paths:
        tell(f"the bundle names a path, as the suite does: {path}")
    failed = f", {bundle.failed} failed" if bundle.failed else ""
    cells = count_noun(bundle.expected, "cell")
    print(
        printable(
            f"{bundle.file}: {bundle.done:,} of {cells} done{failed}, {bundle.size / 1000:,.0f} kB"
        )
    )
    return 0


def do_verify(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench verify`."""
    if options.replay is not None:
        return _do_replay(options)
    for name in ("seed", "data", "imports"):
        if getattr(options, name) not in (None, False):
            raise Misuse(f"--{name} is about --replay; add --replay K, or leave it out")
    if len(options.runs) > 1:
        raise Misuse(
            f"{len(options.runs)} runs are given; allowed: one, or several with --replay K"
        )
    return _do_verify_files(options)


def _do_replay(options: argparse.Namespace) -> int:
    """`cbobench verify --replay`."""
    from cbobench.replay.replay import describe_draw, describe_replay, replay, replay_as_json
    from cbobench.replay.stage import Stage

    replayed = replay(
        options.runs,
        count=options.replay,
        seed=options.seed,
        stage=Stage(data=options.data, imports=options.imports),
        on_draw=lambda drawn: print(describe_draw(drawn), file=sys.stderr, flush=True),
    )
    if options.format == "json":
        print_json(replay_as_json(replayed))
    else:
        print("\n".join(describe_replay(replayed)))
    return {"equal": 0, "differs": 1, "not checked": UNDECIDED}[replayed.verdict]


def _do_verify_files(options: argparse.Namespace) -> int:
    from cbobench.results.folder import open_run
    from cbobench.results.verify import verify

    folder = open_run(options.runs[0])
    condition = verify(folder)
    exit_code = 1 if condition.damaged else 0
    if options.format == "json":
        content = {
            "folder": str(folder),
            "files": condition.files,
            "cells": condition.cells,
            "expected": condition.expected,
            "damaged": [
                {"file": damage.file, "why": printable(damage.why)} for damage in condition.damaged
            ],
        }
        print_json(content)
        return exit_code
    lines = _describe_condition(condition)
    if condition.damaged:
        lines.append(
            "export it again: cbobench export RUN"
            if folder.is_bundle
            else "cbobench run SUITE --again damaged removes these, and plays what they held"
        )
    print("\n  ".join(map(printable, lines)))
    return exit_code


def _describe_condition(condition: Verification) -> list[str]:
    """Return lines on what `verify` found."""
    if condition.expected is None:
        intact_cells = f"whole cells: {condition.cells:,} (no record says how many were asked for)"
    else:
        intact_cells = f"{part_of(condition.cells, condition.expected, 'cell')} whole"
    lines = [f"{part_of(len(condition.damaged), condition.files, 'file')} damaged; {intact_cells}"]
    return lines + [f"{damage.file}: {damage.why}" for damage in condition.damaged]


def finishing(record: Manifest, state: Status, folder: RunFolder) -> list[str]:
    """The commands that finish a run: those of the grids that hold what is missing, failed or
    stale.
    """
    from cbobench.results.manifest import as_numbers

    failed = as_numbers([c.id for c, _ in state.failed])
    open_ids = {"": state.missing.ids, "failed": failed, "stale": state.stale.ids}
    hints = []
    for grid in record.grids if any(map(len, open_ids.values())) else ():
        states = [word for word, ids in open_ids.items() if grid.cells.hold_any(ids)]
        # a stranger's folder may say anything
        if states and list(grid.command[:2]) == ["cbobench", "run"]:
            command = _resume_command(list(grid.command), folder, record.suite)
            flags = [part for word in states if word for part in ("--again", word)]
            hints.append(printable(shlex.join([*command, *flags])))
    return hints


def _resume_command(command: list[str], folder: RunFolder, suite: str) -> list[str]:
    """A `cbobench run` that plays into this folder, without the options that concerned an earlier
    call only.

    The folder may have moved since, or be looked at from elsewhere.
    """
    # Parsed only to take these options out; all others go on as they are.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out")
    parser.add_argument("--again", action="append")
    parser.add_argument("--fail-fast", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    options, arguments = parser.parse_known_args(command)
    out = options.out
    if folder.local and Path(out or f"runs/{suite}").absolute() != Path(folder.uri):
        out = folder.uri
    if out:
        return [*arguments, "--out", out]
    return arguments
