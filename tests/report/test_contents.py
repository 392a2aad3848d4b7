"""`cbobench show RUN`: what a run holds, and what tables do not say of its problems and models."""

from __future__ import annotations

import json

import cbobench
from cbobench.cli import main
from tests.helpers import play_here
from tests.report.made import make

CELLS = {
    ("P", "A"): {"binds": [False] * 10},
    ("Q", "A"): {"binds": [i < 4 for i in range(10)]},
    ("Open", "A"): {},
}
BINDS = "the constraint binds (the highest f is infeasible) in "


def show(capsys, *words):
    """What `cbobench show` prints, on one line."""
    assert main(["show", *map(str, words)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_where_constraints_bind_is_said_of_what_is_known(tmp_path, capsys):
    run = make(tmp_path / "run", CELLS, seeds=range(10))
    text = show(capsys, run)
    assert f"{BINDS}0/10 seeds (P), 4/10 seeds (Q)." in text
    alone = make(tmp_path / "alone", {("Q", "A"): CELLS["Q", "A"]}, seeds=range(10))
    assert f"{BINDS}4/10 seeds." in show(capsys, alone), "of all problems"
    assert "binds (the highest" not in str(cbobench.compare(run)), "no table says it"


def test_a_run_is_shown_with_its_problems_methods_and_parameters(tmp_path, capsys):
    suite = {
        "suite": "s", "about": "Two of each", "horizon": 5, "seeds": 2,
        "problems": ["rkhs-1d", {"gramacy": {"grid": 5, "label": "oven"}}],
        "algorithms": ["cei", {"ckb-ucb": {"V": 2.0}}, "random"],
    }  # fmt: skip
    run = play_here(suite, tmp_path / "run").folder.uri
    text = show(capsys, run)
    for phrase in (
        "s: Two of each T = 5; 2 seeds. ",
        "Problem oven (gramacy): ",
        "grid = 5",
        "Method ckb-ucb[V=2.0] (ckb-ucb): ",
        "kernels fitted to the observations, which no theorem covers: cei, ckb-ucb[V=2.0] (oven).",
        "oven: f counts from its mean; f and every g_j are in standard deviations over the box.",
    ):
        assert phrase in text
    assert "no theorem covers" not in str(cbobench.compare(run))
    assert main(["show", run, "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["suite"] == "s", "run.json"
    cbobench.export(run, tmp_path / "b.zip")
    assert show(capsys, tmp_path / "b.zip") == text, "a bundle shows the same"


def test_a_name_is_no_run_because_a_folder_has_it(tmp_path, capsys, monkeypatch):
    (tmp_path / "cei").mkdir()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert show(capsys, "cei").startswith("cei (algorithm; ")
    for name, says in (("empty", "empty is not a run folder"), ("no.zip", "no.zip")):
        assert main(["show", name]) == 2
        assert says in capsys.readouterr().err
