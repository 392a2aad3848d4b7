"""Two runs as a gate of a CI: it closes where a method became worse, or says that the seeds are too
few to tell.
"""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.stats.paired_tests import decidable
from tests.report.made import make


def two(folder, seeds, problems, methods, changed, shift, level=10.0):
    """Runs before and after: `shift` added to the regret of the first `changed` methods, on every
    problem and seed; regrets lie around `level`.
    """
    base = np.random.default_rng(0).normal(level, 1, size=(problems, methods, seeds))
    after = base.copy()
    after[:, :changed] += shift
    return [
        make(
            folder / name,
            {
                (f"P{i}", f"A{j}"): {"regret": some[i, j]}
                for i in range(problems)
                for j in range(methods)
            },
            seeds=range(seeds),
        )
        for name, some in (("before", base), ("after", after))
    ]


@pytest.mark.parametrize(
    ("problems", "methods", "changed", "seeds"),
    [
        (1, 2, 1, 1),
        (1, 2, 1, 5),
        (1, 2, 1, 6),
        (1, 3, 3, 6),
        (1, 3, 3, 7),
        (2, 1, 1, 2),
        (2, 1, 1, 5),
    ]
    + [
        pytest.param(*more, marks=pytest.mark.long)
        for more in ((1, 8, 8, 6), (1, 8, 8, 10), (7, 2, 1, 6), (7, 4, 4, 10))
    ],
)
def test_what_is_always_worse_is_caught_or_cannot_be_decided(
    tmp_path, problems, methods, changed, seeds
):
    runs = two(tmp_path, seeds, problems, methods, changed, np.linspace(0.5, 1, seeds))
    found = cbobench.compare(*runs, metric="regret")
    rows = problems * changed
    family = rows + (changed if problems > 1 else 0)
    pairs = seeds * problems  # of a method over all problems
    assert found.worse == (decidable(seeds, family) or (problems > 1 and decidable(pairs, changed)))
    assert bool(found.undecided) == (not decidable(seeds, family))
    verdicts = found.frame["verdict"].value_counts()
    assert verdicts.get("identical", 0) == problems * (methods - changed)
    assert verdicts.get("worse", 0) + verdicts.get("undecided", 0) == family
    assert found.worse or found.undecided


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Five seeds of three methods, which differ both ways."""
    return two(tmp_path_factory.mktemp("few"), 5, 1, 3, 3, np.linspace(-0.5, 0.4, 5))


@pytest.mark.parametrize("style", ["table", "markdown", "csv"])
def test_what_cannot_be_decided_is_said_with_the_seeds_that_would_do(few, capsys, style):
    assert (
        main(["compare", *map(str, few), "--metric", "regret", "--only-changed", "--format", style])
        == 3
    )
    out, err = capsys.readouterr()
    assert "3 rows cannot be decided" in err
    assert "fewer than 7 seeds" in err, "3 rows: 3/32 is above 5 %, 3/64 below"
    assert "nothing changed" not in out
    assert ("cannot be decided" in out) == (style != "csv")


def test_what_is_forgiven_or_identical_needs_no_deciding(tmp_path):
    runs = two(tmp_path, 3, 1, 1, 1, np.array([0.01, 0.02, 0.03]))
    assert cbobench.compare(*runs, metric="regret").undecided
    for found, verdict in (
        (cbobench.compare(*runs, metric="regret", factor=1.1), "not significant"),
        (cbobench.compare(runs[0], runs[0]), "identical"),
    ):
        assert set(found.frame["verdict"]) == {verdict}
        assert found.worse is False
        assert found.undecided == ""


@pytest.mark.parametrize("level", [10.0, 0.0], ids=["regrets above 0", "regrets around 0"])
@pytest.mark.parametrize(
    ("shift", "verdict", "p"),
    [
        ([0.5, 0.6, 0.7], "worse", 2.0**-11),
        ([-0.5, -0.6, -0.7], "better", 2.0**-11),
        ([0.5, -0.6, 0.1], "not significant", 1.0),
    ],
    ids=["worse", "better", "mixed"],
)
def test_the_row_over_all_problems_is_of_differences(tmp_path, level, shift, verdict, p):
    """3 seeds tell nothing on one problem; on four they do, where they all differ one way."""
    before, after = two(tmp_path, 3, 4, 1, 1, np.array(shift), level)
    compared = cbobench.compare(before, after, metric="regret")
    rows = compared.frame.set_index("problem_label")
    over = rows.loc["all problems"]
    counts = (sum(x < 0 for x in shift) * 4, sum(x > 0 for x in shift) * 4)
    assert (over["verdict"], over["n"], over["p"]) == (verdict, 12, p)
    assert (over["wins"], over["losses"]) == counts
    assert compared.worse == (verdict == "worse")
    assert {*rows.drop("all problems")["verdict"]} == {"undecided"}
