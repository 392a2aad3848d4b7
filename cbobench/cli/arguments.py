"""The command line. Every error is one line; exit codes: 0 done, 1 failed, 2 misuse, 3 undecided, 130 stopped."""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from cbobench import __version__
from cbobench.errors import (
    Advice,
    CbobenchError,
    Misuse,
    mask_secrets,
    nearest,
    one_line,
    printable,
    refuse_strange,
    show,
    unknown,
)
from cbobench.report.formats import FORMATS
from cbobench.threads import exit_process
from cbobench.words import SPELLED

STOPPED = 130


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest command or option."""

    def error(self, message: str) -> NoReturn:
        raise Misuse(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            noun = action.option_strings[0] if action.option_strings else str(action.metavar or action.dest).lower()
            raise unknown(noun, value, action.choices)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse a command line; an unknown option is refused with the nearest one of its command."""
        if arguments and arguments[0].startswith("-") and arguments[0] not in self._option_string_actions:
            self._refuse(arguments[:1], self)
        options, left = self.parse_known_args(arguments)
        if len(left) == 1 and not left[0].startswith("-") and getattr(options, "other", "") is None:
            options.other, left = left[0], []  # the second run, after an option
        if left:
            commands = next(action for action in self._actions if action.dest == "command")
            self._refuse(left, dict(commands.choices or {})[options.command])
        return options

    def _refuse(self, left: Sequence[str], command: argparse.ArgumentParser) -> NoReturn:
        close = nearest(left[0].split("=")[0], command._option_string_actions)
        hint = f"did you mean {close}?" if close else f"see {command.prog} --help"
        raise Misuse(f"unrecognized arguments: {' '.join(left)}; {hint}")


