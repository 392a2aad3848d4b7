"""What each command does: call the library, print the answer, return the exit code.

pandas is imported only by commands that read results, Ray only where it plays.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cbobench.check.verdicts import do_check
from cbobench.cli.catalogue import do_data, do_list, do_reference, do_show
from cbobench.cli.maintenance import do_compact, do_export, do_remove, do_status, do_verify, finishing, import_if_asked
from cbobench.cli.new import do_new
from cbobench.errors import CbobenchError, Misuse, mask_secrets, printable
from cbobench.words import count_noun, part_of

if TYPE_CHECKING:
    from cbobench.sweep.run import Outcome

UNDECIDED = 3  # exit code where seeds are too few to tell whether anything is worse

__all__ = [
    "do_audit",
    "do_best",
    "do_check",
    "do_claims",
    "do_compact",
    "do_compare",
    "do_data",
    "do_export",
    "do_figures",
    "do_list",
    "do_new",
    "do_reference",
    "do_remove",
    "do_report",
    "do_run",
    "do_show",
    "do_status",
    "do_verify",
    "do_watch",
]


def do_run(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench run`."""
    from cbobench.arithmetic import requested_arithmetic, set_arithmetic
    from cbobench.threads import pin_threads

    pin_threads()
    set_arithmetic(options.arithmetic)
    requested_arithmetic()  # a wrong word in the environment is refused before anything is read
    from cbobench.sweep.interrupt import interruptible

    resume_command = printable(mask_secrets(shlex.join(["cbobench", *command_line])))
    with interruptible():  # while it plans, and between that and playing, as well
        try:
            return _run(options, command_line, resume_command)
        except KeyboardInterrupt:
            print(f"stopped: nothing more is played; to go on: {resume_command}", file=sys.stderr)
            return 130


def _run(options: argparse.Namespace, command_line: list[str], resume_command: str) -> int:
    from cbobench.sweep import run as sweep
    from cbobench.sweep.estimate import estimate, in_time
    from cbobench.sweep.executors import ExecutorDied
    from cbobench.sweep.progress import Progress
    from cbobench.sweep.run_options import Budget

    Budget(options.budget)  # a wrong one is refused before anything is read
    planned = partial(
        sweep.plan,
        options.suite,
        out=options.out,
        seeds=options.seeds,
        horizon=options.horizon,
        only=options.only,
        data=options.data,
        cpus=options.cpus,
        address=options.address,
        engine=options.engine,
        block=options.block,
        again=options.again,
        imports=not options.no_imports,
        command=["cbobench", *command_line],
    )
    if options.dry_run:

        def say(text: str) -> None:
            print(f"dry run: {text}", file=sys.stderr, flush=True)

        cpus = 0 if options.engine == "inline" else options.cpus
        with in_time():
            sweep_plan = planned(say=say)
            lines = [estimate(sweep_plan, cpus, say), *(f"not played: {line}" for line in sweep_plan.record.unplayable)]
        print("\n".join(lines))
        return 0
    sweep_plan = planned(on_wait=lambda text: print(printable(text), file=sys.stderr, flush=True))
    code = 0
    out = sys.stdout
    with Progress(sweep_plan) as progress, contextlib.redirect_stdout(sys.stderr):  # Ray prints of crashed workers

        def finish(outcome: sweep.Outcome) -> None:
            nonlocal code
            progress.begin()
            progress.close()
            try:
                code = _print_outcome(
                    outcome, sweep_plan.done, resume_command, options.fail_fast, progress.last_failed, out
                )
            except OSError:
                if not outcome.stopped:
                    raise
                code = 130  # the terminal that was closed takes no last words

        try:
            sweep.execute(
                sweep_plan,
                cpus=options.cpus,
                address=options.address,
                engine=options.engine,
                ship=options.ship,
                fail_fast=options.fail_fast,
                budget=options.budget,
                on_receipt=progress.add,
                on_note=progress.note,
                on_start=progress.follow,
                when_played=finish,
            )
        except CbobenchError as error:
            progress.close()
            if isinstance(error, Misuse):
                raise
            if isinstance(error, ExecutorDied) and options.address is not None:
                local_command = shlex.join(["cbobench", *_without_cluster(command_line)])
                resume_command = f"{local_command} (on this machine; on a cluster that is up, add its --address)"
            message = f"{error}; what is published stays, to go on: {resume_command}"
            print(f"cbobench: {printable(mask_secrets(message))}", file=sys.stderr)
            return error.exit_code
    return code


def _without_cluster(command_line: list[str]) -> Iterator[str]:
    """The arguments of a command that played on a cluster, for this machine."""
    arguments = iter(command_line)
    for word in arguments:
        if word == "--address":
            next(arguments, None)
        elif word != "--ship" and not word.startswith("--address="):
            yield word


