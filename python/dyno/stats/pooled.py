"""One figure over many columns (cells, comparisons) that were measured in the same blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.ratios import UNPAIRED, LogShift

POOLED = "Student's t on the blocks' means of logs"


@dataclass(frozen=True)
class PooledMean:
    """The mean of the columns' means. `columns` are the places of those that are in it; `n` counts blocks."""

    centre: float
    error: float
    degrees: float
    n: int
    columns: tuple[int, ...]

    def shift(self) -> LogShift:
        """As the log of a ratio, where the values are differences of logs."""
        return LogShift(self.centre, self.error, self.degrees, self.n, POOLED)


def pooled_mean(values: NDArray[np.float64]) -> PooledMean | None:
    """The mean over all columns of (blocks, columns), each weighing alike, and its standard error. NaN where missing.

    What hits a whole block hits all its columns, so the block is what is repeated: with d_bc the values, m_c the mean
    of the n_c that column c has, and C columns, the variance is the sum over blocks of the squares of

        u_b = 1/C sum_c sqrt(n_c / (n_c - 1)) (d_bc - m_c) / n_c.

    Where nothing is missing that is s^2 / n of the blocks' means, and its Student's t is that of a plain mean of these.
    Else it is the estimate for clustered values (K.-Y. Liang, S. L. Zeger, Longitudinal data analysis using generalized
    linear models, Biometrika 73, 1986), with the root in front so that it is unbiased for independent columns. Degrees
    of freedom are one fewer than the blocks of the column that has the fewest. A column with fewer than half of the
    blocks that the fullest one has, or with fewer than two, is left out: it would decide for all.

    Assumes blocks that are independent, and means of theirs that are roughly normal.

    None where no column has two values. Raises ValueError for values that are not (blocks, columns).
    """
    if values.ndim != 2:
        raise ValueError(f"values are (blocks, columns), got {values.ndim} dimensions")
    counts = np.isfinite(values).sum(axis=0)
    kept = np.flatnonzero((counts >= 2) & (2 * counts >= counts.max(initial=0)))
    if not kept.size:
        return None
    left, n = values[:, kept], counts[kept]
    there = np.isfinite(left)
    means = np.where(there, left, 0.0).sum(axis=0) / n
    residuals = np.where(there, left - means, 0.0)
    of_blocks = (residuals * np.sqrt(n / (n - 1)) / n).sum(axis=1) / kept.size
    error = math.sqrt(float((of_blocks**2).sum()))
    fewest = int(n.min())
    # What summing leaves of equal values is no noise.
    if error <= 1e-13 * max(1.0, float(np.abs(left[there]).max())):
        error = 0.0
    return PooledMean(float(means.mean()), error, fewest - 1.0, fewest, tuple(int(place) for place in kept))


def difference_of_pooled(a: PooledMean, b: PooledMean) -> LogShift:
    """The mean of b less that of a, of blocks that have nothing in common: Welch's degrees of freedom."""
    error = math.hypot(a.error, b.error)
    degrees = None
    if error:
        share = a.error**2 / error**2
        degrees = 1 / (share**2 / a.degrees + (1 - share) ** 2 / b.degrees)
    return LogShift(b.centre - a.centre, error, degrees, min(a.n, b.n), UNPAIRED)
