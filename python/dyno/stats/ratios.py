"""How many times as large: ratios of two samples with intervals, made on the log scale wherever there are logs.

A difference of logs is the log of a ratio, so an interval made there and taken back by exp is one of a ratio of
geometric means: it never reaches 0, and swapping the sides gives its reciprocal (J. M. Bland, D. G. Altman, The use of
transformation when comparing two means, BMJ 312:1153, 1996). Values of 0 have none: of them `fieller_ratio` gives the
ratio of the plain means.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

from dyno.stats.arrays import (
    Values,
    as_array,
    check_share,
    exp_held,
    logs_of,
    mean_and_variance,
    paired_logs,
    t_quantile,
    two_sided_p,
)

PAIRED = "Student's t on the logs of ratios within blocks"
UNPAIRED = "Welch's t on logs, not paired"
NEXT = "Student's t of a prediction from earlier sessions"
FIELLER = "Fieller's interval of the ratio of means, not paired"
FIELLER_PAIRED = "Fieller's interval of the ratio of means within blocks"

_MAX = sys.float_info.max


@dataclass(frozen=True)
class Ratio:
    """b / a with its interval; without unit. `n` counts pairs, or the values of the smaller side where unpaired.

    `p` is the two-sided p of "the ratio is 1", by what makes the interval: it is below 1 - confidence just where the
    interval leaves 1 out. `degrees` are those of Student's t; None where no t was used or no noise was seen.
    """

    ratio: float
    lo: float
    hi: float
    n: int
    method: str
    p: float | None = None
    degrees: float | None = None

    @property
    def half_width(self) -> float:
        """Half the width of the interval on the scale of natural logs; infinite where it reaches 0 by rounding."""
        return (math.log(self.hi) - math.log(self.lo)) / 2 if self.lo > 0 else math.inf


@dataclass(frozen=True)
class LogShift:
    """The mean of ln b - ln a with its standard error; both are shares where small."""

    centre: float
    error: float
    degrees: float | None  # None only where the error is 0
    n: int
    method: str

    def widened(self, factor: float) -> LogShift:
        """The same, with its standard error that much larger: for having been looked at (`widening_of_ratios`)."""
        return replace(self, error=factor * self.error)

    def p_above(self, limit: float) -> float:
        """The one-sided p of "the mean of ln b - ln a is at most `limit`" (a share where small)."""
        if not self.error or self.degrees is None:
            return float(self.centre <= limit)
        t = (self.centre - limit) / self.error
        tail = two_sided_p(t, self.degrees) / 2
        return tail if t > 0 else 1 - tail

    def interval(self, confidence: float) -> tuple[float, float]:
        """Student's interval of the ratio, taken back by exp."""
        check_share("confidence", confidence)
        half = t_quantile(confidence, self.degrees) * self.error if self.degrees else 0.0
        return exp_held(self.centre - half), exp_held(self.centre + half)

    def ratio(self, confidence: float) -> Ratio:
        """Give the ratio with its interval and the p of "the ratio is 1"."""
        lo, hi = self.interval(confidence)
        p = _p_of(self.centre, self.error, self.degrees)
        return Ratio(exp_held(self.centre), lo, hi, self.n, self.method, p, self.degrees if self.error else None)


def _p_of(distance: float, error: float, degrees: float | None) -> float:
    if not error or degrees is None:  # no noise was seen: the interval is a point, and so is what it says
        return float(distance == 0)
    return two_sided_p(distance / error, degrees)


def _welch_degrees(va: float, na: int, vb: float, nb: int) -> float | None:
    """Welch's degrees of freedom for squared standard errors of two sides; None where both are 0."""
    if va + vb == 0:
        return None
    share = va / (va + vb)  # the shares, not the squares themselves, which can be too small to hold
    return 1 / (share**2 / (na - 1) + (1 - share) ** 2 / (nb - 1))


def paired_shift(a: Values, b: Values) -> LogShift | None:
    """The mean of ln b - ln a within pairs; None for fewer than two. Raises ValueError as `paired_ratio` does."""
    differences = paired_logs(a, b)
    n = int(differences.size)
    if n < 2:
        return None
    centre, variance = mean_and_variance(differences)
    return LogShift(centre, math.sqrt(variance / n), n - 1, n, PAIRED)


def unpaired_shift(a: Values, b: Values) -> LogShift | None:
    """Mean of ln b less mean of ln a; None where a side has fewer than two. Raises ValueError as `unpaired_ratio`."""
    logs_a, logs_b = logs_of(a), logs_of(b)
    n = int(min(logs_a.size, logs_b.size))
    if n < 2:
        return None
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(logs_a), mean_and_variance(logs_b)
    va, vb = variance_a / logs_a.size, variance_b / logs_b.size
    degrees = _welch_degrees(va, logs_a.size, vb, logs_b.size)
    return LogShift(mean_b - mean_a, math.sqrt(va + vb), degrees, n, UNPAIRED)


def next_shift(earlier: Values, new: float) -> LogShift | None:
    """How far one more draw lies from the mean of earlier ones, with the error of a prediction: sd sqrt(1 + 1 / k).

    `earlier` are k means of logs and `new` another (G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, section
    4.8). Assumes that all are independent and roughly normal, with one variance. None for fewer than two earlier ones.
    Raises ValueError for a value that is not finite.
    """
    array = as_array([*earlier, new])[:-1]
    if array.size < 2:
        return None
    mean, variance = mean_and_variance(array)
    error = math.sqrt(variance * (1 + 1 / array.size))
    return LogShift(float(new) - mean, error, int(array.size) - 1, int(array.size), NEXT)


