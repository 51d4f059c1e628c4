"""What explains the variation: how much of it is due to each factor, to their interplay, to blocks and to noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Labels, Values, as_array, contrasts, logs_of, squares_of_rounding

BLOCKS = "blocks"
RESIDUAL = "residual"
HIGHER = "interactions of more than {order} factors"


@dataclass(frozen=True)
class VariationRow:
    """What one source explains. Sum of squares and mean square are in the unit of the values squared (of logs: none).

    `source` joins the factors of an interaction by " x ". `share` is of the total sum of squares. None stands where a
    figure is undefined: `mean_square` without degrees of freedom; `f` and `p` too where no noise was seen, and for the
    residual; `share` where nothing varies.
    """

    source: str
    sum_of_squares: float
    degrees: int
    share: float | None
    mean_square: float | None = None
    f: float | None = None
    p: float | None = None


@dataclass(frozen=True, eq=False)
class Variation:
    """An analysis of variance. `log` says that it is one of the natural logs of the values; so are the arrays then.

    `adds_up` says that the sums of squares add up to the total, and shares to 1: they do where every cell has as many
    runs in every block. `fitted` and `residuals` are in the order of the values, for a plot of one over the other.
    """

    rows: tuple[VariationRow, ...]
    sum_of_squares: float
    degrees: int
    log: bool
    adds_up: bool
    fitted: NDArray[np.float64]
    residuals: NDArray[np.float64]


def variation(
    values: Values,
    levels: Mapping[str, Labels],
    blocks: Labels | None = None,
    *,
    log: bool = True,
    max_order: int | None = None,
    widening: float = 1.0,
) -> Variation | None:
    """Allocate the variation of a full factorial design to its factors, their interactions, blocks and noise.

    `levels` has for each factor the level of each value, `blocks` the block of each. A source's sum of squares is how
    much less the fit misses once the source is in it; divided by the sum of squares about the mean it is the share of
    variation explained (R. Jain, The Art of Computer Systems Performance Analysis, 1991, chapters 18 and 20 to 23). Its
    mean square over that of the residual is F.

    Where runs are missing, sources overlap and there are several answers. Here blocks come first; each factor and
    interaction is then judged beside blocks and all sources that do not contain it ("type II": Ø. Langsrud, ANOVA for
    unbalanced data: use type II instead of type III sums of squares, Statistics and Computing 13, 2003). The shares
    then need not add up to 1.

    Interactions of more than `max_order` factors are one row; where nothing is left beside them (one run a cell), they
    are taken for noise and make the residual. Without blocks and with one run a cell, give a `max_order` below the
    number of factors: no noise can be told otherwise.

    On the log scale (the default) a factor that doubles everything is one effect, not a different one for each level of
    the others, and noise in proportion to the value is alike everywhere. F and p assume independent, roughly normal
    residuals of the same variance in every cell. `widening` is by how much wider intervals of ratios are made for
    having been looked at: p is that of F / widening^2, and of two cells thus the p of their ratio, whose t^2 is F.

    None for fewer than two values. Raises ValueError for labels that are not as many as the values, no factor, a
    `max_order` below 1, a value that is not finite or, on the log scale, not above 0.
    """
    y = logs_of(values) if log else as_array(values)
    _check(y.size, levels, blocks, max_order)
    if y.size < 2:
        return None
    order = len(levels) if max_order is None else min(max_order, len(levels))
    terms = [term for size in range(1, len(levels) + 1) for term in combinations(levels, size)]
    mains = {factor: contrasts(labels) for factor, labels in levels.items()}
    fit = _Fit(y, blocks, mains, terms)

    floor = squares_of_rounding(y)
    total = fit.missed_by_mean()
    everything = fit.missed(terms)
    higher = [term for term in terms if len(term) > order]
    sources: list[tuple[str, _Miss, _Miss]] = []
    if blocks is not None:
        sources.append((BLOCKS, total, fit.missed([])))
    for term in terms:
        if len(term) <= order:
            beside = [other for other in terms if not set(term) <= set(other)]
            sources.append((" x ".join(term), fit.missed(beside), fit.missed([*beside, term])))
    residual, left, used = RESIDUAL, everything, terms
    if higher:
        name, lower = HIGHER.format(order=order), [term for term in terms if len(term) <= order]
        without = fit.missed(lower)
        if everything.degrees:
            sources.append((name, without, everything))
        else:
            residual, left, used = f"{RESIDUAL} ({name})", without, lower

    whole = total.squares if total.squares > floor else 0.0
    noise = left.squares if left.squares > floor else 0.0
    mean_noise = noise / left.degrees if left.degrees else None
    rows = [
        _row(source, less, more, whole, floor, left.degrees, mean_noise, widening) for source, less, more in sources
    ]
    rows.append(VariationRow(residual, noise, left.degrees, noise / whole if whole else None, mean_noise))
    added = sum(row.sum_of_squares for row in rows)
    residuals = fit.residuals(used)
    return Variation(
        rows=tuple(rows),
        sum_of_squares=whole,
        degrees=total.degrees,
        log=log,
        adds_up=abs(added - whole) <= 1e-9 * whole + (len(rows) + 1) * floor,
        fitted=y - residuals,
        residuals=residuals,
    )


def _check(n: int, levels: Mapping[str, Labels], blocks: Labels | None, max_order: int | None) -> None:
    if not levels:
        raise ValueError("there is no factor to explain anything")
    if max_order is not None and max_order < 1:
        raise ValueError(f"max_order is 1 or more, got {max_order}")
    for name, labels in {**levels, **({BLOCKS: blocks} if blocks is not None else {})}.items():
        if len(labels) != n:
            raise ValueError(f"{name} has {len(labels)} labels for {n} values")


@dataclass(frozen=True)
class _Miss:
    squares: float  # of what a fit misses
    degrees: int  # values less what the fit adjusts


class _Fit:
    """Least squares with any choice of terms beside blocks, on the triangle that one factorisation leaves.

    Fitting blocks beside other columns is fitting what is left of those, and of the values, once each block's mean is
    taken off (R. Frisch, F. V. Waugh, Partial time regressions as compared with individual trends, Econometrica 1,
    1933): hundreds of blocks cost no more than one.
    """

    def __init__(
        self,
        y: NDArray[np.float64],
        blocks: Labels | None,
        mains: dict[str, NDArray[np.float64]],
        terms: list[tuple[str, ...]],
    ) -> None:
        codes: dict[Hashable, int] = {}
        block = [codes.setdefault(label, len(codes)) for label in blocks] if blocks is not None else [0] * y.size
        self._block = np.array(block, dtype=np.int64)
        self._counts = np.bincount(self._block)
        self._y = y
        # About the first value: where all are equal nothing is left, not even the rounding of a mean.
        self._left = self._within((y - y[0])[:, None])
        parts: dict[tuple[str, ...], NDArray[np.float64]] = {}
        for term in terms:
            product = np.ones((y.size, 1))
            for factor in term:
                product = (product[:, :, None] * mains[factor][:, None, :]).reshape(y.size, -1)
            parts[term] = self._within(product)
        self._columns = np.hstack([np.empty((y.size, 0)), *parts.values()])
        self._columns[np.abs(self._columns) < 1e-12] = 0.0  # the rounding of what blocks explain altogether
        self._places: dict[tuple[str, ...], NDArray[np.int64]] = {}
        at = 0
        for term, part in parts.items():
            self._places[term] = np.arange(at, at + part.shape[1])
            at += part.shape[1]
        self._triangle = np.asarray(np.linalg.qr(np.hstack([self._columns, self._left]), mode="r"))

    def _within(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is left of each column when the means of its blocks are taken off."""
        sums = np.zeros((self._counts.size, columns.shape[1]))
        np.add.at(sums, self._block, columns)
        within: NDArray[np.float64] = columns - (sums / self._counts[:, None])[self._block]
        return within

    def _solve(self, terms: Sequence[tuple[str, ...]]) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
        places = np.concatenate([np.empty(0), *(self._places[term] for term in terms)]).astype(np.int64)
        found, _, rank, _ = np.linalg.lstsq(self._triangle[:, places], self._triangle[:, -1], rcond=1e-9)
        return places, found, int(rank)

    def missed_by_mean(self) -> _Miss:
        about = (self._y - self._y[0]) - (self._y - self._y[0]).mean()
        return _Miss(float(about @ about), self._y.size - 1)

    def missed(self, terms: Sequence[tuple[str, ...]]) -> _Miss:
        places, found, rank = self._solve(terms)
        left = self._triangle[:, -1] - self._triangle[:, places] @ found
        return _Miss(float(left @ left), self._y.size - self._counts.size - rank)

    def residuals(self, terms: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
        places, found, _ = self._solve(terms)
        residuals: NDArray[np.float64] = self._left[:, 0] - self._columns[:, places] @ found
        return residuals


def _row(
    source: str, less: _Miss, more: _Miss, whole: float, floor: float, left: int, noise: float | None, widening: float
) -> VariationRow:
    degrees = less.degrees - more.degrees
    squares = less.squares - more.squares
    if not degrees or squares <= floor:  # a difference of two sums: rounding can leave it below 0
        squares = 0.0
    share = squares / whole if whole else None
    if not degrees:
        return VariationRow(source, squares, degrees, share)
    mean_square = squares / degrees
    if not noise:
        return VariationRow(source, squares, degrees, share, mean_square)
    from scipy.special import fdtrc

    f = mean_square / noise
    return VariationRow(source, squares, degrees, share, mean_square, f, float(fdtrc(degrees, left, f / widening**2)))