def _print_outcome(outcome: Outcome, done: int, command: str, fail_fast: bool, announced: int, out: TextIO) -> int:
    """Print the outcome of a sweep, its table to `out`; the exit code.

    Args:
        done: cells that were done before.
        command: resumes the run.
        announced: failures whose kinds were printed during the sweep.
    """
    from cbobench.results.query import FailureCounts

    tally = FailureCounts(outcome.errors)
    for error in tally.examples():
        print(f"failed: {printable(mask_secrets(error))}", file=sys.stderr)
    if tally.total > max(1, announced):
        print(printable(mask_secrets(str(tally))), file=sys.stderr)
    if outcome.stopped:
        good = done + outcome.played - outcome.failed
        failed_note = f", {outcome.failed} failed" if outcome.failed else ""
        cells = count_noun(outcome.cells, "cell")
        print(f"stopped: {good:,} of {cells} done{failed_note}; to go on: {command}", file=sys.stderr)
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
        print(f"the budget is spent: {part_of(good, outcome.cells, 'cell')} done; to go on: {command}", file=sys.stderr)
    if failed:
        print(f"{count_noun(failed, 'cell')} failed; {see}", file=sys.stderr)
    if outcome.absent:
        absent_tasks = (
            f"{len(outcome.absent):,} of {count_noun(outcome.tasks, 'task')} played but not in {outcome.folder}"
        )
        print(
            f"absent: {absent_tasks} (first {outcome.absent[0]}); does every worker reach the same folder? {see}",
            file=sys.stderr,
        )
    return 1 if failed or outcome.absent else 0


def do_compare(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench compare`."""
    from cbobench.report.compare import compare

    import_if_asked(options, *filter(None, (options.run, options.other)))
    settings = {k: v for k, v in vars(options).items() if k not in ("command", "format", "run", "other", "imports")}
    comparison = compare(options.run, options.other, **settings)
    print(comparison.render(options.format))
    if options.format in ("csv", "json"):  # a table says it below
        for line in comparison.unplayable:
            print(f"not played: {line}", file=sys.stderr)
    if comparison.nothing:
        runs = printable(f"{options.run} and {options.other}")
        print(f"nothing of {runs} can be compared: {printable(comparison.nothing)}", file=sys.stderr)
    if comparison.undecided:
        print(printable(comparison.undecided), file=sys.stderr)
    return 1 if comparison.worse or comparison.nothing else UNDECIDED if comparison.undecided else 0


def do_best(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench best`."""
    from cbobench.report.best import best

    print(best(options.run, top=options.top, only=options.only).render(options.format))
    return 0


def do_watch(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench watch`."""
    from cbobench.report.watch import command

    return command(options.run, options.once, options.json, lambda: finishing(options.run))


def do_audit(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench audit`."""
    from cbobench.papers.audit_report import audit
    from cbobench.report.load import Run

    import_if_asked(options, options.run)
    finished = Run(options.run)
    finished.folder.refuse_bundle("a bundle holds no audit; give the run folder")
    print(audit(finished, options.format))
    if options.figures is not None:
        from cbobench.papers.audit_report import draw_bounds

        for path in draw_bounds(finished, options.figures):
            print(path, file=sys.stderr)
    return 0


def do_figures(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench figures`."""
    from cbobench.report.figures import DrawOptions, describe_files, draw_all, problems_played
    from cbobench.report.load import Run
    from cbobench.report.style import size_of

    size_of(options.width, 1, options.font)  # refused before anything is read
    import_if_asked(options, options.run)
    finished = Run(options.run)
    finished.folder.refuse_bundle("recipes draw rounds that no bundle holds; give the run folder, or use cbobench.plot")
    out = options.out
    if out is None:
        out = Path(finished.folder.uri) / "figures" if finished.folder.local else Path("figures")
    part = finished if options.only is None else finished.only(options.only)
    look = DrawOptions(options.width or options.size, options.statistic, options.font, options.svg)
    drawn = False
    for figure, paths in draw_all(part, out, options.recipe, kind=options.kind, metrics=options.metric, options=look):
        drawn = True
        print(describe_files(figure, paths))
    good, labels = problems_played(part), part.record.labels("problems")
    if absent := [label for title, label in labels.items() if title not in good]:
        print(f"not drawn, without a good cell of T = {part.horizon:,}: {', '.join(absent)}", file=sys.stderr)
    if not drawn:
        none = f"{options.recipe} has no" if options.recipe else "no recipe has a"
        print(f"nothing drawn: {none} figure of {', '.join(labels.values())}", file=sys.stderr)
    return 0 if drawn else 1


def do_claims(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench claims`."""
    from cbobench.papers.claim_tables import ClaimOptions, command

    import_if_asked(options, *options.runs)
    claim_options = ClaimOptions(
        style=options.format,
        recipe=options.recipe,
        only=options.only,
        parts=options.parts,
        strict=options.strict,
        maps=options.map,
        draws=options.replicate,
    )
    return command(options.runs, claim_options)


def do_report(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench report`."""
    from cbobench.page.command import do_report as write

    import_if_asked(options, *options.runs)
    return write(options)
