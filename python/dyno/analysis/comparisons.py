"""The ratios between the levels of the compared factor, all else equal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.promises import Promises
from dyno.analysis.table import Table
from dyno.model import measures, responses
from dyno.model.findings import Comparison, Pace, RankFigures, Verdict
from dyno.model.looks import Looks, looks
from dyno.model.pairs import DECIDING_SHARE, Pair, pairs
from dyno.model.study import Cell, Study

NO_MEANS = "some values are 0, and too many for a ratio of means"


@dataclass(frozen=True)
class Measured:
    """What the runs of two cells say of the ratio b / a of one response, or why they say nothing.

    `n` counts pairs, or the runs of the smaller side; `shift` is widened by `widening`, for how often the study was
    looked at. It is None where `why_not` says why, and where values of 0 have no logarithm.
    """

    values_a: Sequence[float]
    values_b: Sequence[float]
    paired: bool
    n: int
    shift: stats.LogShift | None
    widening: float
    why_not: str
    pace: Pace | None

    def ratio(self, confidence: float) -> stats.Ratio | None:
        """Of geometric means, or of plain ones where values of 0 have no logarithm; None where `why_not` says why."""
        if self.shift is not None:
            return self.shift.ratio(confidence)
        if self.why_not:
            return None
        return stats.fieller_ratio(self.values_a, self.values_b, confidence, paired=self.paired, widening=self.widening)


@dataclass(frozen=True)
class Compared:
    """Two cells and what their runs say of one response, before the number of comparisons is known."""

    pair: Pair
    response: str
    paired: bool
    n: int
    ratio: stats.Ratio | None
    equivalence: stats.Equivalence | None
    ranks: stats.RankRatio | None
    why_not: str
    pace: Pace | None


def compare(
    study: Study, table: Table, names: Sequence[str], confounded: Mapping[tuple[int, int], tuple[str, ...]]
) -> list[tuple[Pair, Comparison]]:
    """Each pair of cells with what its runs say of each response; pairs that never had the response are left out.

    `confounded` has the keys in which two cells differ besides, by the numbers of both.

    What is called a difference, or equal, is so beyond all comparisons of the report: p-values are Holm's over all of
    them, where those of the deciding response take half of the error that is allowed and all others the other half (S.
    Holm 1979, section 4: unequal weights), so that a report may show many responses and still answer its question.
    """
    compared = pairs(study)
    found = [measured for name in names for measured in _of_response(study, table, name, compared)]
    deciding = [each.response == study.replicates.of for each in found]
    weights = shares_of_error(deciding)
    adjusted = stats.holm([each.ratio.p if each.ratio else None for each in found], weights)
    equal = stats.holm([each.equivalence.p if each.equivalence else None for each in found], weights)
    counted = sum(each.ratio is not None for each in found)
    when = looks(study)
    return [
        (each.pair, _comparison(study, when, each, p, p_equal, counted, confounded))
        for each, p, p_equal in zip(found, adjusted, equal, strict=True)
    ]


def shares_of_error(deciding: Sequence[bool]) -> list[float]:
    """Of the error that a whole report may make, what each of its claims may: those that are `deciding` share a half.

    Where all are of one kind, all are alike.
    """
    main, others = sum(deciding), len(deciding) - sum(deciding)
    if not main or not others:
        return [1 / len(deciding) for _ in deciding]
    return [DECIDING_SHARE / main if each else (1 - DECIDING_SHARE) / others for each in deciding]


def _of_response(study: Study, table: Table, response: str, compared: Sequence[Pair]) -> Iterator[Compared]:
    deciding = response == study.replicates.of
    if responses.lookup(response).counted and not deciding:
        return
    for pair in compared:
        values_a, values_b = table.of(response, pair.a.index), table.of(response, pair.b.index)
        if deciding or values_a or values_b:
            yield _measure(study, table, response, pair)


def between(study: Study, table: Table, response: str, a: Cell, b: Cell, names: tuple[str, str]) -> Measured:
    """The ratio b / a of two cells, within blocks where both have runs in two of them. `names` are those of a and b."""
    values_a, values_b = table.of(response, a.index), table.of(response, b.index)
    blocks_a, blocks_b = table.in_blocks(response, a.index), table.in_blocks(response, b.index)
    common = sorted(blocks_a.keys() & blocks_b.keys())
    paired = len(common) >= 2
    if paired:
        values_a, values_b = [blocks_a[block] for block in common], [blocks_b[block] for block in common]
    n = min(len(values_a), len(values_b))
    shift, widening = None, widening_in(study, table)
    why_not = unlike_loops(response, names[0], table.loops[a.index], names[1], table.loops[b.index])
    why_not = why_not or unlike_cpus(response, names[0], table.emulated[a.index], names[1], table.emulated[b.index])
    if a.system.kind != b.system.kind:
        sides = (table.promises[a.index], table.promises[b.index])
        why_not = why_not or unlike_durability(response, names[0], sides[0], names[1], sides[1])
    if n > 0:  # one that did not run answered nothing, and not otherwise
        why_not = why_not or table.answers.why_unlike(response, a.index, table.answers, b.index)
    why_not = why_not or not_over(response, [(table, a.index, names[0]), (table, b.index, names[1])])
    if not why_not and n < 2:
        why_not = sentences.too_few(names[0], len(values_a), names[1], len(values_b))
    elif not why_not and min([*values_a, *values_b]) > 0:
        shift = (stats.paired_shift if paired else stats.unpaired_shift)(values_a, values_b)
    elif not why_not:
        why_not = no_means(values_a, values_b, study.replicates.confidence, paired=paired, widening=widening)
    if shift is not None:
        shift = shift.widened(widening)
    return Measured(values_a, values_b, paired, n, shift, widening, why_not, _pace(table, response, a, b))


def no_means(
    a: Sequence[float], b: Sequence[float], confidence: float, *, paired: bool = False, widening: float = 1.0
) -> str:
    """Why values that are not all above 0 have no ratio of means either; empty where they have one."""
    if min([*a, *b]) < 0:
        return "a ratio needs values of 0 and above, and some are not"
    if stats.fieller_ratio(a, b, confidence, paired=paired, widening=widening) is None:
        return NO_MEANS
    return ""


def widening_in(study: Study, table: Table) -> float:
    """The same as `widening_between_cells`, reckoned once for a table of that study's runs."""
    if table.widening is None:
        table.widening = widening_between_cells(study)
    return table.widening


