"""Which part of a run its responses are to be of, from its throughput interval by interval."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dyno import stats
from dyno.model.run import MeasuredPart, RateChange, RateWithin


def measured_part(
    rates: Sequence[float], interval_s: float, seconds: float, *, may_cut: bool, confidence: float
) -> MeasuredPart:
    """What a run went through, and what counts of it: all, or where it `may_cut` what comes after a warm-up.

    `rates` are of the whole intervals of the measured part that was asked for, which lasted `seconds`. A run that slows
    down, or never becomes steady, is left whole: no part of it is any truer than another.
    """
    found = stats.phases(rates, interval_s)
    first = found.first or 0
    cut = first if may_cut and found.kind == "warm-up then steady" else 0
    steady = found.kind == "steady" or cut > 0
    from_s = _seconds(cut, interval_s)
    return MeasuredPart(
        course=found.kind,
        reason=found.reason,
        from_s=from_s,
        to_s=seconds,
        seconds=seconds - from_s,
        intervals=len(rates) - cut,
        steady_from_s=None if found.first is None else _seconds(found.first, interval_s),
        change_points=tuple(
            RateChange(at_s=_seconds(after.start, interval_s), before=before.mean, after=after.mean)
            for before, after in pairwise(found.segments)
        ),
        within=_within(rates[cut:], confidence) if steady else None,
    )


def _seconds(intervals: int, interval_s: float) -> float:
    """As exact as the clock, and as a person writes it."""
    return round(intervals * interval_s, 9)


def _within(rates: Sequence[float], confidence: float) -> RateWithin | None:
    found = stats.batch_means(rates, confidence)
    if found is None:
        return None
    return RateWithin(
        mean=found.mean,
        lo=found.lo,
        hi=found.hi,
        confidence=confidence,
        intervals=found.n,
        effective=found.effective,
    )
