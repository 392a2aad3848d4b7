"""A small run that the tests of this room share, and copies of it to damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import SMALL
from tests.helpers import swept


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A suite and its run, to read only: three tasks of four cells."""
    run = swept(tmp_path_factory.mktemp("whole"), SMALL.format(horizon=20, seeds=4))
    return run.parent / "suite.yaml", run


@pytest.fixture
def played(whole_run: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of both."""
    suite, run = whole_run
    return Path(shutil.copy(suite, tmp_path)), Path(shutil.copytree(run, tmp_path / "run"))