def widening_between_cells(study: Study) -> float:
    """How much wider an interval between cells is made for the looks, so that all that a report says of two is one.

    Where nothing is compared, means decide when a study stops: 95 % intervals between two of 2 to 6 cells that stop by
    their means hold the truth in 95.5 % and more of 4,000 studies each with what means are widened by.
    """
    when = looks(study)
    if not when.comparisons:
        return stats.widening_of_means(when.first, when.last)
    return stats.widening_of_ratios(when.comparisons, when.first, when.last)


def _measure(study: Study, table: Table, response: str, pair: Pair) -> Compared:
    rule = study.replicates
    found = between(study, table, response, pair.a, pair.b, (pair.level_a, pair.level_b))
    a, b, paired, shift = found.values_a, found.values_b, found.paired, found.shift
    ratio = found.ratio(rule.confidence)
    if shift is None:
        return Compared(pair, response, paired, found.n, ratio, None, None, found.why_not, found.pace)
    by_rank = stats.paired_ranks if paired else stats.unpaired_ranks
    return Compared(
        pair,
        response,
        paired,
        found.n,
        ratio,
        stats.equivalence_of(shift, rule.equivalence, 1 - rule.confidence),
        by_rank(a, b, rule.confidence) if _needs_ranks(a, b, paired) else None,
        "",
        found.pace,
    )


def _needs_ranks(values_a: Sequence[float], values_b: Sequence[float], paired: bool) -> bool:
    """Whether what is left of the logs is far from a bell shape, so that ranks should be asked too."""
    if paired:
        return stats.far_from_normal(
            _left([math.log(b) - math.log(a) for a, b in zip(values_a, values_b, strict=True)])
        )
    return any(stats.far_from_normal(_left([math.log(value) for value in side])) for side in (values_a, values_b))


