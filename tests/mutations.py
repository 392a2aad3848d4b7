"""Plants the faults of `mutations.yaml` in a copy of the checkout, one at a time, and says which
test finds each.

    python tests/mutations.py [NAME ...] [--list] [--base FOLDER] [--no-control] [--jobs 1]

A fault is found if one of its test files fails, run as `make test` selects tests. First all these
files run once on the
copy as it is, as a control: they must pass. Each fault is a row of a Markdown table: what it is,
the test that fails or **survives**, and the CPU seconds that it took. Exit code 1 if one survives,
2 if a text is stale.

`mutations.yaml` has a record for each, by name: `title`, `guarantee` (what it threatens: a page,
then its words), `file`, `old` (a text that is in the file once), `new`, `tests` (files, or
`file::test` where a file is dear). `before` may hold other values of `file`, `old`, `new` and
`tests` for `--base`, the checkout of an earlier version.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".yaml")
MOVABLE = {"file", "old", "new", "tests"}  # values that may be others in an earlier version
# after which a run that would never end is ended: of CPU, and by the clock
CPU_SECONDS, PATIENCE = 300, 1800.0
LONGEST_CASE = 40  # characters of a test's parameters
FAILURE = re.compile(r"^(?:FAILED|ERROR) (?:tests/)?(\S+::.*?)(?: - .*)?$", re.MULTILINE)
HEADING = "| Fault | Found by | CPU s |\n| :-- | :-- | --: |"


class Wrong(Exception):
    """One line for whoever runs this (exit code 2)."""


@dataclass(frozen=True)
class Mutation:
    """A fault: `old` becomes `new` in `file`, both relative to the root, as `tests` are."""

    name: str
    title: str
    guarantee: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def why_stale(self, root: Path) -> str:
        """Why it cannot be planted in a checkout; empty if it can."""
        path = root / self.file
        if not path.is_file():
            return f"there is no {self.file}"
        count = path.read_text(encoding="utf-8").count(self.old)
        if count != 1:
            return f"its old text stands {count} times in {self.file}, it must stand there once"
        absent = [test for test in self.tests if not _is_there(root, test)]
        return f"there is no {absent[0]}" if absent else ""

    @contextmanager
    def planted(self, copy: Path) -> Iterator[None]:
        """Inside the block, the copy has the fault."""
        path = copy / self.file
        text = path.read_text(encoding="utf-8")
        try:
            _write(path, text.replace(self.old, self.new))
            yield
        finally:
            _write(path, text)


def _is_there(root: Path, test: str) -> bool:
    """Whether there is a test file, or a test in it (`file::test`)."""
    file, _, function = test.partition("::")
    path = root / file
    return path.is_file() and (
        not function or f"def {function.partition('[')[0]}(" in path.read_text(encoding="utf-8")
    )


def _write(path: Path, text: str) -> None:
    """Write a module and remove its bytecode, which Python takes for that of any text of its length
    and second.
    """
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


@dataclass(frozen=True)
class Verdict:
    """What came of a run of tests: the first that failed (None: all passed), or why there is no
    such answer.
    """

    failed: str | None
    seconds: float
    trouble: str = ""

    def cell(self) -> str:
        if self.trouble:
            return f"**no verdict**: {self.trouble}".replace("|", "\\|")
        if self.failed is None:
            return "**survives**"
        name, bracket, case = self.failed.partition("[")
        case = case if len(case) <= LONGEST_CASE else f"{case[:LONGEST_CASE]}…]"
        return f"`{name}{bracket}{case}`".replace("|", "\\|")


def read_mutations(early: bool) -> list[Mutation]:
    """All mutations of the table, with the values of the earlier version if asked.

    Raises:
        Wrong: a record lacks a value, or has one that is unknown.
    """
    allowed = {field.name for field in fields(Mutation)} - {"name"}
    mutations = []
    for name, record in yaml.safe_load(TABLE.read_text(encoding="utf-8")).items():
        before: dict[str, Any] = record.pop("before", {})
        wrong = sorted((allowed ^ {*record}) | ({*before} - MOVABLE))
        if wrong:
            raise Wrong(
                f"{TABLE.name}: {name} lacks {wrong[0]}, or may not have it; it needs "
                f"{', '.join(sorted(allowed))}"
            )
        values = record | (before if early else {})
        mutations.append(Mutation(name, **values | {"tests": tuple(values["tests"])}))
    return mutations


def select(mutations: Sequence[Mutation], globs: Iterable[str]) -> list[Mutation]:
    """Those whose name or file matches a glob; all without one. Raises `Wrong` for a glob that
    matches none.
    """
    globs = list(globs)
    for glob in globs:
        if not any(_matches(mutation, glob) for mutation in mutations):
            close = difflib.get_close_matches(glob, [mutation.name for mutation in mutations], n=1)
            suggestion = f"did you mean {close[0]!r}?" if close else "--list names all"
            raise Wrong(f"no mutation is called {glob!r}; {suggestion}")
    return [
        mutation
        for mutation in mutations
        if not globs or any(_matches(mutation, glob) for glob in globs)
    ]


def _matches(mutation: Mutation, glob: str) -> bool:
    return fnmatchcase(mutation.name, glob) or fnmatchcase(mutation.file, glob)


def copy_checkout(root: Path, to: Path) -> Path:
    """Copy the files that git knows, as they are now. Raises `Wrong` if the folder is no
    checkout.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        raise Wrong(
            f"{root} is no checkout: {listed.stderr.strip().splitlines()[0]}; give the folder of "
            "one"
        )
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():  # else removed, and not committed yet
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, to / name)
    return to


