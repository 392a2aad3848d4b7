"""Tables of configurations: roles, units, noise from repetitions, and files that could be either of
two layouts.
"""

from __future__ import annotations

from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest

from cbobench import params
from cbobench.errors import Misuse
from cbobench.problems.data import DataFolder
from cbobench.problems.tables.table import UserTable
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.helpers import Listener, actions, make, play, prepare_class, refused

WIDTHS, RATES = (16, 64, 256), (0.001, 0.01, 0.1)
ROLES = {
    "layout": "configurations",
    "rows": "c.csv",
    "inputs": ["width", "rate"],
    "objective": "accuracy",
    "constraints": {"latency_ms": {"at_most": 40}, "spare_mb": {"at_least": 100}},
}


def grid(repeats=2):
    """Nine configurations whose repetitions differ by known amounts."""
    rows = [
        {
            "width": w,
            "rate": r,
            "accuracy": 0.7 + 0.05 * np.log2(w) + 0.01 * np.log10(r) ** 2 + 0.01 * k,
            "latency_ms": 10 + w / 5 + 4 * k,
            "spare_mb": 500 - w - 1000 * r + 10 * k,
        }
        for k in range(repeats)  # repetitions are not beside each other
        for w in WIDTHS
        for r in RATES
    ]
    return pd.DataFrame(rows)


def table(base, frame=None, **settings):
    (grid() if frame is None else frame).to_csv(base / "c.csv", index=False)
    return prepare_class(
        UserTable, base, **{k: v for k, v in (ROLES | settings).items() if v is not ...}
    )


def by_hand(frame):
    """(f, g_1, g_2) of every configuration in the file's units, in the order in which they first
    appear.
    """
    means = frame.groupby(["width", "rate"], sort=False)[
        ["accuracy", "latency_ms", "spare_mb"]
    ].mean()
    return (
        means["accuracy"].to_numpy(),
        means["latency_ms"].to_numpy() - 40,
        100 - means["spare_mb"].to_numpy(),
    )


def test_roles_become_f_and_g(tmp_path):
    task = table(tmp_path, scaled=False)
    drawn = task.draw([np.random.default_rng(0)])
    f, *g = by_hand(grid())
    assert (task.constraints, task.actions.n, task.actions.d) == (2, 9, 2)
    np.testing.assert_allclose(drawn.f[0], f)
    np.testing.assert_allclose(drawn.g[0], g)
    feasible = (np.array(g) <= 0).all(axis=0)
    assert 0 < feasible.sum() < 9
    assert drawn.f_star[0] == pytest.approx(f[feasible].max())
    assert task.actions.names[3] == "width = 64, rate = 0.001"
    np.testing.assert_allclose(task.actions.points[3], [48 / 240, 0.0])


def test_minimise_is_a_sign_and_nothing_else(tmp_path):
    up = table(tmp_path).draw([np.random.default_rng(0)])
    frame = grid().assign(loss=-grid()["accuracy"]).drop(columns="accuracy")
    for word in ("minimise", "minimize"):
        down = table(tmp_path, frame, objective={word: "loss"}).draw([np.random.default_rng(0)])
        np.testing.assert_allclose(down.f, up.f, atol=1e-12)


def test_one_column_may_be_bounded_on_both_sides(tmp_path):
    task = table(
        tmp_path,
        constraints={"latency_ms": {"at_most": 40, "at_least": 20}},
        ignore=["spare_mb"],
        scaled=False,
    )
    drawn = task.draw([np.random.default_rng(0)])
    np.testing.assert_allclose(drawn.g[0, 0] + drawn.g[0, 1], -20.0)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("axis", [{"log": ["width"]}, {"one_hot": ["width"]}, {"scaled": True}])
def test_an_input_may_be_bounded(tmp_path, repeats, axis):
    bounds = {"width": {"at_most": 64}, "latency_ms": {"at_most": 40}}
    task = table(
        tmp_path, grid(repeats), constraints=bounds, ignore=["spare_mb"], **{"scaled": False} | axis
    )
    drawn, unit = task.known_instance(), task.played.divisor[1]
    np.testing.assert_allclose(drawn.g[0, 0] * unit, np.repeat(WIDTHS, 3) - 64.0)
    assert drawn.noise[0, 1] == 0, "an input is as it was set"
    _, chunks = play(task, make("cei"), seeds=2, horizon=6)
    np.testing.assert_array_equal(chunks[0].observed_g[..., 0], drawn.g[0, 0][actions(chunks)])
    assert "width at most 64 in units of" in task.note()


