"""Reading a run: its state, tables, figures, pages and claims.

pandas is imported only by commands that need it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cbobench.cli.maintenance import do_status, import_if_asked
from cbobench.cli.parser import (
    ONLY,
    PLAIN_OR_JSON,
    RUN_OR_BUNDLE,
    RUNS,
    UNDECIDED,
    Commands,
    argument,
    exclusive,
    folder,
    horizon,
    number,
    replications,
    whole_number,
)
from cbobench.errors import Misuse, printable
from cbobench.report.tables.formats import FORMATS
from cbobench.words import count_noun

# Words of the command line, not of a comparison.
OWN = ["command", "handler", "format", "size", "intervals", "run", "other", "union", "imports"]


def add_commands(command: Commands) -> None:
    """Add what reads runs."""
    command(
        do_status,
        "status",
        "show what is done, how fast it goes, and the best designs",
        RUN_OR_BUNDLE,
        PLAIN_OR_JSON,
        imports=True,
    )

    command(
        do_compare,
        "compare",
        "compare methods by medians, 95 % intervals, tests; or two runs",
        RUN_OR_BUNDLE,
        argument(
            "other",
            metavar="RUN2",
            nargs="*",
            help="what changed from RUN to RUN2; exit code 1: worse, failing or missing in "
            "RUN2; 3: too few seeds to tell",
        ),
        argument(
            "--union",
            action="store_true",
            help=(
                "read all runs and bundles that are given as one; so do --ranks, --profile, "
                "--best and --against"
            ),
        ),
        ONLY,
        argument(
            "--metric",
            metavar="NAME",
            nargs="+",
            action="extend",
            help="metrics, by name, symbol or heading",
        ),
        argument(
            "--by",
            choices=("problem", "algorithm"),
            default="problem",
            help="order of rows",
        ),
        argument(
            "--horizon",
            type=horizon,
            metavar="T",
            help=(
                "rounds of the cells to compare, or all (default: the latest of each problem of "
                "which a cell is good)"
            ),
        ),
        argument(
            "--target",
            type=number,
            metavar="R",
            help="rounds to a simple regret of R, in units of f",
        ),
        argument(
            "--best",
            action="store_true",
            help="paired differences to the best algorithm of each problem",
        ),
        argument(
            "--against",
            metavar="NAME",
            action="append",
            help="paired differences to this algorithm; given several times, to the best of them",
        ),
        argument("--ranks", action="store_true", help="average ranks over problems by the median"),
        argument(
            "--profile",
            action="store_true",
            help="shares of seeds that come near f*, and by which round",
        ),
        argument("--all", action="store_true", help="every metric, in place of r, R, V⁺ and N"),
        argument("--means", action="store_true", help="a column of means beside each of medians"),
        argument("--only-changed", action="store_true", help="of two runs, only rows that changed"),
        argument(
            "--factor",
            type=number,
            default=1.0,
            metavar="F",
            help="of two runs, only changes beyond F",
        ),
        argument(
            "--format",
            choices=FORMATS,
            default="table",
            help=(
                'csv, json: all digits; json: undefined null, infinite "inf"; latex: a float of a '
                "paper, of the first metric unless --metric names others"
            ),
        ),
        argument(
            "--size",
            choices=("single", "double"),
            help="of latex: one column of a page (the default), or its width",
        ),
        argument(
            "--no-interval",
            dest="intervals",
            action="store_false",
            help="of latex: medians alone",
        ),
        imports=True,
    )

    command(
        do_figures,
        "figures",
        "draw figures as PDF and PNG, with captions and numbers",
        RUN_OR_BUNDLE,
        argument(
            "--out",
            type=folder,
            metavar="FOLDER",
            help="folder for the figures (default: RUN/figures, else ./figures)",
        ),
        argument(
            "--recipe", metavar="NAME", help="only this recipe (a shipped name or a Python file)"
        ),
        argument(
            "--kind",
            choices=("curves", "plane", "profile"),
            default="curves",
            help=(
                "plane: regret against violation in the end, with intervals; profile: "
                "performance and data profiles"
            ),
        ),
        ONLY,
        argument(
            "--metric",
            nargs="+",
            default=[],
            metavar="NAME",
            help="draw these metrics, for every problem",
        ),
        argument(
            "--log",
            nargs="?",
            const="y",
            choices=("y", "x", "xy", "none"),
            help="logarithmic axes of curves: y (the default of the option), x, xy or none "
            "(default: y for simple regret)",
        ),
        argument(
            "--highlight",
            nargs="+",
            action="extend",
            default=[],
            metavar="NAME",
            help=(
                "the methods in colour, at most eight, the others are grey (default: the best "
                "eight of more)"
            ),
        ),
        exclusive(
            argument(
                "--size",
                choices=("single", "double", "slide"),
                help="3.25 in, 6.75 in or 10 in wide (default: single for one panel, else double)",
            ),
            argument("--width", metavar="LENGTH", help="any width, such as 3.4in, 8.6cm or 246pt"),
        ),
        argument(
            "--font", metavar="NAME", help="serif, sans-serif, monospace, or an installed family"
        ),
        argument("--svg", action="store_true", help="write SVG beside PDF and PNG"),
        argument(
            "--statistic",
            choices=("mean", "median"),
            help="means with intervals, or medians with quartiles, everywhere",
        ),
        argument(
            "--bands",
            action="store_true",
            help="a band of quartiles to every median (default: up to four curves; else bars)",
        ),
        imports=True,
    )

    command(
        do_best,
        "best",
        "list the configurations that a run recommends",
        RUN_OR_BUNDLE,
        argument(
            "--top",
            type=whole_number,
            default=5,
            metavar="N",
            help="how many of each problem (default: 5)",
        ),
        ONLY,
        argument("--format", choices=FORMATS, default="table"),
    )

    command(
        do_report,
        "report",
        "write runs into one page that opens offline",
        RUNS,
        argument(
            "--out",
            type=Path,
            metavar="FILE",
            help="page (default: RUN/report.html, else ./report.html)",
        ),
        imports=True,
    )

    command(
        do_claims,
        "claims",
        "test the papers' claims on runs: a verdict each",
        RUNS,
        argument("--format", choices=("table", "markdown", "json"), default="table"),
        argument(
            "--recipe",
            metavar="NAME",
            help="only this recipe's claims (a shipped name or a Python file)",
        ),
        argument(
            "--only",
            metavar="ID",
            action="append",
            default=[],
            help="only this claim (may be repeated)",
        ),
        argument(
            "--long",
            action="store_true",
            help="per claim and setting: the paper's numbers and ours, seeds, settings",
        ),
        argument("--parts", action="store_true", help="a row for every part of a claim, as --long"),
        argument(
            "--replicate",
            type=replications,
            default=0,
            metavar="N",
            help=(
                "how often each claim's rule accepts an exact replication of our own result, "
                "from N simulated ones"
            ),
        ),
        argument(
            "--strict",
            action="store_true",
            help="exit code 1 where a claim is contradicted, or none can be tested",
        ),
        imports=True,
    )


def do_compare(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench compare`."""
    from cbobench.report.compare import compare
    from cbobench.report.load import open_readable
    from cbobench.report.selection import Selection

    import_if_asked(options, options.run, *options.other)
    settings = {k: v for k, v in vars(options).items() if k not in OWN}
    # Tables of their own are never of what changed, so that several runs can only be meant as one.
    is_union = any(
        getattr(options, word) for word in ("union", "ranks", "profile", "best", "against")
    )
    runs = [options.run, *options.other]
    left_out = list[str]()
    if len(runs) > 2 and not is_union:
        raise Misuse(
            f"{len(runs)} runs are given; allowed: two, for what changed from the "
            "first to the second, or "
            "--union for one table of all"
        )
    if options.format == "latex" and not (options.metric or options.all or options.profile):
        # A column of a page has room for one.
        settings["metric"] = Selection.of(options.run, options.only).shown[0].name
    compared = runs
    if is_union and options.other:
        run, left_out = open_readable(runs)
        compared = [run]
    comparison = compare(*compared, **settings)
    print(comparison.render(options.format, None, options.size, options.intervals))
    lines = [f"left out: {line}" for line in left_out]
    if options.format in ("csv", "json"):  # a table says it below
        lines = [f"not played: {line}" for line in comparison.unplayable] + lines
    if comparison.nothing:
        lines.append(f"nothing of {' and '.join(runs)} can be compared: {comparison.nothing}")
    for line in filter(None, [*lines, comparison.undecided]):
        print(printable(line), file=sys.stderr)
    if comparison.worse or comparison.nothing or left_out:
        return 1
    return UNDECIDED if comparison.undecided else 0


