"""Randomness: every stream is named, and a replicate's numbers do not depend on what runs beside
it.

A stream's seed is the SHA-256 of its named parts (for example problem, seed, role). There is no
global random state. `Draws` returns one draw per round for S replicates in lock step. It fills a
block of rounds at a time, because a NumPy generator gives the same sequence however the requests
are cut; block size and S therefore change nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

_as_json = json.JSONEncoder(separators=(",", ":")).encode
Part = str | int
Sampler = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]
Words = NDArray[np.uint32]


def generator(*parts: Part) -> np.random.Generator:
    """Return a NumPy generator whose stream is fixed by the named parts, on every machine."""
    return np.random.default_rng(_sequence(_digest(parts)))


def generators(names: Iterable[tuple[Part, ...]]) -> list[np.random.Generator]:
    """Return `generator(*parts)` of every name; fifty made together cost two fifths."""
    return _seed(list(map(_digest, names)))


def _digest(parts: tuple[Part, ...]) -> bytes:
    return hashlib.sha256(_as_json(parts).encode()).digest()


def _sequence(digest: bytes) -> np.random.SeedSequence:
    return np.random.SeedSequence(int.from_bytes(digest, "big"))


def _seed(digests: list[bytes]) -> list[np.random.Generator]:
    """Return the generators of digests; NumPy's own way for few, and where a number has fewer words
    than eight, which are mixed in another way (one digest in 2^32).
    """
    if len(digests) < FEW or any(digest.startswith(bytes(4)) for digest in digests):
        return [np.random.default_rng(_sequence(digest)) for digest in digests]
    seeds = map(_KnownState, digests, _first_states(digests))
    return [np.random.default_rng(seed) for seed in seeds]  # type: ignore[arg-type]


class _KnownState(ISpawnableSeedSequence):
    """The SeedSequence of a digest, whose state for PCG64 has been computed; NumPy's own for the
    rest.
    """

    def __init__(self, digest: bytes, state: NDArray[np.uint64]) -> None:
        self.digest = digest
        self.state = state

    @cached_property
    def sequence(self) -> np.random.SeedSequence:
        return _sequence(self.digest)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        if n_words == 4 and dtype is np.uint64:
            return self.state
        return self.sequence.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        return self.sequence.spawn(n_children)


def _first_states(digests: list[bytes]) -> NDArray[np.uint64]:
    """Return `generate_state(4, np.uint64)` of the SeedSequences of S digests, (S, 4).

    Source: numpy/random/bit_generator.pyx (M. E. O'Neill's seed_seq_fe); NumPy promises that it
    does not change. A column is a digest, a row one of its 32-bit words, the lowest first.
    """
    words = np.frombuffer(b"".join(digests), ">u4").reshape(-1, 8).T[::-1].astype(np.uint32)
    pool = _hash(words[:4], ENTERING[:5])
    # Each word of the pool goes into the three others, then each word left over into all four.
    for i in range(4):
        others = [j for j in range(4) if j != i]
        pool[others] = _mix(pool[others], _hash(pool[i], ENTERING[4 + 3 * i : 8 + 3 * i]))
    for i in range(4):
        pool = _mix(pool, _hash(words[4 + i], ENTERING[16 + 4 * i : 21 + 4 * i]))
    state = _hash(np.concatenate([pool, pool]), LEAVING)
    return np.ascontiguousarray(state.T).view(np.uint64)


def _hash(words: Words, constants: Words) -> Words:
    """Hash words, (k, S) or (S,) for all k, by constants (k + 1, 1), to (k, S)."""
    words = (words ^ constants[:-1]) * constants[1:]
    return words ^ (words >> np.uint32(16))


def _mix(x: Words, y: Words) -> Words:
    mixed = x * np.uint32(0xCA01F9DD) - y * np.uint32(0x4973F715)
    return mixed ^ (mixed >> np.uint32(16))


def _constants(first: int, factor: int, count: int) -> Words:
    """Return first · factor^i modulo 2^32, (count, 1): of every hash one, and the next."""
    powers = [first * pow(factor, i, 2**32) % 2**32 for i in range(count)]
    return np.array(powers, dtype=np.uint32)[:, None]


ENTERING = _constants(0x43B0D7E5, 0x931E8875, 33)
LEAVING = _constants(0x8B51F9DD, 0x58F38DED, 9)
FEW = 8  # generators that are made as fast one by one


class Streams:
    """The streams of S replicates: `role("ties")` is a list of S generators, one per replicate.

    Args:
        scopes: the parts that name each replicate, such as (problem, seed) or (problem, algorithm,
            seed).
    """

    def __init__(self, scopes: Sequence[tuple[Part, ...]]) -> None:
        self.scopes = list(scopes)

    def role(self, name: str) -> list[np.random.Generator]:
        """Return fresh generators for one role. Two calls give two copies of the same stream."""
        return generators((*scope, name) for scope in self.scopes)

    def only(self, replicate: int) -> Streams:
        """Return the streams of one replicate."""
        return Streams([self.scopes[replicate]])


def standard_normal(gen: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return gen.standard_normal(shape)


def uniform(gen: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return gen.random(shape)


class Draws:
    """One draw of the given shape per replicate and round, for rounds 1, 2, 3, ... in order.

    Args:
        generators: S generators.
        sampler: how a generator fills a shape.
        shape: the shape of one replicate's draw in one round.
    """

    MEMORY = 2**18  # numbers held at a time, about 2 MB
    # rounds of the first block, and of any; each is four times the last, as a play may be short
    FIRST = 16
    MOST = 1024

    def __init__(
        self,
        generators: Sequence[np.random.Generator],
        sampler: Sampler,
        shape: tuple[int, ...] = (),
    ) -> None:
        self.generators = list(generators)
        self.sampler = sampler
        self.shape = shape
        per_round = max(1, len(self.generators) * int(np.prod(shape)))
        self.most = int(np.clip(self.MEMORY // per_round, 1, self.MOST))
        # of the block; round 1 needs a new one
        self.first = 1
        self.rounds = 0
        self.block: NDArray[np.float64] = np.empty((0,))

    def at(self, t: int) -> NDArray[np.float64]:
        """Return the draws of round t, shape (S, *shape). Rounds may be skipped, but not requested
        backwards.
        """
        if t < self.first:
            raise ValueError(f"round {t} is asked after round {self.first}: draws only go forward")
        while t >= self.first + self.rounds:
            self.first += self.rounds
            self.rounds = min(4 * self.rounds or self.FIRST, self.most)
            block = [self.sampler(gen, (self.rounds, *self.shape)) for gen in self.generators]
            self.block = np.stack(block, axis=1)
        return self.block[t - self.first]  # type: ignore[no-any-return]
