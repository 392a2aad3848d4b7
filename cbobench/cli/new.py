"""`cbobench new` and `check`: a file with a class of the user's, a suite that plays it, and the
laws it must obey.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cbobench.cli.arguments import tell
from cbobench.errors import Misuse, printable, show

TEMPLATES = Path(__file__).parent / "templates"
"""Of each kind a file of code and a suite, in which {module} and {name} are filled in."""
WORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
CLEARED = "\r" + 79 * " " + "\r"  # a line of a terminal as if nothing had been there


def do_check(options: argparse.Namespace, arguments: list[str]) -> int:
    """`cbobench check`."""
    from cbobench.check.report import (
        Verdict,
        check,
        find_registry,
        format_verdict,
        summarise,
        verdicts_as_json,
    )
    from cbobench.problems.data import DataFolder
    from cbobench.threads import pin_threads
    from cbobench.watcher import Watcher

    pin_threads()
    plain = options.format != "json"
    on_terminal = plain and sys.stdout.isatty()

    class Notes(Watcher):
        def note(self, text: str) -> None:
            print(CLEARED * on_terminal, end="", flush=True)
            tell(f"  {text}")

    def announce(law: str) -> None:
        if plain and not verdicts:  # now the settings are valid
            print(f"{options.name} ({kind})", flush=True)
        # A law may take a second: a terminal shows which one is tested, until its verdict is there.
        if on_terminal:
            print(f"  ...   {law}", end="", flush=True)

    settings = _settings(options.set)
    kind = find_registry(options.name).kind
    verdicts: list[Verdict] = []
    data = DataFolder(options.data, watcher=Notes())
    for verdict in check(options.name, settings, data, on_law=announce):
        verdicts.append(verdict)
        if on_terminal:
            print(CLEARED, end="")
        if plain and not verdict.skipped:
            print(printable(format_verdict(verdict)), flush=True)
    print(summarise(verdicts) if plain else verdicts_as_json(options.name, kind, verdicts))
    return int(any(verdict.finding is not None for verdict in verdicts))


def _settings(assignments: list[str]) -> dict[str, Any]:
    """Parse parameters of the form NAME=VALUE, with values as in a suite."""
    import yaml

    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise Misuse(
                f"--set {show(assignment)} is no parameter; write --set NAME=VALUE, such as "
                "--set noise_f=0.1"
            )
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise Misuse(
                f"--set {show(assignment)} has a value that cannot be read; write it as in a suite"
            ) from None
    return settings


def do_new(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench new`."""
    if options.simulator and options.kind != "problem":
        raise Misuse("--simulator is about problems; write: cbobench new problem NAME --simulator")
    files = new("simulator" if options.simulator else options.kind, options.name, Path())
    for path in files:
        print(path)
    module, name = _module_and_class(options.name)
    tell(
        f"to look for mistakes: cbobench check {module}:{name}; to play it: cbobench run "
        f"{files[1]}",
    )
    return 0


def new(kind: str, name: str, folder: Path) -> tuple[Path, Path]:
    """Write NAME.py and NAME.yaml into a folder; both or none.

    Args:
        kind: "algorithm", "problem" or "simulator".
        name: of the module, such as mine or my-method; its class is Mine or MyMethod.

    Raises:
        Misuse: the name is no name, is a module's that Python knows, or a file is there already.
    """
    module, cls = _module_and_class(name)
    code = folder / f"{module}.py"
    suite = folder / f"{module}.yaml"
    existing = [str(path) for path in (code, suite) if path.exists()]
    if existing:
        raise Misuse(
            f"{' and '.join(existing)} would be overwritten; choose another name, or move the "
            "file away"
        )
    if find_spec(module) is not None:
        raise Misuse(
            f"{show(module)} is a module that Python has; choose another name, such as my_{module}"
        )
    texts = {
        path: (TEMPLATES / f"{kind}{path.suffix}.txt").read_text(encoding="utf-8")
        for path in (code, suite)
    }
    try:
        for path, text in texts.items():
            path.write_text(text.format(module=module, name=cls), encoding="utf-8")
    except OSError:
        # Half of the two files would make the next call refuse to write.
        code.unlink(missing_ok=True)
        raise
    return code, suite


def _module_and_class(name: str) -> tuple[str, str]:
    """Module and class of a name."""
    module = name.replace("-", "_").lower()
    if keyword.iskeyword(module):
        raise Misuse(
            f"{show(name)} is a word of Python's grammar; choose another name, such as my_{module}"
        )
    if not WORD.fullmatch(module):
        raise Misuse(
            f"{show(name)} is no name for a module; allowed: letters, digits and - or _, a "
            "letter first"
        )
    return module, "".join(part.capitalize() for part in module.split("_")) or module
