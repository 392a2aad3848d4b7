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

import numpy as np
from numpy.typing import NDArray

_as_json = json.JSONEncoder(separators=(",", ":")).encode
Part = str | int
Sampler = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def generator(*parts: Part) -> np.random.Generator:
    """Return a NumPy generator whose stream is fixed by the named parts, on every machine."""
    digest = hashlib.sha256(_as_json(parts).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def generators(names: Iterable[tuple[Part, ...]]) -> list[np.random.Generator]:
    """Return `generator(*parts)` of every name."""
    return [generator(*parts) for parts in names]


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
