"""Categories of tables: text stands for itself, whatever pandas reads as missing; what is no
category is one line.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from tests.helpers import refused
from tests.problems.test_configurations import grid, table

WORDS = ["None", "NA", "null", "nan", "N/A", "inf", "True", "1", "sqrt"]
CHOICE = {"inputs": ["features", "rate"], "one_hot": ["features"], "ignore": ["width"]}
SUITE = """\
suite: mine
horizon: 12
seeds: 1
problems:
  - table: {layout: configurations, rows: c.csv, inputs: [features, rate], one_hot: [features], ignore: [width],
            objective: accuracy, constraints: {latency_ms: {at_most: 40}, spare_mb: {at_least: 100}}}
algorithms: [random]
"""  # noqa: E501


def chosen(categories):
    return grid(1).assign(features=[categories[i % len(categories)] for i in range(9)])


def test_words_that_pandas_reads_as_missing_are_categories(tmp_path):
    task = table(tmp_path, chosen(WORDS), **CHOICE)
    assert task.describe_inputs()["features"] == WORDS
    assert task.actions.d == len(WORDS) + 1
    assert task.actions.names[0] == "features = None, rate = 0.001"
    chosen(WORDS).to_parquet(tmp_path / "c.parquet")
    also = table(tmp_path, chosen(WORDS), **CHOICE, rows="c.parquet")
    assert also.describe_inputs()["features"] == WORDS
    np.testing.assert_array_equal(also.actions.points, task.actions.points)


def test_missing_numbers_stay_missing_beside_categories(tmp_path):
    frame = chosen(WORDS).assign(accuracy=["NA", *grid(1)["accuracy"][1:]])
    with pytest.raises(Misuse, match=r"1 missing or infinite entries .* column 'accuracy', row 1"):
        table(tmp_path, frame, **CHOICE)
    assert (
        table(tmp_path, frame, **CHOICE, on_failure="infeasible").played.measured.failed.sum() == 1
    )


def test_codes_dates_and_infinities_are_categories(tmp_path):
    assert table(tmp_path, chosen([7, 2]), **CHOICE).describe_inputs()["features"] == ["7", "2"] * 3
    endless = table(tmp_path, chosen([1, np.inf]), **CHOICE).describe_inputs()["features"]
    assert endless == ["1.0", "inf"] * 3
    chosen([datetime.date(2024, 1, 2), datetime.date(2024, 1, 3)]).to_parquet(
        tmp_path / "c.parquet"
    )
    task = table(tmp_path, **CHOICE, rows="c.parquet")
    assert task.describe_inputs()["features"][:2] == ["2024-01-02", "2024-01-03"]


ALIKE = ["1.1", "1.10", "007", "7", "7.0", "1e3", "1000", "True", "true"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_texts_that_are_equal_numbers_or_truths_are_categories_of_their_own(tmp_path, suffix):
    frame = chosen(ALIKE)
    frame.to_parquet(tmp_path / "c.parquet")
    task = table(tmp_path, frame, **CHOICE | {"inputs": ["rate", "features"]}, rows=f"c.{suffix}")
    assert task.describe_inputs()["features"] == ALIKE
    assert (task.actions.n, task.actions.d) == (9, 10)
    assert task.actions.names[1] == "rate = 0.01, features = 1.10"
    typed = {
        "inputs": {"features": {"choice": ALIKE}, "rate": {"float": [0.001, 0.1]}},
        "ignore": ["width"],
    }
    same = table(tmp_path, frame, **typed, rows=f"c.{suffix}")
    assert (
        [c["features"] for c in same.actions.space.configurations]
        == same.describe_inputs()["features"]
        == ALIKE
    )
    np.testing.assert_array_equal(same.actions.points, task.actions.points)


def test_choices_without_quotes_find_their_rows_or_say_that_quotes_are_missing(tmp_path):
    def choose(categories, choices):
        inputs = {"features": {"choice": choices}, "rate": {"float": [0.001, 0.1]}}
        return table(
            tmp_path, chosen(categories), inputs=inputs, ignore=["width"]
        ).describe_inputs()["features"][:3]

    assert choose(["1.10", "1.2", "on"], [1.10, 1.2, "on"]) == [1.1, 1.2, "on"], (
        "one text that may be it"
    )
    assert choose(["1.10", "1.1", "on"], ["1.10", 1.1, "on"]) == ["1.10", 1.1, "on"], (
        "the other has its quotes"
    )
    assert choose(["007", "true", "null"], [7, True, None]) == [7, True, None]
    for categories, choice in (
        (["1.10", "1.1", "x"], 1.1),
        (["7", "007", "x"], 7),
        (["True", "true", "x"], True),
    ):
        texts = f"'{categories[0]}' or '{categories[1]}'"
        with pytest.raises(
            Misuse,
            match=f"choice holds {choice}, which may be {texts} of the rows; quote the texts",
        ):
            choose(categories, [choice, "x"])
    with pytest.raises(
        Misuse, match=r"holds 1.1 and 1.1, which are equal; .*or quote what is text, such as '1.10'"
    ):
        choose(["1.1", "1.10", "x"], [1.1, 1.10, "x"])


def test_decimals_of_parquet_are_categories_to_the_last_digit(tmp_path):
    digits = ["1.10000000000000000001", "1.10000000000000000002", "1.50000000000000000000"]
    chosen([Decimal(text) for text in digits]).to_parquet(tmp_path / "c.parquet")
    task = table(tmp_path, **CHOICE, rows="c.parquet")
    assert task.describe_inputs()["features"][:3] == digits
    assert task.actions.d == len(digits) + 1


def test_a_category_may_have_a_bound(tmp_path):
    bound = {"constraints": {"features": {"at_most": 8}}, "ignore": "rest"}
    assert table(tmp_path, chosen(["007", "9"]), **CHOICE | bound).describe_inputs()["features"][
        :2
    ] == ["007", "9"]


NO_CATEGORY = {
    "null": (["sqrt", None], "input 'features', row 2 is blank; write a category there"),
    "spaces": (["sqrt", "log2", "  "], "input 'features', row 3 is blank"),
    "list": (
        [[1, 2], [3]],
        r"input 'features', row 1 is .*ndarray.*, which is no category; write text or numbers",
    ),
    "bytes": ([b"a", b"b"], r"input 'features', row 1 is b'a' \(bytes\), which is no category"),
    "control": (
        ["a", "\x1b[2J"],
        r"input 'features', row 2, '\\x1b\[2J' holds U\+001B \(control character\)",
    ),
}


@pytest.mark.parametrize(("categories", "message"), NO_CATEGORY.values(), ids=NO_CATEGORY)
def test_what_is_no_category_is_one_line_with_file_column_and_row(tmp_path, categories, message):
    chosen(categories).to_parquet(tmp_path / "c.parquet")
    with refused(f"rows 'c.parquet': {message}"):
        table(tmp_path, **CHOICE, rows="c.parquet")


def test_none_is_played_recorded_and_shown(write_suite, tmp_path, capsys):
    chosen(["None", "NA", "sqrt"]).to_csv(tmp_path / "c.csv", index=False)
    assert (
        main(["run", str(write_suite(SUITE)), "--out", str(tmp_path / "out"), "--cpus", "0"]) == 0
    )
    assert set(cbobench.load_rounds(tmp_path / "out")["features"]) == {"None", "NA", "sqrt"}
    capsys.readouterr()
    assert main(["best", str(tmp_path / "out"), "--top", "9"]) == 0
    assert "features None" in capsys.readouterr().out


def test_a_gap_in_an_amount_names_the_way_to_a_category(tmp_path):
    with pytest.raises(
        Misuse,
        match=r"column 'features', row 1; .* say one_hot: \[features\] if a word such as None",
    ):
        table(tmp_path, chosen(["None", 3, 5]), **CHOICE | {"one_hot": []})
