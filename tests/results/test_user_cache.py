"""What is kept between commands comes back only as it was, and where nobody else writes."""

from __future__ import annotations

import os

import pytest

from cbobench.results.user_cache import keep_value, read_value

KEY = b"key"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    keep_value("entry", KEY, {"names": {"b", "a"}})
    return tmp_path / "caches" / "cbobench"


def test_a_value_comes_back_under_its_name_and_key_alone(folder):
    assert read_value("entry", KEY) == {"names": ["a", "b"]}
    assert read_value("entry", b"another") is read_value("another", KEY) is None
    keep_value("entry", b"another", 1)
    assert (read_value("entry", KEY), read_value("entry", b"another")) == (None, 1)
    assert [(f.name, f.stat().st_mode & 0o777) for f in folder.iterdir()] == [("entry", 0o600)]


SPOILT = {
    "others may write the folder": lambda folder: folder.chmod(0o777),
    "a group may write the file": lambda folder: (folder / "entry").chmod(0o620),
    "it is a link": lambda folder: folder.symlink_to(folder.rename(folder.with_name("moved"))),
    "half a file": lambda folder: os.truncate(folder / "entry", 75),
    "an empty file": lambda folder: os.truncate(folder / "entry", 0),
    "other names": lambda folder: (folder / "entry").write_bytes(
        (folder / "entry").read_bytes().replace(b'"a"', b'"c"')
    ),
    "no file": lambda folder: (folder / "entry").rename(folder / "moved"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_value_that_may_be_another_one_is_not_read(folder, spoil):
    spoil(folder)
    assert read_value("entry", KEY) is None


def test_what_another_user_owns_is_not_read(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert read_value("entry", KEY) is None


@pytest.mark.parametrize("home", ["", "here", "/dev/null"])
def test_where_there_is_no_folder_nothing_is_kept(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    keep_value("entry", KEY, 1)
    assert (read_value("entry", KEY), [*tmp_path.iterdir()]) == (None, [])
