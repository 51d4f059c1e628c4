"""The same rules for many studies at once, a row each: simulations ask them millions of times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dyno.stats.arrays import LARGEST_EXPONENT, t_quantile


@dataclass(frozen=True, eq=False)
class Ratios:
    """The figures of `Ratio`, an array each, with the shape of the rows; without unit."""

    ratio: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    p: NDArray[np.float64]


def paired_ratios(a: ArrayLike, b: ArrayLike, confidence: float) -> Ratios | None:
    """As `paired_ratio`, along the last axis of a and b.

    None for fewer than two pairs. Raises ValueError for sides of different shape, a value that is not above 0 or not
    finite, or a confidence outside (0, 1).
    """
    sides = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if sides[0].shape != sides[1].shape or not sides[0].ndim:
        raise ValueError(f"pairs need sides of the same shape, got {sides[0].shape} and {sides[1].shape}")
    if not all((np.isfinite(side) & (side > 0)).all() for side in sides):
        raise ValueError("a ratio on the log scale needs values above 0 that are finite")
    differences = np.log(sides[1]) - np.log(sides[0])
    n = differences.shape[-1]
    if n < 2:
        return None
    from scipy.special import stdtr

    still = (differences == differences[..., :1]).all(axis=-1)  # the rounding of a sum would pass for noise
    centre = np.where(still, differences[..., 0], differences.mean(axis=-1))
    error = np.where(still, 0.0, differences.std(axis=-1, ddof=1) / np.sqrt(n))
    half = t_quantile(confidence, n - 1) * error
    t = np.abs(centre) / np.where(error > 0, error, 1.0)
    p = np.where(error > 0, 2 * stdtr(n - 1, -t), np.where(centre == 0, 1.0, 0.0))
    return Ratios(_exp(centre), _exp(centre - half), _exp(centre + half), p)


def holm_rows(p_values: ArrayLike) -> NDArray[np.float64]:
    """As `holm`, along the last axis; none may be missing. Raises ValueError for a p outside [0, 1]."""
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("a p-value lies between 0 and 1")
    order = np.argsort(p, axis=-1, kind="stable")
    ordered = np.take_along_axis(p, order, axis=-1)
    steps = np.minimum(1.0, ordered * np.arange(p.shape[-1], 0, -1))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.maximum.accumulate(steps, axis=-1), axis=-1)
    return adjusted


def _exp(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    held: NDArray[np.float64] = np.exp(np.minimum(exponents, LARGEST_EXPONENT))
    return held
