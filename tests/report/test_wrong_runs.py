"""Runs that are empty, hold one seed, nothing in common or nothing good, and words that fit none: a
line each.
"""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from cbobench.cli import main
from tests.report.made import make

SEEDS = range(6)
COMMANDS = (
    ["compare"],
    ["compare", "--against", "A"],
    ["compare", "--ranks"],
    ["compare", "--target", "0.5"],
    ["show"],
    ["claims"],
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs by what is the matter with them."""
    folder = tmp_path_factory.mktemp("wrong")

    def written(name, values, seeds=SEEDS, **lost):
        pairs = {(p, a): {"regret": v[: len(seeds)]} for p in "PQ" for a, v in values.items()}
        settings = {key: {"t": [1, 100], "regret": [[0.0, 1.0]] * len(seeds)} for key in pairs}
        failed = {
            (p, a): seeds
            for (p, a) in pairs
            if p in lost.get("problems", "") or a in lost.get("algorithms", "")
        }
        return make(
            folder / name, pairs, seeds=seeds, rounds=settings, failed=lost.get("failed", failed)
        )

    values = {"A": np.arange(6.0), "B": np.arange(6.0) + 1}
    results = {
        "good": written("good", values),
        "empty": written("empty", values),
        "one": written("one", values, [0]),
        "lost": written("lost", values, algorithms="AB"),
        "half": written("half", values, problems="Q"),
        "algorithm": written("algorithm", values, algorithms="B"),
        "nan": written("nan", {"A": np.full(6, np.nan), "B": values["B"]}),
        "apart": written("apart", values, failed={("P", "A"): [0, 1, 2], ("P", "B"): [3, 4, 5]}),
    }
    for kind in ("cells", "rounds"):
        shutil.rmtree(results["empty"] / kind)
    results["schema"] = shutil.copytree(results["good"], folder / "schema")
    content = json.loads((results["schema"] / "run.json").read_text())
    (results["schema"] / "run.json").write_text(json.dumps(content | {"schema": 99}))
    results["folder"] = folder
    results["file"] = folder / "file"
    results["file"].write_text("")
    return {name: str(path) for name, path in results.items()}


WRONG = ("empty", "one", "lost", "half", "nan", "apart", "schema")


@pytest.mark.parametrize(
    ("name", "commands"),
    [pytest.param(name, COMMANDS[i % 3 :: 3], id=name) for i, name in enumerate(WRONG)]
    + [pytest.param(name, COMMANDS, id=f"{name} all", marks=pytest.mark.long) for name in WRONG],
)
def test_every_wrong_run_is_a_table_or_a_line(runs, name, commands, capsys):
    for first, *arguments in commands:
        code = main([first, runs[name], *arguments])
        captured = capsys.readouterr()
        assert captured.out if code == 0 else captured.err.startswith("cbobench: ")
        assert captured.err.count("\n") == (code != 0)
    for second in (["compare", runs["good"], runs[name]], ["compare", runs[name], runs["good"]]):
        assert main(second) in (0, 1, 2)
        assert capsys.readouterr().err.count("\n") <= 1


@pytest.mark.parametrize(
    ("name", "arguments", "phrase"),
    [
        ("half", [], ["0/6 (6 failed)", "6/6"]), ("algorithm", [], ["0/6 (6 failed)", "6/6"]),
        ("apart", [], ["3/6 (3 failed)"]), ("empty", [], ["n = 0/6", "no cell is done yet"]),
        ("good", [], ["n = 6/6"]), ("apart", ["--against", "A", "--only", "P"], ["0/6"]),
    ],
)  # fmt: skip
def test_what_is_left_shows_n_of_expected(runs, capsys, name, arguments, phrase):
    assert main(["compare", runs[name], *arguments]) == 0
    visible = " ".join(capsys.readouterr().out.split())
    assert [item for item in phrase if item not in visible] == []


@pytest.mark.usefixtures("unpainted")
def test_figures_say_what_they_leave_out(runs, tmp_path, capsys):
    for name, recipe, code, says in (
        ("half", "summary", 0, "not drawn, without a good cell of T = 100: Q\n"),
        ("good", "guo_zhu_liu_2022", 1, "nothing drawn: guo_zhu_liu_2022 has no figure of P, Q\n"),
        ("good", "summary", 0, ""),
    ):
        assert main(["figures", runs[name], "--out", str(tmp_path), "--recipe", recipe]) == code
        assert capsys.readouterr().err == says


def test_claims_of_several_runs(runs, capsys):
    assert main(["claims", runs["good"], runs["good"] + "/"]) == 2
    assert "given twice" in capsys.readouterr().err
    assert main(["claims", runs["good"], runs["empty"]]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"left out, without a good cell yet: {runs['empty']}\n"
    assert captured.out.startswith("24 claims, 0 settings: 24 not in these runs")
    assert main(["claims", runs["good"], runs["empty"], "--strict"]) == 1
    assert main(["claims", runs["lost"], runs["empty"]]) == 1
