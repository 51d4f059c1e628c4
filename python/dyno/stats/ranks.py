"""Comparisons that do without a bell shape: by ranks, with Hodges and Lehmann's estimate of the ratio.

They stand beside the ratios of `ratios` where residuals are far from normal. An outlier counts by its rank alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import (
    Values,
    as_array,
    check_share,
    exp_held,
    logs_of,
    normal_score,
    normal_share,
    paired_logs,
)

PAIRED_RANKS = "Wilcoxon's signed ranks of the logs of ratios within blocks"
UNPAIRED_RANKS = "Mann and Whitney's ranks, not paired"

# Up to so many values the distribution of the ranks is counted out; beyond, the normal one is as good.
EXACT_PAIRS = 200
EXACT_VALUES = 100

# Shapiro and Wilk's test finds next to nothing among fewer values, and among many also what harms no interval.
NORMALITY_MIN_N = 8
NORMALITY_P = 0.01
NORMALITY_W = 0.95


@dataclass(frozen=True)
class RankRatio:
    """b / a by ranks; without unit. `n` counts pairs, or the values of the smaller side where unpaired.

    `lo` and `hi` are None where so few values bound no interval of that confidence (95 % needs six pairs, or four
    values a side). `method` says whether p was counted out, and what was done with ties.
    """

    ratio: float
    lo: float | None
    hi: float | None
    n: int
    p: float
    method: str


@dataclass(frozen=True)
class Normality:
    """Shapiro and Wilk's W (1 for a perfect bell shape) and the p of "these values are normal"; without unit."""

    n: int
    w: float
    p: float


def paired_ranks(a: Values, b: Values, confidence: float) -> RankRatio | None:
    """Give b / a of values in pairs (same block) by Wilcoxon's signed ranks.

    The differences d = ln b - ln a are ranked by size, ties by their mean rank, those of 0 left out; p is the chance,
    over all 2^n ways to give them signs, of a sum of positive ranks as far from its middle (F. Wilcoxon, Individual
    comparisons by ranking methods, Biometrics Bulletin 1, 1945). The ratio is exp of the median of (di + dj) / 2 over
    all i <= j, and its interval lies between two of those means (J. L. Hodges, E. L. Lehmann, Estimates of location
    based on rank tests, Annals of Mathematical Statistics 34, 1963; M. Hollander, D. A. Wolfe, Nonparametric
    Statistical Methods, 1973, sections 3.1 to 3.3). The interval holds the truth at least as often as it says.

    Assumes independent differences, distributed symmetrically.

    None for fewer than two pairs. Raises ValueError as `paired_ratio` does.
    """
    check_share("confidence", confidence)
    differences = paired_logs(a, b)
    n = int(differences.size)
    if n < 2:
        return None
    moved = differences[differences != 0]
    doubled, ties = _doubled_ranks(np.abs(moved), _rounding(logs_of(a), logs_of(b)))
    at = int(doubled[moved > 0].sum())
    untied = 2 * np.arange(1, n + 1)
    if exact := n <= EXACT_PAIRS:
        p = _counted_p(_signed_rank_chances(doubled), at)
        edge = _counted_edge(_signed_rank_chances(untied)[::2], confidence)
    else:
        p = _normal_p(at, *_signed_rank_moments(doubled))
        edge = _normal_edge(*_signed_rank_moments(untied), confidence)
    first, second = np.triu_indices(n)
    means = np.sort((differences[first] + differences[second]) / 2)
    return _rank_ratio(means, edge, n, p, _said(PAIRED_RANKS, exact, ties, n - int(moved.size)))


