"""The shape of a response over an ordered factor: where two curves cross, what more of it brings, where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, t_quantile
from dyno.stats.ratios import Ratio, paired_ratio, unpaired_ratio
from dyno.stats.resampling import FEWEST, log_samples, percentile_interval, resampled_means


@dataclass(frozen=True)
class Crossing:
    """Where b passes a, in the unit of x. `upward`: b is below a before it and above after it.

    `lo` and `hi` bound it; both None where more resamples are without such a crossing than the confidence allows, so
    that it is not shown. `without` is the share of those.
    """

    at: float
    upward: bool
    lo: float | None
    hi: float | None
    without: float


@dataclass(frozen=True)
class Speedup:
    """What a level brings over the first one: `ratio`, and as a share of what its size promises, ratio / (x / x[0])."""

    x: float
    ratio: Ratio | None
    efficiency: float | None


@dataclass(frozen=True)
class Saturation:
    """The smallest level from which no further one is shown to be higher; None where only the last one is.

    `headroom` is how much higher a further level may still be: the largest upper bound of their ratios to this level.
    `comparisons` is what the confidence was corrected for.
    """

    x: float | None
    headroom: float | None
    comparisons: int


def _passes(curves: NDArray[np.float64], upward: bool) -> NDArray[np.bool_]:
    """Between which neighbouring levels each curve (a row) passes 0 in that direction; one that stays at 0 does not."""
    before, after = curves[:, :-1], curves[:, 1:]
    passes: NDArray[np.bool_] = (before < 0) & (after >= 0) if upward else (before > 0) & (after <= 0)
    return passes


def _zeros(x: NDArray[np.float64], curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the straight line between each two neighbouring levels is 0, if it is."""
    before, after = curves[:, :-1], curves[:, 1:]
    rise = np.where(after == before, 1.0, after - before)
    zeros: NDArray[np.float64] = x[:-1] - before / rise * np.diff(x)
    return zeros


def _peaks(curve: NDArray[np.float64], passed: NDArray[np.intp]) -> list[int]:
    """The level at which the curve is farthest from 0, before the first passage, between each two, and after the last.

    `passed` holds the level before each passage.
    """
    bounds = [0, *(int(each) + 1 for each in passed), curve.size]
    return [a + int(np.abs(curve[a:b]).argmax()) for a, b in pairwise(bounds)]


def crossings(
    x: Values,
    a: Sequence[Values],
    b: Sequence[Values],
    confidence: float,
    *,
    paired: bool = False,
    log_x: bool = False,
) -> tuple[Crossing, ...] | None:
    """Where the curves of a and b over x cross: where the mean of ln b less that of ln a changes sign.

    Interpolated by a straight line between the two levels, in x or, with `log_x`, in ln x. The interval is the
    percentile bootstrap's over replicates within each level (2,000 resamples, fixed seed, widened for few replicates
    as `percentile_interval` says). A resample has the crossing when it is on the same sides of 0 as the measured curve
    at the two levels where that is farthest from 0 before and after it, up to the next crossing; if it passes 0 several
    times between the two, the passage nearest to the measured one counts. With `paired`, pairs are drawn rather than
    values. Assumes independent replicates, and a curve that is near enough
    straight between levels: what happens between two of them was not measured. Of few replicates it is too bold: of two
    equal curves of six levels it shows a crossing in 16 to 20 % of studies with 5 replicates, in 5 % with 10.

    None for fewer than two levels, or fewer than 3 replicates of one. Raises ValueError as `log_samples` does, for
    pairs of different number, for levels not above 0 with `log_x`, or a confidence outside (0, 1).
    """
    t_quantile(confidence, 1)
    levels, logs_a = log_samples(x, a)
    _, logs_b = log_samples(x, b)
    if log_x and not (levels > 0).all():
        raise ValueError("levels on a log scale have to be above 0")
    if paired and any(one.size != other.size for one, other in zip(logs_a, logs_b, strict=True)):
        raise ValueError("pairs need as many values on each side")
    replicates = min((sample.size for sample in (*logs_a, *logs_b)), default=0)
    if levels.size < 2 or replicates < FEWEST:
        return None
    places = np.log(levels) if log_x else levels
    if paired:
        logs = [other - one for one, other in zip(logs_a, logs_b, strict=True)]
        resampled = resampled_means(logs)
        curve = np.array([[each.mean() for each in logs]])
    else:
        means = resampled_means([*logs_a, *logs_b])
        resampled = means[:, levels.size :] - means[:, : levels.size]
        curve = np.array([[other.mean() - one.mean() for one, other in zip(logs_a, logs_b, strict=True)]])
    passed = np.flatnonzero((_passes(curve, True) | _passes(curve, False))[0])
    peaks = _peaks(curve[0], passed)
    found = []
    for i, before, after in zip(passed, peaks, peaks[1:], strict=False):
        upward = bool(curve[0, i] < 0)
        at = float(_zeros(places, curve)[0, i])
        sign = 1.0 if upward else -1.0
        crossed = resampled[(sign * resampled[:, before] < 0) & (sign * resampled[:, after] > 0)]
        without = 1 - len(crossed) / len(resampled)
        low = high = None
        if without <= 1 - confidence:
            span = crossed[:, before : after + 1]
            zeros = np.where(_passes(span, upward), _zeros(places[before : after + 1], span), np.inf)
            nearest = zeros[np.arange(len(zeros)), np.abs(zeros - at).argmin(axis=1)]
            low, high = (_level(bound, log_x) for bound in percentile_interval(nearest, confidence, replicates))
        found.append(Crossing(_level(at, log_x), upward, low, high, without))
    return tuple(found)


