"""Designs of two levels a factor: how much each factor and interaction moves the response.

Jain's sign table method, for all combinations of k factors (2^k) or a fraction of them (2^(k-p)), where some effects
cannot be told apart. Where every cell ran once, noise is guessed from the effects themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import (
    Labels,
    Values,
    as_array,
    check_share,
    contrasts,
    logs_of,
    squares_of_rounding,
    t_quantile,
    two_sided_p,
)


@dataclass(frozen=True)
class Effect:
    """Half of what going from the low to the high level changes; in the unit of the values, without one on logs.

    On logs exp(2 `size`) is the ratio of high to low. `source` joins factors by " x "; `aliases` are those that this
    design cannot tell from it ("-" where they count with the opposite sign): `size` is the sum of them all. `share` is
    of the variation, None where nothing varies. `lo`, `hi` and `p` are None where no runs are left to tell noise.
    """

    source: str
    aliases: tuple[str, ...]
    size: float
    lo: float | None
    hi: float | None
    p: float | None
    share: float | None


@dataclass(frozen=True)
class Effects:
    """All effects, the mean (`size` 0.0 there means 0 on logs, a value of 1), and the noise.

    `noise` is the standard deviation of single runs, None without `degrees` of freedom. `defining` lists interactions
    that never change sign in this fraction, and so are part of the mean.
    """

    mean: float
    effects: tuple[Effect, ...]
    defining: tuple[str, ...]
    noise: float | None
    degrees: int
    log: bool


def two_level_effects(
    values: Values,
    signs: Mapping[str, Sequence[int]],
    confidence: float,
    blocks: Labels | None = None,
    *,
    log: bool = True,
    max_order: int | None = None,
) -> Effects | None:
    """Effects of two-level factors and of their interactions, from every single run, with intervals.

    `signs` has for each factor -1 (low) or 1 (high) for each value; an interaction's column is the product of its
    factors'. The effects are the least squares fit of those columns, which with as many runs in every cell is the mean
    of sign times value; an interval is size -+ t s / sqrt(runs), with s^2 the sum of squares of the residuals over
    their degrees of freedom, 2^k (r - 1) for r runs in each of 2^k cells (R. Jain, The Art of Computer Systems
    Performance Analysis, 1991, chapters 17 to 19). Differences between `blocks` are taken out first. Interactions of
    more than `max_order` factors are not fitted and count as noise.

    Assumes independent, roughly normal residuals of the same variance in every cell.

    None where the runs do not tell all effects apart (too few, a cell without any). Raises ValueError for a sign that
    is not -1 or 1, signs or blocks that are not as many as the values, no factor, a `max_order` below 1, a confidence
    outside (0, 1), or a value that is not finite or, on the log scale, not above 0.
    """
    check_share("confidence", confidence)
    y = logs_of(values) if log else as_array(values)
    columns = _sign_columns(y.size, signs, max_order)
    if blocks is not None and len(blocks) != y.size:
        raise ValueError(f"there are {len(blocks)} blocks for {y.size} values")
    if not y.size:
        return None
    names, aliases, defining = _told_apart(columns)
    kept = np.column_stack([np.ones(y.size), *(columns[name] for name in names)])
    nuisance = contrasts(blocks) if blocks is not None else np.empty((y.size, 0))
    table = np.hstack([kept, nuisance])
    inner = table.T @ table
    degrees = y.size - table.shape[1]
    if degrees < 0 or int(np.linalg.matrix_rank(inner)) < table.shape[1]:
        return None
    about = y - y[0]  # where all are equal nothing is left, not even the rounding of a mean
    inverse = np.linalg.inv(inner)
    found = inverse @ (table.T @ about)
    missed = about - table @ found
    total, left = float(((about - about.mean()) ** 2).sum()), float(missed @ missed)
    total, left = (each if each > squares_of_rounding(y) else 0.0 for each in (total, left))
    noise = math.sqrt(left / degrees) if degrees else None
    t = t_quantile(confidence, degrees) if degrees else 0.0
    effects = []
    for at, name in enumerate(names, 1):
        size, spread = float(found[at]), math.sqrt(float(inverse[at, at]))
        share = size**2 / float(inverse[at, at]) / total if total else None
        lo = hi = p = None
        if noise is not None:
            half = t * noise * spread
            lo, hi = size - half, size + half
            p = two_sided_p(size / (noise * spread), degrees) if noise else None
        effects.append(Effect(name, tuple(aliases[name]), size, lo, hi, p, share))
    return Effects(float(y[0] + found[0]), tuple(effects), tuple(defining), noise, degrees, log)


def _sign_columns(n: int, signs: Mapping[str, Sequence[int]], max_order: int | None) -> dict[str, NDArray[np.int64]]:
    if not signs:
        raise ValueError("there is no factor to have an effect")
    if max_order is not None and max_order < 1:
        raise ValueError(f"max_order is 1 or more, got {max_order}")
    mains = {}
    for factor, column in signs.items():
        mains[factor] = np.asarray(column)
        if mains[factor].shape != (n,):
            raise ValueError(f"{factor} has {len(column)} signs for {n} values")
        if not np.isin(mains[factor], (-1, 1)).all():
            raise ValueError(f"a sign of {factor} is neither -1 nor 1")
    order = len(signs) if max_order is None else min(max_order, len(signs))
    return {
        " x ".join(term): np.prod([mains[factor] for factor in term], axis=0).astype(np.int64)
        for size in range(1, order + 1)
        for term in combinations(signs, size)
    }


def _told_apart(columns: Mapping[str, NDArray[np.int64]]) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """The sources to fit, the aliases of each, and those that are part of the mean."""
    first: dict[bytes, str] = {}
    aliases: dict[str, list[str]] = {}
    defining: list[str] = []
    for name, column in columns.items():
        sign = int(column[0])
        pattern = (column * sign).tobytes()  # alike for a column and its opposite
        if (column == sign).all():
            defining.append(name if sign > 0 else f"-{name}")
        elif pattern in first:
            kept = first[pattern]
            aliases[kept].append(name if sign == int(columns[kept][0]) else f"-{name}")
        else:
            first[pattern] = name
            aliases[name] = []
    return list(aliases), aliases, defining
