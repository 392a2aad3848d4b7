"""Forged bundles: of every column and every field docs/bundles.md says whether a replay finds it;
it keeps its word.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import unicodedata
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import CbobenchError
from cbobench.replay.replay import ReplayOptions, plan_replay, replay
from cbobench.replay.text import describe_draw
from cbobench.results import source
from cbobench.results.bundle import FILES, bundle_schema, open_run
from cbobench.results.export import export
from cbobench.results.history import HISTORY, digest_of
from cbobench.results.provenance import cpu_kind
from cbobench.results.schema import RECOMMENDATION_RULE, RULE
from tests.conftest import ROOT
from tests.results.forging import all_are, change_column, rewrite_bundle, set_column

SUITE = {
    "suite": "forged", "horizon": 6, "seeds": 20,
    "problems": ["gramacy", {"rkhs-1d": {"h": 0.25}}], "algorithms": ["ckb-ucb", "random"],
    "shared": {"kernel": "given"},
}  # fmt: skip
OTHER_ARITHMETIC = "native: Prescott, SSE3"
PAGE = (ROOT / "docs" / "bundles.md").read_text()
COLUMNS = [(kind, name) for kind in FILES for name in bundle_schema(kind).names]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged")
    return folder / export(cbobench.run(SUITE, out=folder / "run", cpus=0), folder / "b.zip").file


@pytest.fixture(scope="module")
def with_history(bundle):
    history = read_table(bundle, "history")
    assert 0 < history["x"].null_count < len(history), "of both kinds of action sets"
    return {*history["cell"].to_pylist()}


def read_table(bundle, kind):
    return pq.read_table(io.BytesIO(zipfile.ZipFile(bundle).read(FILES[kind])))


def change_value(value, kind):
    """Another value of a column's type."""
    if pa.types.is_list(kind):
        return None if value is None else [v + 1e-3 for v in value]
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_floating(kind):
        return 1.0 if value is None or value != value else value + 1e-3
    if pa.types.is_integer(kind):
        return 1 if value is None else value + 1
    return (
        "forged"
        if value is None
        else f"{int(value, 16) ^ 1:0{len(value)}x}"
        if re.fullmatch("[0-9a-f]+", value)
        else f"{value}x"
    )


def forge(name, rows=lambda table: [True] * len(table)):
    """A change of a column of a table, in all rows or some."""

    def change(table):
        kind = table.schema.field(name).type
        values = zip(table[name].to_pylist(), rows(table), strict=True)
        forged = [change_value(value, kind) if is_forged else value for value, is_forged in values]
        return set_column(table, name, forged)

    return change


def read_promises():
    """By (file, name), whether the page says that a forged value is found anew, and by round."""
    promises = {}
    for file, names, is_found_anew, by_round in re.findall(
        r"^\| (\w+\.\w+) \| (.*?) \| (yes|no) \| (yes|no) \|$", PAGE, re.M
    ):
        for name in re.findall(r"`(\w+)`", names):
            key = (file, name)
            assert key not in promises or file == "run.json", f"{key} is listed twice"
            promises.setdefault(
                key, {"anew": is_found_anew == "yes", "by round": by_round == "yes"}
            )
    return promises


PROMISES = read_promises()


def is_found(bundle, by_round, cells=999):
    """Whether a replay of drawn cells finds a fault, or the bundle is refused."""
    try:
        return replay([str(bundle)], cells, seed=0, by_round=by_round).differs
    except CbobenchError:
        return True


def test_the_page_lists_every_column_and_field(bundle):
    with zipfile.ZipFile(bundle) as archive:
        fields = [
            (name, field)
            for name in ("bundle.json", "run.json")
            for field in json.loads(archive.read(name))
        ]
    listed = {(FILES[kind], name) for kind, name in COLUMNS} | {*fields}
    grids = {"given", "inputs", "objective", "label", "note", "command", "unplayable"}
    assert {key for key in PROMISES if key[0] != "run.json" or key[1] not in grids} == listed


def test_nothing_is_found_in_what_was_exported(bundle):
    assert not is_found(bundle, by_round=False)
    assert not is_found(bundle, by_round=True)


