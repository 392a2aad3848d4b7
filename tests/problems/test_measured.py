"""Measured tables: by hand where their files are, and the machinery on a small file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cbobench import params
from cbobench.errors import Misuse
from cbobench.problems import PROBLEMS, data
from cbobench.problems.data import DATA_SETS, DataFolder
from cbobench.rng import Streams

BY_HAND = {  # by problem: objective, -1 where it is minimised, and what is feasible
    "measured-p3ht": (
        "Conductivity (measured) (S/cm)",
        1,
        lambda row: row["P3HT content (%)"] <= 60,
    ),
    "measured-perovskite": ("Instability index", -1, lambda row: row["MAPbI"] >= 0.1),
    "measured-agnp": ("loss", -1, lambda row: row["QAgNO3(%)"] <= 20),
    "measured-crossed-barrel": ("toughness", 1, lambda row: row["n"] <= 10),
    "measured-suzuki": ("objective_conversion", 1, lambda row: row["objective_selectivity"] >= 90),
    "measured-lnp3": (
        "drug_loading",
        1,
        lambda row: row["encap_efficiency"] >= 0.4 and row["particle_diameter"] <= 1,
    ),
    "measured-redoxmers": (
        "abs_lam_diff",
        -1,
        lambda row: row["ered"] <= 2 and row["gsol"] <= -0.75,
    ),
}
MEASURED = {"objective_selectivity", "encap_efficiency", "particle_diameter", "ered", "gsol"}
OUTPUTS = {*[objective for objective, _, _ in BY_HAND.values()], *MEASURED}
HEADERS = {  # of files that have none
    "measured-lnp3": "drug_input solid_lipid solid_lipid_input liquid_lipid_input surfactant_input "
    "drug_loading encap_efficiency particle_diameter",
    "measured-redoxmers": "r1 r3 r4 r5 abs_lam_diff ered gsol",
}


def load(name, folder):
    task = params.build(PROBLEMS.get(name), {})
    task.prepare(DataFolder(folder))
    return task


def test_every_measured_table_has_a_home_of_which_no_version_changes():
    measured = {name: table for name, table in DATA_SETS.items() if name.startswith("measured-")}
    assert set(measured) == set(BY_HAND)
    for table in measured.values():
        assert re.match(
            r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/\S+\.csv$", table.url
        )


@pytest.mark.parametrize("name", BY_HAND)
def test_values_are_those_of_the_file(name, measured_data):
    objective, sign, is_feasible = BY_HAND[name]
    names = HEADERS[name].split() if name in HEADERS else None
    file = DataFolder(measured_data).find(name)
    frame = pd.read_csv(file, keep_default_na=False, names=names)
    inputs = [column for column in frame.columns if column not in OUTPUTS]
    means = frame.groupby(inputs, sort=False).mean().reset_index()
    feasible = means.apply(is_feasible, axis=1).to_numpy()
    task = load(name, measured_data)
    drawn = task.draw([np.random.default_rng(0)])
    zero, unit = drawn.units
    np.testing.assert_allclose(zero + unit * drawn.f[0], sign * means[objective], rtol=1e-9)
    np.testing.assert_array_equal((drawn.g[0] <= 0).all(axis=0), feasible)
    best = (sign * means[objective])[feasible]
    assert {column: task.describe_inputs()[column][drawn.optimum[0]] for column in inputs} == dict(
        means.loc[best.idxmax(), inputs]
    )
    facts = task.facts()
    assert facts["feasible"] == f"{feasible.sum()} of {len(means)}"
    assert facts["actions"] == f"n = {task.actions.n}, d = {task.actions.d}"
    assert float(facts["best"]) == pytest.approx(best.max(), rel=1e-6)


SMALL = ",".join(f"{name} content (%)" for name in ("P3HT", "D1", "D2", "D6", "D8"))
SMALL += """,Conductivity (measured) (S/cm)
50,50,0,0,0,100
40,60,0,0,0,10
50,50,0,0,0,40
40,60,0,0,0,190
60,0,20,20,0,120
90,0,0,0,10,500
40,60,0,0,0,70
"""


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """A folder with a table in the place of P3HT's: means of 70, 90, 120 and, infeasible, 500."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "P3HT_dataset.csv").write_text(SMALL)
    stated = replace(DATA_SETS["measured-p3ht"], sha256=hashlib.sha256(SMALL.encode()).hexdigest())
    monkeypatch.setitem(data.DATA_SETS, "measured-p3ht", stated)
    return tmp_path


def test_repeats_are_the_noise_and_their_mean_is_the_truth(small):
    """The largest row, 190, is of a configuration that is not the best."""
    task = load("measured-p3ht", small)
    streams = Streams([("a", 0)])
    drawn = task.draw(streams.role("instance"))
    zero, unit = drawn.units
    np.testing.assert_allclose(zero + unit * drawn.f[0], [70, 90, 120, 500])
    assert drawn.optimum.tolist() == [2]
    assert zero + unit * drawn.f_star[0] == pytest.approx(120)
    for index, rows in ((0, {40, 100}), (1, {10, 70, 190}), (2, {120})):
        channel = task.feedback(drawn, Streams([("a", 0)]))
        read = [zero + unit * channel.at(t, np.array([index])).f[0] for t in range(1, 41)]
        assert {round(value) for value in read} == rows
    assert task.describe_inputs()["D1 content (%)"] == [50.0, 60.0, 0.0, 0.0]


def test_another_file_is_refused_and_a_missing_one_named(small, tmp_path):
    task = load("measured-p3ht", small)
    assert task.identity() == {"data": data.DATA_SETS["measured-p3ht"].sha256}
    (small / "tables" / "P3HT_dataset.csv").write_text(SMALL.replace("190", "191"))
    with pytest.raises(Misuse, match=r"is not the original P3HT_dataset.csv: its sha256 is"):
        load("measured-p3ht", small)
    with pytest.raises(Misuse) as refused:
        load("measured-suzuki", tmp_path)
    assert "set CBOBENCH_DATA, or run 'cbobench data fetch measured-suzuki'" in str(refused.value)
    assert "look-alike" not in str(refused.value)


def test_files_are_fetched_from_their_homes(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "pooch.retrieve", lambda url, **options: asked.append((url, options["fname"])) or tmp_path
    )
    data.fetch("measured-crossed-barrel", tmp_path)
    data.fetch("stocks", tmp_path)
    table = DATA_SETS["measured-crossed-barrel"]
    assert asked == [
        (table.url, table.file),
        (data.REPOSITORY + "fin.csv", "fin.csv"),
    ]
