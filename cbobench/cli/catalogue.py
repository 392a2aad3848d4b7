"""What there is, for readers: lists of problems, algorithms and suites, one of them or a run with
its parameters, and data sets.

pandas is imported only where a problem reads files, and for a run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from cbobench.cli.arguments import print_json
from cbobench.errors import printable, reraise_stop, unknown
from cbobench.report.tables.formats import render
from cbobench.report.tables.table import Code, TextTable

if TYPE_CHECKING:
    from cbobench.registry import Registry


TITLES = {
    "knows": "must know",
    "kernel": "kernel: auto",
    "noise": "default noise on f",
}
"""What `show` says of a class besides its text."""


def _registry(kind: str) -> Registry:
    from cbobench.algorithms import ALGORITHMS
    from cbobench.problems import PROBLEMS

    if kind == "problems":
        return PROBLEMS
    return ALGORITHMS


def _catalogue(kind: str) -> list[dict[str, Any]]:
    """A row per problem, algorithm or suite."""
    from cbobench import resources
    from cbobench.suite import yamlio

    rows = []
    if kind == "suites":
        for name, path in resources.suites().items():
            suite = {"about": ""} | yamlio.read(path)
            rows.append({"name": name} | {k: suite[k] for k in ("horizon", "seeds", "about")})
        return rows
    registry = _registry(kind)
    for name in registry.names():
        cls = registry.get(name)
        row = {"name": name, "source": cls.source, "about": cls.about}
        if kind == "problems":
            row |= cls.facts()
        else:
            finite = {"a finite action set"}
            plays = "finite" if finite <= cls.needs else "finite, box"
            needs = sorted(cls.needs - finite)
            row |= {"knows": list(cls.knows), "plays": plays, "needs": needs, "cost": cls.cost}
        rows.append(row)
    return rows


def do_list(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench list`."""
    rows = _catalogue(options.kind)
    if options.format == "json":
        print_json(rows)
        return 0
    texts = [
        [
            Code(v) if k == "name" else ", ".join(v) if isinstance(v, list) else str(v)
            for k, v in row.items()
        ]
        for row in rows
    ]
    print(render(TextTable([*rows[0]], texts, left=len(rows[0])), options.format))
    return 0


def do_show(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench show`."""
    from cbobench import resources

    name = options.name
    is_registered = any(name in _registry(kind).names() for kind in ("problems", "algorithms"))
    is_place = "://" in name or name.endswith(".zip") or Path(name).is_dir()
    if name in resources.suites() or Path(name).suffix in (".yaml", ".yml"):
        _show_suite(resources.find_suite(name), options)
    elif is_place and not is_registered:  # of a class and a folder of one name the class is shown
        _show_run(name, options)
    else:
        _show_class(options)
    return 0


def _show_run(place: str, options: argparse.Namespace) -> None:
    from cbobench.report.figures.captions import describe_run
    from cbobench.report.load import Run
    from cbobench.report.tables.formats import terminal_width

    run = Run(place)
    if options.format == "json":
        print_json(run.record.to_json())
        return
    for line in describe_run(run):
        print(
            fill(printable(line), terminal_width(), subsequent_indent="  ", break_on_hyphens=False)
        )


def _show_suite(path: Path, options: argparse.Namespace) -> None:
    from cbobench.suite import yamlio

    suite = yamlio.read(path)
    if options.format == "json":
        print_json(suite)
    else:
        for line in path.read_text(encoding="utf-8").rstrip().splitlines():
            print(printable(line))


def _show_class(options: argparse.Namespace) -> None:
    import inspect

    from cbobench import params, resources
    from cbobench.registry import registry_of

    name = options.name
    registries = (_registry("algorithms"), _registry("problems"))
    registry = registry_of(name, registries, [Path()], besides=resources.suites())
    cls = registry.get(name)
    kind = registry.kind
    parameters = [parameter.__dict__ for parameter in params.params_of(cls)]
    facts = {"name": name, "kind": kind, "source": cls.source, "about": cls.about}
    facts["text"] = inspect.getdoc(cls)
    if kind == "algorithm":
        facts["knows"] = ", ".join(cls.knows)
    else:
        facts |= {**_facts_of_models(cls), "noise": cls.noise_near_optimum()}
    # Programs get facts that are empty, too; a reader is shown what there is.
    if options.format == "json":
        print_json(facts | {"parameters": parameters})
        return
    print(f"{name} ({kind}; {cls.source})\n\n{facts['text']}\n")
    for fact, title in TITLES.items():
        if facts.get(fact):
            print(f"{title}: {facts[fact]}\n")
    texts = [[p["name"], json.dumps(p["default"]), p["type"], p["about"]] for p in parameters]
    table = TextTable(["parameter", "default", "allowed", "meaning"], texts, left=4)
    print(render(table, "table"))
    if varying := ", ".join(p["name"] for p in parameters if p["varies"]):
        print(f"\nnumbers that may vary within a block: {varying}")


def _facts_of_models(cls: type[Any]) -> dict[str, str]:
    """Which kernel learners have on a problem with default parameters unless they are told."""
    from cbobench import params
    from cbobench.problems.data import DataFolder

    try:
        problem = params.build(cls, {})
        problem.prepare(DataFolder())
    except BaseException as error:  # a user's problem may raise anything
        reraise_stop(error)
        return {}  # a problem that needs files, or parameters, is not there by default
    if problem.kernel_is_known:
        return {"kernel": "the problem's, of which its functions are"}
    return {"kernel": "fitted, as nobody knows the problem's"}


def do_data(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench data fetch|path`."""
    from cbobench.problems.data import DATA_SETS, DataFolder, fetch

    folder = DataFolder(options.data).path
    if options.action == "path":
        print(folder)
        return 0
    if alien := [name for name in options.names if name not in DATA_SETS]:
        raise unknown("data set", alien[0], DATA_SETS)
    for name in options.names or DATA_SETS:
        print(f"{name}: {fetch(name, folder)}")
    return 0
