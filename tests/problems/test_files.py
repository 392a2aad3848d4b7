"""Files that are almost a CSV: one line says what they look like and the step that helps, and the
step does help.
"""

from __future__ import annotations

import subprocess
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cbobench.errors import Misuse
from cbobench.problems.files import read_frame
from cbobench.problems.table import UserTable
from tests.helpers import prepare_class, refused
from tests.problems.test_configurations import ROLES, grid, table

TEXT = grid().to_csv(index=False)
LINES = TEXT.splitlines()


def commas(separator, decimal="."):
    return grid().to_csv(index=False, sep=separator, decimal=decimal)


def ended(text, separator=","):
    """Every row but the header ends with a separator."""
    header, *rows = text.splitlines()
    return "\n".join([header, *(row + separator for row in rows)])


TAB = "\t"
ALMOST = {
    "semicolons": (
        commas(";"),
        r"is separated by ';' and not by commas, as its first line is 'width;ra.*sep=';'\)",
    ),
    "decimal commas": (
        commas(";", ","),
        r"is separated by ';' .*pandas.read_csv\('c.csv', sep=';', decimal=','\)",
    ),
    "tabs": (commas("\t"), r"is separated by '\\t' and not by commas.*sep='\\t'\)"),
    "bars": (commas("|"), r"is separated by '\|' and not by commas"),
    "spaces": (commas(" "), r"is separated by '\\s\+' and not by commas.*sep=r'\\s\+'\)"),
    "a comment": (
        f"# measured in May\n{TEXT}",
        "line 1 is a comment, '# measured in May'.*leave out lines that begin",
    ),
    "comments": (
        f"# a,b,c,d,e\n# of May\n{TEXT}",
        "line 1 is a comment, '# a,b,c,d,e', which a CSV does not have",
    ),
    "a comment with commas": (f"# by A, B\n{TEXT}", "line 1 is a comment, '# by A, B'"),
    "a comment among rows": (
        "\n".join([*LINES[:4], "# second day", *LINES[4:]]),
        "line 5 is a comment, '# second",
    ),
    "commas in it": (
        "\n".join([*LINES, "# a, b, c, d, e, f"]),
        "line 20 is a comment, '# a, b, c, d, e, f'",
    ),
    "comments only": ("# nothing yet\n", "line 1 is a comment"),
    "numbers first": (
        "\n".join(LINES[1:]),
        "has no header: its first line is numbers, '16,0.001,.*name the columns",
    ),
    "equal numbers first": (
        "0.5,0.5\n0.5,0.7\n",
        "has no header: its first line is numbers, '0.5,0.5'",
    ),
    "numbers and words": (
        "adam,0.1,0.9\nsgd,0.1,0.8\n",
        "inputs: unknown column 'width'.*first line holds the number 0.1: if that is no header, "
        "write the names",
    ),
    "a word to Excel": (
        f"sep=,\n{TEXT}",
        "line 1 is 'sep=,', .*; leave out such lines: sed '1d' c.csv",
    ),
    "in quotes": (
        f'\ufeff"sep=,"\n{TEXT}',
        "line 1 is '\"sep=,\"', which a CSV does not have; leave out",
    ),
    "and comments": (f"sep=,\n# of May\n{TEXT}", "line 1 is 'sep=,', .*: sed '1d;/\\^#/d' c.csv"),
    "a mark and comments": (f"\ufeff# a\n# b\n{TEXT}", "line 1 is a comment, '# a', .* sed '1d;/"),
    "Excel's semicolons": (
        f"sep=;\n{commas(';', ',')}",
        r"line 1 is 'sep=;', .*decimal=',', skiprows=1\)",
    ),
    "Excel's tabs": (f"SEP=\t\n{commas(TAB)}", r"line 1 is 'SEP=\\t', .*sep='\\t', skiprows=1\)"),
    "a comment and semicolons": (
        f"# of May\n{commas(';')}",
        r"line 1 is a comment, '# of May', which a CSV does not have, and the others are "
        r"separated by ';' and not by "
        r"commas; write it anew in Python: pandas.read_csv\('c.csv', sep=';', skiprows=1\).to_csv",
    ),
    "comments and tabs": (f"# a\n\n# b\n{commas(TAB)}", "line 1 is a comment, '# a', .*skiprows=3"),
    "a comment and spaces": (
        f"# of May and June\n{commas(' ')}",
        "line 1 is a comment, .*skiprows=1",
    ),
    "comments and bars": (
        "\n".join(["# a", *commas("|").splitlines()[:3], "# b", *commas("|").splitlines()[3:]]),
        r"line 1 is a comment, '# a', .*skiprows=\[0, 4\]",
    ),
    "all of them": (
        f"sep=;\n# of May\n{commas(';')}# end\n",
        r"line 1 is 'sep=;', .*skiprows=\[0, 1, 21\]",
    ),
    "a comment below semicolons": (
        f"{commas(';')}# end\n",
        r"line 20 is a comment, '# end', .*skiprows=\[19\]",
    ),
    "a late decimal comma": (
        f"{commas(';')}64;0,01;1;2;3\n",
        r"is separated by ';' .*decimal=','\)",
    ),
    "semicolons at the ends": (commas(";").replace("\n", ";\n"), "is separated by ';'"),
    "semicolons at the ends of rows": (
        ended(commas(";"), ";"),
        r"is separated by ';' .*sep=';', index_col=False\)",
    ),
    "thousands": ("a\tb\n1,250\t0.5\n", r"is separated by '\\t' .*sep='\\t'\).to_csv"),
    "decimal commas of thousandths": (
        "a;b\n1,250;0,125\n",
        r"is separated by ';' .*sep=';', decimal=','\).to_csv",
    ),
    "nothing": ("", "is empty; write a header with the names of its columns"),
    "blank lines alone": ("\ufeff\n \n\n", "is empty; write a header"),
    "a title": (
        f"Measured in May\n{TEXT}",
        "line 2 has 5 values, .* have 1; .*leave line 1 out, if it is a title",
    ),
    "a commented header": (
        f"# {TEXT}",
        "inputs: unknown column 'width'; did.* if it is the header, take the # away",
    ),
}


