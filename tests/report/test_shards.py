"""A shard is played from a clean tree, in a time that is given, and committed as it ends."""

import subprocess

import pytest

import cbobench
from analysis import bundles, shards
from cbobench.cli import main
from cbobench.errors import Misuse

SHARDS = {"tiny": {"suite": "first", "only": ["*/random"], "seeds": 2}}


@pytest.fixture
def part(tree):
    """What is made of it: a page."""

    def write():
        (tree / "field.md").write_text("# Played\n")

    return shards.Part(render=write, update=write, files=(tree / "field.md", tree / "none"))


def git(folder, *words):
    return subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A work tree with an empty page, whose shard is played beside it."""
    folder, page = tmp_path / "tree", tmp_path / "tree" / "field.md"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b.c")
    page.write_text("# Field\n")
    (folder / "shards.yaml").write_text("field:\n  tiny: {suite: first}\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    monkeypatch.setattr(shards, "ROOT", folder)
    monkeypatch.setattr(shards, "RUNS", tmp_path / "runs")
    for module in (bundles, shards):
        monkeypatch.setattr(module, "PUBLISHED", folder)
    return folder


@pytest.fixture
def playing_here(monkeypatch):
    """Commands are run by this process."""
    monkeypatch.setattr(shards, "run_until", lambda words, deadline: main([*words, "--cpus", "0"]))


@pytest.mark.slow
@pytest.mark.usefixtures("playing_here")
def test_a_shard_is_committed_with_the_pages_and_the_tree_is_clean_again(
    tree, part, monkeypatch, capsys
):
    shards.play_shards(part, SHARDS, [], True)
    assert bundles.is_whole("tiny", SHARDS["tiny"])
    assert git(tree, "show", "--format=%s", "--name-only").split("\n") == [
        "Play tiny: 2 of 2 cells",
        "",
        "field.md",
        "shards.yaml",
        "tiny.zip",
        "",
    ]
    assert git(tree, "status", "--porcelain") == ""
    monkeypatch.setattr(shards, "is_confirmed", lambda name: True)
    shards.play_shards(part, SHARDS, [], True)
    assert capsys.readouterr().out.endswith("nothing to play\n")
    assert len(git(tree, "log", "--format=%h").split()) == 2


def test_in_a_tree_with_changes_nothing_is_played(tree, monkeypatch, capsys):
    monkeypatch.setattr(shards, "play_shards", lambda *arguments: print("played"))
    (tree / "mine.py").write_text("")
    with pytest.raises(Misuse, match=r"no commit holds \(mine.py\); commit them, or commit no"):
        shards.main(["field"])
    assert capsys.readouterr().out == ""
    shards.main(["field", "--no-commit"])
    assert capsys.readouterr().out == "played\n"
    with pytest.raises(Misuse, match="unknown shard 'tinny'; did you mean 'tiny'"):
        shards.main(["field", "tinny"])


def test_what_git_refuses_is_said(tree):
    with pytest.raises(Misuse, match="git show: fatal: .*nothing.*; mend that, or"):
        shards.ask_git("show", "nothing")


@pytest.mark.slow
def test_a_shard_that_is_stopped_is_resumed(tree, capsys, request):
    """Without time, what is there is exported, and a command that never began is missed."""
    stopping = shards.run_until
    request.getfixturevalue("playing_here")
    first, second = "gramacy/random", "gramacy/ckb-ucb"
    shard = {"suite": "first", "only": [first, second], "seeds": 1}
    shards.play_shard("tiny", shard | {"only": [first]}, 600.0)
    assert bundles.is_whole("tiny", shard | {"only": [first]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "run_until", stopping)
        shards.play_shard("tiny", shard, 0.0)
    assert "tiny: stopped after 0 minutes; the next call goes on" in capsys.readouterr().out
    assert len(cbobench.load_cells(bundles.bundle_of("tiny"))) == 1
    assert not bundles.is_whole("tiny", shard)
    shards.play_shard("tiny", shard, 600.0)
    assert len(cbobench.load_cells(bundles.bundle_of("tiny"))) == 2
    assert bundles.is_whole("tiny", shard)
    assert not bundles.is_whole("tiny", shard | {"seeds": 2})
