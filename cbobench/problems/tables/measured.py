"""Tables of real experiments, which are loaded by path and checked by hash (see `data.py`).

Their files are no part of the project. Rows with equal inputs are repetitions of one configuration:
a round reads one of them, drawn at random, and their mean is the truth that regret, optimum and
feasibility are about.

The table of `tuning-under-deadline` is ours: real trainings of a small network (Shi & Eryilmaz
2022, Section 3). It stands in `tuning.csv` beside this file, with `tuning.json`, which says what it
was measured with; `benchmarks/quality/measure_tuning.py` makes both anew. Playing needs no
scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.params import build, param
from cbobench.problems import PROBLEMS
from cbobench.problems.data import DATA_SETS, Site, sha256
from cbobench.problems.tables.configurations import objective_of, state_known
from cbobench.problems.tables.read import read_table
from cbobench.problems.tables.readings import Readings, ReadingsProblem, unit_grid
from cbobench.problems.tables.table import FromFiles, UserTable

LIGANDS = (
    "P(tBu)3, P(Ph)3, AmPhos, P(Cy)3, P(o-Tol)3, CataCXium A, SPhos, dtbpf, XPhos, dppf, Xanthphos"
)
BASES = "NaOH(aq.), s. NaHCO3(aq.), CsF(aq.), 1M K3PO4(aq.), KOH(aq.), Cs2CO3(aq.), KOAc, None"
ROLES: dict[str, dict[str, Any]] = {  # of the columns, as parameters of the problem `table`
    "measured-p3ht": {
        "inputs": {
            f"{name} content (%)": {"float": [0, 100]} for name in ("P3HT", "D1", "D2", "D6", "D8")
        },
        "objective": "Conductivity (measured) (S/cm)",
        "constraints": {"P3HT content (%)": {"at_most": 60}},
    },
    "measured-perovskite": {
        "inputs": {name: {"float": [0, 1]} for name in ("CsPbI", "FAPbI", "MAPbI")},
        "objective": {"minimise": "Instability index"},
        "constraints": {"MAPbI": {"at_least": 0.1}},
    },
    "measured-agnp": {
        "inputs": {
            **{f"Q{name}(%)": {"float": [0, 100]} for name in ("AgNO3", "pva", "tsc", "seed")},
            "Qtot(uL/min)": {"float": [200, 1000]},
        },
        "objective": {"minimise": "loss"},
        "constraints": {"QAgNO3(%)": {"at_most": 20}},
    },
    "measured-crossed-barrel": {
        "inputs": {
            "n": {"int": [6, 12]},
            "theta": {"float": [0, 200]},
            "r": {"float": [1.5, 2.5]},
            "t": {"float": [0.7, 1.4]},
        },
        "objective": "toughness",
        "constraints": {"n": {"at_most": 10}},
    },
    "measured-suzuki": {
        "inputs": {
            "ligand": {"choice": LIGANDS.split(", ")},
            "base": {"choice": BASES.split(", ")},
            "solvent": {"choice": ["MeOH", "DMF", "MeCN", "THF"]},
            "ligand_equivalent": {"float": [0.0625, 0.125]},
        },
        "objective": "objective_conversion",
        "constraints": {"objective_selectivity": {"at_least": 90}},
        "noise": 0.0,
    },
    "measured-lnp3": {
        "inputs": {
            "drug_input": {"float": [6, 48]},
            "solid_lipid": {"choice": ["Stearic_acid", "Compritol_888", "Glyceryl_monostearate"]},
            "solid_lipid_input": {"float": [72, 120]},
            "liquid_lipid_input": {"float": [0, 48]},
            "surfactant_input": {"float": [0, 0.01]},
        },
        "objective": "drug_loading",
        "constraints": {
            "encap_efficiency": {"at_least": 0.4},
            "particle_diameter": {"at_most": 1.0},
        },
        "noise": 0.0,
    },
    "measured-redoxmers": {
        "inputs": {
            name: {"choice": [f"{name.upper()}_{i}" for i in range(count)]}
            for name, count in {"r1": 2, "r3": 8, "r4": 8, "r5": 11}.items()
        },
        "objective": {"minimise": "abs_lam_diff"},
        "constraints": {"ered": {"at_most": 2.0}, "gsol": {"at_most": -0.75}},
        "noise": 0.0,
    },
}
HEADERLESS = ("measured-lnp3", "measured-redoxmers")
"""Tables whose files begin with values: their columns are the inputs, the objective and the
constraints, in this order.
"""


@dataclass(kw_only=True)
class MeasuredTable(FromFiles):
    """Base of these tables."""

    known: bool | None = param(
        None,
        "whether constraints on inputs are known, so that what lies beyond is not played; null: in "
        "a suite they are, in stored cells they are not",
        quiet=True,
    )

    @classmethod
    def complete(cls, settings: dict[str, Any]) -> dict[str, Any]:
        if settings["known"] is None and cls._bounds_inputs():
            return settings | {"known": True}
        return settings

    @classmethod
    def _bounds_inputs(cls) -> bool:
        roles = ROLES[cls.name]
        return bool({*roles["constraints"]} & {*roles["inputs"]})

    def validate(self) -> None:
        if self.known is not None and not self._bounds_inputs():
            raise Misuse(f"known is {self.known}, but no constraint is on an input; leave it out")

    def prepare(self, data: Site) -> None:
        roles = ROLES[self.name]
        limits = roles["constraints"]
        if self.known:
            limits = state_known(limits, roles["inputs"])
        file = data.find(self.name)
        with TemporaryDirectory() as folder:
            if self.name in HEADERLESS:
                columns = [*roles["inputs"], objective_of(roles["objective"]).column, *limits]
                text = file.read_text()
                file = Path(folder, file.name)
                file.write_text(",".join(columns) + "\n" + text)
            # As a suite would state it, so that a user's table of this form plays alike.
            stated = roles | {"constraints": limits}
            table = build(UserTable, {"layout": "configurations", "rows": str(file), **stated})
            table.prepare(data)
        self.played = table.played
        self.by_name = table.by_name

    def identity(self) -> dict[str, Any]:
        return {"data": DATA_SETS[self.name].sha256}


@PROBLEMS.register("measured-p3ht")
@dataclass(kw_only=True)
class P3HT(MeasuredTable):
    """Conductivity in S/cm of a polymer, P3HT, with four kinds of nanotubes, by contents in %.

    The constraint is ours, not the authors': a content of P3HT of at most 60 %. Of 178 composites
    37 were measured again, up to nine times. The file has the MIT licence (2020, MIT PVLab; the
    repository PV-Lab/Benchmarking).
    """

    source = "Bash et al. (2021), table of Liang et al. (2021); constraint ours"
    about = "178 composites of P3HT and nanotubes: most conductivity, at most 60 % P3HT (ours)"
    stated_facts = ("n = 178, d = 5", "1", "121 of 178", "838.31")


@PROBLEMS.register("measured-perovskite")
@dataclass(kw_only=True)
class Perovskite(MeasuredTable):
    """Instability of mixed perovskites under light and humid heat, by the shares of three iodides.

    The constraint is ours, not the authors': a share of MAPbI of at least 0.1. Of 94 mixtures 27
    were measured again. The file has the MIT licence (2020, MIT PVLab; the repository
    PV-Lab/Benchmarking).
    """

    source = "Sun et al. (2021), table of Liang et al. (2021); constraint ours"
    about = "94 mixed perovskites: least instability, a share of MAPbI of at least 0.1 (ours)"
    stated_facts = ("n = 94, d = 3", "1", "36 of 94", "-115491.5")


@PROBLEMS.register("measured-agnp")
@dataclass(kw_only=True)
class SilverNanoparticles(MeasuredTable):
    """How far a spectrum of silver nanoparticles is from the wanted one, by five flow rates.

    The constraint is ours, not the authors': a flow of AgNO3 of at most 20 %. Each of 164 settings
    was measured in 4 to 48 droplets of a reactor. The file has the MIT licence (2020, MIT PVLab;
    the repository PV-Lab/Benchmarking).
    """

    source = "Mekki-Berrada et al. (2021), table of Liang et al. (2021); constraint ours"
    about = "164 settings of a reactor: least loss of a spectrum, at most 20 % of AgNO3 (ours)"
    stated_facts = ("n = 164, d = 5", "1", "71 of 164", "-0.2784042")


@PROBLEMS.register("measured-crossed-barrel")
@dataclass(kw_only=True)
class CrossedBarrel(MeasuredTable):
    """Toughness of printed crossed barrels, by number, twist, radius and thickness of struts.

    The constraint is ours, not the authors': at most ten struts. Each of 600 designs was printed
    and crushed three times. The file has the MIT licence (2020, MIT PVLab; the repository
    PV-Lab/Benchmarking).
    """

    source = "Gongora et al. (2020), table of Liang et al. (2021); constraint ours"
    about = "600 printed structures: most toughness, at most ten struts (ours)"
    stated_facts = ("n = 600, d = 4", "1", "450 of 600", "39.76731")


@PROBLEMS.register("measured-suzuki")
@dataclass(kw_only=True)
class Suzuki(MeasuredTable):
    """Conversion in % of a Suzuki coupling, by ligand, its equivalents, base and solvent.

    Selectivity, which was measured with it, has to be at least 90 %; the bound is ours. No reaction
    was measured twice, so the play is without noise. The file has the MIT licence (2022, J. A.
    Garrido Torres; the repository doyle-lab-ucla/edboplus).
    """

    source = "Garrido Torres et al. (2022), dataset B1; bound ours"
    about = "352 Suzuki couplings of categories: most conversion, selectivity at least 90 % (ours)"
    stated_facts = ("n = 352, d = 24", "1", "11 of 352", "84.4")


@PROBLEMS.register("measured-lnp3")
@dataclass(kw_only=True)
class LipidNanoparticles(MeasuredTable):
    """Drug loading of lipid nanoparticles, by amounts of drug, two lipids and a surfactant, and the
    kind of the solid lipid.

    Two constraints were measured with it; their bounds are ours: an encapsulation efficiency of at
    least 0.4, and a particle diameter of at most 1.0. No formulation was measured twice, so the
    play is without noise. The file has the MIT licence (2020, Aspuru-Guzik group; the repository
    aspuru-guzik-group/olympus).
    """

    source = "Hickman et al. (2023), Olympus, dataset lnp3; bounds ours"
    about = (
        "768 lipid nanoparticles: most drug loading, with two measured constraints (bounds ours)"
    )
    stated_facts = ("n = 768, d = 7", "2", "16 of 768", "0.1812557")


@PROBLEMS.register("measured-redoxmers")
@dataclass(kw_only=True)
class Redoxmers(MeasuredTable):
    """How far the absorption of a molecule for batteries is from the wanted one, by four groups.

    Two constraints were computed with it; their bounds are ours: a reduction potential of at most
    2.0, and a solvation energy of at most -0.75. Each molecule has one row, so the play is without
    noise. The file has the MIT licence (2020, Aspuru-Guzik group; the repository
    aspuru-guzik-group/olympus).
    """

    source = "Agarwal et al. (2021), Olympus, dataset redoxmers; bounds ours"
    about = (
        "1,408 redoxmers of categories: least error of absorption, two constraints (bounds ours)"
    )
    stated_facts = ("n = 1408, d = 29", "2", "74 of 1408", "-1.82")


Clock = Literal["wall", "cpu"]
MEASURED = Path(__file__).with_name("tuning.csv")
AXES = ("hidden", "rate", "passes")


def read_trainings(clock: Clock, limit: float) -> Readings:
    """Readings (-error, milliseconds - limit) of the table of trainings, which holds every
    configuration in every repetition once; axes are logarithmic.
    """
    # Sorted, so that rows of one configuration stand together, in the order of repetitions.
    frame = read_table(MEASURED, "trainings").sort_values([*AXES, "repetition"], kind="stable")
    error, spent = (
        frame[name].to_numpy(dtype=float).reshape(-1, frame["repetition"].nunique()).T
        for name in ("error", f"{clock}_ms")
    )
    grid = frame.loc[frame["repetition"] == frame["repetition"].min(), [*AXES]].to_numpy()
    # The sorted table goes through the same grid: its last axis is the fastest.
    points = unit_grid(*[np.log(np.unique(levels)).tolist() for levels in grid.T])
    names = tuple(f"{h:g} units, rate {r:.3g}, {p:g} passes" for h, r, p in grid)
    return Readings(np.stack([-error, spent - limit], axis=1), points, names)


@PROBLEMS.register("tuning-under-deadline")
@dataclass(kw_only=True)
class TuningUnderDeadline(ReadingsProblem):
    """100 configurations of a one-layer network on scikit-learn's digits, each trained for real 12
    times.

    Configurations are hidden units x learning rate x passes over the data, on logarithmic axes. f
    is minus the mean validation error, g the mean training time minus the limit, in milliseconds. A
    round reads one repetition (a split and initial weights, the same for all configurations), so
    the noise is that of training, not of a model.
    """

    source = "Shi & Eryilmaz (2022) 3, measured by us"
    about = (
        "100 hyper-parameter settings of a small network, validation error and training time as "
        "measured"
    )
    stated_facts = ("n = 100, d = 3", "1", "50 of 100", "-0.03518533")

    limit: float = param(50.0, "deadline, milliseconds per training", above=0.0)
    clock: Clock = param("wall", "training time by the clock on the wall, or of the processor")

    def identity(self) -> dict[str, Any]:
        # A table that is measured anew makes other cells.
        return {"trainings": sha256(MEASURED)}

    def prepare(self, data: Any) -> None:
        self.readings = read_trainings(self.clock, self.limit)
        self.check(self.limit, "ms")