def unpaired_ranks(a: Values, b: Values, confidence: float) -> RankRatio | None:
    """Give b / a of values without pairs by the ranks of Mann and Whitney.

    All values are ranked together, ties by their mean rank; p is the chance, over all ways to choose which of them are
    b's, of a sum of b's ranks as far out, the smaller tail counted twice (H. B. Mann, D. R. Whitney, On a test of
    whether one of two random variables is stochastically larger than the other, Annals of Mathematical Statistics 18,
    1947). The ratio is exp of the median of all ln b - ln a, and its interval lies between two of them (Hollander and
    Wolfe 1973, sections 4.1 to 4.3). The interval holds the truth at least as often as it says.

    Assumes independent values, and logs distributed alike on both sides but for a shift.

    None where a side has fewer than two values. Raises ValueError as `unpaired_ratio` does.
    """
    check_share("confidence", confidence)
    logs_a, logs_b = logs_of(a), logs_of(b)
    n = int(min(logs_a.size, logs_b.size))
    if n < 2:
        return None
    chosen = int(logs_b.size)
    doubled, ties = _doubled_ranks(np.concatenate([logs_b, logs_a]), _rounding(logs_a, logs_b))
    at = int(doubled[:chosen].sum())
    untied = 2 * np.arange(1, doubled.size + 1)
    least = chosen * (chosen + 1)
    if exact := doubled.size <= EXACT_VALUES:
        chances = _rank_sum_chances(untied, chosen)
        p = _counted_p(_rank_sum_chances(doubled, chosen) if ties else chances, at)
        edge = _counted_edge(chances[least::2], confidence)
    else:
        p = _normal_p(at, *_rank_sum_moments(doubled, chosen))
        mean, sd = _rank_sum_moments(untied, chosen)
        edge = _normal_edge(mean - least, sd, confidence)
    differences = np.sort((logs_b[:, None] - logs_a[None, :]).ravel())
    return _rank_ratio(differences, edge, n, p, _said(UNPAIRED_RANKS, exact, ties, 0))


def normality(residuals: Values) -> Normality | None:
    """Shapiro and Wilk's test of a bell shape (An analysis of variance test for normality, Biometrika 52, 1965).

    W compares the spread that the ordered values would have under a bell shape with the one that they have; p follows
    J. P. Royston (Remark AS R94, Applied Statistics 44, 1995). Residuals of a fit hang together a little, so p is a
    guide.

    None for fewer than three values, or where all are equal. Raises ValueError where a value is not finite.
    """
    array = as_array(residuals)
    if array.size < 3 or array.min() == array.max():
        return None
    from scipy.stats import shapiro  # the slowest part of scipy to import

    # In units of the largest, about the middle one: the square of a value can be too large or too small to hold.
    centred = array / float(np.abs(array).max())
    centred = centred - float(np.median(centred))
    spread = float(np.abs(centred).max())
    if not spread:
        return None
    found = shapiro(centred / spread)
    return Normality(int(array.size), float(found.statistic), float(found.pvalue))


def far_from_normal(residuals: Values) -> bool:
    """Whether a rank test should stand beside Student's t: at least 8 residuals, p < 0.01 and W < 0.95.

    p alone would flag, in a large study, departures that harm no interval; W alone would flag few values by luck.
    Fewer than 8 can neither show nor refute a bell shape: False then means that nothing was shown. Simulated, it flags
    1 % of normal samples or fewer, and of samples with two moods (3 runs of 10 shifted by 15 times the noise) 80 % at 8
    and 98 % at 12.

    Raises ValueError where a value is not finite.
    """
    found = normality(residuals)
    return found is not None and found.n >= NORMALITY_MIN_N and found.p < NORMALITY_P and found.w < NORMALITY_W


def _rounding(*logs: NDArray[np.float64]) -> float:
    """How far apart rounding can put two logs, or differences of logs, that are equal in another unit."""
    return 8 * float(np.finfo(np.float64).eps) * max(float(np.abs(side).max()) for side in logs)


