"""The open table says what the bundles' cells say; what others send is read, replayed,
and stands beside the others.
"""

import json
import shutil
import subprocess
import zipfile

import numpy as np
import pandas as pd
import pytest

import cbobench
from analysis import bundles
from analysis.field import open_table, received
from cbobench.cli import main

STRANGE = "<b>|mine</b>"
SUITE = {
    "suite": "mine",
    "horizon": 60,
    "seeds": 2,
    "initial": {"sobol": 10},
    "problems": [{"gramacy": {"noise_f": 0.0, "noise_g": 0.0}}, {"gramacy": {"noise_f": 0.1}}],
    "algorithms": [{"mine:Mine": {"label": STRANGE}}],
}
MODULE = """
from cbobench.algorithms.references import Random
class Mine(Random):
    pass
"""


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """A bundle that somebody else has sent, of a method with a module of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text(json.dumps(SUITE))
    folder = tmp_path / "others"
    folder.mkdir()
    assert main(["run", "mine.yaml", "--cpus", "0", "--out", "runs/mine"]) == 0
    assert main(["export", "runs/mine", "--out", "others/their-own.zip"]) == 0
    return folder / "their-own.zip"


@pytest.fixture(scope="module")
def page():
    text = open_table.render_page()
    assert len(text) < 200_000, "it is 600 kB of HTML on the site"
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return pd.DataFrame(rows[2:], columns=rows[0])


def test_rows_are_medians_of_the_cells(page):
    """Computed from the files of the bundle."""
    bundle = bundles.bundle_of("noisy-ours")
    cells = cbobench.load_cells(bundle)
    with zipfile.ZipFile(bundle) as archive, archive.open("improvements/run.parquet") as file:
        steps = pd.read_parquet(file)
    first = steps[steps["simple_regret"] <= 0.01].groupby("cell")["t"].min()
    cells["reached"] = cells["cell"].astype(str).map(first.rename(str)).fillna(np.inf)
    cells["regret"] = cells["simple_regret"].fillna(np.inf)
    groups = cells[cells["problem"].str.startswith("gramacy")].groupby(["problem", "algorithm"])
    assert len(groups) >= 8
    for (problem, algorithm), group in groups:
        noise = "0.1" if "0.1" in problem else "0.01" if "0.01" in problem else "0"
        (row,) = page[
            (page["group"] == "noisy")
            & (page["problem"] == "gramacy")
            & (page["noise"] == noise)
            & (page["method"] == algorithm)
        ].to_dict("records")
        assert row["seeds"] == str(len(group))
        assert (row["dimension"], row["constraints"]) == ("2", "2")
        for column, values in (("final regret", "regret"), ("to 0.01", "reached")):
            shown = float(row[column].replace("∞", "inf"))
            assert shown == pytest.approx(group[values].median(), rel=5e-3)


def test_names_say_what_other_columns_do_not():
    for label, name in {
        "gramacy[noise_f=0.0,noise_g=0.0]": "gramacy",
        "gramacy, 10 %": "gramacy",
        "keane-10 (no noise)": "keane-10",
        "coco[dimension=2,function=7,instance=3]": "coco[function=7]",
        "coco[function=7,instance=3]": "coco[function=7]",
        "rkhs[h=0.25,noise_f=0.1]": "rkhs[h=0.25]",
    }.items():
        assert open_table.name_problem(label) == name
    sections = {"low-botorch": "low", "coco-2-second": "coco-2", "coco-10": "coco-10"}
    assert {shard: open_table.name_section(shard) for shard in sections} == sections


@pytest.mark.slow
def test_what_others_send_stands_beside_the_others(sent):
    text = open_table.render_table([bundles.bundle_of("low-ours")], [sent])
    rows = [line for line in text.splitlines() if "mine" in line]
    assert len(rows) == 2
    assert rows[0].startswith(
        "| low | gramacy | 2 | 2 | 0 | 60 | \\<b\\>\\|mine\\</b\\> (their-own)"
    )
    assert rows[1].startswith("| their-own | gramacy | 2 | 2 | ")
    assert "- [their-own](../../published/their-own.zip): 4 cells, played by" in text


@pytest.mark.slow
def test_what_others_send_is_replayed(sent, capsys):
    """What cannot be checked here is named; what is damaged is an error."""
    assert received.check_bundles([sent], 2) == 0
    assert "1 bundle; 1 not checked: their-own.zip" in capsys.readouterr().out
    light = shutil.copy(bundles.bundle_of("low-light"), sent.parent / "light.zip")
    cut = sent.parent / "cut.zip"
    cut.write_bytes(sent.read_bytes()[:2000])
    (sent.parent / "Upper.zip").write_bytes(sent.read_bytes())
    given = [light, cut, sent.parent / "Upper.zip", sent.parent / "none.zip"]
    assert received.check_bundles(given, 1) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last in [
        f"4 bundles; 1 {state}: light.zip; 3 wrong: cut.zip, Upper.zip, none.zip"
        for state in ("equal", "not checked")  # beside other libraries
    ]


def test_only_bundles_that_are_new_are_checked(tmp_path, monkeypatch):
    folder = tmp_path / "others"
    folder.mkdir()
    for module in (bundles, received):
        monkeypatch.setattr(module, "PUBLISHED", folder)
    (folder / "shards.yaml").write_text("field: {ours: {}}\npapers: {}\n")
    (folder / "ours.zip").write_text("ours")
    for name in ("old", "changed"):
        (folder / f"{name}.zip").write_text(name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (folder / "changed.zip").write_text("otherwise")
    (folder / "new.zip").write_text("new")
    subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
    assert [bundle.name for bundle in received.find_since("HEAD")] == ["changed.zip", "new.zip"]
    with pytest.raises(SystemExit, match="received: fatal: .*nothing.*; give a commit"):
        received.find_since("nothing")