def _left(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _comparison(
    study: Study,
    when: Looks,
    found: Compared,
    p: float | None,
    p_equal: float | None,
    counted: int,
    confounded: Mapping[tuple[int, int], tuple[str, ...]],
) -> Comparison:
    rule, ratio = study.replicates, found.ratio
    alpha = 1 - rule.confidence
    verdict = verdict_by(ratio, p, p_equal, alpha, judged=study.judged)
    of_means = ratio is not None and found.equivalence is None
    pair = found.pair
    ranks = found.ranks and RankFigures(
        ratio=found.ranks.ratio,
        ci=None if found.ranks.lo is None or found.ranks.hi is None else (found.ranks.lo, found.ranks.hi),
        p=found.ranks.p,
        method=found.ranks.method,
    )
    comparison = Comparison(
        response=found.response,
        factor=pair.factor,
        a=pair.level_a,
        b=pair.level_b,
        within=pair.within,
        ratio=ratio.ratio if ratio else None,
        ci=(ratio.lo, ratio.hi) if ratio else None,
        n=found.n,
        method=ratio.method if ratio else "none",
        verdict=verdict,
        sentence="",
        precision=_as_factor(ratio),
        # The rule that stops a study looks at pairs alone, and their logs, and not before its fewest blocks.
        converged=found.paired
        and found.n >= when.first
        and not of_means
        and stats.ratio_is_precise(ratio, rule.precision),
        p=ratio.p if ratio else None,
        p_adjusted=p,
        family=counted if ratio else None,
        margin=rule.equivalence if found.equivalence else None,
        equivalent=None if p_equal is None or not study.judged else p_equal <= alpha,
        p_equivalent=p_equal,
        ranks=ranks,
        pace=found.pace,
        confounded=confounded.get((pair.a.index, pair.b.index), ()),
    )
    sentence = sentences.comparison(
        comparison, study.telling(pair.within), paired=found.paired, of_means=of_means, why_not=found.why_not
    )
    return comparison.model_copy(update={"sentence": sentence})


def _pace(table: Table, response: str, a: Cell, b: Cell) -> Pace | None:
    """What set a throughput on either side besides the system; a rate weighs more."""
    if not measures.is_one(response) or not measures.lookup(response).of_pace:
        return None
    paces = {table.paces.get(cell.index) for cell in (a, b)}
    return "rate" if "rate" in paces else "waits" if "waits" in paces else None


def not_over(response: str, cells: Iterable[tuple[Table, int, str]]) -> str:
    """Why runs that are left say nothing of cells, each with its name: the worst are not among them. Else empty."""
    told = [
        sentences.not_over(len(beyond), len(table.struck[cell]), name)
        for table, cell, name in cells
        if (beyond := table.beyond(response, cell))
    ]
    return " and ".join(told)


def mixes_loops(response: str, loops: Set[str]) -> bool:
    """Whether it is a latency, of runs that were not all driven in one kind of loop."""
    _, _, base = response.rpartition(".")
    return base.startswith("latency_") and len(loops) > 1


def unlike_loops(response: str, a: str, loops_a: Set[str], b: str, loops_b: Set[str]) -> str:
    """Why latencies of a closed and of an open loop are never compared; empty where they are of one kind.

    Schroeder et al. 2006: the same store and the same load give latencies that differ by orders of magnitude.
    """
    if not mixes_loops(response, loops_a | loops_b):
        return ""
    names = [" and ".join(sorted(found)) or "unknown" for found in (loops_a, loops_b)]
    return f"{a} was driven with its loop {names[0]} and {b} with its loop {names[1]}"


def mixes_cpus(response: str, emulated: Set[bool]) -> bool:
    """Whether it hangs on how fast a CPU is, of runs of which some had CPUs that software emulates, and some not.

    An unknown response is none that anything is said of.
    """
    return len(emulated) > 1 and measures.is_one(response) and measures.is_of_time(response)


def unlike_cpus(response: str, a: str, emulated_a: Set[bool], b: str, emulated_b: Set[bool]) -> str:
    """Why nothing that takes time on CPUs that software emulates is compared with the same on real ones.

    Emulation makes each instruction dearer by a factor of its own, and a device hardly, so that no factor puts it
    right. Empty where both sides are alike.
    """
    if not mixes_cpus(response, emulated_a | emulated_b):
        return ""
    if (True in emulated_a) == (True in emulated_b):
        return f"some runs of {a} and {b} had CPUs that are emulated by software, and some had not"
    emulated, native = (a, b) if True in emulated_a else (b, a)
    return f"the CPUs of {emulated} were emulated by software and those of {native} were not"


def unlike_durability(response: str, a: str, of_a: Set[Promises], b: str, of_b: Set[Promises]) -> str:
    """Why nothing that takes time is compared of two systems of which one promises more of a commit than the other.

    Within one kind of system it is a setting that is compared, and a note says what it is the price of. Empty where
    both promise the same, or where the settings of either do not tell.
    """
    if not measures.is_one(response) or not measures.is_of_time(response):
        return ""
    told = [{each.durability for each in side} for side in (of_a, of_b)]
    if told[0] == told[1] or any(not side or None in side for side in told):
        return ""
    words = [" or ".join(sorted(str(each) for each in side)) for side in told]
    return f"their durability differs: of {a} {words[0]}, of {b} {words[1]}"


def verdict_by(
    ratio: stats.Ratio | None, p: float | None, p_equal: float | None, alpha: float, *, judged: bool
) -> Verdict:
    """By p-values that are adjusted for all that is shown beside it; none where the study is not `judged`."""
    if ratio is None or p is None:
        return "not enough runs"
    if not judged:
        return "not judged"
    if p <= alpha:
        return "higher" if ratio.ratio > 1 else "lower"
    return "equivalent" if p_equal is not None and p_equal <= alpha else "no difference shown"


def verdict_of(ratio: stats.Ratio | None, *, judged: bool) -> Verdict:
    """Higher or lower where the interval leaves 1 out, of a ratio that stands alone."""
    if ratio is None:
        return "not enough runs"
    if not judged:
        return "not judged"
    if ratio.lo > 1:
        return "higher"
    return "lower" if ratio.hi < 1 else "no difference shown"


def _as_factor(ratio: stats.Ratio | None) -> float | None:
    if ratio is None or ratio.half_width > math.log(1e9):  # wider than a factor of 1e9 is no precision at all
        return None
    return math.expm1(ratio.half_width)
