"""Which level of the compared factor is the best where: the decision table.

It is a family of tests of its own, declared with the study: at each combination of the other factors, and over all
levels of the ordered one together, one level is the best (`stats.best_of`). A level is named only where it is shown to
be better than every other that it can be held against; whatever is not shown to be worse than some other could be the
best, so that noise makes a table wide and not wrong.

A row rests on ratios that are pooled over its cells: fewer and sharper tests than one a cell. Two levels are pooled
only where one of them is ahead in each cell, by whatever little: a mean over cells of which some say the one and some
the other is true of neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.overall import Part, Pooled, pool
from dyno.analysis.shape import counts_clients
from dyno.analysis.table import Table, given
from dyno.model import measures, responses
from dyno.model.findings import (
    CellSummary,
    Comparison,
    Crossing,
    Decided,
    DecidedRange,
    DecidedTogether,
    DecisionRow,
    DecisionTable,
    DecisionVerdict,
    Interval,
    LevelCost,
    ResourceFigure,
    Shape,
    format_ratio,
    format_share,
)
from dyno.model.interventions import FACTOR
from dyno.model.pairs import Pair
from dyno.model.responses import Better
from dyno.model.study import Cell, Factor, Study
from dyno.model.units import counted

BESIDE: Final = ("elapsed", "latency_mean", "latency_p99")
"""Decided too, beside the response that the study asks for, where nothing is struck: a run with a fault takes the time
that was given, and its latencies are of those requests that did succeed."""
CPU: Final = ("system_cpu_per_op", "server.cpu")
"""Read before and after driving, and by samples; runs that are shorter than two samples have the first alone."""
COSTS: Final = ("server.nodes", "server.memory", *CPU, "network_sent_per_op")
"""What each level occupies, and what it takes for an operation: a response, a resource or a share each."""

_OF_THOSE: Final = " of those measured"
MANY: Final = 6  # rows; of more, a line each is no headline any more

Levels = tuple[tuple[str, str], ...]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Combination:
    """The cells that differ in the compared factor alone, and what is known of each two of them."""

    within: dict[str, str]
    means: Mapping[str, float | None]
    """By the compared level, in the order of declaration."""
    found: Mapping[tuple[str, str], Comparison]
    pairs: Mapping[tuple[str, str], Pair]
    unmeasured: tuple[str, ...]
    """Levels of the compared factor that are not here, and are in other combinations."""


@dataclass(frozen=True)
class _Row:
    """The combinations that differ in the ordered factor alone, rising, and what they say together."""

    within: dict[str, str]
    cells: tuple[_Combination, ...]
    joined: tuple[_Combination, ...]
    """Those of them that are pooled: at which the most levels of the compared factor are held against each other."""
    together: tuple[str, ...]
    """The levels that are held against each other at each of these; none where there are fewer than two cells."""
    pooled: Mapping[tuple[str, str], Pooled]
    """Of those of them that are in one order in all cells."""


def decisions(
    study: Study,
    table: Table,
    compared: Sequence[tuple[Pair, Comparison]],
    cells: Sequence[CellSummary],
    shapes: Sequence[Shape],
    resources: Sequence[ResourceFigure],
) -> Iterator[DecisionTable]:
    """A table for the deciding response and for those `BESIDE`, where there is more than one comparison of it.

    `cells` and `shapes` may be of any response. None of doses that were given on purpose, and of a rate that was.
    """
    if study.compare in (None, FACTOR):
        return
    beside = () if any(cell.fault for cell in study.cells) else BESIDE
    asked: dict[str, list[tuple[Pair, Comparison]]] = {}
    for name in dict.fromkeys((study.replicates.of, *beside)):
        of_response = [(pair, each) for pair, each in compared if each.response == name]
        if len(of_response) > 1 and any(each.ratio is not None for _, each in of_response) and not given(table, name):
            asked[name] = of_response
    alpha, others = 1 - study.replicates.confidence, len(asked.keys() - {study.replicates.of})
    costs = _costs(study, cells, resources)
    for name, of_response in asked.items():
        # The deciding response has an error of its own, and those beside it another that they share.
        share = alpha if name == study.replicates.of else alpha / others
        yield _table(study, table, name, of_response, cells, shapes, costs, share)


def _table(
    study: Study,
    table: Table,
    response: str,
    compared: Sequence[tuple[Pair, Comparison]],
    cells: Sequence[CellSummary],
    shapes: Sequence[Shape],
    costs: Mapping[int, Mapping[str, float]],
    alpha: float,
) -> DecisionTable:
    assert study.compare is not None, "only what is compared is decided"
    known, over = responses.lookup(response), _over(study)
    groups = _combinations(study, response, compared, cells)
    rows = [_row(study, table, response, within, of_row) for within, of_row in _by_row(groups, over)]
    several = [row for row in rows if row.together]
    units = [_evidence_of_row(row, known.better) for row in several]
    units += [_evidence(each, _together(each), known.better) for each in groups]
    found = stats.best_of(units, _shares(len(several), len(groups)), alpha)
    of_rows, of_cells = found[: len(several)], found[len(several) :]
    decided = [_decide(study, each, best, known.better, response) for each, best in zip(groups, of_cells, strict=True)]
    pooled = {id(row): best for row, best in zip(several, of_rows, strict=True)}
    crossings = [
        crossing
        for shape in shapes
        if shape.response == response and over is not None and shape.factor == over.name
        for crossing in shape.crossings
        if crossing.ci is not None
    ]
    made = []
    for row in rows:
        of_row = [decided[groups.index(each)] for each in row.cells]
        of_joined = [decided[groups.index(each)] for each in row.joined]
        best = pooled.get(id(row))
        told = (
            None
            if best is None or over is None
            else _decide_together(study, row, best, of_joined, over, known.better, response)
        )
        made.append(_decision_row(study, row.within, told, of_row, over, crossings, costs))
    return DecisionTable(
        response=response,
        unit=known.unit,
        better=known.better,
        factor=study.compare,
        over=over.name if over else None,
        rows=tuple(made),
        combinations=tuple(decided),
        sentence=_in_all(study.compare, decided, [row.together for row in made if row.together is not None], over),
    )


def _shares(rows: int, cells: int) -> list[float]:
    """Of the error of a table: one half is for its rows, and one for single combinations."""
    if not rows:
        return [1 / cells] * cells
    return [0.5 / rows] * rows + [0.5 / cells] * cells


def _over(study: Study) -> Factor | None:
    """The ordered factor whose levels are joined: that of clients, else the one with the most levels."""
    ordered = [factor for factor in study.factors if factor.ordered and factor.name != study.compare]
    return max(ordered, key=lambda each: (counts_clients(study, each), len(each.levels)), default=None)


def _combinations(
    study: Study, response: str, compared: Sequence[tuple[Pair, Comparison]], cells: Sequence[CellSummary]
) -> list[_Combination]:
    """In the order in which the study declares them."""
    mean_of = {cell.cell: cell.mean for cell in cells if cell.response == response}
    means: dict[Levels, dict[str, float | None]] = {}
    found: dict[Levels, dict[tuple[str, str], Comparison]] = {}
    between: dict[Levels, dict[tuple[str, str], Pair]] = {}
    for pair, each in compared:
        within = tuple(pair.within.items())
        of_levels = means.setdefault(within, {})
        of_levels |= {pair.level_a: mean_of.get(pair.a.index), pair.level_b: mean_of.get(pair.b.index)}
        found.setdefault(within, {})[each.a, each.b] = each
        between.setdefault(within, {})[each.a, each.b] = pair
    place = {factor.name: [level.name for level in factor.levels] for factor in study.factors}
    in_order = sorted(means, key=lambda within: [place[name].index(level) for name, level in within])
    everywhere = {level for of_levels in means.values() for level in of_levels}
    assert study.compare is not None, "only what is compared is decided"
    levels = [level for level in place[study.compare] if level in everywhere]
    return [
        _Combination(
            within=dict(within),
            means=means[within],
            found=found[within],
            pairs=between[within],
            unmeasured=tuple(level for level in levels if level not in means[within]),
        )
        for within in in_order
    ]


def _evidence(of: _Combination, levels: Sequence[str], better: Better) -> Array:
    """The one-sided p of each level being no better than each other one, as `stats.best_of` takes them."""
    p = {pair: (each.ratio, each.p) for pair, each in of.found.items()}
    return _matrix(levels, p, better)


def _evidence_of_row(of: _Row, better: Better) -> Array:
    """Of ratios over all its cells together; those that are not pooled say nothing."""
    p = {pair: (each.ratio.ratio, each.ratio.p) for pair, each in of.pooled.items()}
    return _matrix(of.together, p, better)


def _matrix(
    levels: Sequence[str], found: Mapping[tuple[str, str], tuple[float | None, float | None]], better: Better
) -> Array:
    made = np.full((len(levels), len(levels)), np.nan)
    place = {level: i for i, level in enumerate(levels)}
    for (a, b), (ratio, p) in found.items():
        if ratio is None or p is None or not {a, b} <= place.keys():
            continue
        b_is_ahead = (ratio > 1) == (better == "higher")
        made[place[b], place[a]] = p / 2 if b_is_ahead else 1 - p / 2
        made[place[a], place[b]] = 1 - made[place[b], place[a]]
    return made


def _decide(study: Study, of: _Combination, by: stats.Best, better: Better, response: str) -> Decided:
    """By what is shown of it in the family of the table."""
    together = _together(of)
    apart = tuple(level for level in of.means if level not in together)
    told = study.telling(of.within)
    if not study.judged:
        sentence = _at(told, "which is the best is not judged at scale smoke")
        return Decided(
            levels=of.within,
            verdict="not judged",
            best=None,
            could_be=(),
            apart=apart,
            unmeasured=of.unmeasured,
            sentence=sentence,
        )
    ahead = sorted(together, key=lambda level: _behind(of.means[level], better))
    could_be = _by_place(together, by, ahead)
    verdict = _verdict(of, could_be, by)
    first = could_be[0] if could_be else None
    rivals = [level for level in (ahead if verdict == "best" else could_be) if level != first]
    runner_up = rivals[0] if rivals else None
    between = _between(of, first, runner_up)
    ratio, ci = _ratio(between, first)
    made = Decided(
        levels=of.within,
        verdict=verdict,
        best=first if verdict == "best" else None,
        could_be=tuple(could_be),
        apart=apart,
        unmeasured=of.unmeasured,
        runner_up=runner_up,
        ratio=ratio,
        ci=ci,
        n=between.n if between else 0,
        p_adjusted=by.p,
        sentence="",
    )
    return made.model_copy(update={"sentence": _at(told, _in_words(made, first, between, response))})


def _by_place(levels: Sequence[str], by: stats.Best, ahead: Sequence[str]) -> list[str]:
    """Those that could be the best, the one that is named first and then what is ahead by its mean."""
    left = {levels[place] for place in by.could_be}
    return [level for level in ahead if level in left]


def _together(of: _Combination) -> list[str]:
    """The most levels that are held against each other, directly or by way of others; none where no two are."""
    left = list(of.means)
    groups = [_reached(of, left[0], left)] if left else []
    while left := [level for level in left if level not in groups[-1]]:
        groups.append(_reached(of, left[0], left))
    largest = max(groups, key=len, default=[])
    return largest if len(largest) > 1 else []


def _reached(of: _Combination, start: str, among: Sequence[str]) -> list[str]:
    found, new = [start], [start]
    while new:
        level = new.pop()
        near = [other for other in among if other not in found and _is_held_against(of, level, other)]
        found += near
        new += near
    return found


def _is_held_against(of: _Combination, one: str, other: str) -> bool:
    between = _between(of, one, other)
    return between is not None and between.ratio is not None


def _behind(mean: float | None, better: Better) -> tuple[bool, float]:
    """What levels are sorted by: those without a mean come last."""
    return (True, 0.0) if mean is None else (False, -mean if better == "higher" else mean)


def _verdict(of: _Combination, could_be: Sequence[str], by: stats.Best) -> DecisionVerdict:
    if by.best is not None:
        return "best"
    between = [_between(of, *pair) for pair in combinations(could_be, 2)]
    equal = bool(between) and all(each is not None and each.verdict == "equivalent" for each in between)
    return "alike" if equal else "cannot tell"


def _between(of: _Combination, one: str | None, other: str | None) -> Comparison | None:
    if one is None or other is None:
        return None
    return of.found.get((one, other)) or of.found.get((other, one))


def _ratio(found: Comparison | None, first: str | None) -> tuple[float | None, Interval | None]:
    """What is ahead / the other; none where a ratio the other way round has no end."""
    if found is None or found.ratio is None or found.ci is None:
        return None, None
    if found.b == first:
        return found.ratio, found.ci
    if min(found.ratio, *found.ci) <= 0:
        return None, None
    return 1 / found.ratio, (1 / found.ci[1], 1 / found.ci[0])


# Rows


def _by_row(groups: Sequence[_Combination], over: Factor | None) -> list[tuple[dict[str, str], list[_Combination]]]:
    """The combinations of each combination of the factors that are not joined, by the ordered one."""
    rows: dict[Levels, list[_Combination]] = {}
    for each in groups:
        rows.setdefault(tuple(_but(each.within, over).items()), []).append(each)
    if over is not None:
        rows = {key: sorted(own, key=lambda each: float(each.within[over.name])) for key, own in rows.items()}
    return [(dict(key), own) for key, own in rows.items()]


def _row(study: Study, table: Table, response: str, within: dict[str, str], cells: Sequence[_Combination]) -> _Row:
    if len(cells) < 2 or not study.judged:
        return _Row(within, tuple(cells), (), (), {})
    joined, together = _joined(cells)
    pooled = {}
    for pair in joined[0].pairs:
        if set(pair) <= set(together) and _in_one_order([each.found.get(pair) for each in joined]):
            part = Part(within, tuple(each.pairs[pair] for each in joined))
            found = pool(study, table, response, part)
            if found is not None and found.used == len(joined):
                pooled[pair] = found
    return _Row(within, tuple(cells), joined, together, pooled)


def _joined(cells: Sequence[_Combination]) -> tuple[tuple[_Combination, ...], tuple[str, ...]]:
    """The most levels that are held against each other in two cells or more, and the cells in which they are.

    A level that was not measured everywhere is not left out of what is said of a row: it is said of fewer cells. Where
    no two cells have so many in common, what they all have.
    """
    held = [_together(each) for each in cells]
    wholes = [
        (each, tuple(cell for cell, other in zip(cells, held, strict=True) if set(each) <= set(other))) for each in held
    ]
    together, joined = max(wholes, key=lambda whole: (len(whole[1]) > 1, len(whole[0]), len(whole[1])))
    if len(joined) < 2:
        joined, together = tuple(cells), [level for level in held[0] if all(level in each for each in held)]
    return joined, tuple(together) if len(together) > 1 else ()


def _in_one_order(found: Sequence[Comparison | None]) -> bool:
    """Whether the one of two levels is ahead in each cell, by whatever little."""
    ratios = [None if each is None else each.ratio for each in found]
    return all(ratio is not None and ratio > 1 for ratio in ratios) or all(
        ratio is not None and ratio < 1 for ratio in ratios
    )


def _decide_together(
    study: Study,
    row: _Row,
    by: stats.Best,
    cells: Sequence[Decided],
    over: Factor,
    better: Better,
    response: str,
) -> DecidedTogether:
    def behind(level: str) -> tuple[bool, float]:
        means = [each.means[level] for each in row.joined]
        known = [mean for mean in means if mean is not None and mean > 0]
        mean = float(np.mean(np.log(known))) if len(known) == len(means) else None
        return (True, 0.0) if mean is None else (False, -mean if better == "higher" else mean)

    ahead = sorted(row.together, key=behind)
    could_be = _by_place(row.together, by, ahead)
    bests = {each.best for each in cells}
    verdict: DecisionVerdict = "cannot tell"
    if len(bests) == 1 and None not in bests:  # the best in each cell is so over all of them
        could_be, verdict = [str(each) for each in bests], "best"
    elif by.best is not None:
        verdict = "best"
    elif all(each.verdict == "alike" for each in cells) and len({frozenset(each.could_be) for each in cells}) == 1:
        could_be, verdict = list(cells[0].could_be), "alike"
    unlike = tuple(pair for pair in combinations(could_be, 2) if _pooled_of(row, *pair) is None)
    first = could_be[0]
    runner_up = next((level for level in (ahead if verdict == "best" else could_be) if level != first), None)
    found = None if runner_up is None else _pooled_of(row, first, runner_up)
    ratio, ci = _turned(found, first)
    made = DecidedTogether(
        levels=tuple(each.levels[over.name] for each in cells),
        left_out=tuple(each.within[over.name] for each in row.cells if each not in row.joined),
        verdict=verdict,
        best=first if verdict == "best" else None,
        could_be=tuple(could_be),
        apart=tuple(level for level in row.joined[0].means if level not in row.together),
        unmeasured=tuple(
            level for level in row.joined[0].unmeasured if all(level in each.unmeasured for each in row.joined)
        ),
        unlike=unlike,
        alone=tuple(each.levels[over.name] for each in cells if each.best == first) if verdict == "best" else (),
        runner_up=runner_up,
        ratio=ratio,
        ci=ci,
        n=found.shift.n if found else 0,
        p_adjusted=by.p,
        sentence="",
    )
    told = _together_in_words(made, over, response, _differs(row, first, runner_up))
    return made.model_copy(update={"sentence": _at(study.telling(row.within), told)})


def _differs(row: _Row, one: str, other: str | None) -> str:
    """What else may be behind the ratio of two levels, in any cell of a row."""
    found = [between for each in row.joined if (between := _between(each, one, other)) is not None]
    keys = dict.fromkeys(key for each in found for key in each.confounded)
    return sentences.differs_too(list(keys))


def _pooled_of(row: _Row, one: str, other: str) -> Pooled | None:
    return row.pooled.get((one, other)) or row.pooled.get((other, one))


def _turned(found: Pooled | None, first: str) -> tuple[float | None, Interval | None]:
    """What is ahead / the other."""
    if found is None:
        return None, None
    own = found.ratio
    if found.part.pairs[0].level_b == first:
        return own.ratio, (own.lo, own.hi)
    return 1 / own.ratio, (1 / own.hi, 1 / own.lo)


def _decision_row(
    study: Study,
    within: dict[str, str],
    together: DecidedTogether | None,
    of_row: Sequence[Decided],
    over: Factor | None,
    crossings: Sequence[Crossing],
    costs: Mapping[int, Mapping[str, float]],
) -> DecisionRow:
    own = [each for each in crossings if each.within == within and _matters(each, of_row, over)]
    ranges = [_range(list(group), over) for _, group in groupby(of_row, key=_decision)]
    return DecisionRow(
        within=within,
        together=together,
        ranges=tuple(ranges),
        crossings=tuple(own),
        costs=tuple(_of_levels(study, within, costs)),
        sentence=_of_row(study.telling(within) if within else {}, ranges, own, over),
    )


def _but(levels: Mapping[str, str], over: Factor | None) -> dict[str, str]:
    return {name: level for name, level in levels.items() if over is None or name != over.name}


def _decision(of: Decided) -> tuple[str, str | None, frozenset[str], frozenset[str], frozenset[str]]:
    """What has to be the same for two neighbours to be joined."""
    return of.verdict, of.best, frozenset(of.could_be), frozenset(of.apart), frozenset(of.unmeasured)


def _range(group: Sequence[Decided], over: Factor | None) -> DecidedRange:
    first, nearest = group[0], min(group, key=lambda each: _from_one(each.ratio))
    return DecidedRange(
        levels=() if over is None else tuple(each.levels[over.name] for each in group),
        verdict=first.verdict,
        best=first.best,
        could_be=first.could_be,
        apart=first.apart,
        unmeasured=first.unmeasured,
        at=None if over is None or nearest.ratio is None else nearest.levels[over.name],
        runner_up=nearest.runner_up,
        ratio=nearest.ratio,
        ci=nearest.ci,
    )


def _from_one(ratio: float | None) -> float:
    """How many times a ratio is off 1, whichever way."""
    return float("inf") if not ratio else max(ratio, 1 / ratio)


def _matters(crossing: Crossing, of_row: Sequence[Decided], over: Factor | None) -> bool:
    """Whether both could be the best just before or just beyond the crossing."""
    assert over is not None, "what crosses is over an ordered factor"
    below = [each for each in of_row if float(each.levels[over.name]) <= crossing.at]
    above = [each for each in of_row if float(each.levels[over.name]) >= crossing.at]
    beside = {level for each in (*below[-1:], *above[:1]) for level in each.could_be}
    return {crossing.a, crossing.b} <= beside


# Costs


def _costs(
    study: Study, cells: Sequence[CellSummary], resources: Sequence[ResourceFigure]
) -> dict[int, dict[str, float]]:
    """Of each cell the means of those that some run tells of."""
    found: dict[int, dict[str, float]] = {cell.index: {} for cell in study.cells}
    told = [(each.cell, each.response, each.mean) for each in cells]
    told += [(each.cell, each.resource, each.mean) for each in resources]
    for cell, name, mean in told:
        if name in COSTS and mean is not None:
            found[cell][name] = mean
    read, sampled = CPU
    if any(read in of_cell for of_cell in found.values()):
        for of_cell in found.values():
            of_cell.pop(sampled, None)
    return found


def _of_levels(
    study: Study, within: Mapping[str, str], costs: Mapping[int, Mapping[str, float]]
) -> Iterator[LevelCost]:
    """Each level of the compared factor, over the cells of a row."""
    assert study.compare is not None, "only what is compared has costs beside it"
    for level in study.factor(study.compare).levels:
        own = [cell for cell in study.cells if _is_of(cell, {**within, study.compare: level.name})]
        for name in COSTS:
            means = [costs[cell.index][name] for cell in own if name in costs[cell.index]]
            if means:
                known = measures.lookup(name)
                yield LevelCost(
                    level=level.name,
                    resource=name,
                    title=known.title,
                    unit=known.unit,
                    low=min(means),
                    high=max(means),
                    cells=len(means),
                )


def _is_of(cell: Cell, levels: Mapping[str, str]) -> bool:
    return cell.intervention is None and levels.items() <= cell.levels.items()


# Words


def _at(told: Mapping[str, str], what: str) -> str:
    """A sentence that begins with a word of ours where it can: a level's spelling means something."""
    return f"With {sentences.levels(told)}, {what}." if told else f"{what}."