def _doubled_ranks(values: NDArray[np.float64], rounding: float) -> tuple[NDArray[np.int64], bool]:
    """Twice the rank of each value, ties at the mean of theirs (doubled, it stays whole), and if there are any."""
    if not values.size:
        return np.zeros(0, dtype=np.int64), False
    order = np.argsort(values, kind="stable")
    group = np.concatenate([[0], np.cumsum(np.diff(values[order]) > rounding)])
    counts = np.bincount(group)
    doubled = np.empty(values.size, dtype=np.int64)
    doubled[order] = (2 * np.cumsum(counts) - counts + 1)[group]
    return doubled, bool((counts > 1).any())


def _signed_rank_chances(doubled: NDArray[np.int64]) -> NDArray[np.float64]:
    """The chance of each sum of positive doubled ranks, from 0 on, were every sign a coin's."""
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[:-rank]
        chances = (chances + moved) / 2
    return chances


def _signed_rank_moments(doubled: NDArray[np.int64]) -> tuple[float, float]:
    """Mean and standard deviation of that sum."""
    return float(doubled.sum()) / 2, math.sqrt(float((doubled.astype(np.float64) ** 2).sum())) / 2


def _rank_sum_chances(doubled: NDArray[np.int64], chosen: int) -> NDArray[np.float64]:
    """The chance of each sum, from 0 on, of `chosen` of the doubled ranks drawn blindly."""
    # By how many were drawn so far.
    chances: NDArray[np.float64] = np.zeros((chosen + 1, int(doubled.sum()) + 1))
    chances[0, 0] = 1.0
    missing = chosen - np.arange(chosen + 1)[:, None]
    for seen, rank in enumerate(doubled):
        drawn = np.clip(missing / (doubled.size - seen), 0.0, 1.0) * chances
        chances = chances - drawn
        chances[1:, rank:] += drawn[:-1, :-rank]
    all_drawn: NDArray[np.float64] = chances[chosen]
    return all_drawn


def _rank_sum_moments(doubled: NDArray[np.int64], chosen: int) -> tuple[float, float]:
    """Mean and standard deviation of that sum."""
    left = doubled.size - chosen
    return chosen * float(doubled.mean()), math.sqrt(chosen * left / (doubled.size - 1) * float(doubled.var()))


def _counted_p(chances: NDArray[np.float64], at: int) -> float:
    """The chance of a sum as far out as `at`, the smaller tail counted twice."""
    return min(1.0, 2 * min(float(chances[: at + 1].sum()), float(chances[at:].sum())))


def _counted_edge(chances: NDArray[np.float64], confidence: float) -> int:
    """The largest sum so low that the chance of it and of all below is at most (1 - confidence) / 2; else -1."""
    tail = (1 - confidence) / 2 * (1 + 1e-9)  # a chance of just that size is one, whatever the rounding
    return int(np.searchsorted(np.cumsum(chances), tail, side="right")) - 1


def _normal_p(at: int, mean: float, sd: float) -> float:
    """As `_counted_p` by the normal distribution; doubled sums lie two apart, so half a step is 1."""
    return min(1.0, 2 * normal_share((1 - abs(at - mean)) / sd)) if sd else 1.0


def _normal_edge(mean: float, sd: float, confidence: float) -> int:
    """As `_counted_edge` by the normal distribution, from the moments of a doubled sum."""
    return max(-1, math.floor((mean - 1 - normal_score((1 + confidence) / 2) * sd) / 2))


def _said(what: str, exact: bool, ties: bool, zeros: int) -> str:
    parts = [what, "p counted out" if exact else "p by the normal approximation"]
    if ties:
        parts.append("ties at their mean rank")
    if zeros:
        parts.append(f"{zeros} without difference left out of p")
    return ", ".join(parts)


def _rank_ratio(ordered: NDArray[np.float64], edge: int, n: int, p: float, method: str) -> RankRatio:
    lo, middle, hi = (exp_held(float(each)) for each in (ordered[edge], np.median(ordered), ordered[-1 - edge]))
    return RankRatio(middle, lo, hi, n, p, method) if edge >= 0 else RankRatio(middle, None, None, n, p, method)
