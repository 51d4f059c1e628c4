"""The ratios between the levels of the compared factor, all else equal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.table import Table
from dyno.model.findings import Comparison, Verdict
from dyno.model.study import Cell, Study


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in the compared factor alone."""

    factor: str
    a: Cell
    b: Cell

    @property
    def within(self) -> dict[str, str]:
        """The levels that both cells share."""
        return {name: level for name, level in self.a.levels.items() if name != self.factor}

    @property
    def level_a(self) -> str:
        """The level that is 1."""
        return self.a.levels[self.factor]

    @property
    def level_b(self) -> str:
        """The level that is measured against it."""
        return self.b.levels[self.factor]


def pairs(study: Study) -> list[Pair]:
    """Every two levels of the compared factor, the one declared first as `a`, within each combination of the others."""
    factor = study.compare
    if factor is None:
        return []
    place = {level.name: i for i, level in enumerate(study.factor(factor).levels)}
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in study.cells:
        others = tuple(item for item in cell.levels.items() if item[0] != factor)
        groups.setdefault(others, []).append(cell)
    return [
        Pair(factor, a, b)
        for group in groups.values()
        for a, b in combinations(sorted(group, key=lambda cell: place[cell.levels[factor]]), 2)
    ]


def compare(study: Study, table: Table, response: str) -> Iterator[tuple[Pair, Comparison]]:
    """Each pair of cells with what its runs say of the response; pairs that never had the response are left out."""
    deciding = response == study.replicates.of
    for pair in pairs(study):
        values_a, values_b = table.of(response, pair.a.index), table.of(response, pair.b.index)
        if deciding or values_a or values_b:
            yield pair, _compare(study, table, response, pair)


def _compare(study: Study, table: Table, response: str, pair: Pair) -> Comparison:
    confidence, precision = study.replicates.confidence, study.replicates.precision
    values_a, values_b = table.of(response, pair.a.index), table.of(response, pair.b.index)
    blocks_a, blocks_b = table.in_blocks(response, pair.a.index), table.in_blocks(response, pair.b.index)
    common = sorted(blocks_a.keys() & blocks_b.keys())
    paired = len(common) >= 2
    if paired:
        values_a, values_b = [blocks_a[block] for block in common], [blocks_b[block] for block in common]
    n = min(len(values_a), len(values_b))
    if min(values_a, default=1.0) <= 0 or min(values_b, default=1.0) <= 0:
        ratio, why_not = None, "a ratio needs values above 0, and some are not"
    elif n < 2:
        ratio, why_not = None, sentences.too_few(pair.level_a, len(values_a), pair.level_b, len(values_b))
    else:
        measure = stats.paired_ratio if paired else stats.unpaired_ratio
        ratio, why_not = measure(values_a, values_b, confidence), ""
    verdict = verdict_of(ratio)
    interval = (ratio.lo, ratio.hi) if ratio else None
    return Comparison(
        response=response,
        factor=pair.factor,
        a=pair.level_a,
        b=pair.level_b,
        within=pair.within,
        ratio=ratio.ratio if ratio else None,
        ci=interval,
        n=n,
        method=ratio.method if ratio else "none",
        verdict=verdict,
        sentence=sentences.comparison(
            response, pair.factor, pair.level_a, pair.level_b, pair.within, ratio, verdict, paired, why_not
        ),
        precision=_as_factor(ratio),
        converged=stats.ratio_is_precise(ratio, precision),
    )


def verdict_of(ratio: stats.Ratio | None) -> Verdict:
    """Higher or lower where the interval leaves 1 out."""
    if ratio is None:
        return "not enough runs"
    if ratio.lo > 1:
        return "higher"
    return "lower" if ratio.hi < 1 else "no difference shown"


def _as_factor(ratio: stats.Ratio | None) -> float | None:
    if ratio is None or ratio.half_width > math.log(1e9):  # wider than a factor of 1e9 is no precision at all
        return None
    return math.expm1(ratio.half_width)
