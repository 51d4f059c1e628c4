"""Whether two rankings agree: Kendall's tau, as between measured cells and published figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array

EXACT = "Kendall's tau-b, p counted out"
NORMAL = "Kendall's tau-b, p by the normal approximation"

# With ties, all orders of so many items are tried; more of them are too many.
EXACT_TIED_ITEMS = 7
EXACT_ITEMS = 100


@dataclass(frozen=True)
class Agreement:
    """Rank agreement from -1 (reversed) over 0 to 1 (the same order); without unit. `n` counts items.

    `p` is the two-sided p of "the orders have nothing to do with each other".
    """

    tau: float
    p: float
    n: int
    method: str


def kendall(a: Values, b: Values) -> Agreement | None:
    """Kendall's tau-b of two figures for each of the same items.

    With C pairs of items in the same order on both sides, D in opposite orders and Ta, Tb pairs tied on one side only,
    tau = (C - D) / sqrt((C + D + Ta) (C + D + Tb)) (M. G. Kendall, The treatment of ties in ranking problems,
    Biometrika 33, 1945). p is counted out over all orders where nothing is tied (M. G. Kendall, A new measure of rank
    correlation, Biometrika 30, 1938) or items are few, else by the normal distribution with the variance for ties
    (M. G. Kendall, Rank Correlation Methods, 4th edition 1970, chapter 4).

    No interval is given: those known are for items drawn at random from many, and the cells of a study were chosen.

    None below two items, or where a side is tied throughout. Raises ValueError for sides of different length or a value
    that is not finite.
    """
    x, y = as_array(a), as_array(b)
    if x.size != y.size:
        raise ValueError(f"items need a figure on each side, got {x.size} and {y.size}")
    n = int(x.size)
    if n < 2:
        return None
    i, j = np.triu_indices(n, 1)
    signs_x, signs_y = np.sign(x[j] - x[i]), np.sign(y[j] - y[i])
    apart_x, apart_y = int(np.abs(signs_x).sum()), int(np.abs(signs_y).sum())
    if not apart_x or not apart_y:
        return None
    score = int((signs_x * signs_y).sum())
    tau = score / math.sqrt(apart_x * apart_y)
    if apart_x == apart_y == i.size and n <= EXACT_ITEMS:
        return Agreement(tau, _counted_p(score, n), n, EXACT)
    if n <= EXACT_TIED_ITEMS:
        return Agreement(tau, _enumerated_p(score, x, signs_y), n, EXACT)
    return Agreement(tau, _normal_p(score, x, y), n, NORMAL)


def _counted_p(score: int, n: int) -> float:
    """The chance of C - D as far from 0 among all orders of n items without ties."""
    chances = np.ones(1)  # by D, the number of pairs in opposite order
    for items in range(2, n + 1):
        chances = np.convolve(chances, np.full(items, 1 / items))
    scores = n * (n - 1) // 2 - 2 * np.arange(chances.size)
    return min(1.0, float(chances[np.abs(scores) >= abs(score)].sum()))


def _enumerated_p(score: int, x: NDArray[np.float64], signs_y: NDArray[np.float64]) -> float:
    """The same, ties or not, by trying every order of x."""
    orders = x[np.array(list(permutations(range(x.size))))]
    i, j = np.triu_indices(x.size, 1)
    scores = np.sign(orders[:, j] - orders[:, i]) @ signs_y
    return float((np.abs(scores) >= abs(score)).mean())


def _normal_p(score: int, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The same by a normal distribution, without correction for continuity."""
    from scipy.special import ndtr

    n = float(x.size)
    t, u = (np.unique(side, return_counts=True)[1].astype(np.float64) for side in (x, y))

    def sums(counts: NDArray[np.float64]) -> tuple[float, float, float]:
        pairs = counts * (counts - 1)
        return float(pairs.sum()), float((pairs * (counts - 2)).sum()), float((pairs * (2 * counts + 5)).sum())

    (t2, t3, tv), (u2, u3, uv) = sums(t), sums(u)
    variance = (
        (n * (n - 1) * (2 * n + 5) - tv - uv) / 18 + t3 * u3 / (9 * n * (n - 1) * (n - 2)) + t2 * u2 / (2 * n * (n - 1))
    )
    return min(1.0, 2 * float(ndtr(-abs(score) / np.sqrt(variance))))
