"""Claims: verdicts on hand-made runs with known answers, what a run lacks, and the command."""

from __future__ import annotations

import json
import math
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import CbobenchError, Misuse
from cbobench.papers import evidence
from cbobench.papers.claim_tables import claims_of, evaluate, render_findings
from cbobench.papers.claims import Claim, findings
from cbobench.papers.evidence import below, mean_never, near, never, similar, sublinear, vanishes
from cbobench.report.load import Run
from tests.helpers import swept

SEEDS = 20
SUITE = f"""\
suite: made
horizon: 64
seeds: {SEEDS}
record: all
problems:
  - rkhs-1d: {{h: 0.5, label: made}}
algorithms:
  - random: {{label: A}}
  - oracle: {{label: B}}
"""
RNG = np.random.default_rng(0)
T = np.arange(1, 65)
NOISE = RNG.standard_normal(SEEDS)


def rewrite(run, algorithm, values, status="ok"):
    """Give the cells of an algorithm known metrics: {name: f(seed, t)}, the last of which is the cell's."""
    folder = Run(run).folder
    for kind in ("cells", "rounds"):
        for path in (run / kind).glob(f"rkhs-1d.{algorithm}.*"):
            table = pq.read_table(path)
            seeds = table["seed"].to_numpy()
            rounds = table["t"].to_numpy() if kind == "rounds" else np.full(len(seeds), T[-1])
            for name, f in values.items():
                column = table.schema.get_field_index(name)
                made = np.array([f(int(s), int(t)) for s, t in zip(seeds, rounds, strict=True)], dtype=np.float64)
                table = table.set_column(column, table.schema.field(name), [made])
            if kind == "cells":
                column = table.schema.get_field_index("status")
                words = [[status if s < SEEDS // 2 or status == "ok" else "ok" for s in seeds]]
                table = table.set_column(column, table.schema.field("status"), words)
            pq.write_table(table.replace_schema_metadata(pq.read_schema(path).metadata), path)
    return folder


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("claims"), SUITE)


@pytest.fixture
def made(played, tmp_path):
    """A: R = 10 + seed + e, N = 3 in the mean, V⁺ like √t; B: R = 12 + seed, N = 0, V⁺ like t."""
    shutil.copytree(played, tmp_path / "run")
    rewrite(
        tmp_path / "run", "random",
        {"regret": lambda s, t: (10 + s) * t / 64 + 0.1 * NOISE[s], "violations": lambda s, t: float(2 + s % 3),
         "violation_hard": lambda s, t: (1 + s) * np.sqrt(t), "violation": lambda s, t: (1 + s) * np.sqrt(t)},
    )  # fmt: skip
    rewrite(
        tmp_path / "run", "oracle",
        {"regret": lambda s, t: (12 + s) * t / 64, "violations": lambda s, t: 0.0,
         "violation_hard": lambda s, t: (1 + s) * t, "violation": lambda s, t: 0.0},
    )  # fmt: skip
    return tmp_path / "run"


def claim(test, algorithms=("random", "oracle"), **options):
    def parts(case):
        return test(*(case.one(name, case.problems[0]) for name in algorithms))

    return Claim("X1", "a sentence", "a paper", "", ("rkhs-1d",), algorithms, parts, **options)


def verdict(run, test, algorithms=("random", "oracle")):
    (found,) = findings([Run(run)], [claim(test, algorithms)])
    return found


def test_a_comparison_holds_fails_and_is_undecided(made):
    found = verdict(made, lambda a, b: [below("regret", a, b)])
    assert found.verdict == "holds"
    assert (found.n, found.expected) == (SEEDS, SEEDS)
    np.testing.assert_allclose(found.parts[0].value, -2 + 0.1 * NOISE.mean(), rtol=1e-12)
    assert found.parts[0].p == pytest.approx(2.0 ** (1 - SEEDS), rel=1e-9), "every pair has the same sign"
    assert verdict(made, lambda a, b: [below("regret", b, a)]).verdict == "does not hold"
    assert verdict(made, lambda a, b: [below("regret", a, b, higher=True)]).verdict == "does not hold"
    assert verdict(made, lambda a, b: [below("regret", b, a, higher=True)]).verdict == "holds"
    assert verdict(made, lambda a, b: [below("regret", a, a)]).verdict == "undecided"
    both = verdict(made, lambda a, b: [below("regret", a, b), below("regret", b, a)])
    assert both.verdict == "does not hold", "one part contradicts the claim"


def test_shuffled_pairs_do_not_hold(made):
    """Pairing by seed makes the verdict: the spread between seeds is larger than the difference."""

    def shuffle(a, b):
        labels = np.random.default_rng(1).integers(0, 2, SEEDS).astype(bool)
        one, two = a.final("regret").to_numpy(), b.final("regret").to_numpy()
        mixed = evidence.difference(np.where(labels, one, two), np.where(labels, two, one))
        return [
            evidence.Part("", "", evidence.verdict_below(mixed.mean_low, mixed.mean_high, 0.0), mixed.mean,
                          mixed.mean_low, mixed.mean_high, mixed.n, SEEDS, mixed.p)
        ]  # fmt: skip

    assert verdict(made, shuffle).verdict == "undecided"


def test_many_comparisons_need_more(made):
    """Holm: a difference that is significant alone is not among enough others."""
    few = {s: 0.5 if s < 8 else -1.0 for s in range(SEEDS)}
    rewrite(made, "random", {"regret": lambda s, t: few[s] + 0.001 * s})
    rewrite(made, "oracle", {"regret": lambda s, t: 0.0})
    assert verdict(made, lambda a, b: [below("regret", a, b)]).verdict == "holds"
    many = verdict(made, lambda a, b: [below("regret", a, b), *[below("violations", b, b) for _ in range(20)]])
    assert many.parts[0].verdict == "undecided"


def test_numbers_of_the_paper(made):
    mean = np.mean([2 + s % 3 for s in range(SEEDS)])
    found = verdict(made, lambda a, b: [near("violations", a, 3.0)])
    assert found.verdict == "holds"
    assert found.parts[0].value == mean
    assert verdict(made, lambda a, b: [near("violations", a, 4.0)]).verdict == "does not hold"
    assert verdict(made, lambda a, b: [near("violations", b, 0)]).verdict == "holds"
    assert verdict(made, lambda a, b: [near("violations", b, 0.3)]).verdict == "does not hold"
    assert verdict(made, lambda a, b: [near("violations", b, 0.09)]).verdict == "undecided", "3.7 of 20 Poisson"
    rewrite(made, "random", {"violations": lambda s, t: 100.0 * (s == 0)})
    assert verdict(made, lambda a, b: [near("violations", a, 3.0)]).verdict == "undecided", "half and twice are in it"


def test_zero_similar_and_growth(made):
    assert verdict(made, lambda a, b: [never("violation", b)]).verdict == "holds"
    assert verdict(made, lambda a, b: [never("violation", a)]).verdict == "does not hold"
    (mean,) = verdict(made, lambda a, b: [mean_never("violation", b)]).parts
    assert (mean.verdict, mean.value, mean.what, mean.paper) == ("holds", 0.0, "mean V, B", "0")
    rewrite(made, "random", {"violation": lambda s, t: 20.0 * (s == 3)})
    share, mean = verdict(made, lambda a, b: [never("violation", a), mean_never("violation", a)]).parts
    assert (share.value, mean.value) == (0.95, 1.0)
    assert share.verdict == mean.verdict == "does not hold", "one seed with more contradicts either"
    assert mean.low == 0.0 < 1.0 < mean.high, "the interval is of the mean, the verdict of every seed"
    assert verdict(made, lambda a, b: [similar("regret", a, b)]).verdict == "holds"
    assert verdict(made, lambda a, b: [similar("regret", a, b, factor=1.01)]).verdict == "does not hold"
    found = verdict(made, lambda a, b: [sublinear("violation_hard", a)])
    assert found.verdict == "holds"
    assert found.parts[0].value == pytest.approx(0.5, abs=1e-12)
    assert verdict(made, lambda a, b: [sublinear("violation_hard", b)]).verdict != "holds", "linear to the last digit"
    found = verdict(made, lambda a, b: [vanishes("violation_hard", a)])
    assert found.verdict == "holds"
    assert found.parts[0].value == pytest.approx(0.5, abs=1e-12)
    assert verdict(made, lambda a, b: [vanishes("violation_hard", b)]).verdict == "does not hold"
    assert verdict(made, lambda a, b: [vanishes("violation_hard", b, stays=True)]).verdict == "holds"
    assert verdict(made, lambda a, b: [vanishes("violation", b)]).parts[0].value == -math.inf, "nothing in the end"


def test_failed_cells_and_one_seed(made, played, tmp_path):
    rewrite(made, "oracle", {}, status="failed")
    found = verdict(made, lambda a, b: [below("regret", a, b)])
    assert (found.n, found.expected, found.verdict) == (SEEDS // 2, SEEDS, "holds")
    assert f"{SEEDS // 2}/{SEEDS}" in render_findings([found])
    (tmp_path / "one.yaml").write_text(SUITE.replace(f"seeds: {SEEDS}", "seeds: 1"))
    cbobench.run(tmp_path / "one.yaml", out=tmp_path / "single", cpus=0)
    for test in (
        lambda a, b: [below("regret", b, a)],
        lambda a, b: [near("violations", b, 0)],
        lambda a, b: [never("violation", b)],
        lambda a, b: [mean_never("violation", b)],
        lambda a, b: [similar("regret", a, b)],
        lambda a, b: [sublinear("regret", a)],
        lambda a, b: [vanishes("regret", a)],
    ):
        found = verdict(tmp_path / "single", test)
        assert (found.verdict, found.n) == ("undecided", 1), found
    for file in (tmp_path / "single" / "cells").glob("*oracle*"):
        file.unlink()
    found = verdict(tmp_path / "single", lambda a, b: [below("regret", a, b)])
    assert (found.verdict, found.n, found.expected) == ("undecided", 0, 1)


def test_what_a_run_lacks(made):
    missing = verdict(made, lambda a, b: [never("violation", b)], ("random", "ckb-ucb"))
    assert (missing.verdict, missing.note) == ("not in these runs", "needs ckb-ucb")
    other = Claim("X2", "", "", "", ("stocks",), ("random",), lambda case: [])
    (found,) = findings([Run(made)], [other])
    assert found.note == "needs stocks"
    assert "1 claim, 0 settings: 1 is not in these runs" in render_findings([found])


def test_the_seventeen_claims_are_there():
    assert [c.id for c in claims_of()] == [
        "GZL1", "GZL2", "GZL3", *(f"SE{i}" for i in range(1, 6)), *(f"ZJ{i}" for i in range(1, 10)),
    ]  # fmt: skip
    assert [c.id for c in claims_of(only=["ZJ3"])] == ["ZJ3"]
    with pytest.raises(Misuse, match="unknown claim 'ZJ33'; did you mean 'ZJ3'"):
        claims_of(only=["ZJ33"])


MINE = """\
from cbobench.papers.claims import Claim
from cbobench.papers.evidence import below

claims = [Claim("mine", "A is below B", "me", "", ("rkhs-1d",), ("random", "oracle"),
                lambda case: [below("regret", case.plays[0], case.plays[1])])]
"""


def test_the_command(made, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    words = ["claims", str(made), "--recipe", str(tmp_path / "mine.py")]
    assert main([*words, "--strict"]) == 0
    out = capsys.readouterr().out
    assert "1 claim, 1 setting: 1 holds" in out
    assert "R of A below B's: -2.0" in out
    assert main([*words, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["verdict"], row["n"], row["where"]) == ("mine", "holds", SEEDS, "made (made)")
    assert row["parts"][0]["high"] < 0
    assert main([*words, "--format", "markdown", "--parts"]) == 0
    assert "| mine | A is below B | holds |" in capsys.readouterr().out
    (tmp_path / "mine.py").write_text(MINE.replace("plays[0], case.plays[1]", "plays[1], case.plays[0]"))
    assert main([*words, "--strict"]) == 1
    assert main(words) == 0
    assert main([*words, "--strict", "--only", "mine"]) == 1


def test_strict_does_not_pass_what_was_not_tested(made, tmp_path, capsys):
    """A gate that tests nothing must not pass."""
    other = MINE.replace('"mine"', '"other"').replace('"rkhs-1d",)', '"stocks",)').replace("claims = ", "claims += ")
    (tmp_path / "mine.py").write_text(MINE.replace('"random"', '"ckb-ts"'))
    words = ["claims", str(made), "--recipe", str(tmp_path / "mine.py")]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--strict"]) == 1
    assert capsys.readouterr().err == "not tested, as these runs hold nothing of it: 1 claim\n"
    assert main([*words, "--strict", "--only", "mine"]) == 1
    assert capsys.readouterr().err == "not tested, as these runs hold nothing of it: mine needs ckb-ts\n"
    (tmp_path / "mine.py").write_text(MINE + other)
    assert main([*words, "--strict"]) == 0, "one was tested, and holds"
    assert main([*words, "--strict", "--only", "mine", "--only", "other"]) == 1, "asked for by name"
    assert "other needs stocks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "is not a recipe"),
        ("claims = 3\n", "has no list `claims`"),
        ("def figures(run): return []\n", "has no list `claims`"),
        (MINE.replace('"regret"', '"regrets"'), "the claim mine cannot be tested: .*regrets"),
        (MINE + "claims *= 2\n", "the claim mine is there twice"),
    ],
)
def test_wrong_recipes(text, message, made, tmp_path, capsys):
    (tmp_path / "wrong.py").write_text(text)
    assert main(["claims", str(made), "--recipe", str(tmp_path / "wrong.py")]) in (1, 2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error), error


def test_nothing_to_test(made, tmp_path):
    for kind in ("cells", "rounds"):
        shutil.rmtree(made / kind)
    with pytest.raises(CbobenchError, match="no good cell yet"):
        evaluate([str(made)], claims_of())
    with pytest.raises(Misuse, match="is not a run folder"):
        evaluate([str(tmp_path)], claims_of())


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-2, -1, "holds"), (1, 2, "does not hold"), (-1, 1, "undecided"), (-1, math.nan, "undecided")],
)
def test_an_interval_decides_only_if_it_lies_on_one_side(low, high, verdict):
    assert evidence.verdict_below(low, high, 0.0) == verdict