def test_a_constraint_on_a_category_of_text_is_refused(tmp_path):
    frame = grid().assign(width=["small", "mid", "large"] * 6)
    with pytest.raises(
        Misuse, match="column 'width' holds text, such as 'small'; make numbers of it"
    ):
        table(
            tmp_path, frame, one_hot=["width"], constraints={"width": {"at_most": 3}}, ignore="rest"
        )


def test_a_logarithmic_axis_is_even_in_powers(tmp_path):
    points = table(tmp_path, log=["width", "rate"]).actions.points
    np.testing.assert_allclose(np.unique(points[:, 1]), [0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(np.unique(points[:, 0]), [0, 0.5, 1], atol=1e-12)


def test_categories_are_equally_far_apart(tmp_path):
    frame = grid().assign(optimizer=["adam", "sgd", "lion"] * 6)
    task = table(
        tmp_path, frame, inputs=["width", "optimizer"], one_hot=["optimizer"], ignore=["rate"]
    )
    points = task.actions.points
    assert points.shape == (9, 4)
    apart = np.linalg.norm(points[:, None, 1:] - points[None, :, 1:], axis=2)
    np.testing.assert_allclose(np.unique(apart.round(12)), [0, 1])
    assert task.actions.names[1] == "width = 16, optimizer = sgd"


# Noise --------------------------------------------------------------------------------------------


def observed(task, **options):
    chunks = play(task, make("random"), seeds=20, horizon=60, **options)[1]
    return actions(chunks), chunks[0].observed_f, chunks[0].observed_g


def test_repetitions_are_drawn_whole(tmp_path):
    """What is told is one of a configuration's rows, f and g of the same one, each about half of
    the time.
    """
    task = table(tmp_path, scaled=False)
    played, f, g = observed(task)
    mean = (
        grid()
        .groupby(["width", "rate"], sort=False)[["accuracy", "latency_ms", "spare_mb"]]
        .mean()
        .to_numpy()
    )
    later = (f - mean[played, 0]) / 0.005
    np.testing.assert_allclose(np.abs(later), 1.0)
    np.testing.assert_allclose(g[..., 0], mean[played, 1] - 40 + 2 * later)
    np.testing.assert_allclose(g[..., 1], 100 - mean[played, 2] - 5 * later)
    assert abs(later.mean()) < 0.1
    np.testing.assert_allclose(task.known_instance().noise[0], [0.005, 2.0, 5.0])


def test_unequal_repetitions_are_drawn_evenly(tmp_path):
    # the first configuration has its k = 0 and k = 3 rows
    frame = pd.concat([grid(1), grid(4)[27:28]] * 1)
    frame = pd.concat([frame, grid(3)[18:19]])  # and k = 2
    task = table(tmp_path, frame, scaled=False)
    values = task.played.values[:3, 0]
    played, f, _ = observed(task)
    measured = f[played == 0]
    counts = [(np.abs(measured - value) < 1e-12).sum() for value in values]
    assert sum(counts) == len(measured)
    assert min(counts) > 0.2 * len(measured)
    assert (np.ptp(f[played == 4]) if (played == 4).any() else 0) == 0


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        ("gaussian", np.array([0.01, 4.0, 10.0]) / np.sqrt(2)),
        (0, np.zeros(3)),
        ({"latency_ms": 3}, np.array([0.0, 3.0, 0.0])),
    ],
)
def test_stated_and_pooled_noise(tmp_path, noise, expected):
    task = table(tmp_path, scaled=False, noise=noise)
    np.testing.assert_allclose(task.known_instance().noise[0], expected, atol=1e-12)
    played, f, g = observed(task)
    drawn = task.known_instance()
    residual = np.concatenate([f[..., None], g], axis=2) - drawn.functions[0].T[played]
    np.testing.assert_allclose(residual.std(axis=(0, 1)), expected, rtol=0.1, atol=1e-12)


def test_every_constraint_may_state_its_own_noise(tmp_path):
    constraints = {
        "latency_ms": {"at_most": 40, "noise": 2},
        "spare_mb": {"at_least": 100, "noise": 7},
    }
    task = table(tmp_path, grid(1), constraints=constraints, scaled=False)
    np.testing.assert_allclose(task.known_instance().noise[0], [0, 2, 7])
    scaled = table(tmp_path, grid(1), constraints=constraints)
    np.testing.assert_allclose(scaled.known_instance().noise[0, 1], 2 / by_hand(grid(1))[1].std())


