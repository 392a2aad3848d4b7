"""Scripts that let a shell complete commands, options, and the names of suites, methods, problems, metrics and runs.

A script holds all names as they are today, so that pressing Tab starts no Python; runs are what `runs/` holds then.
"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass, field

from cbobench.cli.parser import Commands

SHELLS = ("bash", "zsh", "fish")
RUNS = ("run", "runs", "other")  # what commands call a run
METHODS = ("highlight", "against")  # options that take methods
HOW = {
    "bash": 'in ~/.bashrc: eval "$(cbobench completion bash)"',
    "zsh": 'in ~/.zshrc, after compinit: eval "$(cbobench completion zsh)"',
    "fish": "cbobench completion fish > ~/.config/fish/completions/cbobench.fish",
}


@dataclass
class Words:
    """What may follow a command.

    Attributes:
        about: what it does.
        options: their values by option, none where any text may follow.
        values: of its arguments.
        takes_run: whether an argument is a run.
    """

    about: str
    options: dict[str, list[str]] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    takes_run: bool = False


def add_commands(command: Commands) -> None:
    """Add `completion`."""
    completion = command(do_completion, "completion", "print a script with which a shell completes commands and names")
    completion.set_defaults(commands=command)
    completion.add_argument("shell", metavar="bash|zsh|fish", choices=SHELLS)


def do_completion(options: argparse.Namespace, command_line: list[str]) -> int:
    """`cbobench completion`."""
    print(f"# {HOW[options.shell]}")
    print({"bash": write_bash, "zsh": write_zsh, "fish": write_fish}[options.shell](find_words(options.commands)))
    return 0


def find_words(commands: Commands) -> dict[str, Words]:
    """What may follow each command."""
    from cbobench import resources
    from cbobench.algorithms import ALGORITHMS
    from cbobench.problems import PROBLEMS
    from cbobench.report.quantities import quantities

    suites, methods, problems = [*resources.suites()], ALGORITHMS.names(), PROBLEMS.names()
    named = {"suite": suites, "metric": [*quantities()]}
    names = {"show": [*methods, *problems, *suites], "check": [*methods, *problems], "reference": problems}
    named |= dict.fromkeys(METHODS, methods)
    result = {}
    for name, parser in commands.parsers.items():
        words = result[name] = Words(parser.description or "")
        taken = named | {"name": names.get(name, [])}
        for action in parser._actions:
            values = [str(value) for value in action.choices or taken.get(action.dest) or ()]
            for option in action.option_strings:
                words.options[option] = values
            if not action.option_strings:
                words.values += values
                words.takes_run |= action.dest in RUNS
    return result


BASH = """\
_cbobench() {
  local cur="${COMP_WORDS[COMP_CWORD]}" cmd="${COMP_WORDS[1]}" option="" words="" i
  COMPREPLY=()
  for ((i = COMP_CWORD - 1; i > 1; i--)); do
    case "${COMP_WORDS[i]}" in -*) option="${COMP_WORDS[i]}"; break ;; esac
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "@COMMANDS@" -- "$cur"))
    return
  fi
  case "$cur" in
    -*)
      case "$cmd" in
@OPTIONS@
      esac ;;
    *)
      case "$cmd $option" in
@VALUES@
      esac
      if [[ -z "$words" ]]; then
        case "$cmd" in
@ARGUMENTS@
        esac
        COMPREPLY=($(compgen -f -- "$cur"))
      fi ;;
  esac
  COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _cbobench cbobench"""


def write_bash(words: dict[str, Words]) -> str:
    """The script for bash."""
    options = [f'        {name}) words="{" ".join(one.options)}" ;;' for name, one in words.items()]
    values = [
        f'        "{name} {option}") words="{" ".join(found)}" ;;'
        for name, one in words.items()
        for option, found in one.options.items()
        if found
    ]
    arguments = []
    for name, one in words.items():
        runs = " $(compgen -G 'runs/*' || true)" * one.takes_run
        if one.values or runs:
            arguments.append(f'          {name}) words="{" ".join(one.values)}{runs}" ;;')
    script = BASH.replace("@COMMANDS@", " ".join(words)).replace("@OPTIONS@", "\n".join(options))
    return script.replace("@VALUES@", "\n".join(values)).replace("@ARGUMENTS@", "\n".join(arguments))


def write_zsh(words: dict[str, Words]) -> str:
    """The script for zsh, which reads that of bash."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{write_bash(words)}"


def write_fish(words: dict[str, Words]) -> str:
    """The script for fish."""
    first = "complete -c cbobench"
    lines = []
    for name, one in words.items():
        lines.append(f"{first} -n __fish_use_subcommand -f -a {name} -d {shlex.quote(one.about)}")
        within = f"{first} -n '__fish_seen_subcommand_from {name}'"
        if one.values:
            lines.append(f"{within} -a {shlex.quote(' '.join(one.values))}")
        if one.takes_run:
            lines.append(f"{within} -a '(string match -r \"^runs/.*\" -- runs/*)'")
        for option, found in one.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"{within} {kind}" + (f" -x -a {shlex.quote(' '.join(found))}" if found else ""))
    return "\n".join(lines)
