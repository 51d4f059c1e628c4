"""What every statistic here asks of its input, and the quantiles they share."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | NDArray[np.float64]
Labels = Sequence[Hashable]

LARGEST_EXPONENT = math.log(sys.float_info.max)


def as_array(values: Values) -> NDArray[np.float64]:
    """The values as one row of floats. Raises ValueError where one is not finite or they are not one row."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"expected one row of values, got {array.ndim} dimensions")
    if not np.isfinite(array).all():
        raise ValueError("a value is not finite; leave such runs out and say so")
    return array


def logs_of(values: Values) -> NDArray[np.float64]:
    """Natural logs of the values. Raises ValueError as `as_array` does, and where a value is not above 0."""
    array = as_array(values)
    if not (array > 0).all():
        raise ValueError("a ratio on the log scale needs values above 0")
    logs: NDArray[np.float64] = np.log(array)
    return logs


def exp_held(exponent: float) -> float:
    """exp, held at the largest float: an interval may be uselessly wide, but JSON has no word for infinity."""
    return math.exp(min(exponent, LARGEST_EXPONENT))


def paired_logs(a: Values, b: Values) -> NDArray[np.float64]:
    """Logs of b / a within pairs. Raises ValueError as `logs_of` does, and where the sides differ in length."""
    if len(a) != len(b):
        raise ValueError(f"pairs need as many values on each side, got {len(a)} and {len(b)}")
    return logs_of(b) - logs_of(a)


def mean_and_variance(array: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and sample variance (n - 1) of two or more values.

    Equal values give exactly their value and 0: the rounding of a sum would otherwise pass for noise.
    """
    first = float(array[0])
    if bool((array == first).all()):
        return first, 0.0
    return float(array.mean()), float(array.var(ddof=1))


def contrasts(labels: Labels) -> NDArray[np.float64]:
    """One column for each label but the last one met: 1 there, -1 at the last, 0 elsewhere."""
    codes: dict[Hashable, int] = {}
    at = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
    last = len(codes) - 1
    columns: NDArray[np.float64] = np.equal.outer(at, np.arange(last)).astype(np.float64)
    columns[at == last] = -1.0
    return columns


def squares_of_rounding(array: NDArray[np.float64]) -> float:
    """A sum of squares so small that the rounding of these values alone can leave it."""
    return float(array.size * (8 * np.finfo(np.float64).eps * np.abs(array).max()) ** 2)


def check_share(name: str, share: float) -> None:
    """Raise ValueError, naming the share, where it is not between 0 and 1."""
    if not 0 < share < 1:
        raise ValueError(f"{name} is a share between 0 and 1, got {share}")


def t_quantile(confidence: float, degrees: float) -> float:
    """The t with P(-t < T < t) = confidence for Student's T. Raises ValueError for a confidence outside (0, 1)."""
    check_share("confidence", confidence)
    from scipy.special import stdtrit  # importing scipy takes longer than most commands that never need it

    return float(stdtrit(degrees, (1 + confidence) / 2))


def two_sided_p(t: float, degrees: float) -> float:
    """The chance of a T at least as far from 0 as `t`, for Student's T."""
    from scipy.special import stdtr

    return 2 * float(stdtr(degrees, -abs(t)))


def normal_share(z: float) -> float:
    """The chance that a standard normal value lies below z."""
    from scipy.special import ndtr

    return float(ndtr(z))


def normal_score(share: float) -> float:
    """The z below which a standard normal value lies with the chance `share`."""
    from scipy.special import ndtri

    return float(ndtri(share))