@pytest.mark.parametrize(("text", "message"), ALMOST.values(), ids=ALMOST)
def test_what_is_almost_a_csv_is_one_line_with_a_step(tmp_path, text, message):
    (tmp_path / "c.csv").write_text(text)
    with refused(f"^rows 'c.csv':? {message}"):
        prepare_class(UserTable, tmp_path, **ROLES)


@pytest.mark.parametrize(
    "case",
    [
        *(
            "semicolons",
            "decimal commas",
            "tabs",
            "spaces",
            "a comment",
            "a comment among rows",
            "a word to Excel",
        ),
        *(
            "in quotes",
            "a mark and comments",
            "and comments",
            "Excel's semicolons",
            "Excel's tabs",
            "a comment and semicolons",
            "comments and tabs",
        ),
        *("a comment and spaces", "comments and bars", "all of them", "a comment below semicolons"),
        *("semicolons at the ends", "semicolons at the ends of rows"),
    ],
)
def test_the_named_step_helps(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text(ALMOST[case][0])
    with pytest.raises(Misuse) as caught:
        read_frame(tmp_path / "c.csv", "rows")
    refusal = str(caught.value)
    if "pandas." not in refusal:
        subprocess.run(
            refusal[max(refusal.find(": grep"), refusal.find(": sed")) + 2 :],
            shell=True,
            check=True,
            cwd=tmp_path,
        )
    else:
        exec(f"import pandas; {refusal[refusal.index('pandas.') :]}")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "c_clean.csv", "rows"), grid())


LINE_ENDS = {
    "of rows": ended(TEXT),
    "of all lines": TEXT.replace("\n", ",\n"),
    "of the header": TEXT.replace("\n", ",\n", 1),
    "several": ended(TEXT, ",,,"),
    "unlike": ended(TEXT.replace("\n", ",,\n", 1), ",,,"),
    "with spaces": ended(TEXT, ", "),
    "of pandas": ended(TEXT.replace("\n", ",Unnamed: 5\n", 1)),
    "Windows": ended(TEXT).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("case", LINE_ENDS)
@pytest.mark.parametrize("ignore", [[], "rest", ["Unnamed: 5"]])
def test_commas_at_the_ends_of_lines_shift_nothing(tmp_path, case, ignore):
    (tmp_path / "c.csv").write_text(LINE_ENDS[case], newline="")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "c.csv", "rows"), grid())
    task = prepare_class(UserTable, tmp_path, **(ROLES | {"ignore": ignore}))
    assert task.describe_inputs() == table(tmp_path, grid()).describe_inputs()


