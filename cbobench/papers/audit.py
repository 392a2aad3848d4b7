"""The theory audit of a play: the assumptions and promises of the theorems beside what happened. It
changes no play.

On a box, bounds are checked and the linear program is solved at the candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms.ckb import CKB
from cbobench.algorithms.optimistic import Optimistic, OptimisticReward
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.papers.theory import Events, Program, find_broken_premises, solve, theorem_bounds
from cbobench.play.block import recorded_rounds
from cbobench.play.play import Play
from cbobench.problems.instances import best_feasible, slater_margin

CURVE = 64  # points of a curve over rounds


class Audit:
    """Observes a play from its first round on (see `cbobench.results.schema` for its columns).

    Args:
        play: not begun.
        keep: number of recorded rounds, None for all; curves hold some of them.
    """

    def __init__(self, play: Play, keep: int | None = None) -> None:
        self.play = play
        recorded = recorded_rounds(play.horizon, keep)
        self.marks = recorded[
            np.unique(np.geomspace(1, len(recorded), CURVE).round().astype(int)) - 1
        ]
        self.events: Events | None = None
        self.truth: Array | None = None
        self.program: Program | None = None
        self.certified: NDArray[np.bool_] | None = None
        self.begun = False

    def observe(self, t: int) -> None:
        """Record round t: its actions are chosen, the algorithm has no feedback yet."""
        if not self.begun:
            self._begin()
        if self.events is not None:
            self.events.observe(t)
        certified = self.play.algorithm.certified
        if certified is not None:
            self.certified = (
                certified.copy() if self.certified is None else self.certified | certified
            )

    def _begin(self) -> None:
        self.begun = True
        play, algorithm, instances = self.play, self.play.algorithm, self.play.instances
        if instances.changes() or not instances.exact:
            return
        points = self._points()
        self.truth = instances.values(1, points).transpose(1, 2, 0)  # (S, 1 + m, n)
        f, g = self.truth[:, 0], self.truth[:, 1:]
        star = None
        if np.asarray((g <= 0).all(axis=1)).any(axis=1).all():
            star = best_feasible(f, g)
            policy_values = instances.stars(1, 1)[1][0]
            self.program = solve(f, g, policy_values if np.isfinite(policy_values).all() else None)
        # No theorem is of fitted models.
        if algorithm.fits:
            return
        if isinstance(algorithm, Optimistic) or (
            isinstance(algorithm, OptimisticReward) and not algorithm.models_constraints
        ):
            p = 1 + play.setting.constraints if algorithm.models_constraints else 1
            program = self.program if p == self.truth.shape[1] else None
            lagrangian = isinstance(algorithm, CKB)
            self.events = Events(
                algorithm, self.truth[:, :p], program, star, lagrangian, self.marks
            )

    def _points(self) -> NDArray[Any]:
        """The actions of the beliefs, as rounds of a play: (n, S) or (n, S, d)."""
        allowed, replicates = self.play.problem.actions, self.play.setting.replicates
        if isinstance(allowed, Finite):
            return np.arange(allowed.n)[:, None].repeat(replicates, axis=1)
        grid = getattr(self.play.algorithm, "grid_points", None)
        points = allowed.scale(allowed.candidates) if grid is None else grid
        return np.broadcast_to(points[:, None], (len(points), replicates, allowed.d))

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell, in the columns of the audit table; called once, after the last
        round.
        """
        play, algorithm = self.play, self.play.algorithm
        columns = (
            {"rounds": [0] * play.setting.replicates}
            | self._facts()
            | self._certificates()
            | self._events()
        )
        columns |= self._model()
        if (
            self.events is not None
            and self.events.points is not None
            and isinstance(algorithm, CKB)
        ):
            promised, unit = (
                theorem_bounds(algorithm, self.events, play.horizon),
                play.instances.units[1],
            )
            columns |= {
                name: values * unit if "regret" in name else values
                for name, values in promised.items()
            }
        columns["notes"] = find_broken_premises(play, columns.get("norm"), self.program)
        rows: list[dict[str, Any]] = [{} for _ in range(play.setting.replicates)]
        for name, values in columns.items():
            for row, value in zip(rows, values, strict=True):
                row[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        return rows

    def _facts(self) -> dict[str, Any]:
        """Columns that depend on the instances alone."""
        if self.truth is None:
            return {}
        setting, actions = self.play.setting, self.play.problem.actions
        norm = setting.norm
        # one by one: a solution must not depend on the other replicates
        if isinstance(actions, Finite):
            norm = np.stack([actions.norm(functions) for functions in self.truth])
        columns: dict[str, Any] = {
            "norm": norm,
            "noise": setting.noise,
            "margin_single": slater_margin(self.truth[:, 1:]),
        }
        if self.program is not None:
            mixed = (self.program.weights > 0).sum(axis=1)
            columns |= {
                "dual_optimum": self.program.dual,
                "margin": self.program.margin,
                "mixed": mixed,
            }
        return columns

    def _certificates(self) -> dict[str, Any]:
        """Number of actions that a safe method called safe, and of those that are unsafe."""
        if self.certified is None or self.truth is None:
            return {}
        beyond = self.certified & ~self.play.setting.safe_seed
        unsafe = beyond & (self.truth[:, 1:] > 0).any(axis=1)
        return {"certified": beyond.sum(axis=1), "certified_unsafe": unsafe.sum(axis=1)}

    def _events(self) -> dict[str, Any]:
        events = self.events
        if events is None:
            return {}
        events.flush()
        replicates, rounds = events.held.shape[0], events.rounds
        columns: dict[str, Any] = {
            "rounds": [rounds] * replicates,
            "est": events.all_held / rounds,
            "est_each": events.held / rounds,
            "est_always": events.all_held == rounds,
            "needed": events.needed,
            "conc": events.concentrated / rounds,
            "conc_promised": [1 - events.missed / rounds] * replicates,
        }
        if events.points is not None:
            explorations = events.algorithm.explorations
            counts = (1, events.truth.shape[1] - 1)
            least = np.prod(
                [e.optimism() ** count for e, count in zip(explorations, counts, strict=False)]
            )
            columns |= {
                "optimism": events.optimistic / rounds,
                "optimism_always": events.optimistic == rounds,
                "anti": events.anti / rounds,
                "anti_promised": [float(least)] * replicates,
            }
        return columns

    def _model(self) -> dict[str, Any]:
        """Columns of the algorithm's hyperparameters and model."""
        algorithm = self.play.algorithm
        if not isinstance(algorithm, OptimisticReward):
            return {}
        replicates = self.play.setting.replicates
        gain = np.asarray(algorithm.posterior.gain).reshape(replicates, -1).max(axis=1)
        used = (
            gain
            if algorithm.gains is None
            else np.full(replicates, algorithm.gains[algorithm.remembered])
        )
        columns = {
            "alpha": [algorithm.alpha] * replicates,
            "bound": algorithm.bounds,
            "noise_used": algorithm.noise_constants(),
            "gain": gain,
            "gain_used": used,
        }
        if isinstance(algorithm, CKB):
            columns |= {
                "dual_cap": algorithm.cap[:, 0],
                "margin_used": self.play.setting.margin(algorithm.delta),
            }
        return columns
