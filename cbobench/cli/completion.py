"""Scripts that let a shell complete commands, options, and the names of suites, methods, problems
and metrics.

A script is static: it holds all names as they are today, and pressing Tab starts no Python. The
shell itself completes names of files, because it alone quotes all that they may hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cbobench.cli.parser import make_parser

HOW = {
    "bash": 'in ~/.bashrc: eval "$(cbobench completion bash)"',
    "zsh": 'in ~/.zshrc, after compinit: eval "$(cbobench completion zsh)"',
    "fish": "cbobench completion fish > ~/.config/fish/completions/cbobench.fish",
}
FILES = {"zsh": "_files", "fish": "(__fish_complete_path (commandline -ct))"}
OR_FILES = ("suite", "name")  # arguments that take a name or a file


def do_completion(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench completion`."""
    import shtab

    names = find_names()
    top = make_parser()
    commands = next(action for action in top._actions if action.dest == "command")
    for command, parser in dict(commands.choices or {}).items():
        for action in parser._actions:
            choices = names.get((command, action.dest)) or names.get(("", action.dest))
            _choose_values(action, choices, options.shell)
    print(f"# {HOW[options.shell]}")
    print(shtab.complete(top, options.shell))
    # files where no name fits: by readline, as no list of words holds every file's name
    if options.shell == "bash":
        print("complete -o default -F _shtab_cbobench cbobench")
    return 0


def find_names() -> dict[tuple[str, str], Sequence[str]]:
    """The names that an argument takes, by command ("" for any) and argument."""
    from cbobench import resources
    from cbobench.algorithms import ALGORITHMS
    from cbobench.problems import PROBLEMS
    from cbobench.report.quantities import quantities

    suites = [*resources.suites()]
    methods = ALGORITHMS.names()
    problems = PROBLEMS.names()
    return {
        ("", "suite"): suites,
        ("", "metric"): [*quantities()],
        ("", "highlight"): methods,
        ("", "against"): methods,
        ("show", "name"): [*methods, *problems, *suites],
        ("check", "name"): [*methods, *problems],
    }


def _choose_values(action: argparse.Action, names: Sequence[str] | None, shell: str) -> None:
    """Let the script offer the names that an argument takes, and files where it takes any text."""
    action.choices = names or action.choices
    takes_files = action.choices is None or action.dest in OR_FILES
    if shell != "bash" and action.nargs != 0 and takes_files:
        words = " ".join(names or ())
        either = {
            "zsh": f"{{compadd {words}; _files}}",
            "fish": f"{words} {FILES['fish']}",
        }
        action.complete = either if names else FILES  # type: ignore[attr-defined]
