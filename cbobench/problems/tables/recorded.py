"""The two recorded data sets of Zhou & Ji (2022), and look-alikes of both for machines that do not
have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.data import DATA_SETS, Site
from cbobench.problems.tables.read import read_table
from cbobench.problems.tables.readings import (
    Normalise,
    Table,
    TabularProblem,
    normalised_covariance,
)
from cbobench.rng import generator

# enters a cell's id: raise the number when a look-alike's numbers change
LOOK_ALIKE = "look-alike-1"
Source = Literal["original", "look-alike"]


@dataclass(kw_only=True)
class Recorded(TabularProblem):
    """What both data sets share.

    The paper's kernel is "the empirical covariance of the normalised" samples and does not say how
    they are normalised. z-scores (the default) are what the public scripts of Chowdhury & Gopalan
    (2019) for both data sets take; all prior variances are then 1, and the first action is a draw
    among all.
    """

    data: Source = param(
        "original", "the recorded file, or a look-alike made from its published facts"
    )
    normalise: Normalise = param(
        "z-score",
        "how samples are normalised for the kernel: by arm (z-score, min-max, max), or all by "
        "one maximum",
    )
    unit_variance: bool = param(
        False, "divide the kernel so that its largest prior variance is 1 (z-scores have it)"
    )

    def identity(self) -> dict[str, Any]:
        """The original's hash, or the look-alike's version."""
        if self.data == "look-alike":
            return {"data": LOOK_ALIKE}
        return {"data": DATA_SETS[self.name].sha256}

    def kernel(self, samples: Array, label: str) -> Array:
        """The covariance of the normalised samples (rows, n)."""
        return normalised_covariance(samples, self.normalise, label, self.unit_variance)

    def find_table(self, data: Site, imitate: Callable[[], Table]) -> Table:
        """The recorded table, or the look-alike that `imitate` makes: its covariance is the known
        one of z-scores, others are of its rows.
        """
        if self.data == "original":
            return self.read(data)
        table = imitate()
        if self.normalise == "z-score":
            return table
        # Of other normalisations no spectrum is published: rows stand in.
        assert table.rows is not None
        return replace(table, covariance=self.kernel(table.rows, "look-alike"))

    def read(self, data: Site) -> Table:
        """The recorded table."""
        raise NotImplementedError


@PROBLEMS.register("light-sensors")
@dataclass(kw_only=True)
class LightSensors(Recorded):
    """41 light sensors: f is the mean of 192 test samples, the kernel the covariance of 601
    normalised train samples.

    The constraint is g = -f + B/2 with B the largest mean; noise resamples test rows.
    """

    source = "Zhou & Ji (2022) 5.1"
    about = "41 light sensors, empirical covariance, noise by resampling readings, threshold B/2"
    stated_facts = ("n = 41, d = 2", "1", "19 of 41", "945.54")

    h: float = param(0.5, "threshold as a share of B, the largest mean", above=0.0, below=1.0)
    seed_size: int = param(
        5, "how many random feasible sensors a safe method may start from", at_least=1
    )

    def prepare(self, data: Site) -> None:
        table = self.find_table(data, light_look_alike)
        self.take(table, self.h * float(table.mean.max()))

    def read(self, data: Site) -> Table:
        from scipy.io import loadmat

        path = data.find("light-sensors")
        try:
            record: Any = loadmat(path)["data"][0, 0]
            train = np.asarray(record["train"][0, 0]["sensordata"], dtype=float)
            test = np.asarray(record["test"][0, 0]["sensordata"], dtype=float)
            points = np.asarray(record["coords"], dtype=float)
        except (KeyError, ValueError, IndexError) as error:
            raise Misuse(f"{path} has no sensor data where it should ({error})") from error
        names = tuple(f"sensor {i}" for i in range(test.shape[1]))
        return Table(
            mean=test.mean(axis=0),
            covariance=self.kernel(train, "train samples"),
            rows=test,
            names=names,
            points=points,
        )


@PROBLEMS.register("stocks")
@dataclass(kw_only=True)
class Stocks(Recorded):
    """29 stocks: f is the mean price over 823 days, the kernel the covariance of normalised prices.

    The constraint is g = -f + 100; noise resamples days.
    """

    source = "Zhou & Ji (2022) App. D"
    about = "29 stock prices, empirical covariance, noise by resampling days, threshold 100"
    stated_facts = ("n = 29", "1", "15 of 29", "237.33")

    h: float = param(100.0, "threshold in the prices' units", above=0.0)
    seed_size: int = param(
        5, "how many random feasible stocks a safe method may start from", at_least=1
    )

    def prepare(self, data: Site) -> None:
        self.take(self.find_table(data, stocks_look_alike), self.h)

    def read(self, data: Site) -> Table:
        frame = read_table(data.find("stocks"), "prices", ignore=["Date"])
        prices = frame.to_numpy(dtype=float)
        names = tuple(map(str, frame.columns))
        return Table(
            mean=prices.mean(axis=0),
            covariance=self.kernel(prices, "prices"),
            rows=prices,
            names=names,
        )


STOCKS = (
    "BA 237.33, GS 205.08, UNH 191.33, MMM 188.12, HD 154.70, AAPL 146.85, MCD 142.55, IBM 139.43, "
    "JNJ 121.13, TRV 119.15, UTX 112.19, CAT 110.00, V 105.32, CVX 104.87, DIS 102.26, JPM 87.04, "
    "AXP 83.01, PG 82.10, WMT 78.84, XOM 77.12, MSFT 76.94, NKE 62.28, MRK 59.85, VZ 47.31, "
    "KO 41.94, INTC 39.52, CSCO 34.85, PFE 34.08, GE 20.04"
)
STOCK_MEANS = {name: float(mean) for name, mean in map(str.split, STOCKS.split(", "))}
"""As published, by stock."""


def stocks_look_alike() -> Table:
    """Rows with the means, largest residual, size and correlation spectrum of the stock data;
    Gaussian residuals.
    """
    means = np.array(list(STOCK_MEANS.values()))
    eigenvalues = spectrum(len(means), (21.38, 2.79, 1.57), 9.6e3, bend=2.708844142201823)
    return _look_alike("stocks", means, 823, eigenvalues, 203.29, tuple(STOCK_MEANS))


def light_look_alike() -> Table:
    """Rows with the extreme means, largest residual, size and correlation spectrum of the light
    data.

    Known of the means: the best two (sensors 3 and 39), and that 19 of 41 reach B/2, the nearest at
    500.48 above and 449.60 below. The others are evenly spaced between those and the range's ends
    (assumed: 165 at the bottom).
    """
    means = np.empty(41)
    means[3] = 945.54
    means[39] = 912.93
    # 17 more reach B/2, and 22 do not.
    other_means = np.concatenate([np.linspace(500.48, 894.0, 17), np.linspace(165.0, 449.60, 22)])
    other_sensors = np.delete(np.arange(41), [3, 39])
    means[other_sensors] = generator("light-sensors", "look-alike", "order").permutation(
        other_means
    )
    names = tuple(f"sensor {i}" for i in range(41))
    eigenvalues = spectrum(len(means), (26.91, 9.94, 1.03), 4.75e5, bend=1.4845736870214743)
    return _look_alike("light-sensors", means, 192, eigenvalues, 835.28, names)


def spectrum(n: int, top: tuple[float, ...], condition: float, bend: float) -> Array:
    """Eigenvalues (n,) of a correlation, of which the leading ones and the condition number are
    known.

    Args:
        top: the leading ones, falling.
        condition: the largest over the smallest.
        bend: how fast the others fall, from below the last leading one down to the smallest; the
            root that makes the trace n, computed once (a solver loads in 0.3 s).
    """
    lowest = top[0] / condition
    tail = lowest * (0.95 * top[-1] / lowest) ** (np.linspace(1, 0, n - len(top)) ** bend)
    return np.concatenate([top, tail])


def _look_alike(
    name: str, means: Array, rows: int, eigenvalues: Array, largest: float, names: tuple[str, ...]
) -> Table:
    """Gaussian rows around `means` (n,) whose correlation has these eigenvalues (n,), brought to a
    trace of n.

    Residual spread is proportional to the mean (assumed), scaled so that the largest residual is
    `largest`.
    """
    n = len(means)
    gen = generator(name, "look-alike", "rows")
    covariance = random_correlation(eigenvalues * (n / eigenvalues.sum()), gen)
    # Rotations leave rounding: symmetric, and 1 on the diagonal, to the last bit.
    covariance = (covariance + covariance.T) / 2
    np.fill_diagonal(covariance, 1.0)
    residuals = gen.standard_normal((rows, n)) @ np.linalg.cholesky(covariance).T * means
    # So that the means of the rows are the stated ones.
    residuals -= residuals.mean(axis=0)
    residuals *= largest / np.abs(residuals).max()
    sample = means + residuals
    return Table(mean=sample.mean(axis=0), covariance=covariance, rows=sample, names=names)


def random_correlation(eigenvalues: Array, gen: np.random.Generator) -> Array:
    """Return a random correlation matrix (n, n) by Davies & Higham (2000), BIT 40(4).

    A random rotation of the eigenvalues, and then plane rotations that make the diagonal 1, one
    entry each. The bits are those of `scipy.stats.random_correlation`, whose steps and products
    these are: to load it takes longer.

    Args:
        eigenvalues: (n,), not negative, with sum n.
        gen: draws n² normal numbers.
    """
    n = len(eigenvalues)
    q, r = np.linalg.qr(gen.normal(size=(n, n)))
    q *= np.sign(r.diagonal())  # else the rotations were not uniform
    matrix = np.dot(np.dot(q, np.diag(eigenvalues)), q.T)
    for i in range(n - 1):
        if matrix[i, i] != 1:
            # The trace is n, so that another entry lies on the other side of 1; without it,
            # the last one is taken.
            is_above = matrix[i, i] > 1
            j = next(
                (
                    j
                    for j in range(i + 1, n)
                    if (matrix[j, j] < 1 if is_above else matrix[j, j] > 1)
                ),
                n - 1,
            )
            _rotate(matrix, i, j)
    return matrix


def _rotate(matrix: Array, i: int, j: int) -> None:
    """Rotate the plane of i and j so that entry i of the diagonal becomes 1."""
    from scipy.linalg.blas import drot  # its products are fused; NumPy's would have other last bits

    n = len(matrix)
    first = matrix[i, i] - 1.0
    second = matrix[j, j] - 1.0
    between = matrix[i, j]
    if second == 0:
        cosine = 0.0
        sine = 1.0
    else:
        root = math.sqrt(max(between**2 - first * second, 0))
        tangent = (between + math.copysign(root, between)) / second  # the root without cancellation
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        sine = 1.0 if cosine == 0 else cosine * tangent
    flat = matrix.ravel()
    for step, stride in ((n, 1), (1, n)):  # rows, then columns
        places = {"offx": i * step, "incx": stride, "offy": j * step, "incy": stride}
        drot(flat, flat, cosine, -sine, n=n, **places, overwrite_x=True, overwrite_y=True)
