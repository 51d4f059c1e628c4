"""The stopping rule, of one study or of many at once: `dyno selfcheck --statistics` puts thousands through it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.model.looks import Looks, looks
from dyno.model.pairs import pairs
from dyno.model.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """What has to be how precise, and when that is looked at."""

    looks: Looks
    pairs: NDArray[np.int64]
    """The places of the cells that are compared, (comparisons, 2)."""
    confidence: float
    randomised: bool

    @classmethod
    def of(cls, study: Study) -> Rule:
        """As the study says."""
        places = {cell.index: place for place, cell in enumerate(study.cells)}
        compared = [(places[pair.a.index], places[pair.b.index]) for pair in pairs(study)]
        return cls(
            looks(study),
            np.array(compared, dtype=np.int64).reshape(-1, 2),
            study.replicates.confidence,
            study.order == "randomised",
        )

    @property
    def widening(self) -> float:
        """How much wider the intervals that decide are for being looked at again and again."""
        if self.looks.at == "mean":
            return stats.widening_of_means(self.looks.first, self.looks.last)
        return stats.widening_of_ratios(self.looks.comparisons, self.looks.first, self.looks.last)

    def reached(self, values: Array, times: Array, tried: NDArray[np.bool_]) -> Array:
        """The widest interval that decides, relative to its centre, (...); infinite where one is missing.

        `values` of the deciding response and their places in the order of execution are (..., blocks, cells), NaN where
        a run is missing. Cells that are not `tried` any more decide nothing, nor does what they are compared with.
        """
        if self.looks.at == "mean":
            kept = values[..., tried]
            found = stats.cell_means(
                kept, times[..., tried], self.confidence, randomised=self.randomised, widening=self.widening
            )
            widths = stats.relative_widths(found)
        else:
            kept_pairs = self._pairs_of(tried)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(values)
            differences = logs[..., kept_pairs[:, 1]] - logs[..., kept_pairs[:, 0]]
            # A value of 0 has no logarithm, and none that is left out would be a ratio of the others.
            impossible: NDArray[np.bool_] = np.any(np.isfinite(values) & ~np.isfinite(logs), axis=-2)
            half = stats.block_ratios(differences, self.confidence, widening=self.widening).half
            widths = np.where(impossible[..., kept_pairs].any(axis=-1), np.nan, np.expm1(half))
        if widths.shape[-1] == 0:
            return np.full(widths.shape[:-1], np.inf)
        widest: Array = np.max(np.where(np.isfinite(widths), widths, np.inf), axis=-1)
        return widest

    def fewest(self, values: Array, tried: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many values the interval with the fewest has, (...); of those that decide."""
        there = np.isfinite(values)
        if self.looks.at == "mean":
            counts = there[..., tried].sum(axis=-2)
        else:
            kept_pairs = self._pairs_of(tried)
            counts = (there[..., kept_pairs[:, 0]] & there[..., kept_pairs[:, 1]]).sum(axis=-2)
        return counts.min(axis=-1, initial=np.iinfo(np.int64).max) if counts.shape[-1] else np.zeros(1, np.int64)

    def _pairs_of(self, tried: NDArray[np.bool_]) -> NDArray[np.int64]:
        return self.pairs[tried[self.pairs].all(axis=-1)] if len(self.pairs) else self.pairs
