"""Files of tables: what is read as it stands, and what is refused in one line."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cbobench.errors import Misuse
from cbobench.problems.tables.read import read_frame
from cbobench.problems.tables.table import UserTable
from tests.helpers import prepare_class, refused
from tests.problems.test_configurations import ROLES, grid, table

TEXT = grid().to_csv(index=False)
LINES = TEXT.splitlines()


def ended(text, separator=","):
    """Every row but the header ends with a separator."""
    header, *rows = text.splitlines()
    return "\n".join([header, *(row + separator for row in rows)])


READ = {
    "semicolons": grid().to_csv(index=False, sep=";"),
    "tabs": grid().to_csv(index=False, sep="\t"),
    "bars": grid().to_csv(index=False, sep="|"),
    "blank lines": "\ufeff\n" + TEXT.replace("\n", "\n\n"),
    "ends of rows": ended(TEXT),
    "ends of all lines": TEXT.replace("\n", ",\n"),
    "unlike ends": ended(TEXT.replace("\n", ",,\n", 1), ",, ,"),
    "Windows": ended(TEXT).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("case", READ)
def test_separators_and_ends_of_lines_shift_nothing(tmp_path, case):
    (tmp_path / "c.csv").write_text(READ[case], newline="")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "c.csv", "rows"), grid())
    task = prepare_class(UserTable, tmp_path, **ROLES)
    assert task.describe_inputs() == table(tmp_path, grid()).describe_inputs()


LENGTH = "where the header has 5 names; a CSV has a header"
REFUSED = {
    "decimal commas": (
        grid().to_csv(index=False, sep=";", decimal=","),
        "holds text, such as '0,001'",
    ),
    "spaces": (grid().to_csv(index=False, sep=" "), "inputs: unknown column 'width'"),
    "a comment": (
        f"# measured in May\n{TEXT}",
        "line 2 has 5 values, where the header has 1 name; a CSV has .* and no comments",
    ),
    "a comment among rows": ("\n".join([*LINES[:4], "# b", *LINES[4:]]), "line 5 has 1 value,"),
    "a word to Excel": (f"sep=;\n{READ['semicolons']}", "line 2 has 5 values"),
    "numbers first": (
        "\n".join(LINES[1:]),
        "has no header: its first line is numbers, '16,0.001,.*name the columns",
    ),
    "numbers and words": ("adam,0.1,0.9\nsgd,0.1,0.8\n", "inputs: unknown column 'width'"),
    "nothing": ("", "is empty; a CSV has a header"),
    "blank lines alone": ("\ufeff\n \n\n", "is empty; a CSV has a header"),
    "a header alone": (LINES[0], "has no rows below its header"),
    "a value without a name": ("\n".join([LINES[0], LINES[1] + ",1"]), f"2 has 6 values, {LENGTH}"),
    "names of rows": ("\n".join([LINES[0], "r," + LINES[1]]), "line 2 has 6 values"),
    "one too few": ("\n".join([*LINES, "16,0.1,0.8,13"]), f"line 20 has 4 values, {LENGTH}"),
    "after a text of two lines": ("a,b\n" + '"x\ny",1\n' * 2 + "z\n", "line 6 has 1 value, "),
    "a column without a name": (
        "\n".join("," + line for line in LINES),
        r"a column has no name .read as 'Unnamed: 0'",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_almost_a_csv_is_one_line(tmp_path, text, message):
    (tmp_path / "c.csv").write_text(text)
    with refused(f"^rows 'c.csv':? .*{message}"):
        prepare_class(UserTable, tmp_path, **ROLES)


def test_matrices_and_means_may_end_with_commas(tmp_path):
    (tmp_path / "k.csv").write_text(ended("a,b\n1,0.5\n0.5,1"))
    (tmp_path / "m.csv").write_text(ended("a,b\n3,4"))
    task = prepare_class(
        UserTable, tmp_path, mean="m.csv", covariance="k.csv", R=1.0, threshold=3.5
    )
    assert task.known_instance().f[0].tolist() == [3.0, 4.0]
    assert task.actions.covariance.tolist() == [[1.0, 0.5], [0.5, 1.0]]


def test_names_and_categories_may_begin_with_a_number_sign(tmp_path):
    frame = (
        grid().assign(colour=["#ff0000", "#00ff00", "#0000ff"] * 6).rename(columns={"width": "#"})
    )
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
    from_decimals, from_floats = table(tmp_path, rows="c.parquet"), table(tmp_path)
    np.testing.assert_array_equal(from_decimals.actions.points, from_floats.actions.points)
    np.testing.assert_allclose(
        from_decimals.known_instance().f, from_floats.known_instance().f, atol=1e-5
    )
    frame.loc[0, "accuracy"] = None
    frame.to_parquet(tmp_path / "c.parquet")
    assert (
        table(tmp_path, rows="c.parquet", on_failure="infeasible").played.measured.failed.sum() == 1
    )


def test_nulls_alone_in_parquet_are_gaps(tmp_path):
    grid().assign(accuracy=None).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(
        Misuse,
        match="holds 18 missing or infinite entries .* column 'accuracy', row 1; fill or drop",
    ):
        table(tmp_path, rows="c.parquet")


def test_an_index_called_like_a_column_is_one_line(tmp_path):
    grid().set_index("width", drop=False).to_parquet(tmp_path / "c.parquet")
    with refused("^rows 'c.parquet'.* width"):
        table(tmp_path, rows="c.parquet")


@pytest.mark.parametrize("file", ["c.csv", "c.parquet"])
def test_two_columns_of_one_name_are_refused(tmp_path, file):
    lines = [row.split(",") for row in LINES]
    header = [*lines.pop(0), "rate"]
    rows = [[*row, "9"] for row in lines]
    if file == "c.csv":
        (tmp_path / file).write_text("\n".join(map(",".join, [header, *rows])))
    else:
        pq.write_table(pa.table([*zip(*rows, strict=True)], names=header), tmp_path / file)
    with refused(f"^rows '{file}': 2 columns are called 'rate'; give them different names"):
        prepare_class(UserTable, tmp_path, **(ROLES | {"rows": file}))


def test_a_column_of_long_texts_may_be_ignored(tmp_path):
    frame = grid().assign(log=["x" * 200_000, *["y"] * 17])
    assert table(tmp_path, frame, ignore=["log"]).actions.n == 9


@pytest.mark.parametrize("ignore", [[], "rest"])
def test_a_constant_input_names_the_step_that_helps(tmp_path, ignore):
    with pytest.raises(
        Misuse,
        match=(
            r"input 'rate' is 1 in every row, .*; take it out of inputs .it then stands in "
            r"ignore, unless"
        ),
    ):
        table(tmp_path, grid().assign(rate=1.0), ignore=ignore)
    message = "input 'width' is 16, 'rate' is 1 in every row, which tells nothing; take it out"
    with pytest.raises(Misuse, match=message):
        table(tmp_path, grid().assign(width=16, rate=1.0), ignore=ignore)
    left = "rest" if ignore == "rest" else ["rate"]
    assert table(tmp_path, grid().assign(rate=1.0), ignore=left, inputs=["width"]).actions.n == 3
