"""The map of a claim: hand-made findings whose rows, columns and cells are known."""

from __future__ import annotations

import csv

import pytest

from cbobench.papers.claim_maps import Map, axes_of, draw_maps, maps_of
from cbobench.papers.claims import Claim, Finding
from cbobench.papers.evidence import Part

CLAIM = Claim("X1", "A is below B", "me", "", ("p",), ("a", "b"), lambda case: [])


def part(verdict):
    return Part("order", "R", "", verdict, 0.0, -1.0, 1.0, 10, 10)


def make_finding(
    axes,
    verdict="reproduced",
    *,
    parts=("reproduced",),
    suites=("map-one",),
    places=None,
    claim=CLAIM,
    costs=None,
    own_settings="",
):
    place = places or f"{suites[0]} (p)"
    built_parts = tuple(part(v) for v in parts)
    return Finding(
        claim,
        verdict,
        place,
        suites,
        ("p",),
        built_parts,
        axes,
        f"T 9, {own_settings}k se",
        costs or {"r: p/a": 60.0},
    )


def axes(beta, window="-", **settings):
    shared_axes = {"a.beta": beta, "b.beta": beta, "b.B": 1, "a.window": window}
    return shared_axes | settings


GRID = [make_finding(axes(beta, window)) for beta in (3.0, "theory", 0.5) for window in (25, 100)]


def test_rows_columns_and_cells_are_known():
    """The axis with the most values is across, numbers in order; rows say what differs from the
    first.
    """
    claim_map = Map.of(GRID)
    assert (claim_map.across, claim_map.columns, claim_map.rows) == (
        "beta",
        ["theory", "0.5", "3.0"],
        ["window W 25", "window W 100"],
    )
    assert {place: f.axes["a.beta"] for place, f in claim_map.cells.items()} == {
        (row, column): value for row in (0, 1) for column, value in enumerate(("theory", 0.5, 3.0))
    }
    assert all(f.axes["a.window"] == (25, 100)[row] for (row, _), f in claim_map.cells.items())


def test_parameters_that_vary_together_are_one_axis():
    same = [
        make_finding({"a.B": v, "a.G": v, "b.B": v, "b.G": v, "b.lam": 1}) for v in ("norm", "sup")
    ]
    assert axes_of(same) == [{"B, G": "norm"}, {"B, G": "sup"}], "what never differs is left out"
    apart = [
        make_finding({"a.pending": a, "b.pending": b, "c.pending": b})
        for a, b in (("no", "no"), ("no", "yes"), ("yes", "no"))
    ]
    assert axes_of(apart)[1] == {"pending of a": "no", "pending of b, c": "yes"}
    assert axes_of(apart)[2] == {"pending of a": "yes", "pending of b, c": "no"}
    assert axes_of([make_finding({"a.w": 1})]) == [{}]
    assert axes_of(
        [make_finding({}, places="map-one (left)"), make_finding({}, places="map-one (right)")]
    ) == [
        {"problem": "left"},
        {"problem": "right"},
    ]


def test_the_axis_of_all_findings_is_across():
    """Choices beside a base become rows under the axis that all of them have, whatever the number
    of their values.
    """
    base = {"a.R": "true", "a.lam": "theory", "a.gain": "played"}
    points = [
        base,
        *(
            {**base, k: v}
            for k, v in (("a.R", 1), ("a.R", 2), ("a.R", 3), ("a.lam", 0.1), ("a.gain", "rate"))
        ),
    ]
    claim_map = Map.of(
        [make_finding(point | {"a.scale": scale}) for point in points for scale in (1.0, 0.1)]
    )
    assert (claim_map.across, claim_map.columns) == ("scale", ["0.1", "1.0"])
    assert claim_map.rows == [
        "noise bound R true, noise variance of the model, λ theory, information gain γ played",
        "noise bound R 1",
        "noise bound R 2",
        "noise bound R 3",
        "noise variance of the model, λ 0.1",
        "information gain γ rate",
    ]
    assert len(claim_map.cells) == 12, "no two settings share a cell"


def test_there_is_one_map_per_claim_and_suite():
    other_claim = Claim("X2", "", "me", "", ("p",), ("a",), lambda case: [])
    missing = Finding(CLAIM, "not in these runs", "", note="needs a")
    two = ("map-you-left-noisy", "map-you-left-quiet")
    claim_maps = maps_of(
        [*GRID, missing, make_finding({}, suites=two), make_finding({}, claim=other_claim)]
    )
    assert [(map.claim, map.suite) for map in claim_maps] == [
        ("X1", "one"),
        ("X1", "you-left-noisy-quiet"),
        ("X2", "one"),
    ]
    assert (
        claim_maps[1].across,
        claim_maps[1].columns,
        claim_maps[1].rows,
        list(claim_maps[1].cells),
    ) == (
        "",
        [""],
        [""],
        [(0, 0)],
    )


def test_shared_cells_cost_once():
    shared = [
        make_finding({"a.w": w}, costs={"r: p/a": 60.0, f"r: p/{w}": 30.0}, own_settings=f"w {w}, ")
        for w in (1, 2)
    ]
    (claim_map,) = maps_of(shared)
    assert claim_map.minutes == pytest.approx(2.0, rel=1e-12), (
        "not 3.0, with what both settings use counted twice"
    )
    assert claim_map.common == ["T 9", "k se"]
    assert "All have T 9, k se. 10 seeds; 2 CPU-minutes" in claim_map.caption().replace("\n", " ")


def test_two_builds_are_the_same_and_tell_verdicts_apart(tmp_path):
    mixed = [
        make_finding({"a.w": w}, verdict, parts=parts)
        for w, verdict, parts in (
            (1, "reproduced", ("reproduced", "reproduced")),
            (2, "contradicted", ("reproduced", "contradicted")),
            (3, "cannot tell", ("cannot tell", "reproduced")),
        )
    ]
    builds = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        ((_, paths),) = draw_maps(mixed, folder)
        assert [path.name for path in paths] == [
            f"map_X1_one.{kind}" for kind in ("pdf", "png", "csv", "txt")
        ]
        builds.append([path.read_bytes() for path in paths[1:]])
    assert builds[0] == builds[1]
    rows = list(csv.DictReader(builds[0][1].decode().splitlines()))
    assert [(row["w"], row["verdict"], row["parts_that_hold"], row["parts"]) for row in rows] == [
        ("1", "reproduced", "2", "2"),
        ("2", "contradicted", "1", "2"),
        ("3", "cannot tell", "1", "2"),
    ]
    ((_, paths),) = draw_maps(
        [*mixed[:2], make_finding({"a.w": 3}, "reproduced", parts=("reproduced", "reproduced"))],
        tmp_path / "c",
    )
    changed = [path.read_bytes() for path in paths[1:]]
    assert (changed[0] != builds[0][0], changed[1] != builds[0][1]) == (True, True), (
        "negative control"
    )
