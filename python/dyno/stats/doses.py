"""How a rate begins to go down with a dose, from runs at several doses in the same blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array, check_share, logs_of, t_quantile

_ROUNDS = 50
_ENOUGH = 1e-10
_HALVINGS = 40


@dataclass(frozen=True)
class Onset:
    """d ln(rate) / d dose at dose 0, with its standard error and the degrees of freedom of that.

    `curved` is the coefficient of the squared dose: 0 where the time per operation grows in a straight line.

    `misfit` is how likely the means of the doses are to be as far from the fitted curve, were it true (p of the F test
    of lack of fit); None where there are no more doses than it has parameters, or too few runs to know their noise.
    """

    slope: float
    error: float
    degrees: int
    curved: float
    misfit: float | None

    def interval(self, confidence: float) -> tuple[float, float]:
        """Student's interval of the slope. Raises ValueError for a confidence outside (0, 1)."""
        check_share("confidence", confidence)
        half = t_quantile(confidence, self.degrees) * self.error
        return self.slope - half, self.slope + half


def onset(doses: Values, rates: Values, blocks: Sequence[int]) -> Onset | None:
    """Fit ln(rate) = a_block - ln(1 + b dose + c dose^2) by least squares; its slope at dose 0 is -b.

    1 / rate, the time per operation, is what a dose adds to: in a straight line (c = 0) where each operation waits for
    what is added, or where all wait in one line for it; from a bend on (c > 0) where it is hidden until it outlasts
    what else goes on; less and less (c < 0) where calls come to be shared. The block's own level takes out whatever was
    slower or faster at its time. By Gauss and Newton with steps halved where they lead up (D. M. Bates, D. G. Watts,
    Nonlinear Regression Analysis and Its Applications, 1988, sections 2.2 and 2.3); the error is that of the tangent
    plane, with n - blocks - 2 degrees of freedom. Assumes that the logs' noise is independent and roughly normal, and
    that the curve is true: the slope is extrapolated by it, and of a kink (nothing until a dose, everything beyond) it
    can be wrong in its sign, with an interval that is the narrower the more blocks there are. `misfit` tells that.

    None where fewer than three doses or no degree of freedom is left, or where the fit does not settle. Raises
    ValueError for a rate that is not above 0, a value that is not finite, or rows of different length.
    """
    x, y = as_array(doses), logs_of(rates)
    if not len(x) == len(y) == len(blocks):
        raise ValueError(f"expected rows of one length, got {len(x)}, {len(y)} and {len(blocks)}")
    _, block = np.unique(np.asarray(blocks), return_inverse=True)
    degrees = len(x) - (int(block.max()) + 1 if len(x) else 0) - 2
    largest = float(np.abs(x).max()) if len(x) else 0.0
    if degrees < 1 or np.unique(x).size < 3 or largest == 0:
        return None
    scaled = x / largest  # so that both columns are of one size
    powers = np.column_stack([scaled, scaled**2])
    target = _within(y, block)
    found = np.zeros(2)
    left = _squares(target, powers, found, block)
    for _ in range(_ROUNDS):
        tangent = _within(-powers / (1 + powers @ found)[:, None], block)
        residual = target - _within(-np.log1p(powers @ found), block)
        step, _, rank, _ = np.linalg.lstsq(tangent, residual, rcond=None)
        if rank < 2:
            return None
        for _ in range(_HALVINGS):
            if (now := _squares(target, powers, found + step, block)) <= left:
                break
            step = step / 2
        else:
            break  # no step leads further down
        found, before, left = found + step, left, now
        if before - left <= _ENOUGH * max(before, _ENOUGH) and float(np.abs(step).max()) < 1e-6:
            break
    tangent = _within(-powers / (1 + powers @ found)[:, None], block)
    spread = np.linalg.inv(tangent.T @ tangent)
    error = math.sqrt(left / degrees * float(spread[0, 0])) / largest
    misfit = _misfit(x, target, block, left, degrees)
    return Onset(-float(found[0]) / largest, error, degrees, float(found[1]) / largest**2, misfit)


def _misfit(
    x: NDArray[np.float64], target: NDArray[np.float64], block: NDArray[np.int64], left: float, degrees: int
) -> float | None:
    """Of what the curve leaves, the part that a level of its own for each dose would not (Draper, Smith, 1998, 2.1)."""
    from scipy.special import fdtrc

    _, dose = np.unique(x, return_inverse=True)
    levels = _within(np.eye(int(dose.max()) + 1)[dose], block)
    best, _, rank, _ = np.linalg.lstsq(levels, target, rcond=None)
    residual = target - levels @ best
    pure, more = float(residual @ residual), int(rank) - 2
    noise = degrees - more
    if more < 1 or noise < 1:
        return None
    beyond = max(left - pure, 0.0)
    if pure <= _ENOUGH * _ENOUGH:
        return None if beyond <= _ENOUGH else 0.0
    return float(fdtrc(more, noise, beyond / more / (pure / noise)))


def _within(values: NDArray[np.float64], block: NDArray[np.int64]) -> NDArray[np.float64]:
    """Less the mean of their block."""
    counts = np.bincount(block)
    columns = values if values.ndim == 2 else values[:, None]
    means = np.column_stack([np.bincount(block, column) / counts for column in columns.T])
    centred: NDArray[np.float64] = columns - means[block]
    return centred if values.ndim == 2 else centred[:, 0]


def _squares(
    target: NDArray[np.float64], powers: NDArray[np.float64], tried: NDArray[np.float64], block: NDArray[np.int64]
) -> float:
    times = 1 + powers @ tried
    if (times <= 0).any():
        return math.inf
    residual = target - _within(-np.log(times), block)
    return float(residual @ residual)
