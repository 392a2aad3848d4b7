"""Original data sets, checked by hash. Only `cbobench data fetch` downloads them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from cbobench.errors import CbobenchError, Misuse
from cbobench.watcher import SILENT, Watcher

REPOSITORY = (
    "https://raw.githubusercontent.com/sayakrc/Bayesian-Optimization-under-Heavy-tailed-Payoffs/"
    "673ce5ce40cabd95f0319e0a1b338044f160143e/"
)
ENVIRONMENT = "CBOBENCH_DATA"


PV_LAB = "https://raw.githubusercontent.com/PV-Lab/Benchmarking/7585c517ad88e676c42c6bf24a8ad278e01ddb21/datasets/"
EDBO_PLUS = (
    "https://raw.githubusercontent.com/doyle-lab-ucla/edboplus/"
    "f5d1687e834d33c77598767c5383a919f9a58034/examples/publication/Suzuki/data/"
)
OLYMPUS = (
    "https://raw.githubusercontent.com/aspuru-guzik-group/olympus/440b6b58ebfcaa2391cff7e94b570fb4fda98d68/"
    "src/olympus/datasets/"
)


@dataclass(frozen=True)
class DataSet:
    """A file that is fetched from its public home, and never part of the project.

    Attributes:
        url: its address; "": in the repository of Chowdhury & Gopalan (NeurIPS 2019), which states
            no licence.
        has_look_alike: whether rows that are made from published facts can be played instead.
    """

    file: str
    sha256: str
    about: str
    url: str = ""
    has_look_alike: bool = False


DATA_SETS = {
    "light-sensors": DataSet(
        "iw_data_all.mat",
        "3d87e03ae8bc9e3f0a4abeb57c64933c7d3dee7476ac5c4f6ca28b4efc357c15",
        "light readings of 41 sensors, CMU Intelligent Workplace, November 2005",
        has_look_alike=True,
    ),
    "stocks": DataSet(
        "fin.csv",
        "e9f7d7c3a0ad4ada75e5b8fa3830c77ed0579232b45837438c671d83b1818199",
        "adjusted closing prices of 29 stocks, 823 days, 2016-01-04 to 2019-04-10",
        has_look_alike=True,
    ),
    "measured-p3ht": DataSet(
        "P3HT_dataset.csv",
        "db33eeb63e3f09ebeb3c1985c14b39e4284668b3ed1fc6a23d17998c21a45dde",
        "conductivity of 178 composites of P3HT and carbon nanotubes, 233 rows (MIT licence)",
        PV_LAB + "P3HT_dataset.csv",
    ),
    "measured-perovskite": DataSet(
        "Perovskite_dataset.csv",
        "9e9c5c2c698902ae17ba5e8f037c7f10d5889c02a419fe3897e4724f805263b9",
        "instability of 94 mixed perovskites, 139 rows (MIT licence)",
        PV_LAB + "Perovskite_dataset.csv",
    ),
    "measured-agnp": DataSet(
        "AgNP_dataset.csv",
        "d25ec6fbb178bbb1b58350ff1c933034b409cdced4f9b20f7d7be61ffaed0d08",
        "spectra of silver nanoparticles at 164 settings of flow rates, 3,295 rows (MIT licence)",
        PV_LAB + "AgNP_dataset.csv",
    ),
    "measured-crossed-barrel": DataSet(
        "Crossedbarrel_dataset.csv",
        "2c01f875f3c210e986ca6142bf20f417884c2ad7d6f008c2fc574b44a3d5f606",
        "toughness of 600 printed crossed barrels, 1,800 rows (MIT licence)",
        PV_LAB + "Crossed%20barrel_dataset.csv",
    ),
    "measured-suzuki": DataSet(
        "Suzuki_B1.csv",
        "5fa422e48772adae3fc2ba5b9dd0318d8ab0badd78ab788accc26d5df9ce183e",
        "conversion and selectivity of 352 Suzuki couplings (MIT licence)",
        EDBO_PLUS + "dataset_B1.csv",
    ),
    "measured-lnp3": DataSet(
        "lnp3.csv",
        "69e8847e30f8b8b8720884676cd20d354152b7093309d278ee9910f9924b48ba",
        "drug loading, efficiency and size of 768 lipid nanoparticles (MIT licence)",
        OLYMPUS + "dataset_lnp3/data.csv",
    ),
    "measured-redoxmers": DataSet(
        "redoxmers.csv",
        "89465c7710966da17296026575fd907b98cf93cfb81d3351efbf642b811abbb5",
        "absorption, reduction potential and solvation of 1,408 redoxmers (MIT licence)",
        OLYMPUS + "dataset_redoxmers/data.csv",
    ),
}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Site:
    """Where a problem is prepared: original files, and whom to tell.

    Original files lie in the folder of `--data`, else CBOBENCH_DATA, else the cache of `data
    fetch`.

    Args:
        folder: the folder of `--data`, or None.
        base: the folder that relative paths in a suite start from.
        watcher: told in a line what a reader of the problem's numbers should know.
    """

    folder: Path | None = None
    base: Path = Path()
    watcher: Watcher = field(default=SILENT, repr=False, compare=False)

    def resolve(self, path: str) -> Path:
        """A path written in a suite: absolute, or relative to the suite's folder."""
        return self.base / path

    @property
    def path(self) -> Path:
        """The first of these that is given."""
        # Imported here, as most plays need no data set.
        import pooch

        return self.folder or Path(os.environ.get(ENVIRONMENT) or pooch.os_cache("cbobench"))

    def find(self, name: str) -> Path:
        """The checked file of a data set, in the folder or in one that lies in it.

        Raises:
            Misuse: it is not there, or its hash is not the original's.
        """
        data = DATA_SETS[name]
        path = next(
            (p for p in (self.path / data.file, *self.path.glob(f"*/{data.file}")) if p.is_file()),
            None,
        )
        if path is None:
            other = ", or set data: look-alike" if data.has_look_alike else ""
            raise Misuse(
                f"{data.file} (data of {name!r}) is not in {self.path}; pass --data FOLDER, set "
                f"{ENVIRONMENT}, or run 'cbobench data fetch {name}'{other}"
            )
        # Another file would give other numbers, and nobody would notice.
        digest = sha256(path)
        if digest != data.sha256:
            raise Misuse(
                f"{path} is not the original {data.file}: its sha256 is {digest[:12]}…, not "
                f"{data.sha256[:12]}…"
            )
        return path


DataFolder = Site  # what a problem is given was no more than that, and classes of users name it so


def fetch(name: str, folder: Path) -> Path:
    """Download one data set into `folder`, unless it is there already, and check its hash.

    Raises:
        CbobenchError: the download failed or the file is not the original. Nothing half-written is
            left.
    """
    import pooch

    data = DATA_SETS[name]
    folder.mkdir(parents=True, exist_ok=True)
    url = data.url or REPOSITORY + data.file
    try:
        file = pooch.retrieve(url, known_hash="sha256:" + data.sha256, fname=data.file, path=folder)
    except Exception as error:  # pooch raises what its HTTP library raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CbobenchError(f"could not fetch {data.file}: {reason}; nothing was kept") from error
    return Path(file)
