"""What a count of trials says of how often something fails, and how long the middle one of them took."""

from __future__ import annotations

from collections.abc import Sequence

from dyno.stats.arrays import check_share


def bound_of_none(trials: int, confidence: float) -> float:
    """Where nothing failed in n trials, at this confidence at most this share of them would.

    1 - (1 - confidence)^(1/n): at it, n trials would all go well no more often than 1 - confidence. It is the upper
    limit of C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26, 1934, where nothing was hit. At 95 % it is less than 3/n, by less than a tenth from 16
    trials on: the rule of three (J. A. Hanley, A. Lippman-Hand, If nothing goes wrong, is everything all right?
    Interpreting zero numerators, JAMA 249 (13), 1743-1745, 1983). Raises ValueError.
    """
    check_share("confidence", confidence)
    return float(1 - (1 - confidence) ** (1 / _some(trials)))


def median_interval(values: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Two of the values, between which the median lies at this confidence at least, whatever the distribution.

    The k-th from both ends, where k is the largest for which a fair coin falls on one side fewer than k times of n with
    a chance of at most (1 - confidence) / 2 (W. J. Conover, Practical Nonparametric Statistics, 3rd ed., 1999, 3.2).
    Values that are known only to be large may be infinite. None where there are too few.
    """
    from scipy.stats import binom

    check_share("confidence", confidence)
    n = len(values)
    tail = (1 - confidence) / 2
    fits = [k for k in range(1, n // 2 + 1) if binom.cdf(k - 1, n, 0.5) <= tail]
    if not fits:
        return None
    ordered = sorted(values)
    return ordered[fits[-1] - 1], ordered[n - fits[-1]]


def _some(trials: int) -> int:
    if trials < 1:
        raise ValueError(f"nothing can be said of {trials} trials")
    return trials