@pytest.mark.parametrize(("kind", "name"), COLUMNS)
def test_a_forged_column_is_found_or_the_page_says_so(bundle, with_history, tmp_path, kind, name):
    """In every way in which the page says that it is; forged by round are the cells that carry a
    history.
    """
    promise = PROMISES[FILES[kind], name]
    for way, is_promised in promise.items():

        def rows(table, way=way):
            return [way == "anew" or cell in with_history for cell in table["cell"].to_pylist()]

        forged = rewrite_bundle(bundle, tmp_path / "f.zip", {kind: forge(name, rows)})
        cells = 4 if way == "anew" and kind != "history" else 999
        assert not is_promised or is_found(forged, way == "by round", cells), way


FIELDS = (
    "bundle",
    "suite",
    "about",
    "cells",
    "rounds",
    "calls",
    "cpus",
    "arithmetic",
    "libraries",
    "sources",
    "cost",
)
FIELDS += ("files",)


@pytest.mark.parametrize("name", FIELDS)
def test_a_forged_field_of_bundle_json_is_found(bundle, tmp_path, name):
    values = {
        "bundle": 2,
        "suite": "other",
        "about": "other",
        "calls": [],
        "cpus": ["other"],
        "files": {},
    }

    def change(about):
        about[name] = values.get(name, {} if isinstance(about[name], dict) else ["other"])

    assert PROMISES["bundle.json", name] == {"anew": True, "by round": True}
    assert is_found(
        rewrite_bundle(bundle, tmp_path / "f.zip", {}, {"bundle.json": change}),
        by_round=False,
        cells=2,
    )


def set_value(*path, value):
    def change(content):
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return change


