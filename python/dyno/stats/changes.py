"""Where a series changes: E-divisive made deterministic, for runs in order of time or intervals within a run.

D. S. Matteson, N. A. James, A nonparametric approach for multiple change point analysis of multivariate data, JASA 109,
2014; in use on benchmark results at MongoDB (D. Daly et al., The use of change point detection to identify software
performance regressions in a continuous integration system, ICPE 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array

PERMUTATIONS = 199  # as the authors' package ecp: the smallest p is 1 / 200
SEED = 109  # any number would do; a fixed one makes the same series give the same answer, on any machine
SHORTEST = 4  # of 3 against 3 values even the most extreme split has p = 2 / 20, and never reaches 5 %


@dataclass(frozen=True)
class ChangePoint:
    """A step in a series. `index` is the first value after it; `before` and `after` are the medians of the segments.

    Medians in the unit of the values; `ratio` is after / before, None unless both are above 0. `statistic` is the
    energy statistic in the unit of the values, and `p` the share of shuffled series with one as large.
    """

    index: int
    before: float
    after: float
    ratio: float | None
    statistic: float
    p: float


def _energy(columns: NDArray[np.float64], shortest: int) -> NDArray[np.float64]:
    """The energy statistic of each split, one row a split, for each column; row 0 splits after `shortest` values."""
    n = len(columns)
    # to_the_left[i] sums |x[i] - x[j]| over the j before i. All other sums of distances follow from it and from the
    # sums over all j, so that each shuffle costs n^2 / 2 distances and no matrix of them.
    to_the_left = np.zeros_like(columns)
    for i in range(1, n):
        distances = columns[:i] - columns[i]
        to_the_left[i] = np.abs(distances, out=distances).sum(axis=0)
    ordered = np.sort(columns[:, 0])
    ranks = np.arange(1, n + 1)
    sums = np.cumsum(ordered)
    to_all_ordered = ordered * (2 * ranks - n) - 2 * sums + sums[-1]
    to_all = to_all_ordered[np.searchsorted(ordered, columns)]
    left = np.arange(shortest, n - shortest + 1)[:, None]
    right = n - left
    within_left = np.cumsum(to_the_left, axis=0)[left[:, 0] - 1]
    between = np.cumsum(to_all, axis=0)[left[:, 0] - 1] - 2 * within_left
    within_right = to_the_left.sum(axis=0) - within_left - between
    mean_left, mean_right = 2 * within_left / (left * (left - 1)), 2 * within_right / (right * (right - 1))
    energy: NDArray[np.float64] = left * right / n * (2 * between / (left * right) - mean_left - mean_right)
    return energy


@dataclass(frozen=True)
class _Segment:
    """A segment, its best split with the statistic there, and the best statistics of its shuffles."""

    start: int
    stop: int
    split: int
    statistic: float
    shuffled: NDArray[np.float64]


def _segment(array: NDArray[np.float64], start: int, stop: int, shortest: int) -> _Segment | None:
    values = array[start:stop]
    if len(values) < 2 * shortest or bool((values == values[0]).all()):
        return None
    shuffle = np.random.default_rng((SEED, start, stop))  # a seed a segment: the order of looking does not matter
    shuffles = shuffle.permuted(np.repeat(values[:, None], PERMUTATIONS, axis=1), axis=0)
    energies = _energy(np.column_stack([values, shuffles]), shortest)
    best = int(energies[:, 0].argmax())
    return _Segment(start, stop, start + shortest + best, float(energies[best, 0]), energies[:, 1:].max(axis=0))


def change_points(values: Values, level: float = 0.05, shortest: int = SHORTEST) -> tuple[ChangePoint, ...] | None:
    """Find the steps of a series, in order; none where it is shown to change nowhere.

    A split after m of m + n values has the statistic mn / (m + n) (2 mean|x - y| - mean|x - x'| - mean|y - y'|), x and
    y from its sides, the means over pairs of different values (Matteson and James, equations 5 to 7, alpha = 1). The
    split with the largest one is tested against the largest ones of 199 series in which the values are shuffled within
    the segments found so far: p = (1 + those at least as large) / 200. It is kept where p is at most `level`; its sides
    are then looked at in the same way, until a test fails. The shuffles come from a fixed seed.

    Any change of the distribution counts, not of its centre alone. Assumes that without a change the values are
    exchangeable, so not autocorrelated: a series without any change has one found with a probability of at most `level`
    in all, since the first failed test ends the search. No segment is shorter than `shortest`.

    None for fewer than 2 `shortest` values. Raises ValueError for a level outside (0, 1), a `shortest` below 2, or a
    value that is not finite.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is a share between 0 and 1, got {level}")
    if shortest < 2:
        raise ValueError(f"a segment needs 2 values or more to differ from another, got {shortest}")
    array = as_array(values)
    if array.size < 2 * shortest:
        return None
    largest = float(np.abs(array).max()) or 1.0
    scaled = array / largest  # no sum overflows, and a change of unit changes no decision
    scaled = scaled - np.median(scaled)
    segments = [_segment(scaled, 0, array.size, shortest)]
    found: dict[int, tuple[float, float]] = {}
    while candidates := [segment for segment in segments if segment is not None]:
        best = max(candidates, key=lambda segment: segment.statistic)
        shuffled = np.max([segment.shuffled for segment in candidates], axis=0)
        as_large = int((shuffled >= best.statistic * (1 - 1e-9)).sum())  # equal splits may differ by rounding
        p = (1 + as_large) / (1 + PERMUTATIONS)
        if p > level or best.statistic <= 0:
            break
        found[best.split] = best.statistic * largest, p
        sides = (best.start, best.split), (best.split, best.stop)
        segments = [each for each in candidates if each is not best]
        segments += [_segment(scaled, start, stop, shortest) for start, stop in sides]
    bounds = [0, *sorted(found), array.size]
    medians = [float(np.median(array[a:b])) for a, b in pairwise(bounds)]
    return tuple(
        ChangePoint(index, before, after, after / before if before > 0 and after > 0 else None, *found[index])
        for index, before, after in zip(bounds[1:-1], medians, medians[1:], strict=False)
    )
