"""The ratios between the levels of the compared factor, all else equal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.table import Table
from dyno.model import responses
from dyno.model.findings import Comparison, Verdict
from dyno.model.looks import looks
from dyno.model.pairs import Pair, pairs
from dyno.model.study import Cell, Study


def compare(study: Study, table: Table, response: str) -> Iterator[tuple[Pair, Comparison]]:
    """Each pair of cells with what its runs say of the response; pairs that never had the response are left out."""
    deciding = response == study.replicates.of
    if responses.lookup(response).counted and not deciding:
        return
    for pair in pairs(study):
        values_a, values_b = table.of(response, pair.a.index), table.of(response, pair.b.index)
        if deciding or values_a or values_b:
            yield pair, _compare(study, table, response, pair)


@dataclass(frozen=True)
class Measured:
    """A ratio of two cells, or why there is none. `n` counts pairs, or the runs of the smaller side."""

    ratio: stats.Ratio | None
    n: int
    paired: bool
    why_not: str


def between(
    study: Study, table: Table, response: str, a: Cell, b: Cell, confidence: float, names: tuple[str, str]
) -> Measured:
    """The ratio b / a of two cells, within blocks where both have runs in two of them. `names` are those of a and b."""
    when = looks(study)
    values_a, values_b = table.of(response, a.index), table.of(response, b.index)
    blocks_a, blocks_b = table.in_blocks(response, a.index), table.in_blocks(response, b.index)
    common = sorted(blocks_a.keys() & blocks_b.keys())
    paired = len(common) >= 2
    if paired:
        values_a, values_b = [blocks_a[block] for block in common], [blocks_b[block] for block in common]
    n = min(len(values_a), len(values_b))
    ratio = None
    why_not = _unlike_loops(table, response, a, b, names)
    if why_not:
        pass
    elif min(values_a, default=1.0) <= 0 or min(values_b, default=1.0) <= 0:
        why_not = "a ratio needs values above 0, and some are not"
    elif n < 2:
        why_not = sentences.too_few(names[0], len(values_a), names[1], len(values_b))
    else:
        measure = stats.paired_ratio if paired else stats.unpaired_ratio
        ratio = measure(
            values_a, values_b, confidence, stats.widening_of_ratios(when.comparisons, when.first, when.last)
        )
    return Measured(ratio, n, paired, why_not)


def _compare(study: Study, table: Table, response: str, pair: Pair) -> Comparison:
    confidence, precision = study.replicates.confidence, study.replicates.precision
    when = looks(study)
    found = between(study, table, response, pair.a, pair.b, confidence, (pair.level_a, pair.level_b))
    ratio, n, paired, why_not = found.ratio, found.n, found.paired, found.why_not
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
        # The rule that stops a study looks at pairs alone, and not before its fewest blocks.
        converged=paired and n >= when.first and stats.ratio_is_precise(ratio, precision),
    )


def _unlike_loops(table: Table, response: str, a: Cell, b: Cell, names: tuple[str, str]) -> str:
    """Why latencies of a closed and of an open loop are never compared; empty where they are of one kind.

    Schroeder et al. 2006: the same store and the same load give latencies that differ by orders of magnitude.
    """
    _, _, base = response.rpartition(".")
    loops = [table.loops[cell.index] for cell in (a, b)]
    if not base.startswith("latency_") or len(loops[0] | loops[1]) < 2:
        return ""
    kinds = [" and ".join(sorted(found)) or "unknown" for found in loops]
    return f"{names[0]} was driven with its loop {kinds[0]} and {names[1]} with its loop {kinds[1]}"


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