def run_tests(copy: Path, tests: Iterable[str], limited: bool = True) -> Verdict:
    """Run test files in a copy, up to the first that fails; `limited` to what a mutation may
    take.
    """
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not long"]
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        timer = threading.Timer(PATIENCE, child.kill)
        if limited:
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            timer.start()
        try:
            # the time of this child and of its own, and of no other
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    seconds = usage.ru_utime + usage.ru_stime
    failure = FAILURE.search(printed)
    if child.returncode == 0:
        return Verdict(None, seconds)
    if child.returncode == 1 and failure is not None:
        return Verdict(failure[1], seconds)
    last = (printed.strip().splitlines() or ["it said nothing"])[-1]
    print(printed[-4000:], file=sys.stderr)
    return Verdict(None, seconds, f"pytest ended with {child.returncode}: {last}")


def control(copy: Path, mutations: Iterable[Mutation]) -> None:
    """Run the test files of all mutations without any. Raises `Wrong` unless they pass."""
    named = {test for mutation in mutations for test in mutation.tests}
    tests = sorted(
        test for test in named if "::" not in test or test.partition("::")[0] not in named
    )
    verdict = run_tests(copy, tests, limited=False)
    if verdict.failed or verdict.trouble:
        reason = verdict.trouble or f"{verdict.failed} fails"
        raise Wrong(
            f"the control fails, without any mutation: {reason}; mend that first, or say "
            "--no-control"
        )
    print(
        f"control: {len(tests)} files or tests pass, {verdict.seconds:.1f} CPU s", file=sys.stderr
    )


def play(root: Path, mutations: Sequence[Mutation], jobs: int, with_control: bool) -> list[str]:
    """Print a row for each mutation; return the names of those that no test finds."""
    plantable = [mutation for mutation in mutations if not mutation.why_stale(root)]
    survivors: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for i in range(jobs):
            copies.put(copy_checkout(root, Path(folder, str(i))))
        if with_control and plantable:
            copy = copies.get()
            control(copy, plantable)
            copies.put(copy)

        def judge(mutation: Mutation) -> tuple[Mutation, str, Verdict]:
            if why := mutation.why_stale(root):
                return mutation, why, Verdict(None, 0.0)
            copy = copies.get()
            try:
                with mutation.planted(copy):
                    return mutation, "", run_tests(copy, mutation.tests)
            finally:
                copies.put(copy)

        print(HEADING, flush=True)
        pool = ThreadPoolExecutor(jobs)
        try:
            for mutation, why, verdict in pool.map(judge, mutations):
                answer = f"not there: {why}" if why else verdict.cell()
                seconds = "–" if why else f"{verdict.seconds:.1f}"
                print(f"| {mutation.title} | {answer} | {seconds} |".replace("\n", " "), flush=True)
                if not why and verdict.failed is None:
                    survivors.append(mutation.name)
        finally:
            # of an interruption: the tests at hand are interrupted as well
            pool.shutdown(cancel_futures=True)
    return survivors


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="names of mutations or of files, or globs of them"
    )
    parser.add_argument(
        "--list", action="store_true", help="list them with what they threaten, and run nothing"
    )
    parser.add_argument(
        "--base", type=Path, metavar="FOLDER", help="plant them in another checkout"
    )
    parser.add_argument(
        "--no-control", action="store_true", help="do not run the tests without a mutation first"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="how many to run at a time (1)"
    )
    options = parser.parse_args(arguments)
    try:
        if options.jobs < 1:
            raise Wrong(f"--jobs is {options.jobs}; it must be at least 1")
        root = ROOT if options.base is None else options.base.resolve()
        mutations = select(read_mutations(options.base is not None), options.names)
        stale = [
            f"{m.name}: {why}; mend it in {TABLE.name}"
            for m in mutations
            if (why := m.why_stale(root))
        ]
        if stale and options.base is None:  # an earlier version may lack a text
            raise Wrong("\n".join(stale))
        if options.list:
            for mutation in mutations:
                print(f"{mutation.name}: {mutation.title} [{mutation.file}] {mutation.guarantee}")
            return 0
        survivors = play(root, mutations, options.jobs, not options.no_control)
    except Wrong as error:
        print(error, file=sys.stderr)
        return 2
    count = len(mutations) - len(stale)
    print(f"{count - len(survivors)} of {count} are found", file=sys.stderr)
    if survivors:
        print(f"not found: {', '.join(survivors)}", file=sys.stderr)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