def _in_words(made: Decided, first: str | None, between: Comparison | None, response: str) -> str:
    if first is None:
        return "cannot tell: no two can be held against each other"
    apart = _held_apart(made.apart) + _not_measured(made.unmeasured)
    is_best = made.verdict == "best"
    size = ""
    if made.ratio is not None and made.ci is not None and between is not None:
        size = f": {_size(made, first, response, f'n = {made.n}')}"
        if is_best and between.equivalent:
            size += f", a difference shown to be within {format_share(between.margin or 0.0)}"
        size += sentences.confounded(between) if is_best else ""
    if is_best:
        return f"{first} is the best{_OF_THOSE if made.unmeasured else ''}{size}{apart}"
    among = sentences.joined(made.could_be, most=len(made.could_be))
    if made.verdict == "alike":
        return f"{among} are shown to be alike{size}{apart}"
    return f"cannot tell between {among}{size}{apart}"


def _size(made: Decided | DecidedTogether, first: str, response: str, n: str, verb: str = "has") -> str:
    """`galera has 1.37x [1.25, 1.51] the throughput of semi-sync, the runner-up (adjusted p = 0.004, n = 5 blocks)`."""
    assert made.ratio is not None, "only what is known has a size"
    assert made.ci is not None, "what is known has an interval"
    known = responses.lookup(response)
    better = "lower is better; " if known.better == "lower" else ""
    is_best = made.verdict == "best"
    p = f"adjusted {sentences.probability(made.p_adjusted)}, " if is_best and made.p_adjusted is not None else ""
    whose = f"{made.runner_up}, the runner-up" if is_best else f"{made.runner_up}"
    size = f"{format_ratio(made.ratio, made.ci)} the {known.title} of {whose} ({better}{p}{n})"
    return f"{first} {verb} {size}" if first else f"{verb} {size}"


