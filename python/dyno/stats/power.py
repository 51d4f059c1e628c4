"""How many runs it takes: for an interval so narrow, or for a difference so large to be found.

All of it starts from a spread seen in a pilot, which few runs tell only roughly: the true one can well be half as large
again. The smallest number is two runs, as below that there is no interval.

Who takes the spread seen for the true one makes too few runs: a spread that came out small by luck asks for few, and
these then miss the effect more often than one that came out large finds it. So power is averaged here over what the
true spread may be, given with how many degrees of freedom it was seen (S. A. Julious, R. J. Owen, Sample size
calculations for clinical studies allowing for uncertainty about the variance, Pharmaceutical Statistics 5, 2006; that
the plain formula falls short: R. H. Browne, On the use of a pilot sample for sample size determination, Statistics in
Medicine 14, 1995). With d degrees of freedom, the true spread is sd sqrt(d / X) with X as chi-squared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import check_share, normal_score, t_quantile

Array = NDArray[np.float64]

MOST_RUNS = 1_000_000

_SPREADS = 16  # that power is averaged over: by Gauss and Legendre's rule, within 1e-4 of the integral


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


def paired_power(n: int, sd: float, effect: float, alpha: float, degrees: float = math.inf) -> float:
    """The chance that n pairs show a ratio of 1 + `effect` to differ from 1, by the two-sided paired t test at alpha.

    With `sd` the standard deviation of the logs of ratios within blocks and d = sqrt(n) ln(1 + effect) / sd, it is
    P(|T| > t) for T noncentral with n - 1 degrees of freedom and noncentrality d, t = t(1 - alpha, n - 1) (J. Cohen,
    Statistical Power Analysis for the Behavioral Sciences, 2nd edition 1988, chapter 2); T^2 is noncentral F. Assumes
    what `paired_ratio` does. In a family of m comparisons give alpha / m: Holm's worst case, right whatever the others
    show. With `degrees` of freedom at which the sd was seen, averaged over what the true one may be.

    `effect` is a share: 0.05, and -0.05 / 1.05 for the other direction. Raises ValueError for fewer than two pairs, an
    sd below 0, an effect of 0 or of -1 and less, degrees of freedom that are not above 0, or an alpha outside (0, 1).
    """
    check_share("alpha", alpha)
    if n < 2:
        raise ValueError(f"a spread needs two pairs, got {n}")
    return _power_of_one(n, _not_below_0(sd), abs(_log_of(effect)), alpha, _above_0("degrees", degrees, math.inf))


def runs_for_effect(sd: float, effect: float, alpha: float, power: float, degrees: float = math.inf) -> int | None:
    """The fewest pairs that show a ratio of 1 + `effect` with the chance `power`; arguments as in `paired_power`.

    None where more than a million would be needed. Raises ValueError as `paired_power` does, and for a power outside
    (0, 1).
    """
    found = runs_for_effects(np.array([sd]), np.array([degrees]), effect, alpha, power)
    return int(found[0]) if math.isfinite(found[0]) else None


def runs_for_effects(sd: Array, degrees: Array, effect: float, alpha: float, power: float) -> Array:
    """As `runs_for_effect`, of many spreads at once, (number,); infinite where more than a million would be needed."""
    check_share("alpha", alpha)
    check_share("power", power)
    shift = abs(_log_of(effect))
    for each in sd:
        _not_below_0(float(each))
    for each in degrees:
        _above_0("degrees", float(each), math.inf)
    # What the normal distribution would have; only how quickly the answer is found depends on it.
    away = normal_score(1 - alpha / 2) + max(normal_score(power), 0.0)
    guess = np.ceil((away * sd / shift) ** 2) + 2
    return _fewest_of_each(lambda n, which: _power(n, sd[which], shift, alpha, degrees[which]) >= power, guess)


def detectable_effect(n: int, sd: float, alpha: float, power: float, degrees: float = math.inf) -> float | None:
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
    _above_0("degrees", degrees, math.inf)
    if not _not_below_0(sd):
        return 0.0
    high = 1.0  # in units of sd
    while _power_of_one(n, 1.0, high, alpha, degrees) < power:
        high *= 2
    low = 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _power_of_one(n, 1.0, middle, alpha, degrees) >= power else (middle, high)
    return math.expm1(high * sd) if high * sd < 700 else None


def _power_of_one(n: int, sd: float, shift: float, alpha: float, degrees: float) -> float:
    return float(_power(np.array([float(n)]), np.array([sd]), shift, alpha, np.array([degrees]))[0])


def _power(n: Array, sd: Array, shift: float, alpha: float, degrees: Array) -> Array:
    """The power of each, averaged over what its spread may be."""
    from scipy.special import chdtri, ncfdtr, stdtrit

    at, weights = np.polynomial.legendre.leggauss(_SPREADS)
    known = np.isinf(degrees)[:, None]
    freedom = np.where(known, 1.0, degrees[:, None])
    larger = np.where(known, 1.0, np.sqrt(freedom / chdtri(freedom, (at + 1) / 2)))
    t = stdtrit(n - 1, 1 - alpha / 2)
    with np.errstate(divide="ignore", over="ignore"):
        away = np.sqrt(n)[:, None] * shift / (sd[:, None] * larger)
        missed = ncfdtr(1.0, n[:, None] - 1, away**2, t[:, None] ** 2)
    missed = np.nan_to_num(missed)  # it gives up where next to nothing is left
    power: Array = 1 - missed @ weights / 2
    return power


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


def _fewest_of_each(enough: Callable[[Array, NDArray[np.int64]], NDArray[np.bool_]], guess: Array) -> Array:
    """As `_fewest`, of many at once, from a guess; infinite beyond the most. `enough` is asked of those still open."""
    low, high, step = np.ones_like(guess), np.full_like(guess, np.inf), 1
    asked = np.clip(guess, 2, MOST_RUNS)
    while (left := np.flatnonzero((high - low > 1) & (low < MOST_RUNS))).size:
        held = enough(asked[left], left)
        high[left[held]], low[left[~held]] = asked[left[held]], asked[left[~held]]
        # Away from the guess by steps that grow until it lies between, and then half by half.
        ever_down, ever_up = np.maximum(high - step, 2), np.minimum(low + step, MOST_RUNS)
        between = np.isfinite(high) & (low > 1)
        with np.errstate(invalid="ignore"):
            asked = np.where(between, (low + high) // 2, np.where(np.isfinite(high), ever_down, ever_up))
        step *= 2
    return high


def _above_0(name: str, value: float, most: float = sys.float_info.max) -> float:
    if not 0 < value <= most:
        raise ValueError(f"{name} is above 0, got {value}")
    return value


def _not_below_0(spread: float) -> float:
    if not 0 <= spread < math.inf:
        raise ValueError(f"a spread is 0 or more, got {spread}")
    return spread


def _log_of(effect: float) -> float:
    if not -1 < effect < math.inf or effect == 0:
        raise ValueError(f"an effect is a share above -1 and not 0, got {effect}")
    return math.log1p(effect)
