"""Figures that describe a sample and claim nothing beyond it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyno.stats.arrays import Values, as_array, mean_and_variance


@dataclass(frozen=True)
class Description:
    """A sample in figures. In the unit of the values, save `variance` (unit squared) and `cov` (a share of the mean).

    None stands where a figure is undefined: all but `n` for no value; `variance`, `sd` and `cov` for one; `cov` for a
    mean of 0.
    """

    n: int
    mean: float | None = None
    variance: float | None = None
    sd: float | None = None
    cov: float | None = None
    mad: float | None = None
    min: float | None = None
    max: float | None = None
    range: float | None = None


def describe(values: Values) -> Description:
    """Describe a sample.

    variance = sum((x - mean)^2) / (n - 1); sd is its root; cov = sd / |mean|; mad = sum(|x - mean|) / n, the mean
    absolute deviation from the mean; range = max - min (R. Jain, The Art of Computer Systems Performance Analysis,
    1991, chapter 12).

    Raises ValueError where a value is not finite.
    """
    array = as_array(values)
    if array.size == 0:
        return Description(n=0)
    low, high = float(array.min()), float(array.max())
    if array.size == 1:
        return Description(n=1, mean=low, mad=0.0, min=low, max=high, range=0.0)
    mean, variance = mean_and_variance(array)
    sd = variance**0.5
    return Description(
        n=int(array.size),
        mean=mean,
        variance=variance,
        sd=sd,
        cov=sd / abs(mean) if mean else None,
        mad=float(np.abs(array - mean).mean()),
        min=low,
        max=high,
        range=high - low,
    )
