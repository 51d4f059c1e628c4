"""What a pilot says of the study to come: how many runs it takes, how long, and which effects it will show.

All of it rests on the spread between the pilot's runs, so each figure has an interval: from a spread that may well be
smaller to one that may well be larger. Runs until an effect is found are so many that it is found with the chance
promised although the spread is known no better: with those that the spread seen would ask for, it would be found less
often (`stats.power`). Drift that outlasts a block is not foreseen; a pilot is too short to show it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.design.rule import Rule
from dyno.model.fractions import Fraction, fraction_of
from dyno.model.pairs import DECIDING_SHARE, Pair, pairs
from dyno.model.run import Outcome, RunRecord
from dyno.model.study import Cell, Study

POWER = 0.9
"""The chance with which an effect is to be found."""

FEWEST_BLOCKS = 3
"""Of a pilot: of two runs of a cell, the spread is anybody's guess."""

_MOST_BLOCKS = 10_000  # that a study may have

_BORROWED = 0.5
"""Of the degrees of freedom that a comparison has from others, so many count. Whether all are equally noisy is itself
read off few blocks, and tails heavier than normal ones make it look surer than it is: by `dyno selfcheck --statistics`.
"""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A relative standard deviation, pooled as the intervals of the study will be."""

    value: float
    low: float
    high: float
    degrees: float

    def through(self, count: Callable[[float], int | None]) -> Runs:
        """What `count` makes of it and of its ends."""
        return Runs(count(self.value), count(self.low), count(self.high))


@dataclass(frozen=True)
class Runs:
    """How many runs it takes, and from where to where that may be; None for more than anybody would make."""

    expected: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True)
class OfCell:
    """A cell: its coefficient of variation, and the runs until its mean is precise. None without two ok runs."""

    cell: Cell
    n: int
    cov: Spread | None
    runs: Runs | None


@dataclass(frozen=True)
class OfPair:
    """A comparison: the spread of its ratio from block to block, as the standard deviation of its log."""

    pair: Pair
    n: int
    sd: Spread | None
    runs: Runs | None
    """Until its ratio is precise."""
    detectable: float | None
    """The smallest effect that it shows with a chance of 90 % when the study ends as expected; a share."""
    for_effect: Runs | None
    """Until an effect of the size asked for is shown with that chance, whatever the spread may be. The ends are what
    it would take were the spread known to be at its own ends."""


@dataclass(frozen=True)
class OfFactors:
    """As of a pair, the effect of a factor of two levels over all cells, or of an interaction."""

    detectable: float | None
    for_effect: Runs | None


@dataclass(frozen=True)
class Prospect:
    """The study to come."""

    cells: tuple[OfCell, ...]
    pairs: tuple[OfPair, ...]
    alpha: float
    """What a p has to be below to be shown, with all comparisons of the report provided for."""
    blocks: Runs | None
    """Until everything that decides is precise, whatever `max` and `budget` are; None where a cell has no spread."""
    ends: Runs | None
    """The block after which the study is expected to end, `max` and `budget` included."""
    ends_by: Literal["precision", "max", "budget"]
    """Why, where it ends as expected."""
    seconds_of_block: float | None
    factors: OfFactors | None
    """Of a screening design in which nothing is compared."""


def of_pilot(study: Study, runs: Sequence[RunRecord], effect: float | None = None) -> Prospect:
    """What the runs of a pilot say of `study`, the study to come. `effect` is one to be found: a share, as 5 % is."""
    rule = Rule.of(study)
    asked = study.replicates
    values = _values(study, runs)
    blocks = len({run.slot.block for run in runs})
    seconds = sum(run.seconds for run in runs) / blocks if blocks else None
    of_means = stats.widening_of_means(rule.looks.first, rule.looks.last)
    covs = _covs(values, asked.confidence)

    def for_mean(cov: float) -> int | None:
        return stats.runs_for_mean_precision(cov * of_means, asked.precision, asked.confidence)

    cells = tuple(
        OfCell(cell, int(np.isfinite(column).sum()), cov, cov.through(for_mean) if cov else None)
        for cell, column, cov in zip(study.cells, values.T, covs, strict=True)
    )
    compared = pairs(study)
    of_ratios = stats.widening_of_ratios(len(compared), rule.looks.first, rule.looks.last)
    differences = _differences(values, rule)
    sds = _sds(differences, compared, asked.confidence)

    def for_ratio(sd: float, number: float = 1) -> int | None:
        return _until_the_widest(sd * of_ratios, number, asked.precision, asked.confidence)

    if rule.looks.at == "mean":
        wanted = [each.runs for each in cells]
    else:
        wanted = [None if sd is None else sd.through(_of_alike(for_ratio, sd, sds)) for sd in sds]
    whole = _widest(wanted)
    ends, ends_by = _end(study, rule, whole, seconds)
    ends_at = ends.expected if ends else None
    fraction = fraction_of(study)
    alpha = 1 - asked.confidence
    if compared:
        alpha = alpha_of(asked.confidence, len(compared))
    elif fraction:
        alpha /= _effects(fraction)

    def for_effect(sd: Spread) -> Runs | None:
        if effect is None:
            return None
        values, degrees = np.array([sd.value, sd.low, sd.high]), np.array([sd.degrees, math.inf, math.inf])
        found = until_found(values, degrees, effect, alpha, of_ratios)
        return Runs(*(int(each) if math.isfinite(each) else None for each in found))

    def detectable(sd: Spread) -> float | None:
        return ends_at and stats.detectable_effect(ends_at, sd.value * of_ratios, alpha, POWER, sd.degrees)

    return Prospect(
        cells,
        tuple(
            OfPair(
                pair,
                int(np.isfinite(column).sum()),
                sd,
                sd.through(for_ratio) if sd else None,
                detectable(sd) if sd else None,
                for_effect(sd) if sd else None,
            )
            for pair, column, sd in zip(compared, differences.T, sds, strict=True)
        ),
        alpha,
        whole,
        ends,
        ends_by,
        seconds,
        _of_factors(covs, fraction, ends_at, alpha, of_means, effect) if fraction and not compared else None,
    )


def alpha_of(confidence: float, comparisons: int) -> float:
    """What the p of one of so many comparisons has to be below to be shown, whatever else the report compares."""
    return (1 - confidence) * DECIDING_SHARE / comparisons


def until_found(sd: Array, degrees: Array, effect: float, alpha: float, widening: float) -> Array:
    """Pairs until an effect is shown with the chance `POWER`, of each spread, seen with such degrees of freedom.

    Infinite where that takes more than anybody would make.
    """
    return stats.runs_for_effects(sd * widening, degrees, effect, alpha, POWER)


def variances_of_ratios(differences: Array, cells: int, groups: int) -> tuple[Array, Array]:
    """The variance of each ratio from block to block with its degrees of freedom, pooled as far as they are alike.

    `differences` of logs are (..., blocks, comparisons), of so many cells in so many combinations of other factors.
    """
    count, _, variance = _moments(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = count - 1
        moderated, degrees = stats.moderate(variance, own)
        # Of three levels there are three ratios, and the third follows from the other two.
        independent = (cells - groups) * np.maximum(own.max(axis=-1, keepdims=True), 1)
        borrowed = np.minimum(degrees, independent) - own
    return moderated, own + _BORROWED * np.maximum(borrowed, 0)


def _values(study: Study, runs: Sequence[RunRecord]) -> Array:
    """The response that decides, (blocks, cells); NaN where no run was ok."""
    places = {cell.index: place for place, cell in enumerate(study.cells)}
    values = np.full((max((run.slot.block for run in runs), default=0) + 1, len(places)), np.nan)
    for run in runs:
        value = run.responses.get(study.replicates.of)
        if run.outcome is Outcome.OK and value is not None:
            values[run.slot.block, places[run.slot.cell]] = value
    return values


def _covs(values: Array, confidence: float) -> list[Spread | None]:
    """Of each cell; its variance borrows from those of the others, as `stats.cell_means` has it."""
    count, mean, variance = _moments(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        moderated, degrees = stats.moderate(np.where(mean != 0, variance / mean**2, np.nan), count - 1)
    return _spreads(moderated, degrees, confidence)


def _differences(values: Array, rule: Rule) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values)
        found = logs[:, rule.pairs[:, 1]] - logs[:, rule.pairs[:, 0]]
    return np.where(np.isfinite(found), found, np.nan)


def _sds(differences: Array, compared: Sequence[Pair], confidence: float) -> list[Spread | None]:
    """Of the ratio of each comparison, from block to block; pooled as far as they are alike."""
    if not compared:
        return []
    cells = {cell.index for pair in compared for cell in (pair.a, pair.b)}
    groups = {tuple(pair.within.items()) for pair in compared}
    return _spreads(*variances_of_ratios(differences, len(cells), len(groups)), confidence)


def _moments(values: Array) -> tuple[Array, Array, Array]:
    """Number, mean and sample variance over the blocks, of what is there."""
    there = np.isfinite(values)
    count = there.sum(axis=-2).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(there, values, 0.0).sum(axis=-2) / count
        variance = np.where(there, (values - mean[..., None, :]) ** 2, 0.0).sum(axis=-2) / (count - 1)
    return count, mean, np.where(count > 1, variance, np.nan)


def _spreads(variance: Array, degrees: Array, confidence: float) -> list[Spread | None]:
    found: list[Spread | None] = []
    for each, freedom in zip(variance, degrees, strict=True):
        if not (math.isfinite(each) and 0 < freedom < math.inf):
            found.append(None)
            continue
        sd = math.sqrt(float(each))
        found.append(Spread(sd, *stats.sd_interval(sd, float(freedom), confidence), float(freedom)))
    return found


def _until_the_widest(sd: float, number: float, precision: float, confidence: float) -> int | None:
    """Pairs until the widest of so many alike intervals is narrow enough: the largest of their spreads decides."""
    runs = stats.runs_for_ratio_precision(sd, precision, confidence)
    for _ in range(20):
        if runs is None or number <= 1:
            break
        before = runs
        runs = stats.runs_for_ratio_precision(stats.largest_sd(sd, before - 1, number), precision, confidence)
        if runs == before:
            break
    return runs


def _of_alike(
    count: Callable[[float, float], int | None], sd: Spread, others: Sequence[Spread | None]
) -> Callable[[float], int | None]:
    """`count` for the widest of all comparisons that are about as noisy as this one."""
    number = sum(other is not None and other.value >= 0.8 * sd.value for other in others)
    return lambda value: count(value, number)


def _widest(wanted: Sequence[Runs | None]) -> Runs | None:
    """The most of what any of them takes; None where one is not known."""
    known = [runs for runs in wanted if runs is not None]
    if not known or len(known) < len(wanted):
        return None
    return Runs(*(_most([getattr(runs, end) for runs in known]) for end in ("expected", "low", "high")))


def _most(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else max(count for count in counts if count is not None)


def _end(
    study: Study, rule: Rule, blocks: Runs | None, seconds: float | None
) -> tuple[Runs | None, Literal["precision", "max", "budget"]]:
    asked = study.replicates
    within = max(int(asked.budget / seconds), 1) if asked.budget is not None and seconds else asked.max
    last = min(within, asked.max)
    if blocks is None:
        return None, "max"

    def end(wanted: int | None) -> int:
        return last if wanted is None else min(max(wanted, rule.looks.first), last)

    if blocks.expected is not None and max(blocks.expected, rule.looks.first) <= last:
        by: Literal["precision", "max", "budget"] = "precision"
    else:
        by = "budget" if within < asked.max else "max"
    return Runs(end(blocks.expected), end(blocks.low), end(blocks.high)), by


def _effects(fraction: Fraction) -> int:
    """How many effects a screening design tells apart, of factors and interactions of two."""
    return len(fraction.aliases())


def _of_factors(
    covs: Sequence[Spread | None],
    fraction: Fraction,
    blocks: int | None,
    alpha: float,
    widening: float,
    effect: float | None,
) -> OfFactors | None:
    """High to low is the mean of half of the logs less that of the other half, so its variance is 4 / runs of one's.

    `stats.detectable_effect` is asked for as many pairs, of such a spread, as have the analysis' degrees of freedom.
    """
    known = [cov for cov in covs if cov is not None]
    if not known or len(known) < len(covs):
        return None

    def as_pairs(blocks: int, cov: float) -> tuple[int, float]:
        runs = blocks * fraction.cells
        pairs = runs - _effects(fraction) - blocks + 1
        return pairs, 2 * cov * widening * math.sqrt(pairs / runs)

    def for_effect(cov: float, degrees: float) -> int | None:
        assert effect is not None
        found = range(2, _MOST_BLOCKS + 1)
        place = bisect_left(found, POWER, key=lambda n: stats.paired_power(*as_pairs(n, cov), effect, alpha, degrees))
        return found[place] if place < len(found) else None

    def typical(ends: Sequence[float]) -> float:
        return math.sqrt(sum(end**2 for end in ends) / len(ends))

    cov = Spread(
        typical([each.value for each in known]),
        typical([each.low for each in known]),
        typical([each.high for each in known]),
        min(each.degrees for each in known),
    )
    runs = None
    if effect is not None:
        ends = ((cov.value, cov.degrees), (cov.low, math.inf), (cov.high, math.inf))
        runs = Runs(*(for_effect(*end) for end in ends))
    if blocks is None or blocks < 2:
        return OfFactors(None, runs)
    return OfFactors(stats.detectable_effect(*as_pairs(blocks, cov.value), alpha, POWER, cov.degrees), runs)
