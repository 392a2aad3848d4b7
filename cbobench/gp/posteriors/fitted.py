"""Posteriors of functions whose hyperparameters are fitted (see `cbobench.gp.fit`), for S
replicates.

With y' = (y - c)/s, λ the noise variance over s², and K + λI = L Lᵀ of the Matérn-5/2 kernel under
a function's own lengthscales, mean and variance at x are c + s (L⁻¹ k_x).(L⁻¹ y') and s² (1 - |L⁻¹
k_x|²). L⁻¹ grows by a row with every observation, and is computed again when hyperparameters move.
Fits are of standardised observations, and there a noise variance is not below 1e-8, so that
products with L⁻¹ have digits enough: 1e-8 of the variance of the observations, not of s², which may
be larger (λ is then below 1e-8).

Cost per replicate, function and round: O(c M + c²) for c observations and M candidates; O(c² M +
c³) with a fit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import ActionSet, Box
from cbobench.gp.classes import are_classes, fit_class, pseudo_values
from cbobench.gp.fit import (
    ANEW,
    GROWTH_ANEW,
    Fitted,
    bilog,
    fit_all,
    is_bilog_likelier,
    is_due,
    modal_lengthscale,
)
from cbobench.gp.jets import Jet, models_at, pad, taylor, times
from cbobench.gp.kernels import Actions, Array, Indices, Mask, Matern, covariances
from cbobench.gp.posteriors.factor import lapack
from cbobench.gp.posteriors.interface import (
    VARIANCE_FLOOR,
    Moments,
    MomentsOfSlots,
    Posterior,
    pick,
)

UNIT = Matern(2.5, 1.0)
NUGGET = 1e-8  # added to the variances of samples, in units of s²
JITTER = 1e-6  # added to the variances of sample paths, in units of s²


class FittedPosterior(Posterior):
    """Posteriors of p functions with hyperparameters of their own (see `Posterior`).

    Args:
        actions: a `Box`, or a `Finite` set with coordinates, which are scaled to the unit cube.
        candidates: where beliefs are kept, points of the cube (M, d); those of the action set by
            default.
        replicates, functions: S, p.
        noise: the noise variances (S, p), or of more functions, in units of the observations; NaN
            where they are fitted, too.
        further: actions of each replicate's own, points (S, c, d); their indices begin at that of a
            finite set's n.
        undecided: functions, (p,), of which each fit decides whether they or their `bilog` are
            modelled, whichever is likelier (see `is_bilog_likelier`); None for none.

    Attributes:
        mean, variance: (S, p, M), in units of the observations, or of their bilog; gain (S, p).
        pulled: whether the bilog is modelled, (S, p).
        signed: functions, (p,), of which the sign alone counts: with two observed values they are
            modelled as a class (see `gp.classes`). None are unless it is set before any update.
        classes: whether a class is modelled, (S, p); mean and variance are then of its latent
            function.
        fits: hyperparameters, one list of p per replicate.
    """

    def __init__(
        self,
        actions: ActionSet,
        replicates: int,
        functions: int,
        noise: Array | None = None,
        candidates: Array | None = None,
        further: Array | None = None,
        undecided: Mask | None = None,
    ) -> None:
        self.actions = actions
        self.replicates = replicates
        self.functions = functions
        self.noise = np.full((replicates, functions), np.nan) if noise is None else noise
        self.cube = actions.units if isinstance(actions, Finite) else None
        self.firsts = actions.firsts
        if candidates is None:
            candidates = actions.candidates if isinstance(actions, Box) else self.cube
        assert candidates is not None

        # One array serves all replicates unless they have actions of their own.
        self.sites = self.actions.embed(candidates)[None]
        self.covers_actions = self.cube is not None and len(self.cube) == len(candidates)
        self.extended = further is not None
        if further is not None:
            self.sites = np.concatenate([self.sites.repeat(replicates, axis=0), further], axis=1)
        self.d = self.sites.shape[2]
        self.undecided = np.zeros(functions, dtype=bool) if undecided is None else undecided
        self.signed = np.zeros(functions, dtype=bool)
        self.lam = 1.0
        self.reset()

    def reset(self, lam: float | None = None) -> None:
        """λ is fitted, so a given number is only stored."""
        self.lam = self.lam if lam is None else lam
        plain = Fitted(np.full(self.d, modal_lengthscale(self.d)), 1.0, 1e-3, 0.0)
        self.fits = [[plain] * self.functions for _ in range(self.replicates)]
        # The last fits of every replicate, of functions as they are and of their bilog.
        self.by_form = [
            {form: [plain] * self.functions for form in (False, True)} for _ in self.fits
        ]
        self.pulled = np.broadcast_to(self.undecided, (self.replicates, self.functions)).copy()
        self.fitted_at = self.fitted_anew_at = self.count = 0
        shape = (self.replicates, self.functions)
        self.classes = np.zeros(shape, dtype=bool)
        self.class_fits: list[list[Fitted | None]] = [[None] * self.functions for _ in self.fits]
        self.points = np.empty((self.replicates, 0, self.d))
        self.units = np.empty((self.replicates, 0, self.actions.d))
        # per observation: the first one at the same action
        self.alike = np.empty((self.replicates, 0), dtype=np.intp)
        self.observed = self.values = np.empty((*shape, 0))  # as they are, and as they are modelled
        self.untold = np.empty((self.replicates, 0), dtype=bool)  # of the first function
        self.mean = np.zeros((*shape, self.sites.shape[1]))
        self.gain = np.zeros(shape)
        self._store_hyperparameters()
        self._recompute()

    def _store_hyperparameters(self) -> None:
        """Store hyperparameters as arrays: lengthscales (S, p, d), and s, λ and c (S, p)."""
        names = ("lengthscales", "amplitude", "ratio", "centre")
        self.lengthscales, self.amplitude, self.ratio, self.centre = (
            np.array([[getattr(hyper, name) for hyper in row] for row in self.fits])
            for name in names
        )

    # Learning -------------------------------------------------------------------------------------

    def update(self, actions: Actions, values: Array) -> None:
        """Add an observation, and fit hyperparameters again if a fit is due.

        Args:
            values: (S, p); the first one is NaN where it is not told. The lowest that was told
                stands for it, 0 before any.
        """
        wrong = ~np.isfinite(values)
        wrong[:, 0] &= ~np.isnan(values[:, 0])
        if wrong.any():
            raise CellFailure(
                f"an observation of replicate {np.argwhere(wrong)[0, 0]} is not a number"
            )
        point = self._enter(actions, values)
        self._stand_in()
        if self.count == 1:  # its own centre, until a second one shows a spread
            self.fits = [
                [replace(f, centre=float(centre)) for f, centre in zip(fits, centres, strict=True)]
                for fits, centres in zip(self.fits, self.values[..., 0], strict=True)
            ]
            self._store_hyperparameters()
        switched = self._find_classes()
        if not is_due(self.count, self.fitted_at):
            self._border(point)
            self._renew(switched)
            return
        anew = is_due(self.count, self.fitted_anew_at, ANEW, GROWTH_ANEW)
        self._fit(range(self.replicates), anew)
        self.fitted_at = self.count
        if anew:
            self.fitted_anew_at = self.count
        self._classify()
        self._recompute()

    def _stand_in(self) -> None:
        """Let the lowest value of the first function stand for those that are not told."""
        if self.untold.any():
            told = np.where(self.untold, np.inf, self.observed[:, 0])
            lowest = told.min(axis=1)
            lowest[np.isinf(lowest)] = 0.0
            self.observed[:, 0] = np.where(self.untold, lowest[:, None], self.observed[:, 0])
            self.values = self._modelled(self.observed)

    def _find_classes(self) -> list[int]:
        """See which functions are classes, and return the replicates in which this has changed."""
        before = self.classes.copy()
        for j in np.flatnonzero(self.signed).tolist():
            self.classes[:, j] = [are_classes(values) for values in self.observed[:, j]]
        self.pulled &= ~self.classes
        return np.flatnonzero((self.classes != before).any(axis=1)).tolist()

    def _classify(self) -> None:
        """Put pseudo-values in place of classes."""
        if self.classes.any():
            self.values = self.values.copy()  # which may be what was observed
        for s, j in np.argwhere(self.classes).tolist():
            scaled = self.points[s] / self.lengthscales[s, j]
            covariance = self.amplitude[s, j] ** 2 * UNIT(scaled, scaled)
            self.values[s, j] = pseudo_values(covariance, self.observed[s, j])

    def _renew(self, switched: Sequence[int]) -> None:
        """Bring replicates with classes, or values that are not told, up to date between fits, and
        fit those that have switched.

        All others keep their bits.
        """
        if switched:
            self._fit(switched, anew=True)
            scaled = self._scaled(self.points)
            for s, j in product(switched, range(self.functions)):
                self._factor(s, j, scaled[s, j])
            held = self.z[switched, :, : self.count]
            self._unit[switched] = np.maximum(1 - (held * held).sum(axis=2), VARIANCE_FLOOR)
        self._classify()
        moved = self.classes.any(axis=1) | self.untold.any(axis=1)
        rows = sorted({*switched, *np.flatnonzero(moved).tolist()})
        if rows:
            self._project(rows)

    def _fit(self, which: Sequence[int], anew: bool) -> None:
        """Fit hyperparameters of some replicates to all observations, of both forms of a function
        that is undecided; anew, also from the priors' modes.
        """
        for s in which:
            forms = self.by_form[s]
            targets = [
                (j, form)
                for j in np.flatnonzero(~self.classes[s]).tolist()
                for form in ((False, True) if self.undecided[j] else (False,))
            ]
            values = np.stack(
                [bilog(self.observed[s, j]) if form else self.observed[s, j] for j, form in targets]
            )
            before = [None if self.count == 2 else forms[form][j] for j, form in targets]
            noise = np.array([self.noise[s, j] for j, _ in targets])

            # Noise is of one kind in a fit: known of all its functions, or fitted.
            for is_known in (False, True):
                rows = np.flatnonzero(np.isnan(noise) != is_known).tolist()
                if not rows:
                    continue
                fits = fit_all(
                    self.points[s],
                    values[rows],
                    [before[row] for row in rows],
                    noise[rows] if is_known else None,
                    anew,
                    self.firsts,
                )
                for row, hyper in zip(rows, fits, strict=True):
                    j, form = targets[row]
                    forms[form][j] = hyper

            # Only now both forms are fitted to the same observations.
            for j in np.flatnonzero(self.undecided & ~self.classes[s]).tolist():
                self.pulled[s, j] = is_bilog_likelier(
                    self.observed[s, j], forms[False][j], forms[True][j]
                )
            self.fits[s] = [forms[bool(self.pulled[s, j])][j] for j in range(self.functions)]

            # The latent function of a class takes the place of a fit to its two values.
            for j in np.flatnonzero(self.classes[s]).tolist():
                last = self.class_fits[s][j]
                fitted = fit_class(self.points[s], self.observed[s, j], last, anew)
                self.class_fits[s][j] = self.fits[s][j] = fitted
        self.values = self._modelled(self.observed)
        self._store_hyperparameters()

    def imagine(self, actions: Actions) -> None:
        point = self._enter(actions, self.centre)
        self.values[..., -1] = self.centre  # which is of what is modelled
        self._border(point)

    def _enter(self, actions: Actions, values: Array) -> Array:
        """Store an observation; return its points as models see them, (S, d)."""
        point = np.asarray(self._points_of(actions), dtype=np.float64)
        self.points = np.concatenate([self.points, point[:, None]], axis=1)
        if self.cube is None:
            self.units = np.concatenate([self.units, actions[:, None]], axis=1)
        self.observed = np.concatenate([self.observed, values[..., None]], axis=2)
        self.untold = np.concatenate([self.untold, np.isnan(values[:, :1])], axis=1)
        self.values = np.concatenate([self.values, self._modelled(values[..., None])], axis=2)
        same = (self.points == point[:, None]).all(axis=2).argmax(axis=1)
        self.alike = np.concatenate([self.alike, same[:, None]], axis=1)
        self.count += 1
        return point

    def _modelled(self, values: Array) -> Array:
        """Return values (S, p, c) as they are modelled."""
        if self.undecided.any():
            return np.where(self.pulled[..., None], bilog(values), values)
        return values

    def _points_of(self, actions: Actions) -> Array:
        """Return the points (S[, q], d) of actions (S[, q]), or of points of the cube."""
        if self.cube is None:
            return self.actions.embed(actions)
        if not self.extended:
            return self.cube[actions]
        return np.stack(
            [sites[indices] for sites, indices in zip(self.sites, actions, strict=True)]
        )

    def _sites_of(self, s: int) -> Array:
        """Return the points where a replicate's beliefs are kept, (M, d)."""
        return self.sites[s if len(self.sites) > 1 else 0]

    def _recompute(self) -> None:
        """Compute L⁻¹ and all derived arrays from scratch."""
        c = self.count
        shape = (self.replicates, self.functions)
        # Room for as many observations again, so that most of them only append a row.
        room = max(32, 2 * c)
        self.root = np.zeros((*shape, room, room))
        self.u = np.zeros((*shape, room))
        self.z = np.zeros((*shape, room, self.sites.shape[1]))
        scaled = self._scaled(self.points)
        for s, j in np.ndindex(shape) if c else ():
            self._factor(s, j, scaled[s, j])
        if not c:
            self.gain = np.zeros(shape)
        held = self.z[:, :, :c]
        self._unit = np.maximum(1 - (held * held).sum(axis=2), VARIANCE_FLOOR)
        self._pull = np.empty_like(self._unit)
        self._project()

    def _factor(self, s: int, j: int, scaled: Array) -> None:
        """Compute L⁻¹ of one function, whose observations are at points (c, d) in units of its
        lengthscales.
        """
        c = self.count
        gram = UNIT(scaled, scaled)
        gram[np.arange(c), np.arange(c)] += self.ratio[s, j]
        root, info = lapack().dpotrf(gram, lower=1)
        if info:
            raise CellFailure(f"the covariance of {c} observations has no Cholesky factor")
        self.root[s, j, :c, :c] = np.tril(lapack().dtrtri(root, lower=1)[0])
        sites = self._sites_of(s) / self.lengthscales[s, j]
        self.z[s, j, :c] = self.root[s, j, :c, :c] @ covariances(UNIT, scaled, sites)
        self.gain[s, j] = float(np.log(root.diagonal() / np.sqrt(self.ratio[s, j])).sum())

    def _project(self, rows: Sequence[int] | slice = slice(None)) -> None:
        """Compute the arrays that depend on the observed values, of some replicates."""
        c = self.count
        standardised = self.standardised()[rows][..., None]
        u = (self.root[rows, :, :c, :c] @ standardised)[..., 0]
        self.u[rows, :, :c] = u
        self._pull[rows] = (u[:, :, None] @ self.z[rows, :, :c])[:, :, 0]
        self._publish()

    def replace_values(self, values: Array) -> None:
        """Replace the observed values by others (S, p, c); hyperparameters stay until the next
        fit.
        """
        self.observed, self.values = values, self._modelled(values)
        self._project()

    def _border(self, point: Array) -> None:
        """Append a row of L⁻¹ for an observation at points (S, d)."""
        c = self.count - 1
        if c == 0 or c == self.root.shape[2]:  # there is no row before, or no room for another
            self._recompute()
            return
        before = self.root[..., :c, :c]
        k = self.cross(point[:, None], self.points[:, :c])
        column = (before @ k.mT)[..., 0]
        latent = np.maximum(1 - (column * column).sum(axis=2), VARIANCE_FLOOR)
        pivot = np.sqrt(latent + self.ratio)[..., None]
        self.root[..., c, :c] = -(column[:, :, None] @ before)[:, :, 0] / pivot
        self.root[..., c, c] = 1 / pivot[..., 0]
        new = self.cross(point[:, None], self.sites)[:, :, 0]
        new = (new - (column[:, :, None] @ self.z[:, :, :c])[:, :, 0]) / pivot
        u = (self.standardised()[..., c] - (self.u[..., :c] * column).sum(axis=2)) / pivot[..., 0]
        self.z[:, :, c], self.u[..., c] = new, u
        self.gain += np.log(pivot[..., 0] / np.sqrt(self.ratio))
        self._unit = np.maximum(self._unit - new * new, VARIANCE_FLOOR)
        self._pull = self._pull + u[..., None] * new
        self._publish()

    def _publish(self) -> None:
        self.mean = self.centre[..., None] + self.amplitude[..., None] * self._pull
        self.variance = self.amplitude[..., None] ** 2 * self._unit

    def noise_variance(self, replicate: int, function: int) -> float:
        return float(self.ratio[replicate, function] * self.amplitude[replicate, function] ** 2)

    # Covariances ----------------------------------------------------------------------------------

    def standardised(self) -> Array:
        """Return (y - c)/s, (S, p, c)."""
        return (self.values - self.centre[..., None]) / self.amplitude[..., None]

    def _scaled(self, points: Array) -> Array:
        """Return points (S or 1, q, d) in units of the lengthscales, (S, p, q, d)."""
        return points[:, None] / self.lengthscales[:, :, None]

    def cross(self, left: Array, right: Array) -> Array:
        """Return covariances of points (S or 1, a, d) with others (S or 1, b, d): (S, p, a, b)."""
        return covariances(UNIT, self._scaled(left), self._scaled(right))

    def whiten(self, points: Array) -> Array:
        """Return (L⁻¹ k_x)ᵀ at points (S, q, d), (S, p, q, c)."""
        c = self.count
        return self.cross(points, self.points) @ self.root[..., :c, :c].mT

    # What may be asked ----------------------------------------------------------------------------

    @property
    def pulls(self) -> Array:
        """Return L⁻¹ y' of K means of every function, here one, (S, p, K, c)."""
        return self.u[..., None, : self.count]

    def at(self, actions: Actions) -> Moments:
        if self.covers_actions:
            return pick(self.mean, actions), pick(self.variance, actions)
        white = self.whiten(self._points_of(actions))
        pull = (white @ self.pulls.mT).mT
        unit = np.maximum(1 - (white * white).sum(axis=3), VARIANCE_FLOOR)
        mean = self.centre[..., None, None] + self.amplitude[..., None, None] * pull
        return mean.reshape(len(mean), -1, mean.shape[3]), self.amplitude[..., None] ** 2 * unit

    def joint(self, actions: Actions) -> Moments:
        """Return means (S, p, q) and covariances (S, p, q, q) at q actions per replicate."""
        points = self._points_of(actions)
        white = self.whiten(points)
        unit = self.cross(points, points) - white @ white.mT
        return self.at(actions)[0], self.amplitude[..., None, None] ** 2 * unit

    def at_observations(self) -> MomentsOfSlots:
        """Computed from K (K + λI)⁻¹ = I - λ (K + λI)⁻¹."""
        c = self.count
        root = self.root[..., :c, :c]
        lam = self.ratio[..., None]
        weights = (self.u[..., None, :c] @ root)[:, :, 0]
        mean = self.values - self.amplitude[..., None] * lam * weights
        unit = np.maximum(lam * (1 - lam * (root * root).sum(axis=2)), 0.0)
        return (
            pick(mean, self.alike),
            pick(self.amplitude[..., None] ** 2 * unit, self.alike),
            np.ones((self.replicates, c), dtype=bool),
        )

    def observations(self) -> Array:
        return self.units

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        """Of the models in all coordinates, those in the floats are derived; all others are 0."""
        assert isinstance(self.actions, Box)
        replicates, q, _ = points.shape
        mask = np.ones((replicates, q), dtype=bool) if mask is None else mask
        floats = self.actions.floats
        d = len(floats)
        layout = taylor(d)
        whole = taylor(points.shape[2])
        place = whole.place(np.flatnonzero(~self.actions.held))
        points = self.actions.embed(points)
        c = self.count
        shape = (replicates, self.functions, q, len(whole.steps))
        pulls = self.pulls
        count = pulls.shape[2]
        mean_models = np.zeros((*shape[:2], count, *shape[2:]))
        jet = Jet(mean_models.reshape(replicates, -1, *shape[2:]), np.zeros(shape))
        # Before any observation nothing depends on the point.
        if c == 0:
            mean_models[..., 0] = self.centre[..., None, None]
            jet.variance[..., 0] = self.amplitude[..., None] ** 2
            return jet
        if not mask.any():
            return jet
        # Functions are replicates of their own to `models_at`: every replicate's points, function
        # by function.
        function_mask = np.broadcast_to(mask[:, None], shape[:3])
        s, j, i = np.nonzero(function_mask)
        first = self.functions * np.concatenate([[0], mask.sum(axis=1).cumsum()])
        root = self.root[..., :c, :c]
        weights = (pulls @ root).reshape(-1, count, c)

        def explain(rows: Array) -> tuple[Array, Array]:
            moved = np.empty_like(rows[:, 0])
            explained = np.empty((len(rows), 1 + d, 1 + d))
            for inverse_root, start, end in zip(root, first[:-1], first[1:], strict=True):
                # as many rows as are its own, so that a replicate has the same bits in any block
                if start < end:
                    replicate_rows = rows[start:end].reshape(self.functions, -1, c)
                    white = times(replicate_rows, inverse_root.mT).reshape(
                        self.functions, -1, 1 + d, c
                    )
                    moved[start:end] = times(white[:, :, 0], inverse_root).reshape(-1, c)
                    explained[start:end] = (white @ white.mT).reshape(-1, 1 + d, 1 + d)
            return moved, explained

        # In units of the lengthscales all kernels are one; derivatives are scaled back by their
        # orders.
        observed = self._scaled(self.points).reshape(-1, c, self.d)
        lengths = self.lengthscales[s, j]
        amplitude = self.amplitude[s, j, None]
        mean, unit = models_at(
            points[s, i] / lengths, self.functions * s + j, UNIT, observed, weights, explain, floats
        )
        lengths = lengths[:, floats]
        per = np.concatenate([np.ones((len(s), 1)), 1 / lengths], axis=1)
        bends = 1 / (lengths[:, layout.rows] * lengths[:, layout.columns])
        scale = np.concatenate([per, bends], axis=1) * amplitude
        means = mean * scale[:, None]
        means[..., 0] += self.centre[s, j, None]
        mean_models.swapaxes(2, 3)[function_mask] = pad(means, place, len(whole.steps))
        jet.variance[function_mask] = pad(unit * scale * amplitude, place, len(whole.steps))
        return jet

    def covariances(self, replicate: int, function: int, indices: Indices) -> Array:
        scaled = self._sites_of(replicate) / self.lengthscales[replicate, function]
        held = self.z[replicate, function, : self.count]
        unit_covariances = UNIT(scaled[indices], scaled) - held[:, indices].T @ held
        return self.amplitude[replicate, function] ** 2 * unit_covariances

    def paths(self, z: Array, first: int = 0) -> Array:
        """r is the number of candidates: the Cholesky factor of their covariance, times z."""
        diagonal = np.arange(self.sites.shape[1])
        samples = np.empty_like(z)
        for s, i in np.ndindex(z.shape[:2]):
            scale = self.amplitude[s, first + i] ** 2
            covariance = self.covariances(s, first + i, diagonal) / scale
            covariance[diagonal, diagonal] += JITTER
            root, info = lapack().dpotrf(covariance, lower=1)
            if info:
                raise CellFailure("a posterior covariance has no Cholesky factor")
            samples[s, i] = np.sqrt(scale) * (np.tril(root) @ z[s, i])
        return samples


