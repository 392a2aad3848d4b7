"""Replays of published cells: equal where nothing changed; what was planted is found; what cannot
be checked here is said.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest

from cbobench import params
from cbobench.algorithms.improvement import ConstrainedEI as CEI
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.replay.replay import Outcome, Replay, replay
from cbobench.results import source
from cbobench.results.export import LEFT_OUT, export
from cbobench.results.folder import open_run
from cbobench.results.provenance import cpu_kind
from cbobench.results.schema import RECOMMENDATION_RULE, RULE, schema
from tests.conftest import ROOT
from tests.helpers import long, play_here
from tests.results.forging import all_are, change_column, rewrite_bundle, set_column

SUITE = {
    "suite": "replayed", "horizon": 8, "seeds": 2, "record": "all",
    "problems": ["gramacy", {"rkhs-1d": {"h": 0.25}}], "algorithms": ["cei", "random", "sobol"],
}  # fmt: skip
CELLS = 2 * 3 * 2


MINE = """from dataclasses import dataclass

from cbobench.algorithms.asktell import AskTell


class Middle:
    def __init__(self, given):
        self.given = given

    def ask(self):
        return self.given.generator.uniform(self.given.low, self.given.high)

    def tell(self, x, f, g):
        pass


@dataclass(kw_only=True)
class Mine(AskTell):
    source, about = "mine", "any point"

    def optimiser(self, given):
        return Middle(given)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay") / "run"
    play_here(SUITE, folder)
    return folder


@pytest.fixture(scope="module")
def bundle(run):
    return run.parent / export(run, run.parent / "b.zip").file


@pytest.fixture
def forge(bundle, tmp_path):
    """Write the bundle with other tables or records."""
    return partial(rewrite_bundle, bundle, tmp_path / "forged.zip")


def texts_of(run, state, **options):
    """What is said of the cells of a run in a state, by cell."""
    outcomes = replay([str(run)], CELLS, seed=0, **options).outcomes
    return {o.published.cell.id: o.text for o in outcomes if o.state == state}


def verify(capsys, *words):
    """The exit code of `cbobench verify ... --replay` of all cells, and what it prints."""
    code = main(["verify", *map(str, words), "--replay", "99", "--seed", "0"])
    return code, capsys.readouterr().out


