"""Original data sets, checked by hash. Only `cbobench data fetch` downloads them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from cbobench.errors import CbobenchError, Misuse
from cbobench.watcher import SILENT, Watcher

REPOSITORY = (
    "https://raw.githubusercontent.com/sayakrc/Bayesian-Optimization-under-Heavy-tailed-Payoffs/"
    "673ce5ce40cabd95f0319e0a1b338044f160143e/"
)
ENVIRONMENT = "CBOBENCH_DATA"


@dataclass(frozen=True)
class DataSet:
    """A file of the public repository of Chowdhury & Gopalan (NeurIPS 2019), which states no
    licence.
    """

    file: str
    sha256: str
    about: str


DATA_SETS = {
    "light-sensors": DataSet(
        "iw_data_all.mat",
        "3d87e03ae8bc9e3f0a4abeb57c64933c7d3dee7476ac5c4f6ca28b4efc357c15",
        "light readings of 41 sensors, CMU Intelligent Workplace, November 2005",
    ),
    "stocks": DataSet(
        "fin.csv",
        "e9f7d7c3a0ad4ada75e5b8fa3830c77ed0579232b45837438c671d83b1818199",
        "adjusted closing prices of 29 stocks, 823 days, 2016-01-04 to 2019-04-10",
    ),
}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Site:
    """Where a problem is prepared: original files, whom to tell and ask, and where simulations run
    and are kept.

    Original files lie in the folder of `--data`, else CBOBENCH_DATA, else the cache of `data
    fetch`.

    Args:
        folder: the folder of `--data`, or None.
        base: the folder that relative paths in a suite start from.
        watcher: told in a line what a problem does that takes long, such as a simulator's pilot,
            and asked whether a pilot of minutes is to go on.
        pool: where simulations run (see `pilot.Pool`); None: in this process.
        store: where those of the problem are kept (see `simulated.Store`); None: they are not.
        deadline: of a dry run, by `monotonic`: pilots are cut short, say nothing, and start no
            workers.
    """

    folder: Path | None = None
    base: Path = Path()
    watcher: Watcher = field(default=SILENT, repr=False, compare=False)
    pool: Any = field(default=None, repr=False, compare=False)
    store: Any = field(default=None, repr=False, compare=False)
    deadline: float = inf

    def resolve(self, path: str) -> Path:
        """A path written in a suite: absolute, or relative to the suite's folder."""
        return self.base / path

    @property
    def path(self) -> Path:
        """The first of these that is given."""
        import pooch

        return self.folder or Path(os.environ.get(ENVIRONMENT) or pooch.os_cache("cbobench"))

    def find(self, name: str) -> Path:
        """The checked file of a data set.

        Raises:
            Misuse: it is not there, or its hash is not the original's.
        """
        data = DATA_SETS[name]
        path = self.path / data.file
        if not path.is_file():
            raise Misuse(
                f"{data.file} (data of {name!r}) is not in {self.path}; pass --data FOLDER, set "
                f"{ENVIRONMENT}, "
                f"run 'cbobench data fetch {name}', or set data: look-alike"
            )
        digest = sha256(path)
        if digest != data.sha256:
            raise Misuse(
                f"{path} is not the original {data.file}: its sha256 is {digest[:12]}…, not "
                f"{data.sha256[:12]}…"
            )
        return path


DataFolder = Site  # what a problem is given was no more than that, and classes of users name it so


def fetch(name: str, folder: Path, base_url: str = REPOSITORY) -> Path:
    """Download one data set into `folder`, unless it is there already, and check its hash.

    Raises:
        CbobenchError: the download failed or the file is not the original. Nothing half-written is
            left.
    """
    import pooch

    data = DATA_SETS[name]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        file = pooch.retrieve(
            f"{base_url.rstrip('/')}/{data.file}",
            known_hash="sha256:" + data.sha256,
            fname=data.file,
            path=folder,
        )
    except Exception as error:  # pooch raises what its HTTP library raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CbobenchError(f"could not fetch {data.file}: {reason}; nothing was kept") from error
    return Path(file)
