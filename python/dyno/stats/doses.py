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
_FAR = 50.0  # of logs: no block is so much faster, but a step that is tried may say so


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


@dataclass(frozen=True)
class _Law:
    """ln(rate) = level of the block - ln(1 + b u + c u^2), where u is the dose as that block feels it.

    Parameters are the levels, then b and c. `reference` is None where all blocks feel a dose alike.
    """

    doses: NDArray[np.float64]
    block: NDArray[np.int64]
    reference: float | None

    def felt(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each dose relative to the block's own time per operation, which is 1 / exp(level)."""
        if self.reference is None:
            return self.doses
        shift = np.clip(levels - self.reference, -_FAR, _FAR)
        felt: NDArray[np.float64] = self.doses * np.exp(shift)[self.block]
        return felt

    def logs(self, at: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The logs of the rates; None where the time per operation would not be above 0."""
        levels, (b, c) = at[:-2], at[-2:]
        felt = self.felt(levels)
        times = 1 + b * felt + c * felt**2
        return None if (times <= 0).any() else levels[self.block] - np.log(times)

    def tangent(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """The derivative of the logs in each parameter."""
        levels, (b, c) = at[:-2], at[-2:]
        felt = self.felt(levels)
        times = 1 + b * felt + c * felt**2
        own = np.eye(len(levels))[self.block]
        if self.reference is not None:
            own *= (1 - (b * felt + 2 * c * felt**2) / times)[:, None]
        return np.column_stack([own, -felt / times, -(felt**2) / times])


def onset(doses: Values, rates: Values, blocks: Sequence[int], reference: float | None = None) -> Onset | None:
    """Fit ln(rate) = a_block - ln(1 + b u + c u^2) by least squares; its slope at dose 0 is -b.

    1 / rate, the time per operation, is what a dose adds to: in a straight line (c = 0) where each operation waits for
    what is added, or where all wait in one line for it; from a bend on (c > 0) where it is hidden until it outlasts
    what else goes on; less and less (c < 0) where calls come to be shared. The block's own level takes out whatever was
    slower or faster at its time. By Gauss and Newton with steps halved where they lead up (D. M. Bates, D. G. Watts,
    Nonlinear Regression Analysis and Its Applications, 1988, sections 2.2 and 2.3); the error is that of the tangent
    plane, with n - blocks - 2 degrees of freedom. Assumes that the logs' noise is independent and roughly normal, and
    that the curve is true: the slope is extrapolated by it, and of a kink (nothing until a dose, everything beyond) it
    can be wrong in its sign, with an interval that is the narrower the more blocks there are. `misfit` tells that.

    Where doses are times added to an operation, relative to its mean time at the rate `reference`, a block at whose
    time operations took twice as long feels half of it: u = dose * exp(a_block) / reference. Without it u is the dose.

    None where fewer than three doses or no degree of freedom is left, or where the fit does not settle. Raises
    ValueError for a rate or a reference that is not above 0, a value that is not finite, or rows of different length.
    """
    x, y = as_array(doses), logs_of(rates)
    if not len(x) == len(y) == len(blocks):
        raise ValueError(f"expected rows of one length, got {len(x)}, {len(y)} and {len(blocks)}")
    level = None if reference is None else float(logs_of([reference])[0])
    _, block = np.unique(np.asarray(blocks), return_inverse=True)
    count = int(block.max()) + 1 if len(x) else 0
    degrees = len(x) - count - 2
    largest = float(np.abs(x).max()) if len(x) else 0.0
    if degrees < 1 or np.unique(x).size < 3 or largest == 0:
        return None
    law = _Law(x / largest, block, level)  # so that both columns are of one size
    found = np.append(_begin(law.doses, y, block), [0.0, 0.0])
    residual = y - found[:-2][block]
    left = float(residual @ residual)
    for _ in range(_ROUNDS):
        step, _, rank, _ = np.linalg.lstsq(law.tangent(found), residual, rcond=None)
        if rank < len(found):
            return None
        for _ in range(_HALVINGS):
            if (logs := law.logs(found + step)) is not None and (now := float(np.square(y - logs).sum())) <= left:
                break
            step = step / 2
        else:
            break  # no step leads further down
        found, before, left, residual = found + step, left, now, y - logs
        if before - left <= _ENOUGH * max(before, _ENOUGH) and float(np.abs(step).max()) < 1e-6:
            break
    tangent = law.tangent(found)
    if np.linalg.matrix_rank(tangent) < len(found):
        return None
    spread = float(np.linalg.inv(tangent.T @ tangent)[-2, -2])
    error = math.sqrt(left / degrees * spread) / largest
    misfit = _misfit(law, found, tangent, residual, degrees)
    return Onset(-float(found[-2]) / largest, error, degrees, float(found[-1]) / largest**2, misfit)


def _begin(x: NDArray[np.float64], y: NDArray[np.float64], block: NDArray[np.int64]) -> NDArray[np.float64]:
    """About the level of each block: at its smallest dose."""
    levels = np.empty(int(block.max()) + 1)
    for number in range(len(levels)):
        of_block = block == number
        size = np.abs(x[of_block])
        levels[number] = y[of_block][size == size.min()].mean()
    return levels


def _misfit(
    law: _Law, at: NDArray[np.float64], tangent: NDArray[np.float64], residual: NDArray[np.float64], degrees: int
) -> float | None:
    """Of what the curve leaves, the part that a level of its own for each dose would not (Draper, Smith, 1998, 2.1).

    Such levels are, beside the curve, what of them no parabola over the doses has. Where blocks feel a dose differently
    a bend in what they feel is at another dose in each: there higher powers of that are tried as well.
    """
    from scipy.special import fdtrc

    doses, dose = np.unique(law.doses, return_inverse=True)
    extra = range(1, len(doses) - 2)
    beside = np.linalg.qr(np.vander(doses, len(doses), increasing=True))[0][dose, 3:]
    if law.reference is not None:
        felt = law.felt(at[:-2])
        beside = np.column_stack([beside, *(tangent[:, -1] * (felt / np.abs(felt).max()) ** power for power in extra)])
    columns = np.column_stack([tangent, beside])
    best, _, rank, _ = np.linalg.lstsq(columns, residual, rcond=None)
    more = int(rank) - tangent.shape[1]
    noise = degrees - more
    if more < 1 or noise < 1:
        return None
    unexplained = residual - columns @ best
    left, pure = float(residual @ residual), float(unexplained @ unexplained)
    beyond = max(left - pure, 0.0)
    if pure <= _ENOUGH * _ENOUGH:
        return None if beyond <= _ENOUGH else 0.0
    return float(fdtrc(more, noise, beyond / more / (pure / noise)))