def do_best(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench best`."""
    from cbobench.report.tables.best import best

    print(best(options.run, top=options.top, only=options.only).render(options.format))
    return 0


def do_figures(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench figures`."""
    from cbobench.report.figures.figures import (
        DrawOptions,
        describe_files,
        draw_all,
        problems_played,
    )
    from cbobench.report.figures.style import size_of
    from cbobench.report.load import Run
    from cbobench.results.folder import as_run_folder

    size_of(options.width, 1, options.font)  # refused before anything is read
    import_if_asked(options, options.run)
    folder = as_run_folder(
        options.run,
        "recipes draw rounds that no bundle holds; give the run folder, or use cbobench.plot",
    )
    finished = Run(folder)
    place = Path(folder.uri if folder.local else "", "figures")
    part = finished if options.only is None else finished.only(options.only)
    look = DrawOptions(
        options.width or options.size,
        options.statistic,
        options.font,
        options.svg,
        log="" if options.log == "none" else options.log,
        highlight=options.highlight,
        bands=options.bands,
    )
    found = []
    for figure, paths in draw_all(
        part,
        options.out or place,
        options.recipe,
        kind=options.kind,
        metrics=options.metric,
        options=look,
    ):
        found.append(bool(paths))
        print(describe_files(figure, paths), file=sys.stdout if paths else sys.stderr)
    good = problems_played(part)
    labels = part.record.labels("problems")
    if absent := ", ".join(label for title, label in labels.items() if title not in good):
        print(f"not drawn, without a good cell of T = {part.horizon:,}: {absent}", file=sys.stderr)
    # A figure without files says why it is not drawn; where there is none, no recipe is about these
    # problems.
    if not found:
        none = f"{options.recipe} has no" if options.recipe else "no recipe has a"
        print(f"nothing drawn: {none} figure of {', '.join(labels.values())}", file=sys.stderr)
    return 0 if any(found) else 1


def do_claims(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench claims`."""
    from cbobench.papers.claim_tables import claims_of, evaluate, render_findings

    import_if_asked(options, *options.runs)
    claims = claims_of(options.recipe, options.only)
    findings, left_out = evaluate(options.runs, claims, options.replicate)
    brief = not (options.long or options.parts or options.replicate)
    print(render_findings(findings, options.format, options.parts, brief=brief))
    if left_out:
        print(printable(left_out), file=sys.stderr)
    if not options.strict:
        return 0
    # A claim that was asked for and is not tested is no success, nor is a test of none.
    untested = [finding for finding in findings if not finding.parts]
    needs = count_noun(len(findings), "claim") if len(untested) == len(findings) else ""
    if options.only and untested:
        needs = "; ".join(f"{finding.claim.id} {finding.note}" for finding in untested)
    if needs:
        print(f"not tested, as these runs hold nothing of it: {needs}", file=sys.stderr)
        return 1
    verdicts = {part.verdict for finding in findings for part in finding.parts}
    return int(bool(left_out) or "contradicted" in verdicts)


def do_report(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench report`."""
    from cbobench.page.command import do_report as write

    import_if_asked(options, *options.runs)
    return write(options)
