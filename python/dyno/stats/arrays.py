"""What every statistic here asks of its input, and the one quantile they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | NDArray[np.float64]


def as_array(values: Values) -> NDArray[np.float64]:
    """The values as one row of floats. Raises ValueError where one is not finite or they are not one row."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"expected one row of values, got {array.ndim} dimensions")
    if not np.isfinite(array).all():
        raise ValueError("a value is not finite; leave such runs out and say so")
    return array


def mean_and_variance(array: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and sample variance (n - 1) of two or more values.

    Equal values give exactly their value and 0: the rounding of a sum would otherwise pass for noise.
    """
    first = float(array[0])
    if bool((array == first).all()):
        return first, 0.0
    return float(array.mean()), float(array.var(ddof=1))


def t_quantile(confidence: float, degrees: float) -> float:
    """The t with P(-t < T < t) = confidence for Student's T. Raises ValueError for a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, got {confidence}")
    from scipy.special import stdtrit  # importing scipy takes longer than most commands that never need it

    return float(stdtrit(degrees, (1 + confidence) / 2))