def test_nothing_differs_where_nothing_changed(run, bundle, capsys):
    assert verify(capsys, run) == (0, "12 of 12 cells drawn with --seed 0: 12 equal\n")
    assert main(["verify", str(bundle), "--replay", "5", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert re.match("5 cells to play again: (gramacy|rkhs-1d)[^ ]* / .* seeds? [01]", printed.err)
    content = json.loads(printed.out)
    assert (content["cells"], content["verdict"]) == (CELLS, "equal")
    assert [cell["state"] for cell in content["drawn"]] == ["equal"] * 5


def test_a_seed_draws_the_same_cells(bundle):
    drawn = [
        [o.published.cell.id for o in replay([str(bundle)], 4, seed=seed).outcomes]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({*drawn[0]}) == 4
    seeds = {replay([str(bundle)], 1).seed for _ in range(2)}
    assert len(seeds) == 2, "nobody can foresee the draw"


@pytest.mark.parametrize(
    ("states", "unread", "verdict", "code"),
    [
        (["equal", "equal"], (), "equal", 0),
        (["equal", "differs", "not checked"], (), "differs", 1),
        (["equal", "not checked"], (), "not checked", 3),
        (["not checked"], (), "not checked", 3),
        (["equal"], ("a.zip is no run folder and no whole bundle",), "differs", 1),
    ],
)
def test_the_exit_code_says_whether_all_was_checked(
    bundle, monkeypatch, capsys, states, unread, verdict, code
):
    (outcome,) = replay([str(bundle)], 1).outcomes
    outcomes = tuple(Outcome(outcome.published, state, "why") for state in states)
    replayed = Replay(0, 9, outcomes, unread)
    assert replayed.verdict == verdict
    monkeypatch.setattr("cbobench.replay.replay.replay", lambda *words, **options: replayed)
    assert verify(capsys, bundle)[0] == code


def planted(column, row):
    """A change of one number of one row."""

    def change(table):
        values = table[column].to_pylist()
        is_digest = isinstance(values[row], str)
        values[row] = f"{int(values[row], 16) ^ 1:032x}" if is_digest else values[row] + 1e-9
        return set_column(table, column, values)

    return change


@pytest.mark.parametrize(
    ("kind", "column", "row", "message"),
    [
        ("cells", "digest", 0, "^its actions, observations or recommendation, of which"),
        ("cells", "regret", 5, "^the play is the same, but in the end: R is .* published .*by 1e"),
        ("cells", "recommended_f", 5, "^the play is the same, but in the end: recommended_f is "),
        ("cells", "seed", 5, "in the end: seed is "),
        ("rounds", "violation", 9, "but of the stored rounds from round .* on: V is .*by 1e-09"),
        ("improvements", "simple_regret", 4, "but improvements from round .* on: r is "),
        ("improvements", "t", 4, "but improvements from round .* on: r is .*None"),
    ],
)
def test_a_planted_change_is_found_in_its_cell_alone(bundle, forge, kind, column, row, message):
    change = planted(column, row) if column not in ("seed", "t") else moved(column, row)
    changed = forge({kind: change})
    cell = next(iter(open_run(bundle).row_groups(kind, "run", ["cell"])))["cell"][row].as_py()
    ((differing, text),) = texts_of(changed, "differs").items()
    assert differing == cell
    assert re.search(message, text)


def moved(column, row):
    """A change of a whole number of one row."""
    return lambda table: set_column(
        table, column, [v + 100 * (i == row) for i, v in enumerate(table[column].to_pylist())]
    )


def test_a_bundle_keeps_the_rounds_that_its_author_chose_and_the_last(forge):
    def keep(*rounds):
        return lambda table: table.filter(pa.array([t in rounds for t in table["t"].to_pylist()]))

    assert len(texts_of(forge({"rounds": keep(3, 8)}), "equal")) == CELLS
    texts = texts_of(forge({"rounds": keep(3, 6)}), "differs")
    assert len(texts) == CELLS
    assert {*texts.values()} == {"the play is the same, but its stored rounds are others"}


def test_a_metric_that_whoever_played_did_not_know_is_no_difference(forge):
    """One that some cells have is compared in all of them."""

    def forget(table):
        return table.drop_columns(["violation_hard"])

    assert len(texts_of(forge({"rounds": forget, "cells": forget}), "equal")) == CELLS
    texts = texts_of(forge({"rounds": forget}), "differs")
    assert len(texts) == CELLS
    assert all("published None" in text for text in texts.values()), texts


def test_what_run_json_says_twice_and_differently_is_a_difference(forge):
    def rename(content):
        grid = content["grids"][0]
        grid["problems"][1]["given"] = {"h": 0.5}
        grid["pairs"] = [[title.replace("0.25", "0.5"), method] for title, method in grid["pairs"]]

    texts = texts_of(forge({}, rename), "differs")
    assert len(texts) == CELLS / 2
    (text,) = {*texts.values()}
    assert "says h = 0.5 in the name of 'rkhs-1d[h=0.5]', and h = 0.25 in what builds it" in text


@pytest.mark.parametrize(
    ("kind", "name", "value", "text"),
    [
        ("algorithms", "settings", {"delta": 0.3}, "says delta = 0.05 in the identity of 'cei'"),
        ("problems", "inputs", [["x", "number"]], "the inputs [['x', 'number']], here: "),
        ("problems", "objective", ["cost", 1.0, -1.0], "the objective ['cost', 1.0, -1.0], here: "),
    ],
)
def test_what_run_json_says_beside_its_identity_is_compared(forge, kind, name, value, text):
    def change(content):
        variant = next(v for v in content["grids"][0][kind] if v["name"] in ("cei", "gramacy"))
        variant[name] = variant[name] | value if isinstance(value, dict) else value

    texts = texts_of(forge({}, change), "differs")
    assert len(texts) == CELLS / (3 if kind == "algorithms" else 2)
    assert all(text in said for said in texts.values())


def test_another_method_here_is_not_checked(bundle, monkeypatch):
    """As one whose new parameter belongs to what identifies it."""
    stage = "cbobench.replay.stage.params"
    ours = SimpleNamespace(
        build=params.build,
        resolve=params.resolve,
        identity=lambda cls, values: params.identity(cls, values) | {"new": cls is CEI},
    )
    monkeypatch.setattr(stage, ours)
    texts = texts_of(bundle, "not checked")
    assert len(texts) == CELLS
    assert any("gramacy / cei: another method here (new None → True)" in t for t in texts.values())


def flipped(self, belief):
    """The score of cei with another sign."""
    return -original(self, belief)


original = CEI.score


def test_a_method_changed_by_one_sign_differs(bundle, monkeypatch, capsys):
    monkeypatch.setattr(CEI, "score", flipped)
    code, printed = verify(capsys, bundle)
    assert code == 1
    assert re.search("12 of 12 cells drawn with --seed 0: \\d+ equal, \\d different", printed)
    assert "gramacy / cei seed 0 (b.zip): " in printed
    assert "random seed 0 (b.zip): " not in printed


def test_the_first_round_that_differs_is_said(run, monkeypatch):
    def late(self, t, actions, feedback):
        tell(self, t, actions, feedback)
        if t == 5:
            self.posterior.update(self.chosen, self.targets(feedback))

    tell = CEI.tell
    monkeypatch.setattr(CEI, "tell", late)
    texts = texts_of(run, "differs").values()
    assert texts
    assert all("from round " in text and "(by " in text for text in texts)
    assert not any(f"from round {t} on" in text for text in texts for t in range(1, 5))


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError, "differs"), (ImportError, "not checked")]
)
def test_a_play_that_fails_differs_unless_it_lacks_a_library(bundle, monkeypatch, error, state):
    def fail(self, t):
        raise error("no such thing")

    monkeypatch.setattr(CEI, "ask", fail)
    texts = texts_of(bundle, state).values()
    assert len(texts) == CELLS / 3
    assert all(text.startswith("it fails here: ") and "no such thing" in text for text in texts)


