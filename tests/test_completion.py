"""Completion in a shell: every command, names where they are asked for, files as they stand;
families of `list`.
"""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess

import pytest

from cbobench.cli import main, make_parser
from cbobench.cli.completion import HOW
from tests.processes import until

INTERACTIVE = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUP = {
    "bash": "PS1=; bind 'set bell-style none'; bind 'set page-completions off'",
    "zsh": "PS1=; autoload -U compinit; compinit -D -u",
}
HOSTILE = [
    "$(touch ran-dollar)",
    "`touch ran-backtick`",
    "; touch ran-semicolon",
    "&& touch ran-and",
    "x'; touch ran-quote; '",
    'x"; touch ran-double; "',
    "a\n$(touch ran-newline)",
    "with some spaces",
    "*",
    "[ab]?",
    "${HOME}",
    "<(touch ran-process)",
    "!!",
    "\\$(touch ran-slash)",
    "-n",
    "~",
    "é ü",
]


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def complete(text, folder, *arguments):
    """What our function offers bash for the last word."""
    line = " ".join(f"'{word}'" for word in arguments)
    reply = '_shtab_cbobench; printf "%s\\n" "${COMPREPLY[@]}"'
    call = f"{text}\nCOMP_WORDS=({line}); COMP_CWORD={len(arguments) - 1}; {reply}"
    done = subprocess.run(
        ["bash", "-c", call], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


class Terminal:
    """A shell at a terminal, where `cbobench` writes the words that it is given to the file
    `words`.
    """

    def __init__(self, shell, text, folder):
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} here")
        self.folder, (self.ours, theirs) = folder, pty.openpty()
        (folder / "script").write_text(text)
        (folder / "cbobench").write_text(
            '#!/bin/sh\nprintf "%s\\0" "$@" > written && mv written words\n'
        )
        (folder / "cbobench").chmod(0o755)
        settings = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
        }
        self.process = subprocess.Popen(
            INTERACTIVE[shell],
            cwd=folder,
            env=settings,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        sourcing = f'{SETUP[shell]}; eval "$(cat script)"'
        self.type(f"{sourcing}; cbobench ready\n")
        assert self.read_words() == ["ready"]

    def type(self, text):
        os.write(self.ours, text.encode())

    def read_words(self):
        """The words of the next call; what the shell prints is read, or it would wait."""
        file = self.folder / "words"

        def is_written():
            if select.select([self.ours], [], [], 0)[0]:
                os.read(self.ours, 65536)
            return file.exists()

        until(is_written, lambda: "cbobench was not called")
        content = file.read_text()
        file.unlink()
        return content.split("\0")[:-1]

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture
def terminal(tmp_path, capsys):
    opened = []

    def open_terminal(shell):
        opened.append(Terminal(shell, script(shell, capsys), tmp_path))
        return opened[-1]

    yield open_terminal
    for at_prompt in opened:
        at_prompt.end()


@pytest.mark.parametrize(
    ("arguments", "offered"),
    [
        (["compare", "runs/mine", "--metric", "regret", "violation_h"], {"violation_hard"}),
        (["run", "literature_s"], {"literature_small"}),
        (["compare", "runs/mi"], set()),  # the shell's own completion of files
        (["figures", "runs/mine", "--high"], {"--highlight"}),
        (["figures", "runs/mine", "--highlight", "ckb-u"], {"ckb-ucb"}),
        (["show", "gram"], {"gramacy"}),
    ],
)
def test_bash_completes(arguments, offered, tmp_path, capsys):
    assert complete(script("bash", capsys), tmp_path, "cbobench", *arguments) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    "before", ["compare runs/", "run ./runs/", "compare known --only x ./runs/"]
)
def test_tab_runs_nothing_and_gives_names_as_they_stand(shell, before, tmp_path, terminal):
    (tmp_path / "runs").mkdir()
    at_prompt = terminal(shell)
    *first, typed = before.split()
    for name in HOSTILE:
        place = tmp_path / "runs" / name
        place.touch()
        at_prompt.type(f"cbobench {before}\t\n")  # the only name there
        assert at_prompt.read_words() == [*first, f"{typed}{name}"]
        place.unlink()
    assert not list(tmp_path.rglob("ran-*"))


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_commands_options_and_files(shell, tmp_path, terminal):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "mine.yaml").touch()
    at_prompt = terminal(shell)
    for typed, expected in [
        ("compl\tzs\t", ["completion", "zsh"]),
        ("run literature_s\t", ["run", "literature_small"]),
        ("run min\t", ["run", "mine.yaml"]),
        ("compare ru\tmi\t", ["compare", "runs/mine/"]),
        ("figures runs/mine --highl\tckb-u\t", ["figures", "runs/mine", "--highlight", "ckb-ucb"]),
    ]:
        at_prompt.type(f"cbobench {typed}\n")
        assert [word.rstrip("/") for word in at_prompt.read_words()] == [
            word.rstrip("/") for word in expected
        ]


def test_every_command_is_completed_in_every_shell(tmp_path, capsys):
    commands = next(action for action in make_parser()._actions if action.dest == "command").choices
    assert complete(script("bash", capsys), tmp_path, "cbobench", "") == {*commands}
    assert all(f" -a {name} -d" in script("fish", capsys) for name in commands)
    assert all(script(shell, capsys).startswith("# ") for shell in HOW), "how to install it"
    for shell, check in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
        if shutil.which(shell):
            (tmp_path / shell).write_text(script(shell, capsys))
            subprocess.run([shell, check, tmp_path / shell], check=True)
    assert main(["completion", "tcsh"]) == 2
    assert "unknown bash|zsh|fish 'tcsh'" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_and_runs_nothing(tmp_path, capsys):
    (tmp_path / "script").write_text(script("fish", capsys))
    (tmp_path / "runs").mkdir()
    for name in HOSTILE:
        (tmp_path / "runs" / name).mkdir()
    for typed, offered in [
        ("run literature_s", "literature_small"),
        ("figures x --highlight ckb-u", "ckb-ucb"),
        ("compare runs/with", "runs/with some spaces/"),
        ("compare runs/", "runs/$(touch ran-dollar)/"),
    ]:
        call = ["fish", "--no-config", "-c", f"source script; complete -C 'cbobench {typed}'"]
        settings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            call, cwd=tmp_path, env=settings, capture_output=True, text=True, check=True
        )
        assert offered in [line.partition("\t")[0] for line in done.stdout.splitlines()], typed
    assert not list(tmp_path.rglob("ran-*"))
