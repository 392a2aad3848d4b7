"""Completion in a shell: every command, and names where they are asked for; families of `list`."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main, make_parser
from cbobench.cli.completion import SHELLS


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def complete(text, folder, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    call = f'{text}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _cbobench; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-uc", call], cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["compare", "runs/mine", "--metric", "simple"], {"simple_regret", "simple_value"}),
        (["compare", "runs/mine", "--metric", "regret", "violation_h"], {"violation_hard"}),
        (["run", "literature_s"], {"literature_small"}),
        (["figures", "runs/mi"], {"runs/mine"}),
        (["figures", "runs/mine", "--high"], {"--highlight"}),
        (["figures", "runs/mine", "--highlight", "ckb-u"], {"ckb-ucb"}),
        (["figures", "runs/mine", "--kind", "p"], {"plane", "profile"}),
        (["show", "gram"], {"gramacy"}),
        (["reference", "ce"], set()),  # a method has none
        (["list", "s"], {"suites", "scores.csv"}),  # a file is always offered
        (["no-such-command", "x"], set()),
    ],
)
def test_bash_completes(words, offered, tmp_path, capsys):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "scores.csv").touch()
    assert complete(script("bash", capsys), tmp_path, "cbobench", *words) == offered


def test_every_command_is_completed_in_every_shell(tmp_path, capsys):
    commands = next(action for action in make_parser()._actions if action.dest == "command").choices
    assert complete(script("bash", capsys), tmp_path, "cbobench", "") == {*commands}
    fish = script("fish", capsys)
    assert all(f"-a {name} -d" in fish for name in commands)
    assert script("zsh", capsys).splitlines()[1].startswith("autoload")
    assert all(script(shell, capsys).startswith("# ") for shell in SHELLS), "how to install it"
    for shell, check in (("zsh", "-n"), ("fish", "--no-execute")):
        if shutil.which(shell):
            (tmp_path / shell).write_text(script(shell, capsys))
            subprocess.run([shell, check, tmp_path / shell], check=True)
    assert main(["completion", "tcsh"]) == 2
    assert "unknown bash|zsh|fish 'tcsh'" in capsys.readouterr().err


def test_a_list_of_one_family(capsys):
    assert main(["list", "algorithms", "--family", "safe", "--format", "json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["safeopt", "sgp-ucb", "stageopt"]
    assert main(["list", "algorithms", "--family"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(name for line in lines for name in line.partition(": ")[2].split(", ")) == sorted(ALGORITHMS.names())
    assert main(["list", "algorithms", "--family", "saef"]) == 2
    assert "unknown family 'saef'; did you mean 'safe'?" in capsys.readouterr().err
    assert main(["list", "suites", "--family", "map"]) == 0
    assert "literature" not in capsys.readouterr().out