def _together_in_words(made: DecidedTogether, over: Factor, response: str, differs: str) -> str:
    span = f"over {over.name} {made.span} together"
    first, known = made.could_be[0], made.ratio is not None and made.ci is not None
    blocks = f"n = {counted(made.n, 'block')}"
    apart = _held_apart(made.apart) + _not_measured(made.unmeasured)
    if made.verdict == "best":
        size = f", {_size(made, '', response, blocks, 'with')}" if known else ""
        where = f"{over.name} {', '.join(made.alone)} only" if made.alone else "none of them"
        alone = "" if made.alone == made.levels else f"; by itself it is shown at {where}"
        return f"{first} is the best{_OF_THOSE if made.unmeasured else ''} {span}{size}{alone}{differs}{apart}"
    size = f": {_size(made, first, response, blocks)}" if known else ""
    among = sentences.joined(made.could_be, most=len(made.could_be))
    if made.verdict == "alike":
        return f"{among} are shown to be alike {span}{size}{apart}"
    unlike = ""
    if made.unlike:
        told = sentences.joined([" and ".join(pair) for pair in made.unlike])
        unlike = f"; which of {told} is ahead is not the same at each of them, so nothing is pooled there"
    return f"cannot tell between {among} {span}{size}{unlike}{apart}"


