"""`cbobench check`: runs the laws on a class and prints the verdicts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cbobench.errors import Misuse, printable, show


def do_check(options: argparse.Namespace, arguments: list[str]) -> int:
    """`cbobench check`."""
    from cbobench.check.report import Verdict, check, format_verdict, kind_of, summarise, verdicts_as_json
    from cbobench.problems.data import DataFolder
    from cbobench.threads import pin_threads

    pin_threads()
    plain = options.format != "json"

    def begin() -> None:
        while plain and title:
            print(title.pop(), flush=True)

    def note(text: str) -> None:
        begin()
        print(printable(f"  {text}"), file=sys.stderr, flush=True)

    def tell(verdict: Verdict) -> None:
        begin()
        if plain and not verdict.skipped:
            print(printable(format_verdict(verdict)), flush=True)

    settings, kind = _settings(options.set), kind_of(options.name)
    title = [f"{options.name} ({kind})"]  # printed once the settings are valid
    data = DataFolder(options.data, say=note)
    verdicts = check(options.name, settings, data, on_verdict=tell, on_note=note)
    print(summarise(verdicts) if plain else verdicts_as_json(options.name, kind, verdicts))
    return 1 if any(verdict.finding is not None for verdict in verdicts) else 0


def _settings(assignments: list[str]) -> dict[str, Any]:
    """Parse parameters of the form NAME=VALUE, with values as in a suite."""
    import yaml

    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise Misuse(f"--set {show(assignment)} is no parameter; write --set NAME=VALUE, such as --set noise_f=0.1")
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise Misuse(f"--set {show(assignment)} has a value that cannot be read; write it as in a suite") from None
    return settings
