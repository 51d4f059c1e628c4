"""How well a few runs tell a standard deviation, and how far noise alone spreads."""

from __future__ import annotations

import math

from dyno.stats.arrays import check_share, normal_score


def sd_interval(sd: float, degrees: float, confidence: float) -> tuple[float, float]:
    """The interval of a standard deviation that was found with so many degrees of freedom.

    From sd sqrt(d / chi2(1 - a / 2)) to sd sqrt(d / chi2(a / 2)) with a = 1 - confidence (G. W. Snedecor, W. G.
    Cochran, Statistical Methods, 8th edition 1989, section 4.15). Assumes normal values; heavier tails make it too
    narrow.

    Raises ValueError for an sd below 0, degrees of freedom that are not above 0, or a confidence outside (0, 1).
    """
    check_share("confidence", confidence)
    if not sd >= 0 or not 0 < degrees < math.inf:
        raise ValueError(f"an sd is 0 or more and has degrees of freedom, got {sd} with {degrees}")
    from scipy.special import chdtri

    beyond = (1 - confidence) / 2
    low, high = (float(chdtri(degrees, share)) for share in (beyond, 1 - beyond))
    return sd * math.sqrt(degrees / low), sd * math.sqrt(degrees / high)


def largest_sd(sd: float, degrees: float, number: float) -> float:
    """The median of the largest of so many sample standard deviations, each with so many degrees of freedom."""
    from scipy.special import chdtri

    return sd * math.sqrt(float(chdtri(degrees, 1 - 0.5 ** (1 / number))) / degrees)


def half_normal_quantiles(number: int) -> list[float]:
    """Where the absolute values of so many normal ones are to be expected, from the smallest on, in their sd.

    The i-th of m is at the quantile 1/2 + (i - 1/2) / 2m (C. Daniel, Use of half-normal plots in interpreting
    factorial two-level experiments, Technometrics 1, 1959).
    """
    return [normal_score(0.5 + (place + 0.5) / (2 * number)) for place in range(number)]