def _held_apart(apart: Sequence[str]) -> str:
    """As the end of a sentence."""
    return f"; {sentences.joined(apart, most=len(apart))} cannot be held against them" if apart else ""


def _not_measured(levels: Sequence[str]) -> str:
    """As the end of a sentence."""
    were = "was" if len(levels) == 1 else "were"
    return f"; {sentences.joined(levels, most=len(levels))} {were} not measured there" if levels else ""


def _of_row(
    told: Mapping[str, str], ranges: Sequence[DecidedRange], crossings: Sequence[Crossing], over: Factor | None
) -> str:
    where = f"With {sentences.levels(told)}: " if told else ""
    if all(each.verdict == "not judged" for each in ranges):
        return f"{where}not judged at scale smoke."
    parts = [f"{decided(each)}{_place(ranges, each, over)}" for each in ranges]
    changes = "".join(f" {_change(each)}" for each in crossings)
    return f"{where}{'; '.join(parts)}.{changes}"


def decided(of: DecidedRange) -> str:
    """`a`, `a of those measured`, `a or b, alike`, `cannot tell between a and b`."""
    if of.best is not None:
        return f"{of.best}{_OF_THOSE if of.unmeasured else ''}"
    if not of.could_be:
        return "not judged" if of.verdict == "not judged" else "cannot tell"
    among = sentences.joined(of.could_be, most=len(of.could_be))
    return f"{among}, shown to be alike" if of.verdict == "alike" else f"cannot tell between {among}"