def test_without_repetitions_there_is_no_noise(tmp_path):
    task = table(tmp_path, grid(1))
    played, f, _ = observed(task)
    np.testing.assert_allclose(
        f, by_hand(grid(1))[0][played], atol=1e-12, err_msg="in the file's units"
    )
    assert np.abs(f - task.known_instance().f[0][played]).max() > 0.1, (
        "negative control: learners see other units"
    )


@pytest.mark.parametrize("noise", [None, "rows", "gaussian"])
def test_rows_that_stand_thrice_with_equal_values_are_no_noise(tmp_path, noise):
    frame = grid(1).assign(accuracy=lambda f: f["accuracy"].where(f["width"] < 256))
    settings = {"scaled": False, "on_failure": "infeasible"}
    once = table(tmp_path, frame, **settings)
    thrice = table(tmp_path, pd.concat([frame] * 3), noise=noise, **settings)
    assert thrice.note().endswith("; noise-free, 9 of 27 rows failed, 27 rows of 9 configurations")
    np.testing.assert_array_equal(thrice.known_instance().noise, 0.0)
    for one, other in zip(observed(once), observed(thrice), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", ["width", "accuracy", "latency_ms"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_that_floats_would_merge_are_refused_by_name(tmp_path, kind, name):
    def play(zero):
        frame = grid(1).assign(**{name: pd.array(range(zero + 1, zero + 10), dtype="Int64")})
        getattr(frame, f"to_{kind}")(tmp_path / f"d.{kind}", index=False)
        constraints = ROLES["constraints"] | {"latency_ms": {"at_most": 1e20}}
        return table(tmp_path, rows=f"d.{kind}", constraints=constraints)

    assert play(0).actions.n == 9
    with refused(
        f"column '{name}' holds 9007199254740993, .*, beyond 2.53, which would be read as"
    ):
        play(2**53)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_that_look_alike_are_one_column(tmp_path, form):
    other = {"NFC": "NFD", "NFD": "NFC"}[form]
    frame = grid(1).rename(columns=lambda name: normalize(form, f"ä{name}"))
    width, rate, f, *g = (normalize(other, f"ä{name}") for name in grid(1))
    roles = {"inputs": [width, rate], "log": [rate], "noise": {f: 0.1}, "ignore": g[1:]}
    task = table(tmp_path, frame, objective=f, constraints={g[0]: {"at_most": 40}}, **roles)
    np.testing.assert_array_equal(
        task.actions.points, table(tmp_path, grid(1), log=["rate"]).actions.points
    )


def test_a_kernel_matrix_of_ones_own(tmp_path):
    matrix = 0.5 + 0.5 * np.eye(9)
    pd.DataFrame(matrix).to_csv(tmp_path / "k.csv", index=False)
    task = table(tmp_path, covariance="k.csv")
    np.testing.assert_array_equal(task.actions.covariance, matrix)
    assert set(task.identity()) == {"rows", "covariance"}
    pd.DataFrame(np.eye(18)).to_csv(tmp_path / "k.csv", index=False)
    with pytest.raises(Misuse, match="shape .18, 18., but there are 9 configurations"):
        table(tmp_path, covariance="k.csv")


@pytest.mark.parametrize("name", ["safeopt", "ckb-ts"])
def test_blocks_change_no_bit_and_coordinates_are_there(tmp_path, name):
    check_alone_as_in_a_block(table(tmp_path), name, 15)


# Wrong input --------------------------------------------------------------------------------------

WRONG = {
    "unknown input": (
        {"inputs": ["width", "rte"]},
        "inputs: unknown column 'rte'; did you mean 'rate'",
    ),
    "no role": (
        {"constraints": {"latency_ms": {"at_most": 40}}},
        "no role for column 'spare_mb'; name it in inputs",
    ),
    "two roles": ({"inputs": ["width", "rate", "accuracy"]}, "'accuracy' has two roles"),
    "no input": ({"inputs": ...}, "needs inputs; write rows: FILE, inputs:"),
    "no bound": (
        {"constraints": {"latency_ms": 40}},
        r"'latency_ms' is 40; allowed: \{at_most: NUMBER\}",
    ),
    "infeasible": (
        {"constraints": {"latency_ms": {"at_most": 5}}, "ignore": "rest"},
        r"no feasible configuration: .*latency_ms at most 5: 0 of 9, best 15\.2",
    ),
    "jointly infeasible": (
        {"constraints": {"latency_ms": {"at_most": 16}, "spare_mb": {"at_most": 300}}},
        r"none keeps all constraints .*at most 16: 3 of 9.*at most 300: 3 of 9",
    ),
    "negative noise": (
        {"noise": {"accuracy": -1}},
        "noise: accuracy is -1; it must be a finite number of at least 0",
    ),
    "alien": ({"threshold": 3.0}, "threshold is no parameter of layout: configurations"),
    "ignored stranger": ({"ignore": ["days"]}, "ignore: unknown column 'days'"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_wrong_roles_are_one_line(tmp_path, settings, message):
    with refused(message):
        table(tmp_path, **settings)


FILES = {
    "text in an input": (
        {"rate": ["low", "mid", "high"] * 6},
        "column 'rate' holds text, such as 'low'; make numbers of it, or .*say one_hot",
    ),
    "codes": (
        {"rate": [0, 1, 2] * 6},
        r"'rate' is 0, 1, ..., 2, numbers or codes of categories; say amounts: \[rate\]",
    ),
    "text in the objective": (
        {"accuracy": [np.nan, *grid()["accuracy"][1:-1], "PENDING"]},
        r"column 'accuracy' holds text, such as 'PENDING'; make numbers of it, or take out the "
        r"rows that hold text "
        r"\(the first: row 18\); if these measurements failed, leave their values blank and say "
        r"on_failure: inf",
    ),
    "a hole": (
        {"latency_ms": [np.nan, *range(17)]},
        "1 missing or infinite entries .* column 'latency_ms', row 1",
    ),
    "a text nobody named": ({"note": "x"}, "no role for column 'note'"),
}


@pytest.mark.parametrize(("columns", "message"), FILES.values(), ids=FILES)
def test_wrong_files_are_one_line(tmp_path, columns, message):
    with pytest.raises(Misuse, match=message):
        table(tmp_path, grid().assign(**columns))


def test_text_beside_failed_measurements_is_one_line(tmp_path):
    frame = grid().assign(accuracy=["", *grid()["accuracy"][1:-1], "PENDING"])
    with pytest.raises(
        Misuse,
        match=r"such as 'PENDING'; make numbers of it, or leave blank what failed .*row 18\)",
    ):
        table(tmp_path, frame, on_failure="infeasible")


def test_rows_that_differ_late_have_different_names(tmp_path):
    frame = grid().assign(
        rate=[2440000000 + i for i in range(3)] * 6, width=[0.1, 0.10000001, 0.10000002] * 6
    )
    names = table(tmp_path, frame).actions.names
    assert len({*names}) == len(names) == 3
    assert names[:2] == ("width = 0.1, rate = 2.44e+09", "width = 0.10000001, rate = 2440000001")


def test_what_was_refused_may_be_said(tmp_path):
    assert table(tmp_path, grid().assign(rate=[0, 1, 2] * 6), amounts=["rate"]).actions.d == 2
    assert table(tmp_path, grid().assign(rate=[0, 1, 2] * 6), one_hot=["rate"]).actions.d == 4
    assert table(tmp_path, grid().assign(note="x"), ignore=["note"]).actions.n == 9
    assert table(tmp_path, grid().assign(note="x"), ignore="rest").actions.n == 9
    assert table(tmp_path, layout=...).actions.n == 9, "the roles say what the layout is"


def test_row_numbers_are_not_played(tmp_path):
    grid().to_csv(tmp_path / "i.csv")
    with pytest.raises(
        Misuse,
        match=r"a column has no name .read as 'Unnamed: 0'.*index=False.*ignore: \['Unnamed: 0'\]",
    ):
        table(tmp_path, rows="i.csv")
    assert table(tmp_path, rows="i.csv", ignore=["Unnamed: 0"]).actions.n == 9
    grid().set_index(pd.Index(np.arange(18) ** 2)).to_parquet(tmp_path / "i.parquet")
    with pytest.raises(Misuse, match="a column has no name .read as 'index'"):
        table(tmp_path, rows="i.parquet")


def test_a_table_without_repetitions_says_once_that_it_is_played_without_noise(tmp_path):
    def take_notes(frame, **settings):
        frame.to_csv(tmp_path / "c.csv", index=False)
        listener = Listener()
        params.build(UserTable, ROLES | settings).prepare(
            DataFolder(base=tmp_path, watcher=listener)
        )
        return listener.notes

    (line,) = take_notes(grid(1))
    assert line.startswith(
        "rows 'c.csv': no configuration repeats, so it is played without noise; if measurements sc"
    )
    (line,) = take_notes(pd.concat([grid(1)] * 3))
    assert line.startswith("rows 'c.csv': noise-free, 27 rows of 9 configurations: equal inputs")
    assert (
        take_notes(grid(2))
        == take_notes(grid(1), noise=0.0)
        == take_notes(grid(1), noise={"accuracy": 0.1})
        == []
    )
