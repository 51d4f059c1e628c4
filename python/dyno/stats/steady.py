"""Whether a run reached a steady state, and from where on: warm-up found by change points, not by a fixed share.

The classes are those of E. Barrett et al., Virtual machine warmup blows hot and cold, OOPSLA 2017, who found that many
runs never become steady, and that a mean over such a run means nothing. Theirs are iterations of a process; here they
are the intervals of a run, which resemble their neighbours, so that this is taken out before steps are looked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dyno.stats.approach import approach_from_below
from dyno.stats.arrays import Values, as_array, t_quantile
from dyno.stats.changes import change_points
from dyno.stats.drift import trend, unbiased_correlation

Kind = Literal["steady", "warm-up then steady", "slowing down", "none"]

FEWEST = 10  # intervals: fewer leave two segments of less than five, which show nothing but a collapse
MOST = 600  # intervals: a longer run is looked at in wider ones, since the time taken grows with their square
TAIL = 0.25  # of a run: the last 500 of 2,000 iterations had to be free of changes in Barrett et al.
TOLERANCE = 0.05  # of a rate: the precision that studies mostly ask for, and a step in a part moves the mean by less
CUT = 10  # a warm-up that fades has no last step to be found: a tenth of the tail at a time is tried
CONFIDENCE = 0.999  # that noise alone does not do it: the largest of many steps is looked at, not one
MOST_CORRELATED = 0.95  # beyond it even hundreds of intervals are worth fewer than ten independent ones
OF_A_RISE = 3  # figures that a curve is given by: level, shortfall and time
ROUNDS = 6  # of estimating the correlation: it settles in two or three


@dataclass(frozen=True)
class Segment:
    """Intervals `start` to `stop` - 1, without a step among them; `mean` in the unit of the values."""

    start: int
    stop: int
    mean: float


@dataclass(frozen=True)
class Phases:
    """What a run went through.

    `kind` is None, with a `reason`, where it cannot be told. `first` is the first interval of the steady part, which
    lasts until the end of the run, and `steady_after` its beginning in seconds; both None where nothing is steady.
    `correlation` is that of neighbouring intervals once the steps are taken out.
    """

    kind: Kind | None
    reason: str | None = None
    first: int | None = None
    steady_after: float | None = None
    correlation: float | None = None
    segments: tuple[Segment, ...] = ()


def _split(array: NDArray[np.float64], correlation: float) -> list[Segment]:
    """The segments between the change points of what is left when each value's share of its neighbour is taken off."""
    found = change_points(array[1:] - correlation * array[:-1])
    bounds = [0, *(each.index + 1 for each in found or ()), array.size]
    return [Segment(a, b, float(array[a:b].mean())) for a, b in pairwise(bounds)]


