"""Files that are almost a CSV: one line says what they look like and the step that helps, and the step does help."""

from __future__ import annotations

import subprocess
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from cbobench import params
from cbobench.errors import Misuse
from cbobench.problems.data import DataFolder
from cbobench.problems.files import read_frame
from cbobench.problems.table import UserTable
from tests.problems.test_configurations import ROLES, grid, table

TEXT = grid().to_csv(index=False)
LINES = TEXT.splitlines()


def commas(separator, decimal="."):
    return grid().to_csv(index=False, sep=separator, decimal=decimal)


ALMOST = {
    "semicolons": (commas(";"), r"is separated by ';' and not by commas, as its first line is 'width;ra.*sep=';'\)"),
    "decimal commas": (commas(";", ","), r"is separated by ';' .*pandas.read_csv\('c.csv', sep=';', decimal=','\)"),
    "tabs": (commas("\t"), r"is separated by '\\t' and not by commas.*sep='\\t'\)"),
    "bars": (commas("|"), r"is separated by '\|' and not by commas"),
    "spaces": (commas(" "), r"is separated by '\\s\+' and not by commas.*sep=r'\\s\+'\)"),
    "a comment": (f"# measured in May\n{TEXT}", "line 1 is a comment, '# measured in May'.*leave out lines that begin"),
    "comments": (f"# a,b,c,d,e\n# of May\n{TEXT}", "line 1 is a comment, '# a,b,c,d,e', which a CSV does not have"),
    "a comment with commas": (f"# by A, B\n{TEXT}", "line 1 is a comment, '# by A, B'"),
    "a comment among rows": ("\n".join([*LINES[:4], "# second day", *LINES[4:]]), "line 5 is a comment, '# second"),
    "commas in it": ("\n".join([*LINES, "# a, b, c, d, e, f"]), "line 20 is a comment, '# a, b, c, d, e, f'"),
    "comments only": ("# nothing yet\n", "line 1 is a comment"),
    "numbers first": ("\n".join(LINES[1:]), "has no header: its first line is numbers, '16,0.001,.*name the columns"),
    "equal numbers first": ("0.5,0.5\n0.5,0.7\n", "has no header: its first line is numbers, '0.5,0.5'"),
    "numbers and words": (
        "adam,0.1,0.9\nsgd,0.1,0.8\n",
        "inputs: unknown column 'width'.*first line holds the number 0.1: if that is no header, write the names",
    ),
    "a commented header": (f"# {TEXT}", "inputs: unknown column 'width'; did.* if it is the header, take the # away"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALMOST)
def test_what_is_almost_a_csv_is_one_line_with_a_step(tmp_path, case):
    text, message = ALMOST[case]
    (tmp_path / "c.csv").write_text(text)
    made = params.build(UserTable, ROLES)
    with pytest.raises(Misuse, match=f"^rows 'c.csv':? {message}") as caught:
        made.prepare(DataFolder(base=tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "case", ["semicolons", "decimal commas", "tabs", "spaces", "a comment", "a comment among rows"]
)
def test_the_named_step_helps(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text(ALMOST[case][0])
    with pytest.raises(Misuse) as caught:
        read_frame(tmp_path / "c.csv", "rows")
    said = str(caught.value)
    if "grep" in said:
        subprocess.run(said[said.index("grep") :], shell=True, check=True, cwd=tmp_path)
    else:
        exec(f"import pandas; {said[said.index('pandas.') :]}")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "c_clean.csv", "rows"), grid())


def test_names_and_categories_may_begin_with_a_number_sign(tmp_path):
    frame = grid().assign(colour=["#ff0000", "#00ff00", "#0000ff"] * 6).rename(columns={"width": "#"})
    inputs = {"inputs": ["colour", "#", "rate"], "one_hot": ["colour"]}
    assert table(tmp_path, frame[["#", "colour", *frame.columns[1:-1]]], **inputs).actions.n == 9
    assert table(tmp_path, frame[["colour", *frame.columns[:-1]]], **inputs).actions.n == 9


def test_arms_may_have_numbers_for_names_as_pandas_writes_them(tmp_path):
    pd.DataFrame([[1.0, 2.0], [3.0, 4.0]]).to_csv(tmp_path / "c.csv", index=False)
    assert list(read_frame(tmp_path / "c.csv", "rows").columns) == ["0", "1"]


def test_another_encoding_names_the_step(tmp_path):
    (tmp_path / "c.csv").write_bytes(TEXT.replace("width", "größe").encode("latin-1"))
    with pytest.raises(Misuse, match=r"cannot be read: UnicodeDecodeError: .*; save it as UTF-8"):
        read_frame(tmp_path / "c.csv", "rows")
    (tmp_path / "c.csv").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    pd.testing.assert_frame_equal(read_frame(tmp_path / "c.csv", "rows"), grid())


def test_decimals_of_parquet_are_numbers(tmp_path):
    frame = grid()
    for name in ("rate", "accuracy", "latency_ms"):
        frame[name] = [Decimal(str(round(value, 6))) for value in grid()[name]]
    frame.to_parquet(tmp_path / "c.parquet")
    one, other = table(tmp_path, rows="c.parquet"), table(tmp_path)
    np.testing.assert_array_equal(one.actions.points, other.actions.points)
    np.testing.assert_allclose(one.known_instance().f, other.known_instance().f, atol=1e-5)
    frame.loc[0, "accuracy"] = None
    frame.to_parquet(tmp_path / "c.parquet")
    assert table(tmp_path, rows="c.parquet", on_failure="infeasible").played.measured.failed.sum() == 1


@pytest.mark.parametrize("ignore", [[], "rest"])
def test_a_constant_input_names_the_step_that_helps(tmp_path, ignore):
    with pytest.raises(
        Misuse, match=r"input 'rate' is 1 in every row, .*; take it out of inputs .it then stands in ignore, unless"
    ):
        table(tmp_path, grid().assign(rate=1.0), ignore=ignore)
    left = "rest" if ignore == "rest" else ["rate"]
    assert table(tmp_path, grid().assign(rate=1.0), ignore=left, inputs=["width"]).actions.n == 3
