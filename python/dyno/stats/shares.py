"""The interval of a share that was counted: so many of so many."""

from __future__ import annotations

import math

from dyno.stats.arrays import check_share


def share_interval(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval: all shares that the count does not contradict at this confidence.

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), with p = hits / n (E. B. Wilson, Probable
    inference, the law of succession, and statistical inference, Journal of the American Statistical Association 22,
    1927). It is of use for small counts too, of 0 hits as well. Raises ValueError for a count that is none.
    """
    from scipy.special import ndtri

    check_share("confidence", confidence)
    if not 0 <= hits <= of or of < 1:
        raise ValueError(f"a share is counted of one or more, got {hits} of {of}")
    z = float(ndtri((1 + confidence) / 2))
    p = hits / of
    centre = p + z * z / (2 * of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    # Rounding would leave 1e-18 where nothing was hit.
    low, high = (centre - half) / scale, (centre + half) / scale
    return (0.0 if hits == 0 else low), (1.0 if hits == of else high)
