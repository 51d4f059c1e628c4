"""How many runs it takes: for an interval so narrow, or for a difference so large to be found.

All of it starts from a spread seen in a pilot, which few runs tell only roughly: the true one can well be half as large
again. The smallest number is two runs, as below that there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dyno.stats.arrays import check_share, t_quantile

MOST_RUNS = 1_000_000


def runs_for_mean_precision(cov: float, precision: float, confidence: float) -> int | None:
    """The fewest runs n with t(confidence, n - 1) cov / sqrt(n) <= precision: half an interval as a share of the mean.

    `cov` is the coefficient of variation of single runs, a share as `precision` is (R. Jain, The Art of Computer
    Systems Performance Analysis, 1991, section 13.9.1, with t in place of z). The width reached varies: about half of
    all studies with that n come out somewhat wider.

    None where more than a million runs would be needed. Raises ValueError for a cov below 0, a precision that is not
    above 0 or a confidence outside (0, 1).
    """
    return _runs_for_width(cov, _above_0("precision", precision), confidence)


def runs_for_ratio_precision(sd: float, precision: float, confidence: float) -> int | None:
    """The fewest pairs n with t(confidence, n - 1) sd / sqrt(n) <= ln(1 + precision), as `ratio_is_precise` asks.

    `sd` is the standard deviation of the logs of ratios within blocks; `precision` is a share. Else as
    `runs_for_mean_precision`.
    """
    return _runs_for_width(sd, math.log1p(_above_0("precision", precision)), confidence)


def paired_power(n: int, sd: float, effect: float, alpha: float) -> float:
    """The chance that n pairs show a ratio of 1 + `effect` to differ from 1, by the two-sided paired t test at alpha.

    With `sd` the standard deviation of the logs of ratios within blocks and d = sqrt(n) ln(1 + effect) / sd, it is
    P(T > t) + P(T < -t) for T noncentral with n - 1 degrees of freedom and noncentrality d, t = t(1 - alpha, n - 1)
    (J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd edition 1988, chapter 2). Assumes what
    `paired_ratio` does. In a family of m comparisons give alpha / m: Holm's worst case, right whatever the others show.

    `effect` is a share: 0.05, and -0.05 / 1.05 for the other direction. Raises ValueError for fewer than two pairs, an
    sd below 0, an effect of 0 or of -1 and less, or an alpha outside (0, 1).
    """
    check_share("alpha", alpha)
    if n < 2:
        raise ValueError(f"a spread needs two pairs, got {n}")
    return _power(n, _not_below_0(sd), _log_of(effect), alpha)


def runs_for_effect(sd: float, effect: float, alpha: float, power: float) -> int | None:
    """The fewest pairs that show a ratio of 1 + `effect` with the chance `power`; arguments as in `paired_power`.

    None where more than a million would be needed. Raises ValueError as `paired_power` does, and for a power outside
    (0, 1).
    """
    check_share("alpha", alpha)
    check_share("power", power)
    sd, shift = _not_below_0(sd), _log_of(effect)
    return _fewest(lambda n: _power(n, sd, shift, alpha) >= power)


def detectable_effect(n: int, sd: float, alpha: float, power: float) -> float | None:
    """The smallest effect, a share above 0, that n pairs show with the chance `power`; arguments as in `paired_power`.

    None where it is no number that a float holds, and 0 where the sd is 0. Raises ValueError as `runs_for_effect` does,
    and for a power that is not above alpha: so often it is "shown" where there is none.
    """
    check_share("alpha", alpha)
    check_share("power", power)
    if power <= alpha:
        raise ValueError(f"power is above alpha, got {power} and {alpha}")
    if n < 2:
        raise ValueError(f"a spread needs two pairs, got {n}")
    if not _not_below_0(sd):
        return 0.0
    high = 1.0  # in units of sd
    while _power(n, 1.0, high, alpha) < power:
        high *= 2
    low = 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _power(n, 1.0, middle, alpha) >= power else (middle, high)
    return math.expm1(high * sd) if high * sd < 700 else None


def _power(n: int, sd: float, shift: float, alpha: float) -> float:
    if not sd:
        return 1.0
    away = math.sqrt(n) * abs(shift) / sd
    t = t_quantile(1 - alpha, n - 1)
    return min(1.0, 1 - _noncentral_below(t, n - 1, away) + _noncentral_below(-t, n - 1, away))


def _noncentral_below(t: float, degrees: int, away: float) -> float:
    """The chance that noncentral T lies below t."""
    from scipy.special import nctdtr

    below = float(nctdtr(degrees, away, t))
    return 0.0 if math.isnan(below) else below  # it gives up where less than about 1e-12 is left


def _runs_for_width(spread: float, width: float, confidence: float) -> int | None:
    check_share("confidence", confidence)
    spread = _not_below_0(spread)
    return _fewest(lambda n: t_quantile(confidence, n - 1) * spread <= width * math.sqrt(n))


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The smallest n from 2 on that is enough; every larger one is too."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_RUNS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _above_0(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is a share above 0, got {value}")
    return value


def _not_below_0(spread: float) -> float:
    if not 0 <= spread < math.inf:
        raise ValueError(f"a spread is 0 or more, got {spread}")
    return spread


def _log_of(effect: float) -> float:
    if not -1 < effect < math.inf or effect == 0:
        raise ValueError(f"an effect is a share above -1 and not 0, got {effect}")
    return math.log1p(effect)