OTHER_ARITHMETIC = "native: Prescott, SSE3"
OTHER_CPU = "Another CPU, openblas Haswell, X86_V3"


def test_what_other_libraries_or_another_arithmetic_played_is_not_checked(forge, capsys):
    for change, text in (
        (all_are("libraries", "numpy 1.0, scipy 1.0"), "played with numpy 1.0; here: "),
        (all_are("libraries", "nothing 1.0"), "played with nothing 1.0; here: not installed"),
        (all_are("arithmetic", OTHER_ARITHMETIC), f"played by the arithmetic {OTHER_ARITHMETIC}; "),
    ):
        code, printed = verify(capsys, forge({"cells": change}))
        assert code == 3
        assert "12 of 12 cells drawn with --seed 0: 0 equal, 12 not checked\n" in printed
        assert f"  not checked: 12 cells: {text}" in printed


def test_what_pytorch_played_is_not_checked_on_another_cpu(forge, monkeypatch):
    recorded = f"{source.libraries()}, torch 0.0.1"
    versions = dict(word.split(" ") for word in recorded.split(", "))
    monkeypatch.setattr(source, "installed_version", versions.get)
    for cpu, libraries, state in (
        (cpu_kind(), recorded, "equal"),
        (OTHER_CPU, recorded, "not checked"),
        (OTHER_CPU, source.libraries(), "equal"),
    ):

        def claim(table, cpu=cpu, libraries=libraries):
            return all_are("cpu", cpu)(all_are("libraries", libraries)(table))

        assert len(texts_of(forge({"cells": claim}), state)) == CELLS, (cpu, libraries)


def test_recommendations_of_another_rule_are_not_compared_and_all_else_is(forge, capsys):
    other = change_column("recommended_f", lambda row: row["recommended_f"] and 0.25)
    line = "  recommendations not compared, as another rule made them: 12 cells\n"
    for rule, regret, code in (
        (None, 0.0, 0),
        (RECOMMENDATION_RULE, 0.0, 1),
        (None, 0.1, 1),
    ):
        worse = change_column("regret", lambda row, more=regret: row["regret"] + more)

        def change(table, rule=rule, worse=worse):
            return worse(other(all_are(RULE, rule)(table)))

        found, printed = verify(capsys, forge({"cells": change}))
        assert found == code, (rule, regret)
        assert (line in printed) is (rule != RECOMMENDATION_RULE)


