"""The Universal Scalability Law: what contention and coherency cost as clients are added, and where the peak is.

N. J. Gunther, Guerrilla Capacity Planning, 2007: X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)). sigma is
contention, the share of work that waits in line (alpha in later writings and in the package usl of R); kappa is
coherency, what each pair spends on agreeing (beta there); lambda is the rate of one (gamma there).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, t_quantile
from dyno.stats.resampling import FEWEST, log_samples, percentile_interval, resampled_means

FEWEST_LEVELS = 6  # Gunther's own rule: three parameters and as many levels to contradict them
ROUNDS = 200  # of improving a fit; it takes ten or so, more where a parameter runs into its bound

Interval = tuple[float, float]
Scale = Literal["log", "linear"]


@dataclass(frozen=True)
class Usl:
    """A fit of the law: `rate` is lambda, in the unit of the values, `contention` sigma and `coherency` kappa.

    Each with its interval, None where a level has fewer than 3 replicates. `peak` is N* = sqrt((1 - sigma) / kappa),
    None unless the interval of kappa lies above 0: without that no peak was seen. `error` is the standard deviation
    of the levels around the law, on the scale of the fit. All None, with a `reason`, where there is no fit; with a fit,
    `reason` says what is missing.
    """

    rate: float | None = None
    contention: float | None = None
    coherency: float | None = None
    rate_interval: Interval | None = None
    contention_interval: Interval | None = None
    coherency_interval: Interval | None = None
    peak: float | None = None
    peak_interval: Interval | None = None
    error: float | None = None
    reason: str | None = None


def usl_throughput(n: float, rate: float, contention: float, coherency: float) -> float:
    """The law itself: the throughput of `n` clients, in the unit of `rate`."""
    return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def _misfit(
    parameters: NDArray[np.float64], n: NDArray[np.float64], logs: NDArray[np.float64], scale: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is left, and its slopes in ln lambda, sigma and kappa: one row a curve."""
    contention, coherency = parameters[:, 1:2], parameters[:, 2:3]
    below = 1 + contention * (n - 1) + coherency * n * (n - 1)
    law = parameters[:, :1] + np.log(n) - np.log(below)
    slopes = np.stack([np.ones_like(below), -(n - 1) / below, -n * (n - 1) / below], axis=2)
    if scale == "log":
        return logs - law, slopes
    rates = np.exp(law)
    return np.exp(logs) - rates, slopes * rates[:, :, None]


def _fit(
    n: NDArray[np.float64], logs: NDArray[np.float64], weights: NDArray[np.float64], scale: Scale
) -> NDArray[np.float64]:
    """Least squares for each row of `logs`, by Levenberg's and Marquardt's method with sigma and kappa held at 0.

    All rows at once, since a bootstrap has thousands. The start is the linear fit of n / X = (1 + ...) / lambda.
    """
    design = np.column_stack([np.ones_like(n), n - 1, n * (n - 1)])
    # Relative errors of n / X are those of X, so each equation counts by 1 / (n / X).
    linear = np.linalg.lstsq(design / np.exp(np.log(n) - logs.mean(axis=0))[:, None], np.ones_like(n), rcond=None)[0]
    start = np.maximum(linear[1:] / linear[0], 0.0) if linear[0] > 0 else np.zeros(2)
    parameters = np.tile([float(logs[:, 0].mean()), *start], (len(logs), 1))
    damping = np.full(len(logs), 1e-3)
    left, slopes = _misfit(parameters, n, logs, scale)
    squares = (weights * left**2).sum(axis=1)
    for _ in range(ROUNDS):
        pull = np.einsum("rl,rlp->rp", weights * left, slopes)
        bend = np.einsum("rlp,l,rlq->rpq", slopes, weights, slopes)
        held = (parameters <= 0) & (pull < 0)
        held[:, 0] = False  # ln lambda has no bound
        pull[held] = 0.0
        bend[held] = 0.0
        bend.swapaxes(1, 2)[held] = 0.0
        diagonal = np.einsum("rpp->rp", bend)
        diagonal[held] = 1.0
        diagonal *= 1 + damping[:, None]
        tried = parameters + np.linalg.solve(bend, pull[:, :, None])[:, :, 0]
        tried[:, 1:] = np.maximum(tried[:, 1:], 0.0)
        tried_left, tried_slopes = _misfit(tried, n, logs, scale)
        tried_squares = (weights * tried_left**2).sum(axis=1)
        better = tried_squares < squares
        gain = np.where(better, squares - tried_squares, 0.0)
        parameters[better], left[better], slopes[better] = tried[better], tried_left[better], tried_slopes[better]
        squares[better] = tried_squares[better]
        damping = np.clip(np.where(better, damping / 10, damping * 10), 1e-12, 1e12)
        if bool((~better & (damping > 1e8) | better & (gain <= 1e-15 * squares)).all()):
            break
    return parameters