def _place(ranges: Sequence[DecidedRange], of: DecidedRange, over: Factor | None) -> str:
    """` up to threads 8`, ` from threads 16 to 32`; nothing where there is a single range of a single level."""
    if over is None or not of.levels:
        return ""
    first, last = of.levels[0], of.levels[-1]
    if len(ranges) == 1:
        return f" at {over.name} {first}" if first == last else f" at all levels of {over.name}, {first} to {last}"
    if of is ranges[0]:
        return f" at {over.name} {first}" if first == last else f" up to {over.name} {last}"
    if of is ranges[-1]:
        return f" from {over.name} {first} on" if first != last else f" at {over.name} {first}"
    return f" at {over.name} {first}" if first == last else f" from {over.name} {first} to {last}"


def _change(crossing: Crossing) -> str:
    """The crossing's sentence, without the levels that the row has said."""
    return crossing.sentence.removeprefix(f"With {sentences.levels(crossing.within)}, ")


def _in_all(factor: str, found: Sequence[Decided], together: Sequence[DecidedTogether], over: Factor | None) -> str:
    """How many combinations are decided, and for which level; over all levels of the ordered factor, and each."""
    if any(each.verdict == "not judged" for each in found):
        return f"Which {factor} is the best is not judged: {sentences.NOT_JUDGED}."
    of_each = f"Of {counted(len(found), 'combination')}, {_numbers(factor, found)}."
    if lacking := sum(bool(each.unmeasured) for each in found):
        of_each += f" In {lacking} of them not every {factor} was measured."
    if over is None or not together:
        return of_each
    every = "levels" if any(each.left_out for each in together) else "all levels"
    rows = f"Over {every} of {over.name} together, {_numbers(factor, together, of=True)}."
    return f"{rows} {of_each}"


