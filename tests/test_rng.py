"""Generators made together against NumPy's own, one by one."""

from __future__ import annotations

import copy
import hashlib

import numpy as np
import pytest

from cbobench import rng


def numpys_own(digest):
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest, "big")))


# the last digests begin with 0, 32 and 64 bits that are 0
@pytest.mark.parametrize("zeros", [0, 1, 4, 8])
def test_a_block_of_generators_has_the_states_of_numpy(zeros):
    digests = [hashlib.sha256(f"{s}".encode()).digest() for s in range(3000)]
    digests += [bytes(31) + b"\1"] * (zeros == 8)
    digests[-1] = bytes(zeros) + digests[-1][zeros:]
    for digest, made in zip(digests, rng._seed(digests), strict=True):
        assert made.bit_generator.state == numpys_own(digest).bit_generator.state


def test_a_generator_does_not_depend_on_how_many_are_made():
    names = [("block", s, "x") for s in range(2 * rng.FEW)]
    for count in (0, 1, rng.FEW - 1, rng.FEW, 2 * rng.FEW):
        for name, made in zip(names[:count], rng.generators(names[:count]), strict=True):
            assert made.bit_generator.state == rng.generator(*name).bit_generator.state


def test_a_generator_of_a_block_spawns_and_is_copied_as_numpys():
    digest = hashlib.sha256(b"seed").digest()
    made, own = rng._seed([digest] * rng.FEW)[3], numpys_own(digest)
    for _ in range(2):  # the second time other children than the first
        assert [child.random() for child in made.spawn(2)] == [c.random() for c in own.spawn(2)]
        made = copy.deepcopy(made)  # by the reduction of pickle
    assert made.random() == own.random()
    seeds = [gen.bit_generator.seed_seq.generate_state(9) for gen in (made, own)]
    np.testing.assert_array_equal(*seeds)
