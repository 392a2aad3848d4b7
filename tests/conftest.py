"""Strict global settings and the few fixtures that most tests use."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cbobench as cbobench  # before NumPy, which then computes as every process of cbobench does

# isort: split
import numpy as np
import pytest

from cbobench.results.source import look_again
from tests.processes import ended_with_the_test

np.seterr(divide="raise", over="raise", invalid="raise")
# a sweep ignores it where nohup does; nohup of the tests is not meant
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# nor is a script meant that runs them in the background, where Ctrl-C is ignored
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]


def calls(work: Callable[[], Any]) -> int:
    """How many functions, of Python and of C, some work calls: what it costs, however fast the
    machine is.
    """
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


# Folders whose files share a dear fixture among their tests, and such files elsewhere.
SHARING = {
    "page",
    "papers",
    "play",
    "replay",
    "report",
    "results",
    "suite",
    "sweep",
    "test_house.py",
}


def group_of(test: str) -> str:
    """What keeps to one worker of a parallel run: a file whose tests share a fixture; all tests
    that start a cluster.

    Any other test is a group of its own.
    """
    file = Path(test.partition("::")[0])
    if not SHARING & {file.parent.name, file.name}:
        return test
    return "clusters" if file.stem.startswith(("test_cluster", "test_token")) else str(file)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let `--dist loadgroup` go by `group_of`: marks of groups get lost between pytest 9.2 and
    pytest-xdist 3.8.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return GroupScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups of several tests come first, those that start a cluster before all: one after the
    other their tests take longest, and would else be what the end waits for. Then the pages, whose
    tests are the longest that stand alone.
    """
    groups = {item: group_of(item.nodeid) for item in items}
    items.sort(
        key=lambda item: (
            groups[item] != "clusters",
            groups[item] == item.nodeid,
            item.path.stem != "test_docs",
        )
    )


gc.disable()  # thousands of tests are listed, all of which stay


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the listed tests: to look at them takes as long as many a
    test.
    """
    gc.freeze()
    gc.enable()


def find_data(what: str, pattern: str) -> Path:
    """The folder of data that are not part of the project; the test is skipped without them."""
    folder = os.environ.get("CBOBENCH_DATA")
    if not folder or not any(Path(folder).glob(pattern)):
        pytest.skip(f"{what} are not here: set CBOBENCH_DATA to a folder that has them")
    return Path(folder)


@pytest.fixture
def original_data() -> Path:
    """The folder with the two recorded data sets, which have no licence and are not part of the
    project.
    """
    return find_data("the recorded data sets", "fin.csv")


@pytest.fixture
def measured_data() -> Path:
    """The folder that has the measured tables, or has them in one below; they are not part of the
    project either.
    """
    return find_data("the measured tables", "**/P3HT_dataset.csv")


@pytest.fixture
def write_suite(tmp_path: Path) -> Callable[..., Path]:
    """Write a suite file from keyword lines; returns its path."""

    def write(text: str, name: str = "suite.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


SMALL = """\
suite: small
horizon: {horizon}
seeds: {seeds}
problems:
  - rkhs-1d: {{h: 0.25}}
algorithms:
  - ckb-ucb
  - ckb-ts
  - stageopt
"""


@pytest.fixture
def small_suite(write_suite: Callable[..., Path]) -> Callable[..., Path]:
    def make(horizon: int = 60, seeds: int = 4, extra: str = "") -> Path:
        return write_suite(SMALL.format(horizon=horizon, seeds=seeds) + extra)

    return make


PLAYERS = {
    "as it comes": "",
    "fresh workers": "from cbobench.sweep import children; children.can_fork = lambda: False",
    "ray": "from cbobench.sweep import engines; engines.SMALL = 0",
}


def cbobench_words(players: str = "as it comes") -> list[str]:
    """The words of `cbobench` in a process of its own where tasks are played by certain players."""
    return [
        sys.executable,
        "-c",
        f"import sys; {PLAYERS[players]}\nfrom cbobench.cli import entry; entry()",
    ]


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `cbobench ...` in its own process, without the user's data folder unless given."""

    def run(
        *arguments: Any, players: str | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "cbobench"] if players is None else cbobench_words(players)
        command_line = [*program, *map(str, arguments)]
        return subprocess.run(command_line, capture_output=True, text=True, timeout=600, **options)

    return run


@pytest.fixture(autouse=True)
def _no_process_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that fails leaves neither process nor open pipe to those after it."""
    with ended_with_the_test(monkeypatch):
        yield


@pytest.fixture
def clean_tree(tmp_path: Path) -> Callable[[], list[str]]:
    """The files below the test's folder, to show that a refusal changed nothing."""
    return lambda: sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))


@pytest.fixture(scope="session", autouse=True)
def _one_width() -> Iterator[None]:
    """Tables have one width for a test and for what a whole file shares, which is made before
    it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        yield


@pytest.fixture(autouse=True)
def _no_runs_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands without --out write to ./runs: keep that inside the test's folder."""
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)


@pytest.fixture(autouse=True)
def _forgotten_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What a test writes and imports is not imported by the next one, which writes another module
    of that name.

    Nor does its code stand in hashes that were kept.
    """
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
            look_again()