def _numbers(factor: str, found: Sequence[Decided | DecidedTogether], *, of: bool = False) -> str:
    wins: dict[str, int] = {}
    for each in found:
        if each.best is not None:
            wins[each.best] = wins.get(each.best, 0) + 1
    best, alike = sum(wins.values()), sum(each.verdict == "alike" for each in found)
    open_ = len(found) - best - alike
    by_level = sentences.joined([f"{level} in {number}" for level, number in wins.items()], most=len(wins))
    whole = f" of {len(found)}" if of else ""
    parts = [f"a best {factor} is shown in {best}{whole}{f' ({by_level})' if wins else ''}"]
    if alike:
        parts.append(f"in {alike} those that could be are shown to be alike")
    if open_:
        parts.append(f"in {open_} it cannot be told")
    return ", ".join(parts)


def headline(table: DecisionTable) -> str:
    """What the table says in a line a row, for the top of a report; how many are decided where there are many rows."""
    if len(table.rows) > MANY:
        return table.sentence
    by_levels = {tuple(each.levels.items()): each for each in table.combinations}
    return "\n".join(_line(row, by_levels) for row in table.rows)


def _line(row: DecisionRow, of: Mapping[Levels, Decided]) -> str:
    if row.together is None:
        own = [each for levels, each in of.items() if row.within.items() <= dict(levels).items()]
        return own[0].sentence if len(own) == 1 else row.sentence
    made, alone = row.together, [each for each in row.ranges if each.best is not None]
    if made.verdict == "best" or not alone:
        return made.sentence
    if len(alone) < len(row.ranges):
        return f"{made.sentence} {_by_itself(row)}"
    unlike = sentences.joined([" and ".join(pair) for pair in made.unlike])
    why = f" Nothing is pooled, since which of {unlike} is ahead is not the same everywhere." if unlike else ""
    return f"{row.sentence}{why}"


def _by_itself(row: DecisionRow) -> str:
    told = [f"{decided(each)} at {', '.join(each.levels)}" for each in row.ranges if each.best is not None]
    return f"By itself the best is shown of {sentences.joined(told, most=len(told))}."
