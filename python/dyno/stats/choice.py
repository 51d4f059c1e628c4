"""Picking the best of several, and saying whether it is shown to be the best.

Whoever picks the highest of several means picks in part the luckiest, so that its mean is too high (the winner's
curse: E. C. Capen, R. V. Clapp, W. M. Campbell, Competitive bidding in high-risk situations, Journal of Petroleum
Technology 23, 1971), the more the noisier the values and the more there are to pick from. That it is the best is
another question: where noise is alike, it is shown by a two-sided test against that which came second, without more
correction for having been picked (S. Gutmann, Z. Maymin, Is the selected population the best?, Annals of Statistics 15,
1987). Here it is tested against each of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import exp_held
from dyno.stats.families import holm
from dyno.stats.looking import block_ratios

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rival:
    """One of those that were not picked, beside the pick; ratios are the pick's value to this one's."""

    ratio: float | None
    """None where the two have no block in common."""
    lo: float | None
    hi: float | None
    n: int
    p: float | None
    """Adjusted; None for fewer than two pairs."""
    worse: bool
    """Whether it is shown to be worse than the pick."""


@dataclass(frozen=True)
class Pick:
    """What was picked, by its place; None where nothing could be."""

    best: int | None
    means: tuple[float | None, ...]
    """Geometric means; None without a value, and for those that are out of the running."""
    rivals: dict[int, Rival]
    """By place, the runner-up first."""

    @property
    def could_be(self) -> int:
        """How many could be the best, by these values: the pick, and all that are not shown to be worse."""
        return 0 if self.best is None else 1 + sum(not rival.worse for rival in self.rivals.values())


def pick_best(groups: Sequence[Array], *, higher: bool, confidence: float, looks: int, out_after: int) -> list[Pick]:
    """Pick of each group the one with the highest (or lowest) geometric mean.

    A group's values are (blocks, candidates), NaN where a run is missing. A candidate without a value in the last
    `out_after` blocks, or with one that has no logarithm, is out of the running. The pick is compared with each other
    candidate within blocks. The chance that any pick is wrongly called shown, at whichever of the `looks` one stops,
    is at most 1 - confidence: each look has its share of it (Bonferroni), and what is left is Holm's over all groups.
    Intervals are each by itself, with the share of one look.
    """
    found = [_measure(group, higher, 1 - (1 - confidence) / looks, out_after) for group in groups]
    flat = [(pick, place) for pick in found for place in pick.rivals]
    adjusted = holm([_of_all_looks(pick.rivals[place].p, looks) for pick, place in flat])
    for (pick, place), p in zip(flat, adjusted, strict=True):
        rival = pick.rivals[place]
        worse = p is not None and p <= 1 - confidence
        pick.rivals[place] = Rival(rival.ratio, rival.lo, rival.hi, rival.n, p, worse)
    return found


def _of_all_looks(p: float | None, looks: int) -> float | None:
    return None if p is None else min(1.0, looks * p)


def _measure(values: Array, higher: bool, confidence: float, out_after: int) -> Pick:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values)
    impossible: NDArray[np.bool_] = np.any(np.isfinite(values) & ~np.isfinite(logs), axis=0)
    running: NDArray[np.bool_] = np.any(np.isfinite(values[-out_after:]), axis=0) & ~impossible
    means = [float(np.nanmean(logs[:, place])) if there else None for place, there in enumerate(running)]
    sign = 1 if higher else -1
    ranked = sorted(
        (place for place, mean in enumerate(means) if mean is not None), key=lambda place: -sign * (means[place] or 0.0)
    )
    told = tuple(None if mean is None else exp_held(mean) for mean in means)
    if not ranked:
        return Pick(None, told, {})
    best, *others = ranked
    ratios = block_ratios(logs[:, [best]] - logs[:, others], confidence, widening=1.0)
    return Pick(
        best,
        told,
        {
            place: _rival(float(centre), float(half), float(p), int(n), sign)
            for place, centre, half, p, n in zip(
                others, ratios.log_ratio, ratios.half, ratios.p, ratios.pairs, strict=True
            )
        },
    )


def _rival(centre: float, half: float, p: float, n: int, sign: int) -> Rival:
    if n < 2 or not math.isfinite(half):
        return Rival(exp_held(centre) if n else None, None, None, n, None, worse=False)
    # Where runs are missing, those in common may speak against a pick that is ahead by all its runs.
    against = sign * centre < 0
    return Rival(exp_held(centre), exp_held(centre - half), exp_held(centre + half), n, 1.0 if against else p, False)
