"""The ratios between the levels of the compared factor, all else equal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Set

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.table import Table
from dyno.model import responses
from dyno.model.findings import Comparison, Pace, Verdict
from dyno.model.pairs import Pair, pairs
from dyno.model.study import Study


def compare(study: Study, table: Table, response: str) -> Iterator[tuple[Pair, Comparison]]:
    """Each pair of cells with what its runs say of the response; pairs that never had the response are left out."""
    deciding = response == study.replicates.of
    if responses.lookup(response).counted and not deciding:
        return
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
    loops_a, loops_b = table.loops[pair.a.index], table.loops[pair.b.index]
    why_not = unlike_loops(response, pair.level_a, loops_a, pair.level_b, loops_b)
    if why_not:
        ratio = None
    elif min(values_a, default=1.0) <= 0 or min(values_b, default=1.0) <= 0:
        ratio, why_not = None, "a ratio needs values above 0, and some are not"
    elif n < 2:
        ratio, why_not = None, sentences.too_few(pair.level_a, len(values_a), pair.level_b, len(values_b))
    else:
        measure = stats.paired_ratio if paired else stats.unpaired_ratio
        ratio = measure(values_a, values_b, confidence)
    verdict = verdict_of(ratio)
    interval = (ratio.lo, ratio.hi) if ratio else None
    pace = _pace(table, response, pair)
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
            response, pair.factor, pair.level_a, pair.level_b, pair.within, ratio, verdict, paired, why_not, pace
        ),
        precision=_as_factor(ratio),
        # The rule that stops a study looks at pairs alone, and not before its fewest blocks.
        converged=paired and n >= study.replicates.min and stats.ratio_is_precise(ratio, precision),
        pace=pace,
    )


def _pace(table: Table, response: str, pair: Pair) -> Pace | None:
    """What set a throughput on either side besides the system; a rate weighs more."""
    if not responses.lookup(response).of_pace:
        return None
    paces = {table.paces.get(cell.index) for cell in (pair.a, pair.b)}
    return "rate" if "rate" in paces else "waits" if "waits" in paces else None


def unlike_loops(response: str, a: str, loops_a: Set[str], b: str, loops_b: Set[str]) -> str:
    """Why latencies of a closed and of an open loop are never compared; empty where they are of one kind.

    Schroeder et al. 2006: the same store and the same load give latencies that differ by orders of magnitude.
    """
    _, _, base = response.rpartition(".")
    if not base.startswith("latency_") or len(loops_a | loops_b) < 2:
        return ""
    names = [" and ".join(sorted(found)) or "unknown" for found in (loops_a, loops_b)]
    return f"{a} was driven with its loop {names[0]} and {b} with its loop {names[1]}"


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
