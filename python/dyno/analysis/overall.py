"""What each level of the compared factor costs over all combinations of the others together, and over parts of them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.comparisons import between, shares_of_error, verdict_by, widening_in
from dyno.analysis.table import Table, given
from dyno.model import measures
from dyno.model.findings import OverallRatio, Pace
from dyno.model.pairs import Pair, pairs
from dyno.model.study import Study


@dataclass(frozen=True)
class Part:
    """The pairs of one level with the baseline whose other levels are those of `where`."""

    where: dict[str, str]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Pooled:
    """What one part says of one response, before the number of such figures is known."""

    part: Part
    response: str
    used: int
    tasks: int
    """Kinds of workload, and actions of one kind, among the pairs."""
    shift: stats.LogShift
    ratio: stats.Ratio
    equivalence: stats.Equivalence | None
    pace: Pace | None


def overall(
    study: Study,
    table: Table,
    names: Sequence[str],
    confounded: Mapping[tuple[int, int], tuple[str, ...]],
    foremost: Container[str] | None = None,
    *,
    sparing: bool = False,
) -> list[OverallRatio]:
    """The ratio of each level to the one declared first: the geometric mean of the ratios within blocks.

    Over all combinations, and over those of each level of each other factor where these are several and not all; where
    it is `sparing`, over these only of a response that has no ratio over all. They are a family of their own, beside
    the single comparisons: Holm over all of them, of which those of the deciding response have half of the error, or
    those that are `foremost` where they are given. None for screening designs, whose effects are just that.
    """
    if study.compare is None or study.design.kind == "screening":
        return []
    parts = list(_parts(study))
    whole = [part for part in parts if not part.where]
    found: list[Pooled] = []
    for name in names:
        if _is_asked_for(study, table, name):
            over_all = _pooled(study, table, name, whole)
            rest = [] if sparing and over_all else [part for part in parts if part.where]
            found += [*over_all, *_pooled(study, table, name, rest)]
    if not found:
        return []
    deciding = (study.replicates.of,) if foremost is None else foremost
    weights = shares_of_error([each.response in deciding for each in found])
    adjusted = stats.holm([each.ratio.p for each in found], weights)
    equal = stats.holm([each.equivalence.p if each.equivalence else None for each in found], weights)
    return [
        _overall(study, each, p, p_equal, len(found), confounded)
        for each, p, p_equal in zip(found, adjusted, equal, strict=True)
    ]


def _is_asked_for(study: Study, table: Table, response: str) -> bool:
    counted = measures.lookup(response).counted and response != study.replicates.of
    return not counted and given(table, response) is None


def _parts(study: Study) -> Iterator[Part]:
    """All combinations first, of every level; then factor by factor."""
    assert study.compare is not None, "only what is compared has levels to set against the first"
    first = study.factor(study.compare).levels[0].name
    to_first = [pair for pair in pairs(study) if pair.level_a == first]
    levels = dict.fromkeys(pair.level_b for pair in to_first)
    of_level = {level: tuple(pair for pair in to_first if pair.level_b == level) for level in levels}
    several = {level: of for level, of in of_level.items() if len(of) > 1}
    yield from (Part({}, of) for of in several.values())
    for factor in study.factors:
        for chosen in factor.levels if factor.name != study.compare else ():
            for of in several.values():
                some = tuple(pair for pair in of if pair.within.get(factor.name) == chosen.name)
                if 1 < len(some) < len(of):
                    yield Part({factor.name: chosen.name}, some)


def _pooled(study: Study, table: Table, response: str, parts: Sequence[Part]) -> list[Pooled]:
    return [pooled for part in parts if (pooled := pool(study, table, response, part)) is not None]


def pool(study: Study, table: Table, response: str, part: Part) -> Pooled | None:
    """The geometric mean of the ratios of its pairs, within blocks, each pair weighing alike.

    None without two blocks in common, or where something is not known: without it, part would be missing.

    That is a value of 0, which has no logarithm, or what was not over in some fault.
    """
    if any(table.beyond(response, cell.index) for pair in part.pairs for cell in (pair.a, pair.b)):
        return None
    singles = [between(study, table, response, pair.a, pair.b, (pair.level_a, pair.level_b)) for pair in part.pairs]
    measured = [pair for pair, each in zip(part.pairs, singles, strict=True) if each.paired and each.shift is not None]
    if not measured or any(min([*each.values_a, *each.values_b], default=1.0) <= 0 for each in singles):
        return None
    a, b = (
        table.arrays(response, cells)[0]
        for cells in ([pair.a.index for pair in measured], [pair.b.index for pair in measured])
    )
    if np.any(a <= 0) or np.any(b <= 0):  # in a block that one of them lacks
        return None
    found = stats.pooled_mean(np.log(b) - np.log(a))
    if found is None:
        return None
    rule = study.replicates
    shift = found.shift().widened(widening_in(study, table))
    paces = {each.pace for each in singles}
    return Pooled(
        part,
        response,
        len(found.columns),
        len({_task(measured[column]) for column in found.columns}),
        shift,
        shift.ratio(rule.confidence),
        stats.equivalence_of(shift, rule.equivalence, 1 - rule.confidence),
        "waits" if "waits" in paces else None,
    )


def _task(pair: Pair) -> tuple[str, str]:
    """Rows loaded a second are no queries answered a second, though both are a throughput."""
    workload = pair.a.workload
    return workload.kind, str(workload.options.get("action", ""))


def _overall(
    study: Study,
    found: Pooled,
    p: float | None,
    p_equal: float | None,
    family: int,
    confounded: Mapping[tuple[int, int], tuple[str, ...]],
) -> OverallRatio:
    rule, part, ratio = study.replicates, found.part, found.ratio
    alpha = 1 - rule.confidence
    keys = [key for pair in part.pairs for key in confounded.get((pair.a.index, pair.b.index), ())]
    made = OverallRatio(
        response=found.response,
        factor=part.pairs[0].factor,
        a=part.pairs[0].level_a,
        b=part.pairs[0].level_b,
        where=part.where,
        combinations=found.used,
        of=len(part.pairs),
        tasks=found.tasks,
        ratio=ratio.ratio,
        ci=(ratio.lo, ratio.hi),
        n=found.shift.n,
        method=ratio.method,
        verdict=verdict_by(ratio, p, p_equal, alpha, judged=study.judged),
        p=ratio.p,
        p_adjusted=p,
        family=family,
        margin=rule.equivalence,
        equivalent=None if p_equal is None or not study.judged else p_equal <= alpha,
        p_equivalent=p_equal,
        pace=found.pace,
        confounded=tuple(dict.fromkeys(keys)),
        sentence="",
    )
    return made.model_copy(update={"sentence": sentences.overall(made)})