def _residuals(array: NDArray[np.float64], segments: list[Segment]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.repeat(
        [each.mean for each in segments], [each.stop - each.start for each in segments]
    )
    return array - means


def _correlation(array: NDArray[np.float64], segments: list[Segment]) -> float:
    """The correlation of neighbours around the means of their segments, mended for bias; from 0 to 0.95."""
    residuals = _residuals(array, segments)
    within = np.ones(array.size - 1, dtype=bool)
    within[[each.stop - 1 for each in segments[:-1]]] = False  # the two sides of a step are no neighbours
    squares = float((residuals * residuals).sum())
    length = array.size / len(segments)
    if squares == 0 or length <= FEWEST / 2:
        return 0.0
    raw = float((residuals[1:] * residuals[:-1])[within].sum()) / squares
    # As one series has it, the largest bias: segments that were chosen to fit the values leave less than noise would.
    return min(max(unbiased_correlation(raw, length), 0.0), MOST_CORRELATED)


def _segments(array: NDArray[np.float64]) -> tuple[list[Segment], float]:
    """The segments and the correlation within them, found in turn.

    From no correlation on: correlated noise is cut into too many segments, within which still some correlation is seen;
    allowing for that leaves fewer segments and shows more of it, until it grows no further. The other way round, from
    the correlation over the whole run, a step would be taken for correlation.
    """
    correlation = 0.0
    segments = _split(array, correlation)
    for _ in range(ROUNDS):
        seen = _correlation(array, segments)
        if seen <= correlation + 0.01:
            break
        correlation = seen
        segments = _split(array, correlation)
    return segments, correlation


def _course(rates: NDArray[np.float64], tolerance: float) -> tuple[list[Segment], float, _Noise, int]:
    """The segments of a run, the noise around them, and where the smooth rise at its start ends; 0 without one."""
    segments, correlation = _segments(rates)
    noise = _Noise(_residuals(rates, segments), len(segments), correlation)
    rise = approach_from_below(rates)
    end = rise.reached(tolerance) if rise else 0
    if rise is None or end == 0:
        return segments, correlation, noise, 0
    if rise.correlation < correlation:  # what makes neighbours alike is the rise, and the steps were not seen for it
        correlation = rise.correlation
        segments = _split(rates, correlation)
        noise = _Noise(rates - rise.curve(rates.size), OF_A_RISE, correlation)
    starts = [each.start for each in segments]
    if end < rates.size and not any(0 < start <= end for start in starts):
        starts = sorted([*starts, end])
        segments = [Segment(a, b, float(rates[a:b].mean())) for a, b in pairwise([*starts, rates.size])]
    return segments, correlation, noise, end


def correlation_around_steps(values: Values) -> float:
    """The correlation of neighbours in a series with steps, once these are taken out, as `phases` does; 0 to 0.95.

    Raises ValueError where a value is not finite.
    """
    array = as_array(values)
    return _segments(array)[1] if array.size > 1 else 0.0


class _Noise:
    """What two segments' means may differ by without a difference of the segments; `fitted` figures left residuals."""

    def __init__(self, residuals: NDArray[np.float64], fitted: int, correlation: float) -> None:
        worth = (1 - correlation) / (1 + correlation)  # of an interval, in independent ones
        degrees = max(residuals.size * worth - fitted, 1.0)
        # An interval has the variance squares * worth / degrees, and the mean of n of them that / (n * worth).
        self._variance = float((residuals * residuals).sum()) / degrees
        self._t = t_quantile(CONFIDENCE, degrees)

    def between(self, one: Segment, other: Segment) -> float:
        return self._t * math.sqrt(self._variance * (1 / (one.stop - one.start) + 1 / (other.stop - other.start)))


def phases(values: Values, seconds: float, tolerance: float = TOLERANCE) -> Phases:
    """Find the steady part of a run from its rate in each interval (higher is better), `seconds` wide each.

    1. Each value less its neighbour's share of it is searched for change points at 5 % (as S. Chakar et al., A robust
       approach for estimating change-points in the mean of an AR(1) process, Bernoulli 23, 2017): correlated noise
       alone stays high or low for a while, which shuffling would take for steps. The share, rho, is estimated within
       the segments, in turn with them.
       A smooth rise passes for noise whose neighbours resemble each other. Where `approach_from_below` finds one that
       matters, rho is the one around its curve, if that is smaller, and the rise ends where it is within `tolerance` of
       its level; a step is set there where none was found up to it.
    2. A segment is level with another when their means differ by at most `tolerance` of the other's, or by no more than
       noise explains: t at 99.9 % times sqrt(variance (1 / a + 1 / b)), a and b their intervals times
       (1 - rho) / (1 + rho), what they are worth when independent. Within a rise that was found the first bound alone
       holds, since noise was shown not to explain it. The tail are the last segments that are level with the last of
       all.
    3. The tail is the steady part if it is at least a quarter of the run, and no trend over it (p below 1 %) comes to
       more than `tolerance`; of one that rises, tenths are cut off at its start, the end of the warm-up, as long as a
       quarter of the run is left. The run is then *steady* where the tail is all of it, *slowing down* where a segment
       before was above it, else *warm-up then steady*. Without a steady part it is *slowing down* where the tail has a
       trend down, or is short and below an earlier segment with no rise among the segments; else *none*.

    Neighbouring intervals may be correlated as in a first-order autoregression. What is periodic, such as checkpoints,
    is no change as long as many periods are in the run. Runs of more than 600 intervals are looked at in wider ones.
    Simulated, noise alone is called steady in 93 to 99 % of runs of 60 and 120 intervals and in 88 to 99 % of runs of
    30 with rho up to 0.8 (docs/method.md tables this, and what is found); the price is that a small step in a short,
    strongly correlated run goes unseen.

    `kind` is None for fewer than 10 intervals. Raises ValueError where `seconds` or `tolerance` is not above 0, or a
    value is not finite.
    """
    if not seconds > 0 or not tolerance > 0:
        raise ValueError(f"an interval and the tolerance are above 0, got {seconds} s and {tolerance}")
    array = as_array(values)
    if array.size < FEWEST:
        return Phases(None, f"too short: {array.size} intervals, and fewer than {FEWEST} show no steady state")
    width = -(-array.size // MOST)
    groups = array.size // width
    largest = float(np.abs(array).max()) or 1.0
    rates = (array[: groups * width] / largest).reshape(groups, width).mean(axis=1)

    segments, correlation, noise, rising = _course(rates, tolerance)
    last = segments[-1]

    def level(one: Segment, other: Segment) -> bool:
        of_noise = 0.0 if min(one.stop, other.stop) <= rising else noise.between(one, other)
        return abs(one.mean - other.mean) <= max(tolerance * abs(other.mean), of_noise)

    first = len(segments) - 1
    while first > 0 and level(segments[first - 1], last):
        first -= 1
    before, start = segments[:first], segments[first].start
    higher = any(each.mean > last.mean and not level(each, last) for each in before)
    kind: Kind
    if groups - start >= TAIL * groups:
        slope = _slope(rates[start:], tolerance)
        while slope > 0 and groups - (cut := start + -(-(groups - start) // CUT)) >= TAIL * groups:
            start = cut
            slope = _slope(rates[start:], tolerance)
        steady = slope == 0
        if not steady:
            kind = "slowing down" if slope < 0 else "none"
        elif start == 0:
            kind = "steady"
        else:
            kind = "slowing down" if higher else "warm-up then steady"
    else:
        rises = any(b.mean > a.mean and not level(b, a) for a, b in pairwise(segments))
        kind, steady = ("slowing down" if higher and not rises else "none"), False
    stops = [*(each.stop * width for each in segments[:-1]), array.size]
    return Phases(
        kind,
        None,
        start * width if steady else None,
        start * width * seconds if steady else None,
        correlation,
        tuple(
            Segment(each.start * width, stop, each.mean * largest) for each, stop in zip(segments, stops, strict=True)
        ),
    )


def _slope(rates: NDArray[np.float64], tolerance: float) -> float:
    """The trend over a part of a run, as a share of its mean; 0 where noise explains it, or within the tolerance."""
    found = trend(rates, np.arange(rates.size, dtype=np.float64), 0.99)
    if found is None or found.p >= 0.01 or abs(found.slope) * rates.size <= tolerance:
        return 0.0
    return found.slope * rates.size
