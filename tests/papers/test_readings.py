"""Claims over several settings: which variants are tested together, and the map of what was swept."""

from __future__ import annotations

import csv
import itertools

import cbobench
from cbobench.cli import main
from cbobench.papers.claims import Claim, choices, findings
from cbobench.papers.rules import below
from cbobench.report.load import Run
from cbobench.suite.variants import Variant

MINE = """\
from cbobench.papers.claims import Claim
from cbobench.papers.rules import below

claims = [Claim("mine", "UCB is below TS", "me", "", ("rkhs-1d",), ("ckb-ucb", "ckb-ts", "stageopt"),
                lambda case: [below("regret", case.of("ckb-ucb")[0], case.of("ckb-ts")[0])])]
"""


def test_each_setting_is_a_finding(tmp_path):
    """Variants that share a swept parameter go together; a reading of one method is combined with the others."""
    (tmp_path / "s.yaml").write_text(
        "suite: s\nhorizon: 5\nseeds: 2\nproblems:\n  - rkhs-1d\nalgorithms:\n"
        "  - ckb-ucb: {beta_scale: {sweep: [0.1, 1.0]}}\n  - ckb-ts: {beta_scale: {sweep: [0.1, 1.0]}}\n"
        "  - stageopt: {expand_rounds: {sweep: [1, 2, 3]}}\n"
    )
    cbobench.run(tmp_path / "s.yaml", out=tmp_path / "run", cpus=0)
    variants = list(Run(tmp_path / "run").record.variants("algorithms").values())
    assert len(list(choices(variants))) == 2 * 3
    assert len(list(choices(variants, within=("expand_rounds",)))) == 2
    for choice in choices(variants):
        assert choice["ckb-ucb"][0].values["beta_scale"] == choice["ckb-ts"][0].values["beta_scale"]
    every = {variant.title for choice in choices(variants) for group in choice.values() for variant in group}
    assert every == {variant.title for variant in variants}
    claim = Claim("X", "", "", "", ("rkhs-1d",), ("ckb-ucb", "ckb-ts"), lambda case: [
        below("regret", case.play_of("ckb-ucb", case.problems[0]), case.play_of("ckb-ts", case.problems[0]))
    ])  # fmt: skip
    setting_findings = list(findings([Run(tmp_path / "run")], [claim]))
    assert [f.axes["ckb-ucb.beta_scale"] for f in setting_findings] == [0.1, 1.0]
    assert all(f.seconds > 0 for f in setting_findings)
    assert "beta_scale 0.1" in setting_findings[0].settings


def made_up(name, **values):
    return Variant(name, values, values, name, values)


def test_readings_of_one_method_are_not_multiplied():
    """One first choice, one more per reading, and the nearest partners for a value that one method alone has."""
    variants = [
        made_up("a", beta=1, w=5), made_up("a", beta=1, w=6), made_up("a", beta=3, w=5),
        made_up("b", beta=1, pending="no"), made_up("b", beta=3, pending="no"), made_up("b", beta=1, pending="var"),
        made_up("c", beta=1, pending="no"), made_up("c", beta=3, pending="no"),
    ]  # fmt: skip
    combinations = [tuple(tuple(v.values.values()) for (v,) in choice.values()) for choice in choices(variants)]
    assert sorted(map(str, combinations)) == sorted(
        map(
            str,
            [
                ((1, 5), (1, "no"), (1, "no")), ((1, 6), (1, "no"), (1, "no")), ((3, 5), (3, "no"), (3, "no")),
                ((1, 5), (1, "var"), (1, "no")),
            ],
        )
    )  # fmt: skip


def test_claims_across_runs_know_their_axes_and_whose_a_setting_is(tmp_path):
    """Methods from two runs go together where they agree; a name that a problem has, too, is said with its owner."""
    for name, algorithm in (("one", "rpol-ucb"), ("two", "admmbo")):
        (tmp_path / f"{name}.yaml").write_text(
            f"suite: {name}\nhorizon: 5\nseeds: 2\nproblems:\n  - feasible-pocket: {{scaled: true}}\n"
            f"algorithms:\n  - {algorithm}: {{lam: {{sweep: [0.1, 1.0]}}}}\n"
        )
        cbobench.run(tmp_path / f"{name}.yaml", out=tmp_path / name, cpus=0)
    claim = Claim("X", "", "", "", ("feasible-pocket",), ("rpol-ucb", "admmbo"), lambda case: [
        below("regret", case.of("rpol-ucb")[0], case.of("admmbo")[0])
    ], across=True)  # fmt: skip
    setting_findings = list(findings([Run(tmp_path / "one"), Run(tmp_path / "two")], [claim]))
    assert [dict(f.axes) for f in setting_findings] == [{"rpol-ucb.lam": lam, "admmbo.lam": lam} for lam in (0.1, 1.0)]
    assert [f.suites for f in setting_findings] == [("one", "two")] * 2
    settings = setting_findings[0].settings.split(", ")
    assert settings.count("scaled true") == settings.count("admmbo: scaled true") == 1


def test_many_readings_are_not_multiplied():
    """Five methods with 60 readings each have 8e8 combinations, but 60 that agree."""
    names = [f"{i % 3}.{j}" for i in range(3) for j in range(20)]
    variants = [made_up(name, x=word[0], y=word[2:]) for name in "abcde" for word in names]
    assert len(list(choices(variants))) == 60


def test_the_map_of_what_was_swept(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(
        "suite: s\nhorizon: 5\nseeds: 2\nproblems:\n  - rkhs-1d: {label: p}\nalgorithms:\n"
        "  - ckb-ucb: {beta_scale: {sweep: [0.1, 0.5, 1.0]}}\n  - ckb-ts: {beta_scale: {sweep: [0.1, 0.5, 1.0]}}\n"
        "  - stageopt: {expand_rounds: {sweep: [1, 2]}}\n"
    )
    cbobench.run(tmp_path / "s.yaml", out=tmp_path / "run", cpus=0)
    (tmp_path / "mine.py").write_text(MINE)
    arguments = ["claims", str(tmp_path / "run"), "--recipe", str(tmp_path / "mine.py"), "--map", str(tmp_path / "map")]
    assert main(arguments) == 0
    assert "map_mine" in capsys.readouterr().err
    assert {path.suffix for path in (tmp_path / "map").iterdir()} == {".pdf", ".png", ".csv", ".txt"}
    rows = list(csv.DictReader((tmp_path / "map" / "map_mine_s.csv").read_text().splitlines()))
    assert {(row["beta_scale"], row["expand_rounds"]) for row in rows} == set(
        itertools.product(["0.1", "0.5", "1.0"], "12")
    )
    assert "CPU-minutes" in (tmp_path / "map" / "map_mine_s.txt").read_text()
