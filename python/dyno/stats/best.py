"""Which of several is the best, in several units at once: one that is shown to be, or those that could be.

A unit (a cell of a study, or several pooled) has a best one of its own. Two things may be wrong with what is said of
it, and each has half of the error:

- *Named*: one is called the best that is not. It is named only where it is shown to be better than each other one, so
  that each of these tests may have all of the unit's error (R. L. Berger, Multiparameter hypothesis testing and
  acceptance sampling, Technometrics 24, 1982). Two-sided ones do though it was not chosen beforehand (S. Gutmann,
  Z. Maymin, Is the selected population the best?, Annals of Statistics 15, 1987: where noise is alike). Over units
  these are Holm's.
- *Left out*: the best one is not among those that could be. Whoever leaves out what is shown to be worse than some
  other is wrong only where one of the k - 1 others is called better than the best one: k - 1 one-sided tests a unit and
  not the k (k - 1) / 2 of all pairs (J. C. Hsu, Multiple comparisons: theory and methods, 1996, chapter 4: comparisons
  with the best). Over units this is Bonferroni's, since each unit has a best one, whatever is rejected elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno.stats.families import holm

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Best:
    """What is shown in one unit."""

    best: int | None
    """The place of the one that is named, or the only one that is left."""
    p: float | None
    """Adjusted, of what leads not being the best; None where none is named and none leads all others."""
    could_be: tuple[int, ...]
    """Those that are not left out, by place: the best alone where there is one."""


def best_of(units: Sequence[Array], weights: Sequence[float], alpha: float) -> list[Best]:
    """What is shown in each unit; the chance that anything of it is wrong is at most `alpha`.

    `units` are (candidates, candidates): the one-sided p of the row's candidate being no better than the column's, NaN
    where the two are not compared. `weights` are the shares of the error that units have, whatever they add up to.

    Raises ValueError for units that are not square, or for another number of weights.
    """
    if any(unit.ndim != 2 or unit.shape[0] != unit.shape[1] for unit in units):
        raise ValueError("a unit is a square of p-values")
    if len(units) != len(weights):
        raise ValueError(f"expected {len(units)} weights, got {len(weights)}")
    total = math.fsum(weights)
    leading = [_leading(unit) for unit in units]
    named = holm([None if lead is None else min(1.0, 2 * p) for lead, p in leading], weights)
    found = []
    for unit, (lead, _), by_name, weight in zip(units, leading, named, weights, strict=True):
        # Each kind of error has a half, so that a p counts twice.
        out = 2 * _of_being_best(unit) * total / weight
        place = lead if lead is not None else int(out.argmax()) if len(out) > 1 else None
        p = None
        # Of those that are better than each other in a circle none is left to be named.
        if place is not None and out[place] > alpha:
            by_others = float(np.delete(out, place).max())
            p = min(1.0, by_others, 1.0 if by_name is None else 2 * by_name)
        if place is not None and p is not None and p <= alpha:
            found.append(Best(place, p, (place,)))
        else:
            # Where tests contradict each other so far that none would be left, nothing is left out.
            left = np.flatnonzero(out > alpha)
            left = left if left.size else np.arange(len(unit))
            found.append(Best(None, p if lead is not None else None, tuple(int(each) for each in left)))
    return found


def _leading(unit: Array) -> tuple[int | None, float]:
    """The one that is ahead of each other one, and the largest of its p-values; None where there is none."""
    for place, own in enumerate(unit):
        others = np.delete(own, place)
        if others.size and bool(np.all(others < 0.5)):  # NaN is not
            return place, float(others.max())
    return None, 1.0


def _of_being_best(unit: Array) -> Array:
    """Of each candidate the p of its being the best, for as many tests as speak of it; 1 where none does."""
    others = np.where(np.eye(len(unit), dtype=bool), np.nan, unit)
    there = np.isfinite(others)
    least: Array = np.where(there, others, 1.0).min(axis=0, initial=1.0) * np.maximum(there.sum(axis=0), 1)
    return least
