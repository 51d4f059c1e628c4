"""The interval of a mean, and how wide it is."""

from __future__ import annotations

import math

from dyno.stats.arrays import Values, as_array, mean_and_variance, t_quantile


def mean_interval(values: Values, confidence: float) -> tuple[float, float] | None:
    """Student's interval of the mean, in the unit of the values: mean -+ t(confidence, n - 1) sd / sqrt(n).

    Assumes values that are independent and roughly normal, and a sample size that was not chosen by looking at them
    ("Student", The probable error of a mean, Biometrika 6, 1908; Jain 1991, chapter 13).

    None for fewer than two values. Raises ValueError for a confidence outside (0, 1) or a value that is not finite.
    """
    array = as_array(values)
    if array.size < 2:
        return None
    mean, variance = mean_and_variance(array)
    half = t_quantile(confidence, array.size - 1) * math.sqrt(variance / array.size)
    return mean - half, mean + half


def relative_half_width(interval: tuple[float, float], centre: float) -> float:
    """Half the width of an interval as a share of |centre|; infinite where the centre is 0."""
    low, high = interval
    return (high - low) / 2 / abs(centre) if centre else math.inf
