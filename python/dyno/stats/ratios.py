"""How many times as large: ratios of two samples with intervals, made on the log scale.

A difference of logs is the log of a ratio, so an interval made there and taken back by exp is one of a ratio of
geometric means: it never reaches 0, and swapping the sides gives its reciprocal (J. M. Bland, D. G. Altman, The use of
transformation when comparing two means, BMJ 312:1153, 1996).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array, mean_and_variance, t_quantile

PAIRED = "Student's t on the logs of ratios within blocks"
UNPAIRED = "Welch's t on logs, not paired"

_LARGEST_EXPONENT = math.log(sys.float_info.max)


@dataclass(frozen=True)
class Ratio:
    """b / a with its interval; without unit. `n` counts pairs, or the values of the smaller side where unpaired."""

    ratio: float
    lo: float
    hi: float
    n: int
    method: str

    @property
    def half_width(self) -> float:
        """Half the width of the interval on the scale of natural logs; infinite where it reaches 0 by rounding."""
        return (math.log(self.hi) - math.log(self.lo)) / 2 if self.lo > 0 else math.inf


def _logs(values: Values) -> NDArray[np.float64]:
    array = as_array(values)
    if not (array > 0).all():
        raise ValueError("a ratio on the log scale needs values above 0")
    return np.log(array)


def _exp(exponent: float) -> float:
    """exp, held at the largest float: an interval may be uselessly wide, but JSON has no word for infinity."""
    return math.exp(min(exponent, _LARGEST_EXPONENT))


def _ratio(centre: float, half: float, n: int, method: str) -> Ratio:
    return Ratio(_exp(centre), _exp(centre - half), _exp(centre + half), n, method)


def paired_ratio(a: Values, b: Values, confidence: float, widening: float = 1.0) -> Ratio | None:
    """Give b / a of values measured in pairs (same place, same block): exp of the t interval of mean(ln b - ln a).

    `widening` is by how much wider the interval is made for having been looked at (`looking.widening_of_ratios`).

    Noise that hits both halves of a pair alike cancels. Assumes that the logs of the ratios are independent and roughly
    normal.

    None for fewer than two pairs. Raises ValueError for sides of different length, a value that is not above 0 or not
    finite, or a confidence outside (0, 1).
    """
    if len(a) != len(b):
        raise ValueError(f"pairs need as many values on each side, got {len(a)} and {len(b)}")
    differences = _logs(b) - _logs(a)
    if differences.size < 2:
        return None
    centre, variance = mean_and_variance(differences)
    half = widening * t_quantile(confidence, differences.size - 1) * math.sqrt(variance / differences.size)
    return _ratio(centre, half, int(differences.size), PAIRED)


def unpaired_ratio(a: Values, b: Values, confidence: float, widening: float = 1.0) -> Ratio | None:
    """Give b / a of values without pairs: exp of Welch's interval of mean(ln b) - mean(ln a).

    With v = s^2 / n of each side, the half-width is t sqrt(va + vb) at
    (va + vb)^2 / (va^2 / (na - 1) + vb^2 / (nb - 1)) degrees of freedom (B. L. Welch, The generalization of "Student's"
    problem when several different population variances are involved, Biometrika 34, 1947). Assumes independent,
    roughly normal logs; the variances may differ.

    None where a side has fewer than two values. Raises ValueError as `paired_ratio` does, save for the lengths.
    """
    logs_a, logs_b = _logs(a), _logs(b)
    n = int(min(logs_a.size, logs_b.size))
    if n < 2:
        return None
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(logs_a), mean_and_variance(logs_b)
    va, vb = variance_a / logs_a.size, variance_b / logs_b.size
    if va + vb == 0:  # no noise was seen, and the degrees of freedom are 0 / 0
        return _ratio(mean_b - mean_a, 0.0, n, UNPAIRED)
    share = va / (va + vb)  # the shares, not the squares themselves, which can be too small to hold
    degrees = 1 / (share**2 / (logs_a.size - 1) + (1 - share) ** 2 / (logs_b.size - 1))
    return _ratio(mean_b - mean_a, widening * t_quantile(confidence, degrees) * math.sqrt(va + vb), n, UNPAIRED)


def ratio_is_precise(ratio: Ratio | None, precision: float) -> bool:
    """Whether the interval on the log scale has a half-width of at most ln(1 + precision); `precision` is a share."""
    return ratio is not None and ratio.half_width <= math.log1p(precision)


def quotient_interval(
    b: float, interval_b: tuple[float, float], a: float, interval_a: tuple[float, float]
) -> tuple[float, float] | None:
    """The interval of b / a from two estimates that have an interval each, of the same confidence, and no runs.

    On the logs, the distance of each limit from the difference is the root of the sum of squares of the two distances
    that make it worse: for the lower one b's to its lower and a's to its upper limit (G. Y. Zou, A. Donner,
    Construction of confidence limits about effect measures: a general approach, Statistics in Medicine 27, 2008).
    Assumes estimates that are independent of each other.

    None where an estimate or a limit is not above 0.
    """
    if min(b, a, *interval_b, *interval_a) <= 0:
        return None
    log_b, log_a = math.log(b), math.log(a)
    (low_b, high_b), (low_a, high_a) = ([math.log(end) for end in ends] for ends in (interval_b, interval_a))
    centre = log_b - log_a
    return (
        _exp(centre - math.hypot(log_b - low_b, high_a - log_a)),
        _exp(centre + math.hypot(high_b - log_b, log_a - low_a)),
    )