PROBLEM = ("grids", 0, "problems")
FORGED_RECORDS = {
    "schema": [set_value("schema", value=99)],
    "suite": [set_value("suite", value="other")],
    "about": [set_value("about", value="other")],
    "invocations": [set_value("invocations", value=[])],
    "keep": [set_value("keep", value=5)],
    "block": [set_value("block", value=3)],
    "given": [set_value(*PROBLEM, 1, "given", value={"h": 0.5})],
    "inputs": [set_value(*PROBLEM, 0, "inputs", value=[["width", {"float": [0.0, 2.0]}]])],
    "objective": [set_value(*PROBLEM, 0, "objective", value=["cost", 0.0, 100.0])],
    "label": [set_value(*PROBLEM, 0, "label", value="other")],
    "note": [set_value(*PROBLEM, 0, "note", value="other")],
    "command": [set_value("grids", 0, "command", value=["cbobench", "run", "x.yaml"])],
    "unplayable": [set_value("grids", 0, "unplayable", value=[["gramacy", "random", "other"]])],
    "grids": [
        set_value("grids", 0, "horizon", value=11),
        set_value("grids", 0, "seeds", value=[1, 2, 3]),
        set_value("grids", 0, "pairs", value=[["gramacy", "random"]]),
        set_value(*PROBLEM, 0, "name", value="gardner-1"),
        set_value(*PROBLEM, 0, "values", "noise_f", value=0.5),
        set_value(*PROBLEM, 1, "settings", "h", value=0.5),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED_RECORDS)
def test_a_forged_field_of_run_json_is_found_or_the_page_says_so(bundle, tmp_path, name):
    for change in FORGED_RECORDS[name]:
        forged = rewrite_bundle(bundle, tmp_path / "f.zip", {}, {"run.json": change})
        is_unplayable = False
        if not (is_detected := is_found(forged, by_round=False, cells=9)):
            is_unplayable = any(
                outcome.state == "unplayable" for outcome in replay([str(forged)], 9).outcomes
            )
        assert is_detected or is_unplayable or not PROMISES["run.json", name]["anew"]


def together(*changes):
    def changed(table):
        for change in changes:
            table = change(table)
        return table

    return changed


def claim_native(bundle, out, changes):
    """What a stranger may say of the cells, so that they are asked by round."""
    native = all_are("arithmetic", OTHER_ARITHMETIC)
    tables = changes | {"cells": together(native, changes.get("cells", lambda table: table))}
    return rewrite_bundle(
        bundle, out, tables, {"bundle.json": set_value("arithmetic", value=[OTHER_ARITHMETIC])}
    )


def test_what_is_only_said_to_be_of_another_arithmetic_is_computed_again(
    bundle, with_history, tmp_path, capsys
):
    out = tmp_path / "f.zip"
    cells = len(read_table(bundle, "cells"))
    assert (
        main(["verify", str(claim_native(bundle, out, {})), "--replay", "99", "--seed", "0"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "round by round on the published history, as libraries or arithmetic are others: "
    )
    k = len(with_history)
    assert (
        lines[-1]
        == f"checked: {k} of {cells} drawn cells; not checked for lack of a history: {cells - k}"
    )
    better = {
        "regret": lambda r: r["regret"] - 1e-6,
        "simple_regret": lambda r: r["simple_regret"] and 0.0,
    }
    forged = [
        {"cells": change_column("regret", better["regret"])},
        {"cells": change_column("violations", lambda row: row["violations"] + 1)},
        {
            "cells": change_column(
                "first_feasible", lambda row: 1 if row["first_feasible"] != 1 else 2
            )
        },
        {"cells": change_column("simple_regret", better["simple_regret"])},
        {
            "rounds": change_column(
                "simple_regret", lambda row: row["simple_regret"] and row["simple_regret"] * 0.99
            )
        },
        {"rounds": change_column("violation", lambda row: 0.5 * row["violation"] + 1e-6)},
        {"history": change_column("f", lambda row: row["f"] + 1e-6)},
        {"history": change_column("g", lambda row: [g - 1e-6 for g in row["g"]])},
        {
            "cells": change_column(
                "recommended_f", lambda row: row["recommended_f"] and row["recommended_f"] + 1e-6
            )
        },
        {"cells": change_column("f_star", lambda row: row["f_star"] - 1e-6)},
    ]
    for changes in forged:
        assert main(["verify", str(claim_native(bundle, out, changes)), "--replay", "99"]) == 1, (
            changes
        )
        assert "published" in capsys.readouterr().out


def test_invented_plays_that_agree_with_each_other_are_found_by_round(
    bundle, with_history, tmp_path
):
    """Observations with their digests, and f with all that follows from it."""
    finals = {row["cell"]: row for row in read_table(bundle, "cells").to_pylist()}

    forge_observed = change_column("observed_f", lambda row: row["observed_f"] + 0.01)
    history = forge_observed(read_table(bundle, "history"))
    digests = {
        cell: digest_of(
            cell,
            history.filter(pa.array([c == cell for c in history["cell"].to_pylist()])),
            finals[cell],
        )
        for cell in with_history
    }
    changes = {"history": lambda table: history}
    changes |= {
        "digests": change_column("digest", lambda row: digests.get(row["cell"], row["digest"]))
    }
    replayed = replay([str(claim_native(bundle, tmp_path / "f.zip", changes))], 99)
    assert all("the observed f is" in outcome.text for outcome in replayed.outcomes)

    def shift(name, sign):
        return change_column(
            name, lambda row: row[name] and row[name] + sign * row.get("t", 6) * 0.01
        )

    def shift_best(name, sign):
        return change_column(name, lambda row: row[name] and row[name] + sign * 0.01)

    sums = [shift("regret", -1), shift("regret_plus", -1), shift("reward", 1)]
    best = [shift_best("simple_regret", -1), shift_best("simple_value", 1)]
    changes = {"cells": together(*sums, *best), "rounds": together(*sums, *best)}
    changes |= {"improvements": best[0], "history": shift_best("f", 1)}
    replayed = replay([str(claim_native(bundle, tmp_path / "f.zip", changes))], 99)
    assert all("f is" in outcome.text for outcome in replayed.outcomes)


@pytest.mark.parametrize("by_round", [False, True])
def test_a_metric_left_out_of_the_cells_is_compared_where_rounds_have_it(
    bundle, with_history, tmp_path, by_round
):
    """Else curves could be forged behind a line which says that nothing is stored of them."""

    def leave_out(table):
        return table.drop_columns(["violation"])

    forged = rewrite_bundle(
        bundle, tmp_path / "f.zip", {"cells": leave_out, "rounds": all_are("violation", 0.0)}
    )
    assert is_found(forged, by_round, cells=4)
    unstored = replay(
        [str(rewrite_bundle(bundle, forged, dict.fromkeys(["cells", "rounds"], leave_out)))],
        4,
        seed=0,
    )
    assert not unstored.differs
    outcomes = replay([str(forged)], 4, seed=0, by_round=by_round).outcomes
    assert {name for outcome in outcomes for name in outcome.unstored} == {"violation"}


def test_an_older_rule_hides_no_forged_value_of_what_it_recommends(bundle, tmp_path):
    """Played anew: another recommendation is believed, what it is worth is the problem's."""
    older = all_are(RULE, None)
    names = ["recommended_f", "recommended_regret", "recommended_violation"]
    forged = [{"cells": together(older, all_are(name, 0.25))} for name in names]
    forged += [{"cells": older, "rounds": all_are(name, 0.25)} for name in names[1:]]
    for changes in forged:
        assert is_found(
            rewrite_bundle(bundle, tmp_path / "f.zip", changes), by_round=False, cells=4
        ), changes
    left_out = together(older, lambda table: table.drop_columns(names[1:]))
    changes = {"cells": left_out, "rounds": lambda table: table.drop_columns(names[1:])}
    assert not is_found(
        rewrite_bundle(bundle, tmp_path / "f.zip", changes), by_round=False, cells=4
    )


@pytest.mark.parametrize("kind", ["rounds", "improvements"])
def test_rows_that_were_dropped_added_or_moved_are_found(bundle, tmp_path, kind):
    table = read_table(bundle, kind)
    cells = table["cell"].to_pylist()
    first = [i == 0 or cells[i] != cells[i - 1] for i in range(len(cells))]
    later = [i for i, begins in enumerate(first) if not begins]
    forged = [
        table.filter(pa.array(first)),
        table.filter(pa.array([not begins for begins in first])),
        pa.concat_tables([table, table.take(pa.array(later))]),
        change_column("t", lambda row: row["t"] + (row["t"] > 1))(table),
        change_column("cell", lambda row: finals[row["cell"]])(table)
        if (finals := rotate(cells))
        else table,
    ]
    for change in forged:
        assert is_found(
            rewrite_bundle(bundle, tmp_path / "f.zip", {kind: lambda _, change=change: change}),
            False,
            9,
        )


def rotate(cells):
    """By cell, the next one."""
    names = list(dict.fromkeys(cells))
    return dict(zip(names, [*names[1:], names[0]], strict=True))


OBEYED = "\x1b]0;owned\x07\u202egnp\u2066\u200f\u061c\x9b2J\ufeff"
TEXTS = [
    name
    for name in bundle_schema("cells").names
    if bundle_schema("cells").field(name).type == pa.string()
]


def harmless(text):
    """Whether a terminal acts on nothing in a text."""
    return not any(
        unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp") and c != "\n" for c in text
    )


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_a_stranger_reach_no_terminal_raw(bundle, tmp_path, capsys, name):
    def change(table):
        values = [
            f"{value or ''}{OBEYED}" if i % 3 else value
            for i, value in enumerate(table[name].to_pylist())
        ]
        return set_column(table, name, values)

    forged = str(rewrite_bundle(bundle, tmp_path / "f.zip", {"cells": change}))
    page = tmp_path / "page.html"
    commands = (
        "verify --replay 2",
        "verify --replay 1 --format json",
        "status",
        "status --format json",
        "compare",
    )
    for arguments in (*map(str.split, commands), ["report", "--out", str(page)]):
        main([arguments[0], forged, *arguments[1:]])
        output = capsys.readouterr()
        assert harmless(output.out + output.err), arguments
    if page.exists():  # it is not, where the bundle is refused
        assert not {"\x1b", "\u202e", "\u2066"} & {*page.read_text()}


def test_records_and_names_of_a_stranger_reach_no_terminal_raw(bundle, tmp_path, capsys):
    def change(about):
        about["suite"] = about["cpus"] = OBEYED

    forged = rewrite_bundle(bundle, tmp_path / "f.zip", {}, {"bundle.json": change})
    assert main(["verify", str(forged), "--replay", "1"]) == 1
    output = capsys.readouterr()
    assert "its bundle.json says that suite is" in output.out
    assert harmless(output.out + output.err)
    run = tmp_path / "run"
    shutil.copytree(bundle.parent / "run", run)
    (run / "cells" / f"a{OBEYED.replace(chr(0x9B), '')}.parquet").write_bytes(b"PAR1")
    assert main(["verify", str(run)]) == 0
    assert harmless(capsys.readouterr().out)


def test_thousands_of_libraries_are_not_looked_up(bundle, tmp_path, capsys, monkeypatch):
    looked = []
    monkeypatch.setattr(source, "installed_version", lambda name: looked.append(name))
    many = ", ".join(f"library-{i} 1.0" for i in range(100_000))
    forged = rewrite_bundle(bundle, tmp_path / "f.zip", {"cells": all_are("libraries", many)})
    main(["verify", str(forged), "--replay", "1", "--seed", "0"])
    output = capsys.readouterr()
    assert len(output.out + output.err) < 5_000
    assert 0 < len({*looked}) < 50


def test_an_older_rule_of_recommendation_is_said_and_is_no_difference(bundle, tmp_path, capsys):
    """The digest covers the recommendation: of what is left it still speaks."""
    rounds = {row["cell"]: [] for row in read_table(bundle, "cells").to_pylist()}
    folder = open_run(bundle.parent / "run")
    for task in folder.names("rounds"):
        for row in folder.read("rounds", task).to_pylist():
            rounds[row["cell"]].append({name: row[name] for name in ("cell", *HISTORY)})

    def recommend_first(row):
        """The first action, with what it is worth."""
        first = rounds[row["cell"]][0]
        if first["action"] is None:
            return row
        violation = sum(max(g, 0.0) for g in first["g"])
        regret = finals_of[row["cell"]]["f_star"] - first["f"] if violation == 0 else None
        worth = {
            "recommended_f": first["f"],
            "recommended_g": first["g"],
            "recommended_action": first["action"],
        }
        return row | worth | {"recommended_regret": regret, "recommended_violation": violation}

    def digest(row):
        final = finals[row["cell"]]
        history = pa.Table.from_pylist(rounds[row["cell"]], bundle_schema("history"))
        return digest_of(row["cell"], history, final)

    def other_choice(table):
        rows = [recommend_first(row) if row.get("t", 6) == 6 else row for row in table.to_pylist()]
        return pa.Table.from_pylist(rows, table.schema)

    finals_of = {row["cell"]: row for row in read_table(bundle, "cells").to_pylist()}
    finals = {row["cell"]: row for row in other_choice(read_table(bundle, "cells")).to_pylist()}
    tables = {"digests": change_column("digest", digest), "rounds": other_choice}
    for rule, code in ((None, 0), (RECOMMENDATION_RULE - 1, 0), (RECOMMENDATION_RULE, 1)):
        cells = together(other_choice, all_are(RULE, rule))
        forged = rewrite_bundle(bundle, tmp_path / "f.zip", tables | {"cells": cells})
        assert main(["verify", str(forged), "--replay", "8", "--seed", "0"]) == code
        output = capsys.readouterr().out
        assert ("\n  recommendations not checked, because they are of an older rule" in output) is (
            code == 0
        )
        assert ("the play is the same, but" in output) is (code == 1)
        assert "checked: 8 of 8 drawn cells" in output
    damaged = tables | {
        "cells": together(other_choice, change_column("regret", lambda row: row["regret"] - 0.1))
    }
    assert is_found(rewrite_bundle(bundle, tmp_path / "f.zip", damaged), False, 2), (
        "all else is compared"
    )
    damaged = {"cells": together(other_choice, all_are(RULE, None)), "digests": forge("digest")}
    assert is_found(rewrite_bundle(bundle, tmp_path / "f.zip", damaged), False, 2)


def test_pytorch_on_another_cpu_is_asked_by_round_and_said_beforehand(
    bundle, tmp_path, capsys, monkeypatch
):
    recorded = f"{source.libraries()}, torch 2.13.0+cpu, botorch 0.18.1"
    installed = dict(word.split(" ") for word in recorded.split(", "))
    monkeypatch.setattr(source, "installed_version", installed.get)

    def claim(cpu):
        cells = together(all_are("libraries", recorded), all_are("cpu", cpu))
        change = {"bundle.json": lambda about: about.update(libraries=[recorded], cpus=[cpu])}
        return str(rewrite_bundle(bundle, tmp_path / "f.zip", {"cells": cells}, change))

    plan = plan_replay(ReplayOptions([claim(cpu_kind())], 3, seed=0))
    assert {candidate.way for candidate in plan.drawn.candidates} == {"bits"}
    elsewhere = claim("Another CPU, openblas Haswell, X86_V3")
    plan = plan_replay(ReplayOptions([elsewhere], 3, seed=0))
    assert {candidate.way for candidate in plan.drawn.candidates} == {"rounds"}
    description = "\n".join(describe_draw(plan.drawn))
    assert (
        "PyTorch gives other bits on another kind of CPU: 3 drawn cells can only be asked by round"
        in description
    )
    assert main(["verify", elsewhere, "--replay", "3"]) == 0


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-botorch.txt"])
def test_the_requirements_beside_the_results_promise_no_bits_of_pytorch(file):
    comment = " ".join((ROOT / "docs" / "results" / file).read_text().split("==")[0].split())
    assert "PyTorch" in comment
    assert "kind of CPU" in comment
