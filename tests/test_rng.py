"""Streams are fixed by their names."""

from __future__ import annotations

from cbobench import rng


def test_a_name_is_the_same_stream_on_every_machine():
    assert rng.generator("block", 1, "x").random() == 0.22912613861832598
    names = [("block", s, "x") for s in range(3)]
    drawn = [made.random() for made in rng.generators(names)]
    assert drawn == [rng.generator(*name).random() for name in names]
    assert len({*drawn}) == 3
