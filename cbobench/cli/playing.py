"""Playing a suite: `cbobench run`. pandas is imported only for its table, Ray only where it
plays.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from cbobench.cli.arguments import tell
from cbobench.errors import CbobenchError, Misuse, printable
from cbobench.watcher import Watcher
from cbobench.words import count_noun, part_of

if TYPE_CHECKING:
    from cbobench.suite.call import Call
    from cbobench.sweep.outcome import Outcome
    from cbobench.sweep.plan import Plan


def do_run(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench run`."""
    from cbobench.arithmetic import requested_arithmetic, set_arithmetic
    from cbobench.threads import pin_threads

    pin_threads()
    set_arithmetic(options.arithmetic)  # before NumPy, which what follows imports
    requested_arithmetic()  # a wrong word in the environment is refused before anything is read
    from cbobench.sweep.interrupt import interruptible

    resume_command = shlex.join(["cbobench", *command_line])
    with interruptible():  # while it plans, and between that and playing, as well
        try:
            return _run(options, command_line, resume_command)
        except KeyboardInterrupt:
            tell(f"stopped: nothing more is played; to go on: {resume_command}")
            return 130


def _run(options: argparse.Namespace, command_line: list[str], resume_command: str) -> int:
    from cbobench.suite.call import Call
    from cbobench.sweep.executors import ExecutorDied
    from cbobench.sweep.plan import plan
    from cbobench.sweep.progress import Terminal
    from cbobench.sweep.run import execute

    # Options are named as what they choose, but for one that negates it; "command" is the word that
    # argparse has met.
    choices = vars(options) | {
        "imports": not options.no_imports,
        "command": ["cbobench", *command_line],
    }
    call = Call(**{field.name: choices[field.name] for field in fields(Call)})
    if options.dry_run:
        return _estimate(call)
    sweep_plan = plan(call, _Notes())
    terminal = Terminal(sweep_plan)
    outcome = None
    try:
        # Ray prints of crashed workers to standard output, which is the table's.
        with contextlib.closing(terminal), contextlib.redirect_stdout(sys.stderr):
            outcome = execute(sweep_plan, terminal)
            terminal.begin()
        return _print_outcome(sweep_plan, outcome, terminal.last_failed, resume_command)
    except OSError:
        if outcome is None or not outcome.stopped:
            raise
        return 130  # the terminal that was closed takes no last words
    except Misuse:
        raise
    except CbobenchError as error:
        if isinstance(error, ExecutorDied) and call.address is not None:
            local_command = shlex.join(["cbobench", *_without_cluster(command_line)])
            resume_command = (
                f"{local_command} (on this machine; on a cluster that is up, add its --address)"
            )
        message = f"{error}; what is published stays, to go on: {resume_command}"
        tell(f"cbobench: {message}")
        return error.exit_code


def _estimate(call: Call) -> int:
    """Print what a call would play."""
    from cbobench.sweep.dry_run import estimate
    from cbobench.sweep.plan import plan

    sweep_plan = plan(call, _Notes())
    print(estimate(sweep_plan, 0 if call.plays_inline else call.cpus))
    for line in sweep_plan.record.unplayable:
        print(f"not played: {line}")
    return 0


class _Notes(Watcher):
    """Prints what is noted while a suite is planned."""

    def note(self, text: str) -> None:
        tell(text)


def _print_outcome(plan: Plan, outcome: Outcome, said: int, resume_command: str) -> int:
    """Print what a sweep did, and its table; the exit code.

    Args:
        said: how many failures were counted when they were told last.
    """

    from cbobench.sweep.outcome import FailureCounts

    tally = FailureCounts(outcome.errors)
    lines = [f"failed: {error}" for error in tally.examples()]
    if tally.total > max(1, said):
        lines.append(str(tally))
    for line in lines:
        tell(line)
    good = plan.done + outcome.played - outcome.failed
    if outcome.stopped:
        failed_note = f", {outcome.failed} failed" * bool(outcome.failed)
        cells = count_noun(outcome.cells, "cell")
        tell(
            f"stopped: {good:,} of {cells} done{failed_note}; to go on: {resume_command}",
        )
        if plan.call.fail_fast and outcome.failed:
            return 1
        return 130
    from cbobench.report.compare import compare
    from cbobench.report.load import Run
    from cbobench.report.selection import Selection
    from cbobench.report.tables.best import describe_best

    finished = Run(outcome.folder.uri)
    print(compare(finished))
    for line in describe_best(finished, Selection(finished).groups):
        print(printable(line))
    print(f"results: {outcome.folder}", flush=True)
    see = f"see: cbobench status {shlex.quote(str(outcome.folder))}"
    failed = int((finished.cells["status"] == "failed").sum())
    if outcome.spent:
        done = part_of(good, outcome.cells, "cell")
        tell(f"the budget is spent: {done} done; to go on: {resume_command}")
    if failed:
        tell(f"{count_noun(failed, 'cell')} failed; {see}")
    if outcome.absent:
        count = f"{len(outcome.absent):,} of {count_noun(outcome.tasks, 'task')}"
        absent = f"{count} played but not in {outcome.folder} (first {outcome.absent[0]})"
        tell(f"absent: {absent}; does every worker reach the same folder? {see}")
    return int(failed > 0 or bool(outcome.absent))


def _without_cluster(command_line: list[str]) -> Iterator[str]:
    """The arguments of a command that played on a cluster, for this machine."""
    arguments = iter(command_line)
    for word in arguments:
        if word == "--address":
            next(arguments, None)
        elif word != "--ship" and not word.startswith("--address="):
            yield word