def _level(place: float, log_x: bool) -> float:
    return float(np.exp(place)) if log_x else float(place)


def speedup(
    x: Values, samples: Sequence[Values], confidence: float, *, paired: bool = False, widening: float = 1.0
) -> tuple[Speedup, ...] | None:
    """How many times the rate at the first level each level has, by `unpaired_ratio` or, within blocks, `paired_ratio`.

    Each interval is right by itself, and as much wider as `widening` says; they share the first level, so they err
    together. `efficiency` is None where the first level is not above 0.

    None without a level. Raises ValueError as `log_samples` and the ratios do.
    """
    levels, logs = log_samples(x, samples)
    if not logs:
        return None
    measure = paired_ratio if paired else unpaired_ratio
    found = []
    for level, sample in zip(levels, samples, strict=True):
        ratio = measure(samples[0], sample, confidence, widening)
        share = ratio.ratio / (level / levels[0]) if ratio and levels[0] > 0 else None
        found.append(Speedup(float(level), ratio, None if share is None else float(share)))
    return tuple(found)


def saturation(
    x: Values, samples: Sequence[Values], confidence: float, *, paired: bool = False, widening: float = 1.0
) -> Saturation | None:
    """From which level on more of the factor is not shown to bring more.

    Level j is shown to be higher than level i before it where the lower bound of their ratio is above 1, of an interval
    of 1 - (1 - confidence) / m for all m = k (k - 1) / 2 pairs of the k levels (Bonferroni): no false "higher" in all
    with a probability of at least `confidence`. Such an interval is no narrower than that of `speedup`, two-sided as it
    is, so that no level is called higher whose speed-up may be below 1. `widening` is that of `paired_ratio`. Not shown
    is not shown to be absent: `headroom` says what is left.

    None for fewer than two levels, or fewer than two values of one. Raises ValueError as `log_samples` and the ratios
    do.
    """
    t_quantile(confidence, 1)
    levels, logs = log_samples(x, samples)
    if levels.size < 2 or min(sample.size for sample in logs) < 2:
        return None
    measure = paired_ratio if paired else unpaired_ratio
    comparisons = levels.size * (levels.size - 1) // 2
    together = 1 - (1 - confidence) / comparisons
    for i in range(levels.size - 1):
        further = [measure(samples[i], samples[j], together, widening) for j in range(i + 1, levels.size)]
        ratios = [ratio for ratio in further if ratio is not None]
        if not any(ratio.lo > 1 for ratio in ratios):
            return Saturation(float(levels[i]), max(ratio.hi for ratio in ratios), comparisons)
    return Saturation(None, None, comparisons)