def fit_usl(n: Values, samples: Sequence[Values], confidence: float, scale: Scale = "log") -> Usl:
    """Fit the Universal Scalability Law to the rates `samples` measured with each number `n` of clients.

    Least squares on the logs of the rates, each replicate counting the same, with sigma and kappa not below 0: a
    relative error then counts the same at every level, as the noise of rates mostly is. With `scale` "linear" absolute
    errors of each level's geometric mean count, as in Gunther's book and the package usl of R, which lets the largest
    rates decide. Intervals are the percentile bootstrap's over replicates within levels (2,000 resamples, fixed seed,
    widened for few replicates); they say what the noise leaves open, not whether the law is right for this system: see
    `error`. A kappa whose interval reaches 0 shows no peak.

    No fit for fewer than 6 levels. Raises ValueError as `log_samples` does, for levels below 1, or a confidence outside
    (0, 1).
    """
    t_quantile(confidence, 1)
    levels, logs = log_samples(n, samples)
    if levels.size and levels[0] < 1:
        raise ValueError(f"the law starts at one client, got {levels[0]:g}")
    if levels.size < FEWEST_LEVELS:
        return Usl(reason=f"{levels.size} levels, and the law is fitted to {FEWEST_LEVELS} or more")
    weights = np.array([sample.size for sample in logs], dtype=np.float64)
    weights /= weights.mean()
    means = np.array([[sample.mean() for sample in logs]])
    top = float(means.max())  # the rates may be of any size; the largest is 1 while fitting
    found = _fit(levels, means - top, weights, scale)
    left, _ = _misfit(found, levels, means - top, scale)
    error = math.sqrt(float((weights * left**2).sum()) / (levels.size - 3)) * (1 if scale == "log" else math.exp(top))
    log_rate, contention, coherency = (float(each) for each in found[0])
    plain = Usl(math.exp(log_rate + top), contention, coherency, error=error)
    replicates = min(sample.size for sample in logs)
    if replicates < FEWEST:
        return replace(plain, reason=f"a level has fewer than {FEWEST} replicates: no intervals, so no peak is claimed")
    resampled = _fit(levels, resampled_means(logs) - top, weights, scale)
    rates, contentions, coherencies = (
        percentile_interval(each, confidence, replicates)
        for each in (np.exp(resampled[:, 0] + top), resampled[:, 1], resampled[:, 2])
    )
    bounded = replace(plain, rate_interval=rates, contention_interval=contentions, coherency_interval=coherencies)
    if not coherencies[0] > 0 or not contention < 1:
        return replace(bounded, reason="the interval of kappa reaches 0: no peak was seen")
    peaks = np.sqrt(np.maximum(1 - resampled[:, 1], 0.0) / np.maximum(resampled[:, 2], coherencies[0]))
    return replace(
        bounded,
        peak=math.sqrt((1 - contention) / coherency),
        peak_interval=percentile_interval(peaks, confidence, replicates),
    )