def paired_ratio(a: Values, b: Values, confidence: float, widening: float = 1.0) -> Ratio | None:
    """Give b / a of values measured in pairs (same place, same block): exp of the t interval of mean(ln b - ln a).

    `widening` is by how much wider the interval is made for having been looked at (`looking.widening_of_ratios`).

    Noise that hits both halves of a pair alike cancels. Assumes that the logs of the ratios are independent and roughly
    normal.

    None for fewer than two pairs. Raises ValueError for sides of different length, a value that is not above 0 or not
    finite, or a confidence outside (0, 1).
    """
    shift = paired_shift(a, b)
    return None if shift is None else shift.widened(widening).ratio(confidence)


def unpaired_ratio(a: Values, b: Values, confidence: float, widening: float = 1.0) -> Ratio | None:
    """Give b / a of values without pairs: exp of Welch's interval of mean(ln b) - mean(ln a).

    With v = s^2 / n of each side, the half-width is t sqrt(va + vb) at
    (va + vb)^2 / (va^2 / (na - 1) + vb^2 / (nb - 1)) degrees of freedom (B. L. Welch, The generalization of "Student's"
    problem when several different population variances are involved, Biometrika 34, 1947). Assumes independent,
    roughly normal logs; the variances may differ.

    None where a side has fewer than two values. Raises ValueError as `paired_ratio` does, save for the lengths.
    """
    shift = unpaired_shift(a, b)
    return None if shift is None else shift.widened(widening).ratio(confidence)


def fieller_ratio(
    a: Values, b: Values, confidence: float, *, paired: bool = False, widening: float = 1.0
) -> Ratio | None:
    """Give mean(b) / mean(a) with Fieller's interval: for values of 0, which have no logarithm.

    It holds every r for which mean(b) - r mean(a) is not shown to differ from 0. With R = mean(b) / mean(a), c_aa and
    c_bb the squared standard errors of both means relative to them, c_ab their covariance relative to both (0 without
    pairs) and g = t^2 c_aa its ends are

        R (1 - t^2 c_ab -+ t sqrt(c_aa + c_bb - 2 c_ab + t^2 (c_ab^2 - c_aa c_bb))) / (1 - g)

    (E. C. Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16, 1954). With
    pairs t has n - 1 degrees of freedom, without them Welch's of mean(b) - R mean(a), so that the variances may differ
    (A. C. Tamhane, B. R. Logan, Finding the maximum safe dose level for heteroscedastic data, Journal of
    Biopharmaceutical Statistics 14, 2004). It is multiplied by `widening` (`looking.widening_of_ratios`). Assumes
    independent, roughly normal values, or pairs of them. An end below 0 is held at 0.

    None where a side has fewer than two values or a mean of 0, and where the interval of mean(a) at that t holds 0: no
    bounded interval then has that confidence. Raises ValueError for a value below 0 or not finite, pairs of different
    number, or a confidence outside (0, 1).
    """
    check_share("confidence", confidence)
    sides = as_array(a), as_array(b)
    if any((side < 0).any() for side in sides):
        raise ValueError("a ratio of means needs values of 0 and above")
    if paired and sides[0].size != sides[1].size:
        raise ValueError(f"pairs need as many values on each side, got {sides[0].size} and {sides[1].size}")
    n = min(side.size for side in sides)
    if n < 2 or any(side.max() == 0 for side in sides):
        return None
    # In units of the largest of its side, so that no square is too large or too small to hold.
    units = [float(side.max()) for side in sides]
    a, b = (side / unit for side, unit in zip(sides, units, strict=True))
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(a), mean_and_variance(b)
    aa, bb, ab = variance_a / a.size / mean_a**2, variance_b / b.size / mean_b**2, 0.0
    ratio = min(mean_b / mean_a * (units[1] / units[0]), _MAX)
    distance, error = ratio - 1, math.hypot(math.sqrt(aa), ratio * math.sqrt(bb))
    degrees = _welch_degrees(aa, a.size, bb, b.size)
    if paired:
        ab = float((a - mean_a) @ (b - mean_b)) / (n - 1) / n / (mean_a * mean_b)
        # Of the differences themselves, so that equal ones have no error.
        distance, variance = mean_and_variance(sides[1] / max(units) - sides[0] / max(units))
        error = math.sqrt(variance / n)
        degrees = float(n - 1) if aa + bb > 0 else None
    t = widening * t_quantile(confidence, degrees) if degrees else 0.0
    g = t * t * aa
    if g >= 1:
        return None
    half = t * math.sqrt(max(0.0, aa + bb - 2 * ab + t * t * (ab * ab - aa * bb)))
    centre = 1 - t * t * ab
    lo, hi = max(0.0, ratio * ((centre - half) / (1 - g))), min(_MAX, ratio * ((centre + half) / (1 - g)))
    p = _p_of(distance, widening * error, degrees)
    method = FIELLER_PAIRED if paired else FIELLER
    return Ratio(ratio, min(lo, ratio), max(hi, ratio), int(n), method, p, degrees)


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
        exp_held(centre - math.hypot(log_b - low_b, high_a - log_a)),
        exp_held(centre + math.hypot(high_b - log_b, log_a - low_a)),
    )
