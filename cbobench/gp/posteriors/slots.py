"""Observations of S replicates in slots, and the prior covariances of what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import Array, squared_lengths
from cbobench.gp.posteriors.contract import Mask
from cbobench.gp.posteriors.shared import SharedPosterior


class Slots(SharedPosterior):
    """What an `ObservationPosterior` remembers. Room grows as it is needed; an empty slot holds zeros.

    Attributes:
        points: what was observed, (S, slots, d); of a finite set the index, d = 1.
        values: (S, p, slots).
        cross: covariances with the candidates, (S, slots, M).
        full: which slots hold an observation, (S, slots).
        used: c, how many slots are in use, the same for all replicates.
    """

    def __init__(self, actions: Finite | Box, replicates: int, functions: int, slots: int) -> None:
        self.actions = actions
        self.replicates = replicates
        self.functions = functions
        self.slots = slots
        self.box = actions if isinstance(actions, Box) else None
        if isinstance(actions, Box):
            self.candidates = len(actions.candidates)
            self.prior = np.ones(self.candidates)
        else:
            self.candidates = actions.n
            self.prior = actions.prior
        self.rows = np.arange(replicates)

    points: Array
    values: Array
    cross: Array
    full: Mask

    def _shapes(self, capacity: int) -> dict[str, tuple[int, ...]]:
        """The arrays that grow with the slots, per replicate."""
        return {
            "cross": (capacity, self.candidates),
            "points": (capacity, self.box.d if self.box is not None else 1),
            "values": (self.functions, capacity),
            "full": (capacity,),
        }

    def _empty(self) -> None:
        self.used = 0
        self._forget_alike()
        self._allocate(min(self.slots, 64))

    def _allocate(self, capacity: int) -> None:
        """Room for so many slots; what is held stays."""
        for name, shape in self._shapes(capacity).items():
            fresh = np.zeros((self.replicates, *shape), dtype=bool if name == "full" else np.float64)
            if self.used:
                held = getattr(self, name)
                fresh[tuple(slice(length) for length in held.shape)] = held
            setattr(self, name, fresh)
        self.capacity = capacity

    def reach(self, used: int) -> None:
        """Use so many slots, at most all."""
        used = min(self.slots, used)
        while used > self.capacity:
            self._allocate(min(self.slots, 2 * self.capacity))
        self.used = max(self.used, used)

    def _put(
        self, who: NDArray[np.intp], where: NDArray[np.intp], actions: NDArray[Any], values: Array, cross: Array
    ) -> None:
        """One observation of some replicates, `who`, into slots of theirs; the arrays hold all replicates."""
        self.values[who, :, where] = values[who]
        self.cross[who, where] = cross[who]
        self.points[who, where] = (actions if self.box is not None else actions[:, None])[who]
        self.full[who, where] = True

    def _clear(self, slot: NDArray[np.intp]) -> None:
        """A slot of every replicate, (S,)."""
        self._forget_alike()
        self.values[self.rows, :, slot] = 0.0
        self.cross[self.rows, slot] = 0.0
        self.points[self.rows, slot] = 0.0
        self.full[self.rows, slot] = False

    def _forget_alike(self) -> None:
        self.alike = np.empty((self.replicates, 0), dtype=np.intp)  # per slot the first one that holds the same action

    def _alike(self) -> NDArray[np.intp]:
        """Per slot in use the first one that holds the same action, (S, c)."""
        for k in range(self.alike.shape[1], self.used):  # slots that are new since the last call
            same = (self.points[:, : k + 1] == self.points[:, k : k + 1]).all(axis=2)
            self.alike = np.concatenate([self.alike, same.argmax(axis=1)[:, None]], axis=1)
        return self.alike

    def _covariances(self, actions: NDArray[Any], c: int) -> tuple[Array, Array, Array]:
        """Covariances of the actions with the candidates (S, M) and the first c slots (S, c), and with themselves."""
        if self.box is None:
            assert isinstance(self.actions, Finite)
            index = actions.astype(np.intp)
            own = self.prior[index]
            return self.actions.rows(index), self.cross[self.rows, :c, index], own
        kernel = self.box.kernel
        candidates = kernel.profile(squared_lengths(actions[:, None] - self.box.candidates))
        slots = kernel.profile(squared_lengths(actions[:, None] - self.points[:, :c])) * self.full[:, :c]
        return candidates, slots, np.ones(len(actions))

    def _gram(self, points: Array) -> Array:
        """Prior covariances of what slots hold, (c, d) to (c, c)."""
        if isinstance(self.actions, Box):
            return self.actions.kernel(points, points)
        index = points[:, 0].astype(np.intp)
        return self.actions.between(index, index)
