"""Claims: verdicts on hand-made runs with known answers, several settings, what a run lacks, the
command.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cbobench.cli import main
from cbobench.errors import CbobenchError, Misuse
from cbobench.papers import evidence
from cbobench.papers.claim_tables import claims_of, evaluate, render_findings, tabulate_findings
from cbobench.papers.claims import Claim, check_claim, choices
from cbobench.papers.rules import any_of, below, never, number, power, similar, vanishes
from cbobench.report.load import Run
from cbobench.suite.variants import Variant
from tests.helpers import play_here, swept

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
    """Give the cells of an algorithm known metrics: {name: f(seed, t)}, the last of which is the
    cell's.
    """
    folder = Run(run).folders[0]
    for kind in ("cells", "rounds"):
        for path in (run / kind).glob(f"rkhs-1d.{algorithm}.*"):
            table = pq.read_table(path)
            seeds = table["seed"].to_numpy()
            rounds = table["t"].to_numpy() if kind == "rounds" else np.full(len(seeds), T[-1])
            for name, f in values.items():
                metric_values = np.array(
                    [f(int(s), int(t)) for s, t in zip(seeds, rounds, strict=True)],
                    dtype=np.float64,
                )
                held = [name] if name in table.column_names else []  # else readers would compute it
                table = table.drop_columns(held).append_column(name, [metric_values])
            if kind == "cells":
                column = table.schema.get_field_index("status")
                statuses = [[status if s < SEEDS // 2 or status == "ok" else "ok" for s in seeds]]
                table = table.set_column(column, table.schema.field("status"), statuses)
            pq.write_table(table.replace_schema_metadata(pq.read_schema(path).metadata), path)
    return folder


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("claims"), SUITE)


@pytest.fixture
def planted_run(played, tmp_path):
    """A: R = 10 + seed + e, N = 3 in the mean, V⁺ like √t; B: R = 12 + seed, N = 0, V⁺ like t."""
    shutil.copytree(played, tmp_path / "run")
    rewrite(
        tmp_path / "run",
        "random",
        {
            "regret": lambda s, t: (10 + s) * t / 64 + 0.1 * NOISE[s],
            "violations": lambda s, t: float(2 + s % 3),
            "violation_hard": lambda s, t: (1 + s) * np.sqrt(t),
            "violation": lambda s, t: (1 + s) * np.sqrt(t),
        },
    )
    rewrite(
        tmp_path / "run", "oracle",
        {"regret": lambda s, t: (12 + s) * t / 64, "violations": lambda s, t: 0.0,
         "violation_hard": lambda s, t: (1 + s) * t, "violation": lambda s, t: 0.0},
    )  # fmt: skip
    return tmp_path / "run"


def claim(test, algorithms=("random", "oracle"), **options):
    def parts(case):
        return test(*(case.play_of(name, case.problems[0]) for name in algorithms))

    return Claim("X1", "a sentence", "a paper", "", ("rkhs-1d",), algorithms, parts, **options)


def verdict(run, test, algorithms=("random", "oracle")):
    (finding,) = check_claim([Run(run)], claim(test, algorithms))
    return finding


def check_verdicts(run, *expected):
    for test, outcome in expected:
        assert verdict(run, test).verdict == outcome


def test_an_order_is_reproduced_contradicted_or_cannot_be_told(planted_run):
    finding = verdict(planted_run, lambda a, b: [below("regret", a, b)])
    assert finding.verdict == "reproduced"
    assert (finding.n, finding.expected) == (SEEDS, SEEDS)
    np.testing.assert_allclose(finding.parts[0].value, -2 + 0.1 * NOISE.mean(), rtol=1e-12)
    assert finding.parts[0].p == pytest.approx(2.0 ** (1 - SEEDS), rel=1e-9), (
        "every pair has the same sign"
    )
    check_verdicts(
        planted_run,
        (lambda a, b: [below("regret", b, a)], "contradicted"),
        (lambda a, b: [below("regret", a, b, higher=True)], "contradicted"),
        (lambda a, b: [below("regret", b, a, higher=True)], "reproduced"),
        (lambda a, b: [below("regret", a, a)], "cannot tell"),
    )
    both_ways = verdict(planted_run, lambda a, b: [below("regret", a, b), below("regret", b, a)])
    assert (both_ways.verdict, both_ways.held) == ("reproduced in part", 1)
    assert both_ways.deciding.verdict == "contradicted", "the part that is wrong is shown"


def test_an_order_that_few_seeds_carry_is_not_contradicted(planted_run):
    rewrite(planted_run, "random", {"regret": lambda s, t: 1000.0 * (s < 2) + 1.0 + 0.01 * s})
    rewrite(planted_run, "oracle", {"regret": lambda s, t: 0.0})
    assert verdict(planted_run, lambda a, b: [below("regret", a, b)]).verdict == "cannot tell"


def test_how_many_seeds_would_tell():
    needed = evidence.count_seeds_needed(50, 1.0, -1.0, 3.0, 0.0)
    assert needed == math.ceil(50 * (2 * 2.8 / 1.96) ** 2), (
        "half-width 2, distance 1, 2.8 standard errors"
    )
    assert evidence.count_seeds_needed(50, 0.0, -1.0, 1.0, 0.0) == math.inf
    assert evidence.count_seeds_needed(1, 1.0, 0.0, 2.0, 0.0) == math.inf


def test_shuffled_pairs_cannot_be_told(planted_run):
    """Pairing by seed makes the verdict: the spread between seeds is larger than the difference."""
    labels = np.random.default_rng(1).integers(0, 2, SEEDS).astype(bool)
    rewrite(
        planted_run,
        "random",
        {"regret": lambda s, t: (10 + s if labels[s] else 12 + s) + 0.1 * NOISE[s]},
    )
    rewrite(planted_run, "oracle", {"regret": lambda s, t: 12.0 + s if labels[s] else 10.0 + s})
    assert verdict(planted_run, lambda a, b: [below("regret", a, b)]).verdict == "cannot tell"


def test_many_parts_need_more_to_be_contradicted(planted_run):
    """Holm: a contradiction that is significant alone is not among enough others; what holds needs
    no adjustment.
    """
    differences = {s: -0.5 if s < 4 else 1.0 for s in range(SEEDS)}
    rewrite(planted_run, "random", {"regret": lambda s, t: differences[s] + 0.001 * s})
    rewrite(planted_run, "oracle", {"regret": lambda s, t: 0.0})
    assert verdict(planted_run, lambda a, b: [below("regret", a, b)]).verdict == "contradicted"
    p_values = [0.03] * 20

    def many(a, b):
        part = below("regret", a, b)
        return [part, *[dataclasses.replace(part, p=p, verdict="cannot tell") for p in p_values]]

    assert verdict(planted_run, many).parts[0].verdict == "contradicted"
    assert verdict(planted_run, lambda a, b: [below("regret", b, a)] * 21).verdict == "reproduced"


def test_numbers_of_the_paper(planted_run):
    mean = np.mean([2 + s % 3 for s in range(SEEDS)])
    finding = verdict(planted_run, lambda a, b: [number("violations", a, 3.0)])
    assert finding.verdict == "reproduced"
    assert finding.parts[0].value == mean
    check_verdicts(
        planted_run,
        (lambda a, b: [number("violations", a, 4.0)], "reproduced"),  # within a factor of 2
        (lambda a, b: [number("violations", a, 0.2)], "contradicted"),
        (lambda a, b: [number("violations", a, 40.0)], "stronger than claimed"),
        (lambda a, b: [number("violations", b, 0)], "reproduced"),
        (lambda a, b: [number("violations", b, 0.3)], "reproduced"),  # less than a round
        (lambda a, b: [number("violations", b, 30)], "stronger than claimed"),
        (lambda a, b: [number("violations", b, 30, at_most=True)], "reproduced"),  # as it says
        (lambda a, b: [number("violations", a, 3, at_most=True)], "reproduced"),
        (lambda a, b: [number("violations", a, 0.1, at_most=True)], "contradicted"),
    )
    rewrite(planted_run, "random", {"violations": lambda s, t: 100.0 * (s == 0)})
    assert (
        verdict(planted_run, lambda a, b: [number("violations", a, 0.5)]).verdict == "cannot tell"
    ), "one seed carries it"


def test_zero_similar_and_growth(planted_run):
    assert verdict(planted_run, lambda a, b: [never("violation", b)]).verdict == "reproduced"
    assert verdict(planted_run, lambda a, b: [never("violation", a)]).verdict == "contradicted"
    rewrite(planted_run, "random", {"violation": lambda s, t: 20.0 * (s == 3)})
    (share,) = verdict(planted_run, lambda a, b: [never("violation", a)]).parts
    assert (share.value, share.verdict) == (0.95, "reproduced"), (
        "1 of 20 is what 0 of 50 may become"
    )
    rewrite(planted_run, "random", {"violation": lambda s, t: 20.0 * (s % 4 == 3)})
    check_verdicts(
        planted_run,
        (lambda a, b: [never("violation", a)], "contradicted"),  # 5 of 20 is not
        (lambda a, b: [similar("regret", a, b)], "reproduced"),
        (lambda a, b: [similar("regret", a, b, or_better=True)], "reproduced"),
    )
    rewrite(planted_run, "random", {"regret": lambda s, t: (1.0 + s / 10) * t})
    check_verdicts(
        planted_run,
        (lambda a, b: [similar("regret", a, b)], "contradicted"),
        (lambda a, b: [similar("regret", a, b, or_better=True)], "contradicted"),
        (lambda a, b: [similar("regret", b, a)], "stronger than claimed"),
        (lambda a, b: [similar("regret", b, a, or_better=True)], "reproduced"),
    )
    finding = verdict(planted_run, lambda a, b: [vanishes("violation_hard", a)])
    assert finding.verdict == "reproduced"
    assert finding.parts[0].value == pytest.approx(0.5, abs=1e-12)
    check_verdicts(
        planted_run,
        (lambda a, b: [vanishes("violation_hard", a, stays=True)], "contradicted"),
        (lambda a, b: [vanishes("violation_hard", b)], "contradicted"),
        (lambda a, b: [vanishes("violation_hard", b, stays=True)], "reproduced"),
    )
    assert (
        verdict(planted_run, lambda a, b: [vanishes("violation", b)]).parts[0].value == -math.inf
    ), "nothing in the end"


@pytest.mark.parametrize(
    ("exponents", "outcomes"),
    [
        ((1.0, 1.01, 0.99), ("reproduced", "contradicted")),
        ((2.0, 1.99, 2.01), ("contradicted", "reproduced")),
        ((1.0, 3.0, 1.0), ("cannot tell", "cannot tell")),
        ((1.0, 1.0), ("cannot tell", "cannot tell")),  # two sizes have no interval
    ],
)
def test_the_cost_of_a_size(exponents, outcomes):
    """Below 1.5 it is nearer to linear, above it to quadratic."""
    points = []
    for size, exponent in zip((10.0, 100.0, 1000.0), exponents, strict=False):
        seconds = pd.Series([size**exponent])
        play = SimpleNamespace(final={"seconds": seconds}.get, algorithm=made_up("a"))
        points.append((size, play))
    parts = [power("seconds", points), power("seconds", points, above=True)]
    assert tuple(part.verdict for part in parts) == outcomes
    assert all((part.needed == 0) == (part.verdict != "cannot tell") for part in parts)


def made_part(verdict, **values):
    values = {"value": 0.0, "low": 0.0, "high": 0.0, "n": 9, "expected": 9} | values
    return evidence.Part(rule="order", what="", paper="", verdict=verdict, **values)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((("contradicted",), ("reproduced", "reproduced")), "reproduced"),
        ((("contradicted",), ("reproduced", "contradicted")), "contradicted"),
        ((("contradicted",), ("reproduced", "cannot tell")), "cannot tell"),
        ((("contradicted",), ("contradicted", "contradicted")), "contradicted"),
    ],
)
def test_one_of_several_groups(groups, expected):
    built_groups = [[made_part(verdict, p=1e-9) for verdict in group] for group in groups]
    assert any_of("some", built_groups).verdict == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("reproduced", "reproduced"), "reproduced"),
        (("reproduced", "stronger than claimed"), "stronger than claimed"),
        (("reproduced", "contradicted"), "reproduced in part"),
        (("stronger than claimed", "cannot tell"), "reproduced in part"),
        (("contradicted", "cannot tell"), "contradicted"),
        (("cannot tell", "cannot tell"), "cannot tell"),
    ],
)
def test_the_verdict_of_a_claim(parts, expected):
    assert evidence.verdict_of([made_part(verdict) for verdict in parts]) == expected


RARE = {s: 4.0 if s in (3, 11, 17) else float(s % 3) for s in range(SEEDS)}


def test_a_rule_accepts_a_replication_of_itself(planted_run):
    """The paper's trials and ours are drawn from the same cells: a number holds in most draws, and
    fails in few.
    """
    rewrite(planted_run, "random", {"violations": lambda s, t: RARE[s]})
    tested_claim = claim(
        lambda a, b: [
            number("violations", a, 99.0),
            below("regret", a, b),
            vanishes("violation_hard", a),
        ]
    )
    (finding,) = check_claim([Run(planted_run)], tested_claim, draws=30)
    assert finding.verdict != "reproduced", "the number itself is wrong"
    assert finding.rates.holds >= 0.8
    assert finding.rates.contradicted <= 0.05
    (repeated,) = check_claim([Run(planted_run)], tested_claim, draws=30)
    assert repeated.rates == finding.rates


def test_a_bad_rule_is_known_by_its_rate(planted_run):
    """Negative control: equality of two samples' means accepts a replication in few draws, so it
    refutes nothing.
    """

    def equal(a, b, stated=None):
        ours = a.final("violations").mean()
        paper = (
            a.paper.final("violations").mean() if a.paper else ours if stated is None else stated
        )
        outcome = "reproduced" if abs(paper - ours) < 0.01 else "contradicted"
        return [made_part(outcome)]

    rewrite(planted_run, "random", {"violations": lambda s, t: RARE[s]})
    (finding,) = check_claim([Run(planted_run)], claim(equal), draws=30)
    assert finding.verdict == "reproduced", "as a number is equal to itself"
    assert finding.rates.holds < 0.2
    assert finding.rates.contradicted > 0.8
    wrong = claim(lambda a, b: equal(a, b, stated=99.0))
    assert [f.verdict for f in check_claim([Run(planted_run)], wrong)] == ["contradicted"]
    assert [f.verdict for f in check_claim([Run(planted_run)], wrong, draws=30)] == ["cannot tell"]


def test_failed_cells_and_one_seed(planted_run, played, tmp_path):
    rewrite(planted_run, "oracle", {}, status="failed")
    finding = verdict(planted_run, lambda a, b: [below("regret", a, b)])
    assert (finding.n, finding.expected, finding.verdict) == (SEEDS // 2, SEEDS, "reproduced")
    assert f"{SEEDS // 2}/{SEEDS}" in render_findings([finding])
    (tmp_path / "one.yaml").write_text(SUITE.replace(f"seeds: {SEEDS}", "seeds: 1"))
    play_here(tmp_path / "one.yaml", tmp_path / "single")
    for test in (
        lambda a, b: [below("regret", b, a)],
        lambda a, b: [number("violations", b, 0)],
        lambda a, b: [never("violation", b)],
        lambda a, b: [similar("regret", a, b)],
        lambda a, b: [similar("regret", a, b, or_better=True)],
        lambda a, b: [vanishes("regret", a)],
    ):
        finding = verdict(tmp_path / "single", test)
        assert (finding.verdict, finding.n) == ("cannot tell", 1), finding
    for file in (tmp_path / "single" / "cells").glob("*oracle*"):
        file.unlink()
    finding = verdict(tmp_path / "single", lambda a, b: [below("regret", a, b)])
    assert (finding.verdict, finding.n, finding.expected) == ("cannot tell", 0, 1)


def test_what_a_run_lacks(planted_run):
    missing = verdict(planted_run, lambda a, b: [never("violation", b)], ("random", "ckb-ucb"))
    assert (missing.verdict, missing.note) == ("not in these runs", "needs ckb-ucb")
    other_claim = Claim("X2", "", "", "", ("stocks",), ("random",), lambda case: [])
    (finding,) = check_claim([Run(planted_run)], other_claim)
    assert finding.note == "needs stocks"
    assert "1 claim, 0 settings: 1 not in these runs" in render_findings([finding])


def test_a_problem_of_another_kind_is_named_with_what_it_lacks(planted_run):
    among = claim(lambda a, b: [], among=lambda problem: False, kind="with noise on g")
    (finding,) = check_claim([Run(planted_run)], among)
    assert (finding.note, finding.near) == ("needs rkhs-1d with noise on g, and not 'made'", True)
    (finding,) = check_claim([Run(planted_run)], claim(lambda a, b: [], within=("S",)))
    assert finding.note == "needs several S"


def test_what_the_runs_can_tell_comes_first_and_the_rest_is_a_line(planted_run):
    other_claims = [
        Claim(f"X{i}", "", "", "", ("stocks",), ("random",), lambda case: []) for i in range(2, 12)
    ]
    lacking = Claim("Y1", "", "", "", ("rkhs-1d",), ("ckb-ucb",), lambda case: [])
    tested = claim(lambda a, b: [below("regret", b, a)])
    sorted_findings = [
        finding
        for one in (*other_claims, lacking, tested)
        for finding in check_claim([Run(planted_run)], one)
    ]
    table = tabulate_findings(sorted_findings)
    assert [row[0] for row in table.rows] == ["X1"]
    *_, settings, untested_line = table.note.splitlines()
    assert settings.startswith("setting: made (made): T 64")
    names = ", ".join(other_claim.id for other_claim in other_claims)
    assert untested_line == (
        f"not in these runs: Y1 needs ckb-ucb; {names} need other problems (--format json "
        "says which)"
    )
    assert len(render_findings(sorted_findings, width=100).splitlines()) < 25


def test_a_claim_is_one_line_of_a_terminal(planted_run, capsys, tmp_path, monkeypatch):
    """Its verdict, or in how many settings which; `--long` has the rest."""
    holds = verdict(planted_run, lambda a, b: [below("regret", a, b)])
    words = dataclasses.replace(holds.claim, statement=30 * "word ")
    holds = dataclasses.replace(holds, claim=words)
    far = dataclasses.replace(holds, settings="T 64, R true, other: R true")
    with_two = [far, dataclasses.replace(far, verdict="contradicted", settings="T 65, R true")]
    lines = render_findings([holds, *with_two], width=80, brief=True).splitlines()
    (row,) = [line for line in lines if line.startswith("  X1")]
    assert max(map(len, lines)) <= 80
    assert "2 reproduced, 1 contradicted" in row
    # A metric's symbol that is a parameter here is called one, and no setting is lost.
    settings = tabulate_findings(with_two).note.splitlines()[1:]
    assert settings[0] == "all settings: parameter R true"
    assert settings[1].endswith(": T 64, other: parameter R true")
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setenv("COLUMNS", "80")
    command = ["claims", str(planted_run), "--recipe", str(tmp_path / "mine.py")]
    for options, is_long in (([], False), (["--long"], True)):
        assert main([*command, *options]) == 0
        printed = capsys.readouterr().out
        assert ("setting: made" in printed) == is_long == ("more: --long" not in printed)


def test_rows_that_differ_in_settings_alone_are_one(planted_run):
    (finding,) = check_claim([Run(planted_run)], claim(lambda a, b: [below("regret", a, b)]))
    setting_texts = [f"T 64, kernel se, S {s}" for s in (1, 2)]
    table = tabulate_findings(
        [dataclasses.replace(finding, settings=text) for text in setting_texts]
    )
    (row,) = table.rows
    assert row[table.columns.index("setting")] == "1, 2"
    assert table.note.splitlines()[1:] == [
        "all settings: T 64, kernel se",
        "setting 1: made (made): S 1",
        "setting 2: made (made): S 2",
    ]


def test_the_claims_are_there():
    ids = [claim.id for claim in claims_of()]
    assert len(ids) == 24
    assert {"GZL1", "SE1", "SE1B", "SE4B", "SE6", "ZJ3", "ZJ3N", "ZJ10"} <= {*ids}
    assert [c.id for c in claims_of(only=["ZJ3"])] == ["ZJ3"]
    with pytest.raises(Misuse, match="unknown claim 'ZJ33'; did you mean 'ZJ3'"):
        claims_of(only=["ZJ33"])


@pytest.mark.parametrize("paper", ["zhou_ji_2022", "shi_eryilmaz_2022", "guo_zhu_liu_2022"])
def test_every_claim_quotes_its_paper(paper):
    for quoted_claim in claims_of(paper):
        assert quoted_claim.quote or "Theorem" in quoted_claim.source, quoted_claim.id
        assert quoted_claim.source


MINE = """\
from cbobench.papers.claims import Claim
from cbobench.papers.rules import below