class SampledPosterior(FittedPosterior):
    """Noise-free posteriors of p functions, given each of K joint samples of what was observed.

    In units of s and from the centre, an observation is y = h + noise, where h is f(x) and a
    deviation of √`NUGGET`, which keeps factors regular where points repeat. With the noise variance
    λ less the nugget, λ' >= 0, and M = (K + λI)⁻¹, the posterior of h has the mean y - λ' M y and
    the covariance λ' (I - λ' M). Given h, f has the posterior of observations whose noise variance
    is the nugget: each sample of h has a mean of its own, and all share one variance.

    Args:
        model: what was observed, c times, and the hyperparameters; left as it is.
        normals: standard normal draws, (S, p, K, c).

    Attributes:
        samples: h, (S, p, K, c), in units of what is modelled.
        mean: (S, p K, M), the K of f first.
        variance: (S, p, M).
    """

    def __init__(self, model: FittedPosterior, normals: Array) -> None:
        vars(self).update(vars(model))
        c = model.count
        centre = model.centre[..., None, None]
        amplitude = model.amplitude[..., None, None]
        noise = np.maximum(model.ratio - NUGGET, 0.0)[..., None, None]
        root = model.root[..., :c, :c]
        precision = root.mT @ root
        mean = model.standardised()[:, :, None] - noise * (model.pulls @ root)
        spread = np.linalg.cholesky(np.eye(c) - noise * precision)
        h = mean + np.sqrt(noise) * (normals @ spread.mT)
        self.samples = centre + amplitude * h
        # From here on it is a fitted posterior with another λ, and K means.
        covariance = model.cross(model.points, model.points) + NUGGET * np.eye(c)
        self.root = np.linalg.inv(np.linalg.cholesky(covariance))
        self.sample_pulls = h @ self.root.mT
        white = self.root @ model.cross(model.points, self.sites)
        means = centre + amplitude * (self.sample_pulls @ white)
        self.mean = means.reshape(len(means), -1, white.shape[3])
        unit = np.maximum(1 - (white * white).sum(axis=2), VARIANCE_FLOOR)
        self.variance = amplitude[..., 0] ** 2 * unit

    def given_first(self, count: int) -> SampledPosterior:
        """Return the posterior given the first samples alone, but for its beliefs at candidates."""
        first = copy.copy(self)
        first.sample_pulls = self.sample_pulls[:, :, :count]
        return first

    @property
    def pulls(self) -> Array:
        return self.sample_pulls


def stratify_normals(generator: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    """Return standard normal draws (count, *shape): in every place one of each of as many strata of
    equal probability (a Latin hypercube, McKay et al. 1979).
    """
    from scipy.special import ndtri  # imported late: SciPy takes long to load

    strata = generator.permuted(np.broadcast_to(np.arange(count), (*shape, count)), axis=-1)
    return np.moveaxis(ndtri((strata + generator.random((*shape, count))) / count), -1, 0)
