"""Effects of the order of runs: a trend over them, neighbours that resemble each other, and runs far off the others.

They are shown and said; nothing here takes a run out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array

FEWEST = 8  # of runs, for a trend: with fewer, the correlation of neighbours that it is judged by is anybody's guess
FEWEST_MARKED = 5  # of values: half of fewer is no majority to be far from
MARK = 3.5  # the modified z-score beyond which Iglewicz and Hoaglin call a value a potential outlier
MOST_CORRELATED = 0.9  # a series of runs is short: a larger estimate is a trend or a step rather than a correlation


@dataclass(frozen=True)
class Trend:
    """What a step further in the order adds, as a share of the mean: `slope` with its interval, and p of no trend.

    `correlation` is that of neighbours which p and the interval allow for.
    """

    slope: float
    lo: float
    hi: float
    p: float
    n: int
    correlation: float


@dataclass(frozen=True)
class Autocorrelation:
    """The correlation of neighbours in time: `rho`, mended for its bias; `raw` is not. `pairs` of neighbours are in it.

    `standard_error` is that of `rho`, sqrt((1 - rho^2) / pairs).
    """

    rho: float
    raw: float
    pairs: int
    standard_error: float


@dataclass(frozen=True)
class Outliers:
    """The modified z-score of each value, and the indices of those beyond 3.5 to either side."""

    scores: tuple[float, ...]
    marked: tuple[int, ...]


def unbiased_correlation(raw: float, length: float, series: int = 1) -> float:
    """The lag-1 correlation r of series of `length` values less its bias: (r + 1 / n) / (1 - (2 + 2 / k) / n).

    Taking off the mean of a short series makes its neighbours differ. For one series E(r) = rho - (1 + 4 rho) / n,
    nearly (M. G. Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41, 1954; F. H. C. Marriott,
    J. A. Pope, the same volume). Of this 1 + 2 rho is the bias of the two sums that r is the ratio of, and 2 rho that
    of taking their ratio, which goes with the number k of series summed over. Within -1 and 1.

    Raises ValueError for 4 values or fewer.
    """
    if not length > 4:
        raise ValueError(f"the bias of a correlation is known for more than 4 values, got {length:g}")
    return min(max((raw + 1 / length) / (1 - (2 + 2 / series) / length), -1.0), 1.0)


def autocorrelation(series: Sequence[Values]) -> Autocorrelation | None:
    """The correlation of neighbours in several series, each in order of time: one figure for all of them.

    sum e[t] e[t + 1] / sum e[t]^2 over all series, e being what is left when each series' own mean is taken off;
    then `unbiased_correlation` at the mean length of the k series. Assumes one correlation for all, as of runs on one
    machine.

    None where series have 4 values or fewer on average, or do not vary. Raises ValueError where a value is not finite.
    """
    rows = [array for array in map(as_array, series) if array.size > 1]
    total = sum(array.size for array in rows)
    if not rows or total <= 4 * len(rows):
        return None
    largest = max(float(np.abs(array).max()) for array in rows) or 1.0
    residuals = [array / largest - (array / largest).mean() for array in rows if bool((array != array[0]).any())]
    squares = sum(float((each * each).sum()) for each in residuals)
    if squares == 0:
        return None
    raw = sum(float((each[1:] * each[:-1]).sum()) for each in residuals) / squares
    rho, pairs = unbiased_correlation(raw, total / len(rows), len(rows)), total - len(rows)
    return Autocorrelation(rho, raw, pairs, math.sqrt((1 - rho * rho) / pairs))


def _slopes(array: NDArray[np.float64], order: NDArray[np.float64]) -> NDArray[np.float64]:
    """The slopes between all pairs, in order of size."""
    first, second = np.triu_indices(array.size, 1)
    slopes: NDArray[np.float64] = np.sort((array[second] - array[first]) / (order[second] - order[first]))
    return slopes


def _inflation(n: int, correlation: float) -> float:
    """By how much correlated neighbours multiply the variance of S (Hamed and Rao 1998, rho[i] = correlation^i)."""
    lags = np.arange(1, n - 2)
    weights = (n - lags) * (n - lags - 1) * (n - lags - 2) * correlation**lags
    return 1 + 2 * float(weights.sum()) / (n * (n - 1) * (n - 2))


def trend(values: Values, order: Values, confidence: float, correlation: float | None = None) -> Trend | None:
    """Whether values rise or fall over their order, such as those of one cell's runs over the time of a study.

    The slope is the median of the slopes of all pairs (P. K. Sen, Estimates of the regression coefficient based on
    Kendall's tau, JASA 63, 1968), p is that of the Mann-Kendall test: S = the pairs that rise less those that fall,
    z = (S -+ 1) / sd(S), sd corrected for ties, and for correlated neighbours by the factor of K. H. Hamed, A. R. Rao,
    A modified Mann-Kendall trend test for autocorrelated data, Journal of Hydrology 204, 1998, with the correlations of
    a first-order autoregression, rho^lag. The interval holds the slopes that this sd does not rule out. All three are
    then divided by |mean|.

    `correlation` is that of neighbours, best pooled over many series; without one it is estimated from what the slope
    leaves, mended for bias and not below 0. One outlier moves the slope little. Assumes nothing of the distribution;
    simulated for 12 to 60 runs, 5 % is 4 to 9 % with an estimated correlation of up to 0.5, and 3 to 5 % with a known
    one.

    None for fewer than 8 values, a mean of 0 or values that are all the same. Raises ValueError for an order that does
    not rise, sides of different length, a confidence or a correlation outside its range, or a value that is not finite.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, got {confidence}")
    if correlation is not None and not 0 <= correlation < 1:
        raise ValueError(f"the correlation of neighbours is from 0 to below 1, got {correlation}")
    array, places = as_array(values), as_array(order)
    if array.size != places.size:
        raise ValueError(f"each value has its place in the order, got {array.size} and {places.size}")
    if not (np.diff(places) > 0).all():
        raise ValueError("the order of values has to rise")
    mean = float((array / max(array.size, 1)).sum())
    if array.size < FEWEST or not mean or bool((array == array[0]).all()):
        return None
    from scipy.special import ndtr, ndtri  # importing scipy takes longer than most commands that never need it

    slopes = _slopes(array / abs(mean), places)
    slope = float(np.median(slopes))
    if correlation is None:
        left = autocorrelation([array / abs(mean) - slope * places])
        correlation = min(max(left.rho, 0.0), MOST_CORRELATED) if left else 0.0
    n, ties = array.size, np.unique(array, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    sd = math.sqrt(variance * _inflation(n, correlation))
    s = float(np.sign(slopes).sum())
    z = (s - math.copysign(1, s)) / sd if s else 0.0
    reach = float(ndtri((1 + confidence) / 2)) * sd
    ranks = np.arange(1, slopes.size + 1)
    low, high = np.interp([(slopes.size - reach) / 2, (slopes.size + reach) / 2 + 1], ranks, slopes)
    return Trend(slope, float(low), float(high), float(2 * ndtr(-abs(z))), n, correlation)


def outliers(residuals: Values) -> Outliers | None:
    """Mark values far from the others: |0.6745 (x - median) / MAD| above 3.5, MAD the median distance to the median.

    B. Iglewicz, D. C. Hoaglin, How to Detect and Handle Outliers, 1993. Where more than half of the values are equal
    and MAD is 0, 1.2533 times the mean distance takes the place of MAD / 0.6745, as in IBM SPSS. A mark is a question,
    not an answer: the value is kept.

    None for fewer than 5 values. Raises ValueError where a value is not finite.
    """
    array = as_array(residuals)
    if array.size < FEWEST_MARKED:
        return None
    largest = float(np.abs(array).max()) or 1.0
    distances = array / largest - np.median(array / largest)
    spread = float(np.median(np.abs(distances))) / 0.6745 or math.sqrt(math.pi / 2) * float(np.abs(distances).mean())
    scores = distances / spread if spread else np.zeros_like(array)
    return Outliers(tuple(map(float, scores)), tuple(map(int, np.flatnonzero(np.abs(scores) > MARK))))