UNEVEN = {
    "a value without a name": (
        "\n".join([LINES[0], *(f"{line},1" for line in LINES[1:])]),
        "2 has 6 values, .* have 5",
    ),
    "names of rows": (
        "\n".join([LINES[0], *(f"r,{line}" for line in LINES[1:])]),
        "line 2 has 6 values",
    ),
    "one too many": (
        TEXT + LINES[1] + ",7\n",
        "line 20 has 6 values, where the lines above it have 5; write as many",
    ),
    "one too few": (
        "\n".join([*LINES, "16,0.1,0.8,13"]),
        "line 20 has 4 values, where the lines above it have 5",
    ),
    "one comma more": (
        TEXT + LINES[1] + ",\n",
        "line 20 has 6 values, where the lines above it have 5",
    ),
    "one comma less": (
        ended(TEXT) + "\n" + LINES[1],
        "line 20 has 5 values, where the lines above it have 6",
    ),
    "after a text of two lines": (
        "a,b\n" + '"x\ny",1\n' * 2 + "z\n",
        "line 6 has 1 value, where the lines above it have 2; write as many .* in quotes if they "
        "hold a comma",
    ),
    "semicolons": (f"{commas(';')}1;2\n", "line 20 has 2 values, .*in quotes if they hold ';'"),
    "spaces": (f"{commas(' ')}1 2\n", "line 20 has 2 values"),
}


@pytest.mark.parametrize(("text", "message"), UNEVEN.values(), ids=UNEVEN)
@pytest.mark.parametrize("ignore", [[], "rest"])
def test_rows_of_unequal_lengths_are_refused_by_line(tmp_path, text, message, ignore):
    (tmp_path / "c.csv").write_text(text)
    with refused(f"^rows 'c.csv': .*{message}"):
        prepare_class(UserTable, tmp_path, **(ROLES | {"ignore": ignore}))


def test_a_column_without_a_name_that_holds_values_may_be_ignored(tmp_path):
    (tmp_path / "c.csv").write_text(
        "\n".join([LINES[0] + ",", *(f"{line}," for line in LINES[1:-1]), LINES[-1] + ",x"])
    )
    with pytest.raises(Misuse, match=r"a column has no name .read as 'Unnamed: 5'"):
        prepare_class(UserTable, tmp_path, **ROLES)
    task = prepare_class(UserTable, tmp_path, **(ROLES | {"ignore": ["Unnamed: 5"]}))
    assert task.actions.n == 9


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
    with pytest.raises(
        Misuse, match="^rows 'c.parquet': its index and a column are both called 'width'; write the"
    ):
        table(tmp_path, rows="c.parquet")


@pytest.mark.parametrize("name", ["accuracy", "latency_ms", "rate"])
@pytest.mark.parametrize("ignore", [[], "rest"])
@pytest.mark.parametrize("file", ["c.csv", "c.parquet"])
def test_a_role_of_two_columns_is_refused(tmp_path, name, ignore, file):
    lines = [row.split(",") for row in LINES]
    header = [*lines.pop(0), name]
    rows = [[*row, "9"] for row in lines]
    if file == "c.csv":
        (tmp_path / file).write_text("\n".join(map(",".join, [header, *rows])))
    else:
        pq.write_table(pa.table([*zip(*rows, strict=True)], names=header), tmp_path / file)
    with pytest.raises(
        Misuse, match=f"^rows '{file}': 2 columns are called '{name}'; give them different names"
    ):
        prepare_class(UserTable, tmp_path, **(ROLES | {"ignore": ignore, "rows": file}))


def test_two_columns_without_a_role_may_have_one_name(tmp_path):
    header, *rows = LINES
    (tmp_path / "c.csv").write_text(
        "\n".join([f"{header},note,note", *(f"{row},a,b" for row in rows)])
    )
    made = prepare_class(UserTable, tmp_path, **(ROLES | {"ignore": ["note", "note.1"]}))
    assert made.actions.n == 9


def test_a_column_of_long_texts_may_be_ignored(tmp_path):
    frame = grid().assign(log=["x" * 200_000, *["y"] * 17])
    assert table(tmp_path, frame, ignore=["log"]).actions.n == 9


@pytest.mark.parametrize("texts", [["mm", "1", "2"], ["0,1", "0,2", "0,3"]])
def test_text_in_an_amount_names_its_line_and_the_step(tmp_path, texts):
    frame = grid(1).assign(width=[texts[i % 3] for i in range(9)])
    message = (
        f"input 'width' holds text, such as '{texts[0]}', .*; make numbers of it .the first "
        "text: line 2.; or if"
    )
    with pytest.raises(Misuse, match=message):
        table(tmp_path, frame)


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
    message = (
        r"inputs 'width' is 16, 'rate' is 1 in every row, which tells nothing; take them out of "
        r"inputs"
    )
    with pytest.raises(Misuse, match=message):
        table(tmp_path, grid().assign(width=16, rate=1.0), ignore=ignore)
    left = "rest" if ignore == "rest" else ["rate"]
    assert table(tmp_path, grid().assign(rate=1.0), ignore=left, inputs=["width"]).actions.n == 3
