"""A shard is played from a clean tree, in a time that is given, and committed as it ends."""

import subprocess

import pytest

import cbobench
from analysis import shards

SHARDS = {"tiny": {"suite": "first", "only": ["*/random"], "seeds": 2}}


def git(folder, *words):
    return subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A work tree with an empty page, whose shards are played beside it."""
    folder, page = tmp_path / "tree", tmp_path / "tree" / "field.md"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b.c")
    page.write_text("# Field\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    for name, value in {
        "ROOT": folder,
        "PUBLISHED": folder,
        "RUNS": tmp_path / "runs",
        "PAGES": (page, folder / "none"),
    }.items():
        monkeypatch.setattr(shards, name, value)
    monkeypatch.setattr(shards, "render_pages", lambda shards: page.write_text("# Played\n"))
    return folder


@pytest.mark.slow
def test_a_shard_is_committed_with_the_pages_and_the_tree_is_clean_again(tree, capsys):
    shards.play_shards(SHARDS, [], True)
    assert shards.is_whole("tiny", SHARDS["tiny"])
    assert git(tree, "show", "--format=%s", "--name-only").split("\n") == [
        "Play tiny: 2 of 2 cells",
        "",
        "field.md",
        "tiny.zip",
        "",
    ]
    assert git(tree, "status", "--porcelain") == ""
    shards.play_shards(SHARDS, [], True)
    assert capsys.readouterr().out.endswith("nothing to play\n")
    assert len(git(tree, "log", "--format=%h").split()) == 2


def test_in_a_tree_with_changes_nothing_is_played(tree, monkeypatch, capsys):
    monkeypatch.setattr(shards, "play_shard", lambda *arguments: pytest.fail("it was played"))
    (tree / "mine.py").write_text("")
    with pytest.raises(SystemExit, match=r"no commit holds \(mine.py\); commit them, or commit no"):
        shards.play_shards(SHARDS, [], True)
    monkeypatch.setattr(shards, "is_whole", lambda *of: True)
    shards.play_shards(SHARDS, [], False)
    assert capsys.readouterr().out == "nothing to play\n"


def test_what_git_refuses_is_said(tree):
    with pytest.raises(SystemExit, match="shards: git show: fatal: .*nothing.*; mend that, or"):
        shards.ask_git("show", "nothing")


@pytest.mark.slow
def test_a_shard_that_is_stopped_is_resumed(tree, capsys):
    """Without time, what is there is exported, and a command that never began is missed."""
    first, second = "gramacy/random", "gramacy/ckb-ucb"
    shard = {"suite": "first", "only": [first, second], "seeds": 1}
    shards.play_shard("tiny", shard | {"only": [first]}, 600.0)
    assert shards.is_whole("tiny", shard | {"only": [first]})
    shards.play_shard("tiny", shard, 0.0)
    assert "tiny: stopped after 0 minutes; the next call goes on" in capsys.readouterr().out
    assert len(cbobench.load_cells(shards.bundle_of("tiny"))) == 1
    assert not shards.is_whole("tiny", shard)
    shards.play_shard("tiny", shard, 600.0)
    assert len(cbobench.load_cells(shards.bundle_of("tiny"))) == 2
    assert shards.is_whole("tiny", shard)
    assert not shards.is_whole("tiny", shard | {"seeds": 2})
