"""Bootstrap over replicates within a level, from a fixed seed: the same samples give the same interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array, t_quantile

RESAMPLES = 2000
SEED = 1979  # any number would do; the year of Efron's paper
FEWEST = 3  # replicates of a level: two can only be drawn in three ways


def log_samples(x: Values, samples: Sequence[Values]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The levels and the logs of the values of each.

    Raises ValueError for levels that do not rise, samples that are not one a level, a level without a value, and values
    that are not above 0 or not finite.
    """
    levels, arrays = as_array(x), [as_array(sample) for sample in samples]
    if levels.size != len(arrays):
        raise ValueError(f"one sample a level is needed, got {len(arrays)} for {levels.size} levels")
    if not (np.diff(levels) > 0).all():
        raise ValueError("levels have to rise")
    if any(array.size == 0 or not (array > 0).all() for array in arrays):
        raise ValueError("each level needs values, and the log scale values above 0")
    return levels, [np.log(array) for array in arrays]


def resampled_means(samples: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The means of the samples, resampled: one row a resample, one column a sample."""
    random = np.random.default_rng(SEED)
    return np.column_stack(
        [sample[random.integers(0, sample.size, (RESAMPLES, sample.size))].mean(axis=1) for sample in samples]
    )


def percentile_interval(resampled: NDArray[np.float64], confidence: float, replicates: int) -> tuple[float, float]:
    """The percentile interval, widened as few replicates need: its tails are Phi(-t sqrt(n / (n - 1))) each.

    For a mean this undoes that resampling n values shows a spread sqrt((n - 1) / n) as large as it is, and that their
    spread is itself uncertain (T. C. Hesterberg, What teachers should know about the bootstrap, The American
    Statistician 69, 2015: the expanded percentile interval).
    """
    from scipy.special import ndtr  # importing scipy takes longer than most commands that never need it

    tail = float(ndtr(-t_quantile(confidence, replicates - 1) * math.sqrt(replicates / (replicates - 1))))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
