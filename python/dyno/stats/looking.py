"""Intervals for those who look after each block: of means and of ratios, of one study or of many at once.

Whoever stops as soon as an interval is narrow stops more often than not at a moment at which the noise looks smaller
than it is. Three things make up for that here:

- intervals are widened by a factor that simulation finds, through these very functions (`dyno selfcheck --statistics`);
- the variance of a cell borrows from that of the others as far as they are alike (G. K. Smyth, Linear models and
  empirical Bayes methods for assessing differential expression in microarray experiments, Statistical Applications in
  Genetics and Molecular Biology 3(1), 2004), so that no cell's luck decides alone; one that is noisier than chance
  explains neither borrows nor lends (after B. Phipson et al., Robust hyperparameter estimation protects against
  hypervariable genes, Annals of Applied Statistics 10(2), 2016), and none gets far below its own noise;
- where runs next to each other in time resemble each other, the interval of a mean is widened by what that costs a mean
  of correlated values.

Arrays are (..., blocks, cells): NaN where a run is missing, any number of studies in front. Values are of one response.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_OF_MEANS = 1.07
_OF_SEVERAL_RATIOS = {3: 1.25, 4: 1.16, 5: 1.11, 6: 1.09, 8: 1.07, 12: 1.05}
_OF_ONE_RATIO = {3: 1.40, 4: 1.28, 5: 1.20, 6: 1.17, 8: 1.13, 12: 1.10}
_OWN_SHARE = 0.7  # of its own Student's interval, which a cell's is never below, however quiet the others are
_STANDS_OUT = 0.1  # chance that, of cells of equal noise, any is taken for one that is noisier
_NEAR_BLOCKS = 3  # blocks that are further apart than this are taken as uncorrelated
_MOST_CORRELATION = 0.95


def widening_of_means(first_look: int, last_look: int) -> float:
    """How much wider the interval of a mean is than it would be without looking."""
    return 1.0 if first_look >= last_look else _OF_MEANS


def widening_of_ratios(comparisons: int, first_look: int, last_look: int) -> float:
    """How much wider the interval of a ratio is than it would be without looking.

    A comparison alone stops by its own luck, the more the earlier it is looked at. Of several that have to be precise
    at once the last decides, and the others have had no luck; but one that is much noisier than the others is always
    the last, and is provided for. With a single look there is no luck at all.
    """
    if first_look >= last_look:
        return 1.0
    table = _OF_SEVERAL_RATIOS if comparisons > 1 else _OF_ONE_RATIO
    return table[max((look for look in table if look <= first_look), default=min(table))]


@dataclass(frozen=True)
class Means:
    """Means with intervals: arrays (..., cells), NaN for a cell with fewer than two values."""

    mean: Array
    half: Array
    """Half the width of the interval, in the unit of the values."""
    allowance: Array
    """How many times as wide the interval is for the correlation that is provided for; 1 for none."""
    correlation: Array
    """Between runs next to each other in time, (...); its most likely value, not the one that is provided for."""
    correlation_error: Array
    """Standard error of the correlation, (...)."""


def cell_means(values: Array, times: Array | None, confidence: float, *, randomised: bool, widening: float) -> Means:
    """The interval of each cell's mean: mean -+ w t s sqrt((1 + g) / n / (1 - g / (n - 1))).

    s^2 is the cell's variance relative to its mean, moderated by that of the others as `moderate` says, and t has the
    degrees of freedom that this gives; where 0.7 of the half-width by the cell's own variance is more, it is that. g
    is the sum of correlations with the cell's other runs, for AR(1) noise of the correlation found plus one standard
    error; w is `widening`. `times` are the places in the order of execution; None where correlation does not matter.
    `randomised` says whether the order within blocks is.
    """
    count = np.isfinite(values).sum(axis=-2).astype(np.float64)
    mean, variance = _moments(values, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(count > 1, variance / mean**2, np.nan)
        moderated, degrees = moderate(relative, count - 1)
        if times is None:
            correlation = error = np.zeros(values.shape[:-2])
            loss = np.ones_like(count)
        else:
            correlation, error = neighbours(values / mean[..., None, :], times)
            provided = np.clip(correlation + error, 0.0, _MOST_CORRELATION)
            g = _correlated(provided, values.shape[-1], count, randomised)
            loss = (1 + g) / np.maximum(1 - g / (count - 1), 0.2)
        together = t_quantiles(confidence, degrees) * np.sqrt(moderated)
        by_itself = t_quantiles(confidence, count - 1) * np.sqrt(relative)
        width = np.fmax(together, _OWN_SHARE * by_itself)
        half = widening * width * np.sqrt(loss / count) * np.abs(mean)
        # Nothing is relative to a mean of 0: there the cell stands for itself.
        alone = widening * t_quantiles(confidence, count - 1) * np.sqrt(variance / count)
    own = np.isfinite(half)
    return Means(mean, np.where(own, half, alone), np.where(own, np.sqrt(loss), 1.0), correlation, error)


def moderate(variance: Array, degrees: Array) -> tuple[Array, Array]:
    """Give variances (..., cells) that borrow from each other, and the degrees of freedom that this gives them.

    Smyth 2004, section 6.2: with e = ln s^2 - psi(d / 2) + ln(d / 2), the variance of e beyond psi'(d / 2) tells how
    much the true variances differ; psi'(d0 / 2) is that excess. Without any excess all are one: then it is the pooled
    variance, as in his `limma`. Cells whose variance is 0 or unknown say nothing of the others, and so does one that
    `stands_out`: it keeps its own.
    """
    from scipy.special import polygamma, psi

    noisy = stands_out(variance, degrees)
    known = (variance > 0) & (degrees > 0) & ~noisy
    if variance.shape[-1] < 2 or not known.any():
        return variance, degrees
    d = np.where(known, degrees, 1.0)
    number = known.sum(axis=-1, keepdims=True)
    e = np.where(known, np.log(np.where(known, variance, 1.0)) - psi(d / 2) + np.log(d / 2), 0.0)
    centre = e.sum(axis=-1, keepdims=True) / np.maximum(number, 1)
    spread = (np.where(known, (e - centre) ** 2, 0.0)).sum(axis=-1, keepdims=True) / np.maximum(number - 1, 1)
    excess = spread - (np.where(known, polygamma(1, d / 2), 0.0)).sum(axis=-1, keepdims=True) / np.maximum(number, 1)
    differ = excess > 1e-6
    prior = np.where(differ, 2 * _inverse_trigamma(np.where(differ, excess, 1.0)), np.inf)
    all_degrees = np.where(known, degrees, 0.0).sum(axis=-1, keepdims=True)
    pooled = np.where(known, variance * degrees, 0.0).sum(axis=-1, keepdims=True) / np.maximum(all_degrees, 1)
    finite = np.where(differ, prior, 1.0)
    typical = np.where(differ, np.exp(centre + psi(finite / 2) - np.log(finite / 2)), pooled)
    moderated = np.where(differ, (finite * typical + degrees * variance) / (finite + degrees), pooled)
    borrowed = (number > 1) & np.isfinite(variance) & (degrees > 0) & ~noisy
    return (
        np.where(borrowed, moderated, variance),
        np.where(borrowed, np.minimum(prior + degrees, all_degrees), degrees),
    )


def stands_out(variance: Array, degrees: Array) -> NDArray[np.bool_]:
    """Which variances (..., cells) are larger than chance explains, were all alike: an F test against all others.

    Corrected for the number of cells (Bonferroni): of studies whose cells are alike, in 10 % any is found.
    """
    from scipy.special import fdtri

    known = np.isfinite(variance) & (degrees > 0)
    weighted = np.where(known, variance * degrees, 0.0)
    of_others = np.where(known, degrees, 0.0).sum(axis=-1, keepdims=True) - degrees
    number = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (weighted.sum(axis=-1, keepdims=True) - weighted) / of_others
        usable = known & (of_others > 0) & (others > 0)
        most = fdtri(np.where(usable, degrees, 1.0), np.where(usable, of_others, 1.0), 1 - _STANDS_OUT / number)
        found: NDArray[np.bool_] = usable & (variance > most * others)
    return found


def neighbours(values: Array, times: Array) -> tuple[Array, Array]:
    """Give the correlation between runs next to each other in time, pooled over all cells, and its standard error.

    Of what is left of the values when each cell's mean is taken off. Such a figure is too small by about (1 + 4 rho)
    divided by the number of runs, which is added (F. H. C. Marriott and J. A. Pope, Bias in the estimation of
    autocorrelations, Biometrika 41, 1954; M. G. Kendall, ibid.). 0 where there are too few runs to tell.
    """
    count = np.isfinite(values).sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = values - (np.where(np.isfinite(values), values, 0.0).sum(axis=-2) / count)[..., None, :]
    flat = (*values.shape[:-2], values.shape[-2] * values.shape[-1])
    order = np.argsort(times.reshape(flat), axis=-1)
    series = np.take_along_axis(left.reshape(flat), order, axis=-1)
    there = np.isfinite(series)
    series = np.where(there, series, 0.0)
    number = there.sum(axis=-1)
    degrees = number - (count > 0).sum(axis=-1)
    adjacent = (there[..., 1:] & there[..., :-1]).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        together = (series[..., 1:] * series[..., :-1]).sum(axis=-1) / adjacent
        # Taking off the means of cells has made both about as much too small.
        correlation = together / ((series**2).sum(axis=-1) / number)
        correlation = correlation + (1 + 4 * np.clip(correlation, 0.0, 1.0)) / number
        error = np.sqrt(np.maximum(1 - correlation**2, 0.0) / number)
    known = (degrees > 2) & np.isfinite(correlation)
    return np.where(known, correlation, 0.0), np.where(known, error, 0.0)


def _correlated(correlation: Array, cells: int, count: Array, randomised: bool) -> Array:
    """Sum over a cell's other runs of their correlation with one of them, (..., cells), of AR(1) noise.

    Runs b blocks apart lie b K + (difference of two places within a block) apart: every place is as likely as any
    other where the order is randomised, and the same each time where it is fixed.
    """
    total = np.zeros_like(count)
    for apart in range(1, _NEAR_BLOCKS + 1):
        if randomised:
            shift = np.arange(-(cells - 1), cells)
            share = (cells - np.abs(shift)) / cells**2
            each = (share * correlation[..., None] ** (apart * cells + shift)).sum(axis=-1)
        else:
            each = correlation ** (apart * cells)
        total = total + 2 * np.maximum(1 - apart / np.maximum(count, 1), 0.0) * each[..., None]
    return total


@dataclass(frozen=True)
class Ratios:
    """Ratios with intervals on the log scale: arrays (..., comparisons), NaN where there are fewer than two pairs."""

    log_ratio: Array
    half: Array
    """Half the width of the interval of the log of the ratio."""
    p: Array
    """Of both sides together, for a ratio of 1."""
    pairs: NDArray[np.int64]


def block_ratios(differences: Array, confidence: float, *, widening: float) -> Ratios:
    """The intervals of ratios from differences of logs within blocks, (..., blocks, comparisons).

    Mean -+ w t s / sqrt(n), where w is `widening`; p is that of the t statistic divided by w, so that the interval
    holds a ratio of 1 exactly where p is at least 1 - confidence.
    """
    from scipy.special import stdtr

    count = np.isfinite(differences).sum(axis=-2)
    mean, variance = _moments(differences, count.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = widening * np.sqrt(np.where(count > 1, variance, np.nan) / count)
        statistic = np.where(error > 0, np.abs(mean) / error, np.where(mean == 0, 0.0, np.inf))
        p = np.where(np.isnan(error), np.nan, 2 * stdtr(count - 1.0, -statistic))
        half = t_quantiles(confidence, count - 1.0) * error
    return Ratios(mean, half, p, count)


def t_quantiles(confidence: float, degrees: Array) -> Array:
    """The t with P(-t < T < t) = confidence for each number of degrees of freedom; NaN where that is below 1."""
    from scipy.special import stdtrit

    return np.where(degrees >= 1, stdtrit(np.where(degrees >= 1, degrees, 1.0), (1 + confidence) / 2), np.nan)


def _moments(values: Array, count: Array) -> tuple[Array, Array]:
    """Mean and sample variance over the blocks. Equal values have exactly their value and 0, whatever sums round to."""
    there = np.isfinite(values)
    first = np.where(there, values, np.inf).min(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = (np.where(there, values, -np.inf).max(axis=-2) == first) & (count > 0)
        shifted = np.where(there, values - np.where(count > 0, first, 0.0)[..., None, :], 0.0)
        mean = shifted.sum(axis=-2) / count
        variance = np.where(there, (shifted - mean[..., None, :]) ** 2, 0.0).sum(axis=-2) / (count - 1)
    return np.where(count > 0, first + np.where(alike, 0.0, mean), np.nan), np.where(alike, 0.0, variance)


def _inverse_trigamma(value: Array) -> Array:
    """The x above 0 with psi'(x) = value, by Newton's steps from below (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(20):
        trigamma = polygamma(1, x)
        step = trigamma * (1 - trigamma / value) / polygamma(2, x)
        x = x + step
        if bool((-step < 1e-8 * x).all()):
            break
    return x


def relative_widths(found: Means) -> Array:
    """Half-widths relative to the means, (..., cells); infinite where the mean is 0 or unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        width = found.half / np.abs(found.mean)
    return np.where(np.isfinite(width), width, math.inf)