claims = [Claim("mine", "A is below B", "me", "", ("rkhs-1d",), ("random", "oracle"),
                lambda case: [below("regret", case.plays[0], case.plays[1])])]
"""


def test_the_command(planted_run, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    arguments = ["claims", str(planted_run), "--recipe", str(tmp_path / "mine.py")]
    assert main([*arguments, "--strict", "--long"]) == 0
    out = capsys.readouterr().out
    assert "1 claim, 1 setting: 1 reproduced" in out
    assert "R of A below B's: -2.0" in out
    assert main([*arguments, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["verdict"], row["n"], row["where"]) == (
        "mine",
        "reproduced",
        SEEDS,
        "made (made)",
    )
    assert row["parts"][0]["high"] < 0
    assert main([*arguments, "--format", "markdown", "--parts"]) == 0
    assert "| mine | A is below B | reproduced |" in capsys.readouterr().out
    (tmp_path / "mine.py").write_text(
        MINE.replace("plays[0], case.plays[1]", "plays[1], case.plays[0]")
    )
    assert main([*arguments, "--strict"]) == 1
    assert main(arguments) == 0
    assert main([*arguments, "--strict", "--only", "mine"]) == 1


def test_strict_does_not_pass_what_was_not_tested(planted_run, tmp_path, capsys):
    """A gate that tests nothing must not pass."""
    other_claim = (
        MINE.replace('"mine"', '"other"')
        .replace('"rkhs-1d",)', '"stocks",)')
        .replace("claims = ", "claims += ")
    )
    (tmp_path / "mine.py").write_text(MINE.replace('"random"', '"ckb-ts"'))
    arguments = ["claims", str(planted_run), "--recipe", str(tmp_path / "mine.py")]
    assert main(arguments) == 0
    capsys.readouterr()
    assert main([*arguments, "--strict"]) == 1
    assert capsys.readouterr().err == "not tested, as these runs hold nothing of it: 1 claim\n"
    assert main([*arguments, "--strict", "--only", "mine"]) == 1
    assert (
        capsys.readouterr().err
        == "not tested, as these runs hold nothing of it: mine needs ckb-ts\n"
    )
    (tmp_path / "mine.py").write_text(MINE + other_claim)
    assert main([*arguments, "--strict"]) == 0, "one was tested, and is reproduced"
    assert main([*arguments, "--strict", "--only", "mine", "--only", "other"]) == 1, (
        "asked for by name"
    )
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
def test_wrong_recipes(text, message, planted_run, tmp_path, capsys):
    (tmp_path / "wrong.py").write_text(text)
    assert main(["claims", str(planted_run), "--recipe", str(tmp_path / "wrong.py")]) in (1, 2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error), error


def test_nothing_to_test(planted_run, tmp_path):
    for kind in ("cells", "rounds"):
        shutil.rmtree(planted_run / kind)
    with pytest.raises(CbobenchError, match="no good cell yet"):
        evaluate([str(planted_run)], claims_of())
    with pytest.raises(Misuse, match="is not a run folder"):
        evaluate([str(tmp_path)], claims_of())


def test_each_setting_is_a_finding(tmp_path):
    """Variants that share a swept parameter go together; a reading of one method is combined with
    the others.
    """
    (tmp_path / "s.yaml").write_text(
        "suite: s\nhorizon: 5\nseeds: 2\nproblems:\n  - rkhs-1d\nalgorithms:\n"
        "  - ckb-ucb: {beta_scale: {sweep: [0.1, 1.0]}}\n  - ckb-ts: {beta_scale: {sweep: [0.1, "
        "1.0]}}\n"
        "  - stageopt: {expand_rounds: {sweep: [1, 2, 3]}}\n"
    )
    play_here(tmp_path / "s.yaml", tmp_path / "run")
    variants = list(Run(tmp_path / "run").record.variants("algorithms").values())
    assert len(list(choices(variants))) == 2 * 3
    assert len(list(choices(variants, within=("expand_rounds",)))) == 2
    claim = Claim(
        "X",
        "",
        "",
        "",
        ("rkhs-1d",),
        ("ckb-ucb", "ckb-ts"),
        lambda case: [
            below(
                "regret",
                case.play_of("ckb-ucb", case.problems[0]),
                case.play_of("ckb-ts", case.problems[0]),
            )
        ],
    )
    setting_findings = check_claim([Run(tmp_path / "run")], claim)
    said = [finding.settings for finding in setting_findings]
    assert ["beta_scale 0.1" in said[0], "beta_scale 1.0" in said[1]] == [True, True]


def made_up(name, **values):
    return Variant(name, values, values, name, values)


def test_readings_of_one_method_are_not_multiplied():
    """One first choice, one more per reading, and the nearest partners for a value that one method
    alone has.
    """
    variants = [
        made_up("a", beta=1, w=5),
        made_up("a", beta=1, w=6),
        made_up("a", beta=3, w=5),
        made_up("b", beta=1, pending="no"),
        made_up("b", beta=3, pending="no"),
        made_up("b", beta=1, pending="var"),
        made_up("c", beta=1, pending="no"),
        made_up("c", beta=3, pending="no"),
    ]
    combinations = [tuple(tuple(v.values.values()) for v in choice) for choice in choices(variants)]
    assert len(combinations) == 4
    assert {*combinations} == {
        ((1, 5), (1, "no"), (1, "no")),
        ((1, 6), (1, "no"), (1, "no")),
        ((3, 5), (3, "no"), (3, "no")),
        ((1, 5), (1, "var"), (1, "no")),
    }


def test_claims_across_runs_say_whose_a_setting_is(tmp_path):
    """Methods from two runs go together where they agree; a name that a problem has, too, is said
    with its owner.
    """
    for name, algorithm in (("one", "rpol-ucb"), ("two", "admmbo")):
        (tmp_path / f"{name}.yaml").write_text(
            f"suite: {name}\nhorizon: 5\nseeds: 2\nproblems:\n  - feasible-pocket: {{scaled: "
            "true}\n"
            f"algorithms:\n  - {algorithm}: {{lam: {{sweep: [0.1, 1.0]}}}}\n"
        )
        play_here(tmp_path / f"{name}.yaml", tmp_path / name)
    claim = Claim("X", "", "", "", ("feasible-pocket",), ("rpol-ucb", "admmbo"), lambda case: [
        below("regret", case.of("rpol-ucb")[0], case.of("admmbo")[0])
    ], across=True)  # fmt: skip
    setting_findings = check_claim([Run(tmp_path / "one"), Run(tmp_path / "two")], claim)
    assert len(setting_findings) == 2, "one for each λ"
    settings = setting_findings[0].settings.split(", ")
    assert settings.count("scaled true") == settings.count("admmbo: scaled true") == 1


def test_many_readings_are_not_multiplied():
    """Five methods with 60 readings each have 8e8 combinations, but 60 that agree."""
    names = [f"{i % 3}.{j}" for i in range(3) for j in range(20)]
    variants = [made_up(name, x=word[0], y=word[2:]) for name in "abcde" for word in names]
    assert len(list(choices(variants))) == 60