def test_what_cannot_be_played_here_is_named(bundle, monkeypatch, capsys):
    def refuse(self, problem):
        raise Misuse("it needs cma, not installed here")

    monkeypatch.setattr(CEI, "check", refuse)
    code, printed = verify(capsys, bundle)
    assert code == 3
    assert "12 of 12 cells drawn with --seed 0: 8 equal, 4 not checked\n" in printed
    line = "  not checked: 2 cells: gramacy / cei: it needs cma, not installed here\n"
    assert line in printed


def test_modules_of_a_run_are_imported_where_that_is_asked(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    suite = SUITE | {"seeds": 2, "problems": ["gramacy"], "algorithms": ["mine:Mine"]}
    export(play_here(suite, "run").folder, tmp_path / "mine.zip")
    code, printed = verify(capsys, "mine.zip")
    assert code == 3
    assert "2 of 2 cells drawn with --seed 0: 0 equal, 2 not checked" in printed
    assert "mine:Mine is not imported because a run names it; if you trust it" in printed
    code, printed = verify(capsys, "mine.zip", "--imports")
    assert (code, printed) == (0, "2 of 2 cells drawn with --seed 0: 2 equal\n")


def test_a_damaged_bundle_is_named_and_the_rest_goes_on(bundle, tmp_path, capsys):
    cut = tmp_path / "cut.zip"
    cut.write_bytes(bundle.read_bytes()[:1000])
    code, printed = verify(capsys, cut, bundle)
    assert code == 1
    assert "12 of 12 cells drawn with --seed 0: 12 equal\n" in printed
    assert f"  cannot be read: {cut} is no run folder and no whole bundle" in printed
    assert main(["verify", str(cut), "--replay", "3"]) == 1
    assert "is no run folder and no whole bundle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replay", "0"], "--replay is 0; it must be a whole number of at least 1"),
        (["--replay", "3", "--seed", "-1"], "--seed is -1; it must be"),
        (["--seed", "3"], "--seed is about --replay; add --replay K"),
        (["other"], "2 runs are given; allowed: one, or several with --replay K"),
    ],
)
def test_wrong_options_are_a_line(bundle, capsys, arguments, message):
    assert main(["verify", str(bundle), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_run_of_failed_cells_has_none_to_draw(tmp_path, monkeypatch, capsys):
    def fail(self, t):
        raise ValueError("no")

    monkeypatch.setattr(CEI, "ask", fail)
    suite = SUITE | {"seeds": 1, "problems": ["gramacy"], "algorithms": ["cei"]}
    run = play_here(suite, tmp_path / "run")
    assert main(["verify", str(run.folder), "--replay", "1"]) == 2
    assert "no cell can be drawn: none was played to its end" in capsys.readouterr().err


OBEYED = "\x1b]0;owned\x07\u202egnp\u2066\u200f\u061c\x9b2J\ufeff"
SHOWN = ["algorithm", "arithmetic"]
TEXTS = [f.name for f in schema("cells") if f.type == pa.string() and f.name not in LEFT_OUT]


def is_harmless(text):
    """Whether a terminal acts on nothing in a text."""
    kinds = {unicodedata.category(character) for character in text.replace("\n", "")}
    return not kinds & {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize("name", [*SHOWN, *long(*sorted({*TEXTS} - {*SHOWN}))])
def test_texts_of_a_stranger_reach_no_terminal_raw(forge, tmp_path, capsys, name):
    def change(table):
        values = [
            f"{value or ''}{OBEYED}" if i % 3 else value
            for i, value in enumerate(table[name].to_pylist())
        ]
        return set_column(table, name, values)

    forged, page = str(forge({"cells": change})), tmp_path / "page.html"
    for words in (
        ["verify", forged, "--replay", "2"],
        ["verify", forged, "--replay", "1", "--format", "json"],
        ["status", forged],
        ["status", forged, "--format", "json"],
        ["compare", forged],
        ["report", forged, "--out", str(page)],
    ):
        main(words)
        output = capsys.readouterr()
        assert is_harmless(output.out + output.err), words
    if page.exists():  # it is not, where the bundle is refused
        assert not {"\x1b", "\u202e", "\u2066"} & {*page.read_text()}


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-botorch.txt"])
def test_the_requirements_beside_the_results_promise_no_bits_of_pytorch(file):
    comment = " ".join((ROOT / "published" / file).read_text().split("==")[0].split())
    assert "PyTorch" in comment
    assert "kind of CPU" in comment