class Once(argparse.Action):
    """An option that is given once: a second value would replace the first in silence."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            raise Misuse(
                f"{option} is given twice ({show(getattr(namespace, self.dest))}, {show(values)}); use * to match both"
            )
        setattr(namespace, self.dest, values)


def folder(text: str) -> Path:
    """A folder to write to, before hours of work are done for nothing."""
    if (path := Path(text)).exists() and not path.is_dir():
        raise Misuse(f"{text} is a file; give a folder")
    return path


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{show(text)} is not a whole number") from None


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{show(text)} is not a number") from None


def starts(text: str) -> int:
    """The number of local searches of either kind."""
    if not text.isdecimal() or not 2 <= int(text) <= 4096:
        raise Misuse(f"--starts is {show(text)}; it must be a whole number from 2 to 4096")
    return int(text)


def replications(text: str) -> int:
    """The number of simulated replications."""
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise Misuse(f"--replicate is {show(text)}; it must be a whole number from 1 to 10000, such as 200")
    return int(text)


def make_parser() -> Parser:
    """The whole command line."""
    top = Parser("cbobench", description="Benchmark suite for constrained Bayesian optimization.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"cbobench {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, about: str) -> Parser:
        escaped = about.replace("%", "%%")  # argparse formats help, and not descriptions
        parser: Parser = commands.add_parser(name, help=escaped, description=about, allow_abbrev=False)
        return parser

    run = command("run", "play a suite (a YAML file or a shipped name) and print its table; resume or extend a run")
    run.add_argument("suite")
    run.add_argument("--out", metavar="RUN", help="run folder, path or URI (default: runs/<suite>)")
    run.add_argument("--seeds", type=whole_number, metavar="N", help="seeds 0..N-1 instead of the suite's")
    run.add_argument("--horizon", type=whole_number, metavar="T", help="rounds instead of the suite's")
    run.add_argument(
        "--only", metavar="GLOB", action=Once, help='only matching pairs, "problem/algorithm" or one of them'
    )
    run.add_argument("--data", type=Path, metavar="FOLDER", help="folder with the original data sets")
    run.add_argument(
        "--cpus", type=whole_number, metavar="N", help="workers here (default: one per CPU); 0: in this process"
    )
    run.add_argument("--address", metavar="A", help="a Ray cluster instead of this machine, such as host:6379 or auto")
    run.add_argument(
        "--engine",
        choices=("ray", "processes", "inline"),
        help="where cells are played: Ray, workers here, this process (default: Ray, for up to 64 tasks processes)",
    )
    run.add_argument(
        "--arithmetic",
        choices=("portable", "native"),
        help="portable: the same bits on every x86-64 machine (default); native: whatever this CPU is built for",
    )
    run.add_argument("--ship", action="store_true", help="send the cluster this machine's code, and your own modules")
    run.add_argument("--block", type=whole_number, metavar="N", help="seeds per task of a new run (default: chosen)")
    run.add_argument(
        "--again",
        choices=("failed", "stale"),
        action="append",
        default=[],
        help="play failed cells again, or stale ones, which other code played (may be given twice)",
    )
    run.add_argument("--budget", metavar="B", help="start no new task after this much CPU time, such as 2cpuh")
    run.add_argument("--fail-fast", action="store_true", help="stop at the first failed cell")
    run.add_argument("--no-imports", action="store_true", help="refuse suites that import code")
    run.add_argument("--dry-run", action="store_true", help="say what would be played, how long and how large")

    status = command("status", "show cells done, failed, stale and missing, and the command that finishes a run")
    watch = command(
        "watch", "follow a run that is being played, from another terminal or machine: progress, time left, table"
    )
    watch.add_argument("run", metavar="RUN", help="run folder, path or URI")
    watch.add_argument("--once", action="store_true", help="print it once, as text")
    watch.add_argument("--json", action="store_true", help="print an object at every look, or once")
    compare = command(
        "compare",
        "compare methods: medians with intervals (95 % from six seeds on) and who is best; or two runs",
    )
    figures = command("figures", "draw figures as PDF and PNG, each with a caption and its numbers as CSV")
    for sub in (status, compare, figures):
        sub.add_argument("run", metavar="RUN", help="run folder or bundle, path or URI")
    status.add_argument("--format", choices=("table", "json"), default="table")
    compare.add_argument(
        "other",
        metavar="RUN2",
        nargs="?",
        help="what changed from RUN to RUN2; exit code 1: worse, failing or missing in RUN2; 3: too few seeds to tell",
    )
    compare.add_argument("--only", metavar="GLOB", action=Once, help='only matching pairs, "problem/algorithm" or one')
    compare.add_argument("--metric", metavar="NAME", nargs="+", action="extend", help="metrics, by name or symbol")
    compare.add_argument(
        "--by",
        choices=("problem", "algorithm", "binds"),
        default="problem",
        help="order of rows; binds: seeds in which the constraint binds apart from the others",
    )
    compare.add_argument("--target", type=number, metavar="R", help="rounds to a simple regret of R, in units of f")
    compare.add_argument("--best", action="store_true", help="paired differences to the best algorithm of each problem")
    compare.add_argument("--against", metavar="NAME", action=Once, help="paired differences to this algorithm")
    compare.add_argument("--ranks", action="store_true", help="average ranks over problems by the median")
    compare.add_argument("--profile", action="store_true", help="shares of seeds that come near f*, and by which round")
    compare.add_argument(
        "--absolute", action="store_true", help="of profiles: COCO's targets, 100 to 1e-6, in units of f"
    )
    compare.add_argument("--means", action="store_true", help="every metric with its mean, however wide, also in LaTeX")
    compare.add_argument("--only-changed", action="store_true", help="of two runs, only rows that changed")
    compare.add_argument("--factor", type=number, default=1.0, metavar="F", help="of two runs, only changes beyond F")
    compare.add_argument(
        "--format", choices=FORMATS, default="table", help='csv, json: all digits; json: undefined null, infinite "inf"'
    )
    figures.add_argument(
        "--out", type=folder, metavar="FOLDER", help="folder for the figures (default: RUN/figures, else ./figures)"
    )
    figures.add_argument("--recipe", metavar="NAME", help="only this recipe (a shipped name or a Python file)")
    figures.add_argument(
        "--kind",
        choices=("curves", "plane", "profile"),
        default="curves",
        help="plane: regret against violation in the end, with intervals; profile: performance and data profiles",
    )
    figures.add_argument("--only", metavar="GLOB", action=Once, help="only matching pairs, as for run")
    figures.add_argument(
        "--metric", nargs="+", default=[], metavar="NAME", help="draw these metrics, for every problem"
    )
    wide = figures.add_mutually_exclusive_group()
    wide.add_argument(
        "--size",
        choices=("single", "double", "slide"),
        help="3.25 in, 6.75 in or 10 in wide (default: single for one panel, else double)",
    )
    wide.add_argument("--width", metavar="LENGTH", help="any width, such as 3.4in, 8.6cm or 246pt")
    figures.add_argument("--font", metavar="NAME", help="serif, sans-serif, monospace, or an installed family")
    figures.add_argument("--svg", action="store_true", help="write SVG beside PDF and PNG")
    figures.add_argument(
        "--statistic", choices=("mean", "median"), help="means with intervals, or medians with quartiles, everywhere"
    )

    best = command("best", "list the configurations that a run recommends, and what they are worth")
    best.add_argument("run", metavar="RUN", help="run folder or bundle, path or URI")
    best.add_argument("--top", type=whole_number, default=5, metavar="N", help="how many of each problem (default: 5)")
    best.add_argument("--only", metavar="GLOB", action=Once, help='only matching pairs, "problem/algorithm" or one')
    best.add_argument("--format", choices=FORMATS, default="table")

    report = command("report", "write runs into one page that opens offline: tables, curves, claims, failed cells")
    report.add_argument("runs", metavar="RUN", nargs="+", help="run folders or bundles, paths or URIs")
    report.add_argument("--out", type=Path, metavar="FILE", help="page (default: RUN/report.html, else ./report.html)")

    merge = command("compact", "merge the many small files of a run into few; large runs do so when they end")
    merge.add_argument("run", metavar="RUN", help="run folder, path or URI")

    remove = command("remove", "delete pairs from a run with all their results; asks first")
    remove.add_argument("run", metavar="RUN", help="run folder, path or URI")
    remove.add_argument("pairs", metavar="GLOB", help='the pairs, "problem/algorithm" or one of them')
    remove.add_argument("--yes", action="store_true", help="do not ask")

    export = command("export", "write a run's results into one small file that others can compare with")
    export.add_argument("run", metavar="RUN", help="run folder, path or URI")
    export.add_argument(
        "--out", metavar="FILE", help="path or URI that ends with .zip (default: <folder's name>.zip here)"
    )

    check = command(
        "check", "test an algorithm or a problem of yours against the rules of its interface; says what to fix"
    )
    check.add_argument(
        "name", help="your class as module:Class, from this folder or Python's path; or a registered name"
    )
    check.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter (may be repeated)")
    check.add_argument("--data", type=Path, metavar="FOLDER", help="folder with the original data sets")
    check.add_argument("--format", choices=("table", "json"), default="table")

    new = command("new", "write a small algorithm or problem into NAME.py, and a suite that plays it")
    new.add_argument("kind", metavar="algorithm|problem", choices=("algorithm", "problem"))
    new.add_argument("name", metavar="NAME", help="of the file, such as mine")

    verify = command("verify", "read every file of a run and name the damaged ones; moves them away on request")
    verify.add_argument("run", metavar="RUN", help="run folder, path or URI")
    verify.add_argument(
        "--repair", action="store_true", help="move what is damaged into RUN/quarantine; deletes nothing"
    )
    verify.add_argument("--format", choices=("table", "json"), default="table")

    claims = command("claims", "test the papers' claims on runs: verdict, the paper's numbers and ours, settings, n")
    claims.add_argument("runs", metavar="RUN", nargs="+", help="run folders, paths or URIs")
    claims.add_argument("--format", choices=("table", "markdown", "json"), default="table")
    claims.add_argument("--recipe", metavar="NAME", help="only this recipe's claims (a shipped name or a Python file)")
    claims.add_argument("--only", metavar="ID", action="append", default=[], help="only this claim (may be repeated)")
    claims.add_argument("--parts", action="store_true", help="a row for every part of a claim")
    claims.add_argument(
        "--map", type=folder, metavar="FOLDER", help="draw, per claim, its verdicts over what was swept"
    )
    claims.add_argument(
        "--replicate",
        type=replications,
        default=0,
        metavar="N",
        help="how often each claim's rule accepts an exact replication of our own result, from N simulated ones",
    )
    claims.add_argument(
        "--strict", action="store_true", help="exit code 1 where a claim is contradicted, or none can be tested"
    )

    listing = command("list", "list all problems, algorithms or suites")
    listing.add_argument("kind", metavar="problems|algorithms|suites", choices=("problems", "algorithms", "suites"))
    listing.add_argument("--format", choices=("table", "markdown", "json"), default="table")
    show = command("show", "show one problem, algorithm or suite with its parameters")
    show.add_argument("name", help="registered, module:Class of your own, or a suite's file")
    show.add_argument("--format", choices=("table", "json"), default="table")

    reference = command("reference", "derive the optimum of a problem on a box, and compare it with the stated one")
    reference.add_argument("name", help="a registered problem, or module:Class of your own")
    reference.add_argument(
        "--starts",
        type=starts,
        default=32,
        metavar="N",
        help="local searches from the best sampled points, and as many from anywhere (default: 32, so 64)",
    )

    audit = command(
        "audit", "compare what the theory promises with what was seen, for a run whose suite says `audit: true`"
    )
    audit.add_argument("run", metavar="RUN", help="run folder, path or URI")
    audit.add_argument("--format", choices=FORMATS, default="table")
    audit.add_argument("--figures", type=folder, metavar="FOLDER", help="draw the bounds of R₊ and V over the curves")

    for sub in (status, compare, figures, report, claims, audit):
        sub.add_argument(
            "--imports",
            action="store_true",
            help="import the modules of your own that the run names, to tell whether their cells are stale",
        )

    data = command("data", "show where the original data sets are looked for, or fetch them")
    actions = data.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    fetch = actions.add_parser("fetch", help="download original data sets and check their hashes")
    fetch.add_argument("names", nargs="*", metavar="NAME", help="light-sensors, stocks (default: both)")
    fetch.add_argument("--data", type=Path, metavar="FOLDER", help="where to (default: CBOBENCH_DATA or the cache)")
    fetch.add_argument("--base-url", metavar="URL", help="fetch from a mirror")
    path = actions.add_parser("path", help="print the folder that is searched")
    path.add_argument("--data", type=Path, metavar="FOLDER")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    from cbobench.cli import commands

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SPELLED)  # a terminal that knows no Greek still gets the table
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for word in command_line:
            refuse_strange(word, "the argument")
        if not command_line:
            make_parser().print_help()
            return 0
        options = make_parser().parse(command_line)
        handler = getattr(commands, f"do_{options.command}")
        with _print_advice():
            return int(handler(options, command_line))
    except CbobenchError as error:
        print(f"cbobench: {printable(mask_secrets(str(error)))}", file=sys.stderr)
        return error.exit_code
    except (OSError, MemoryError, RecursionError) as error:
        if isinstance(error, BrokenPipeError):  # the reader (head, less) has gone
            sys.stderr.close()
            return 0
        print(f"cbobench: {mask_secrets(one_line(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cbobench: stopped", file=sys.stderr)
        return STOPPED


@contextmanager
def _print_advice() -> Iterator[None]:
    """Print each `Advice` as one line, once, without the place in the code that Python names."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        before = warnings.showwarning

        def print_line(message: Any, category: type[Warning], *place: Any, **details: Any) -> None:
            if not issubclass(category, Advice):
                before(message, category, *place, **details)
            elif str(message) not in printed:
                printed.add(str(message))
                print(printable(str(message)), file=sys.stderr)

        warnings.showwarning = print_line
        warnings.simplefilter("always", Advice)
        yield


def entry() -> NoReturn:
    """The program `cbobench`."""
    code = main()
    from cbobench.sweep.interrupt import ignore

    ignore()  # no signal changes the exit code from here on
    exit_process(code)
