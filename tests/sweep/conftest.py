"""The command in the process of the tests, for what needs none of its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cbobench.cli import main
from cbobench.play.isolation import Company
from cbobench.sweep import children
from tests.sweep.helpers import environment_of


@pytest.fixture
def forking(monkeypatch):
    """Workers are forked from this process, as from one without threads that has imported nobody's
    code: a fresh interpreter costs seconds.
    """
    monkeypatch.setattr(children, "can_fork", lambda: True)
    monkeypatch.setattr(Company, "may_fork", True)


@pytest.fixture
def cli(forking, command, capfd, tmp_path):
    """Run `cbobench ...` in this process, or, where other players are asked for, in one of its
    own.
    """

    def run(*arguments, players=None):
        if players is not None:
            return command(*arguments, players=players, env=environment_of(tmp_path))
        code = main([*map(str, arguments)])
        captured = capfd.readouterr()
        return SimpleNamespace(returncode=code, stdout=captured.out, stderr=captured.err)

    return run
