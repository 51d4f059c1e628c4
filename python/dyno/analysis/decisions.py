"""Which level of the compared factor is the best where: the decision table.

It adds no test of its own: it reads the verdicts of the report's comparisons, which stand beyond all of them together,
and joins them. A level is called the best only where it is shown to be better than every other that it can be held
against. Whatever is not shown to be worse than some other could be the best, so that noise makes a table wide and not
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Final

from dyno.analysis import sentences
from dyno.analysis.shape import counts_clients
from dyno.analysis.table import Table, given
from dyno.model import measures, responses
from dyno.model.findings import (
    CellSummary,
    Comparison,
    Crossing,
    Decided,
    DecidedRange,
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
"""Decided too, beside the response that the study asks for."""
COSTS: Final = ("server.nodes", "server.memory", "server.cpu", "network_sent_per_op")
"""What each level occupies, and what it takes for an operation: a response, a resource or a share each."""

Levels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Combination:
    """The cells that differ in the compared factor alone, and what is known of each two of them."""

    within: dict[str, str]
    means: Mapping[str, float | None]
    """By the compared level, in the order of declaration."""
    found: Mapping[tuple[str, str], Comparison]


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
    for name in dict.fromkeys((study.replicates.of, *BESIDE)):
        of_response = [(pair, each) for pair, each in compared if each.response == name]
        if len(of_response) < 2 or all(each.ratio is None for _, each in of_response) or given(table, name):
            continue
        yield _table(study, name, of_response, cells, shapes, _costs(study, cells, resources))


def _table(
    study: Study,
    response: str,
    compared: Sequence[tuple[Pair, Comparison]],
    cells: Sequence[CellSummary],
    shapes: Sequence[Shape],
    costs: Mapping[int, Mapping[str, float]],
) -> DecisionTable:
    assert study.compare is not None, "only what is compared is decided"
    known, over = responses.lookup(response), _over(study)
    groups = _combinations(study, response, compared, cells)
    decided = [_decide(study, each, known.better, response) for each in groups]
    crossings = [
        crossing
        for shape in shapes
        if shape.response == response and over is not None and shape.factor == over.name
        for crossing in shape.crossings
        if crossing.ci is not None
    ]
    return DecisionTable(
        response=response,
        unit=known.unit,
        better=known.better,
        factor=study.compare,
        over=over.name if over else None,
        rows=tuple(_rows(study, decided, over, crossings, costs)),
        combinations=tuple(decided),
        sentence=_in_all(study.compare, decided),
    )


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
    for pair, each in compared:
        within = tuple(pair.within.items())
        of_levels = means.setdefault(within, {})
        of_levels |= {pair.level_a: mean_of.get(pair.a.index), pair.level_b: mean_of.get(pair.b.index)}
        found.setdefault(within, {})[each.a, each.b] = each
    place = {factor.name: [level.name for level in factor.levels] for factor in study.factors}
    in_order = sorted(means, key=lambda within: [place[name].index(level) for name, level in within])
    return [_Combination(dict(within), means[within], found[within]) for within in in_order]


def _decide(study: Study, of: _Combination, better: Better, response: str) -> Decided:
    """By the verdicts of its comparisons."""
    together = _together(of)
    apart = tuple(level for level in of.means if level not in together)
    told = study.telling(of.within)
    if not study.judged:
        sentence = _at(told, "which is the best is not judged at scale smoke")
        return Decided(levels=of.within, verdict="not judged", best=None, could_be=(), apart=apart, sentence=sentence)
    ahead = sorted(together, key=lambda level: _behind(of.means[level], better))
    worse = {_worse_of(each, better) for each in of.found.values()}
    # Where runs are missing, three may each be shown to be better than the next.
    could_be = [level for level in ahead if level not in worse] or ahead
    verdict = _verdict(of, could_be, together)
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
        runner_up=runner_up,
        ratio=ratio,
        ci=ci,
        n=between.n if between else 0,
        p_adjusted=between.p_adjusted if between else None,
        sentence="",
    )
    return made.model_copy(update={"sentence": _at(told, _in_words(made, first, between, response))})


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


def _worse_of(found: Comparison, better: Better) -> str | None:
    """The level that is shown to be worse; None where neither is."""
    if found.verdict not in ("higher", "lower"):
        return None
    return found.a if found.verdict == better else found.b


def _verdict(of: _Combination, could_be: Sequence[str], together: Sequence[str]) -> DecisionVerdict:
    if len(could_be) == 1 < len(together):
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


# Ranges


def _rows(
    study: Study,
    decided: Sequence[Decided],
    over: Factor | None,
    crossings: Sequence[Crossing],
    costs: Mapping[int, Mapping[str, float]],
) -> Iterator[DecisionRow]:
    """A row for each combination of the factors that are not joined."""
    rows: dict[Levels, list[Decided]] = {}
    for each in decided:
        rows.setdefault(tuple(_but(each.levels, over).items()), []).append(each)
    for within, of_row in rows.items():
        if over is not None:
            of_row = sorted(of_row, key=lambda each: float(each.levels[over.name]))
        here = dict(within)
        own = [each for each in crossings if each.within == here and _matters(each, of_row, over)]
        ranges = [_range(list(group), over) for _, group in groupby(of_row, key=_decision)]
        yield DecisionRow(
            within=here,
            ranges=tuple(ranges),
            crossings=tuple(own),
            costs=tuple(_of_levels(study, here, costs)),
            sentence=_of_row(study.telling(here) if here else {}, ranges, own, over),
        )


def _but(levels: Mapping[str, str], over: Factor | None) -> dict[str, str]:
    return {name: level for name, level in levels.items() if over is None or name != over.name}


def _decision(of: Decided) -> tuple[str, str | None, frozenset[str], frozenset[str]]:
    """What has to be the same for two neighbours to be joined."""
    return of.verdict, of.best, frozenset(of.could_be), frozenset(of.apart)


def _range(group: Sequence[Decided], over: Factor | None) -> DecidedRange:
    first, nearest = group[0], min(group, key=lambda each: _from_one(each.ratio))
    return DecidedRange(
        levels=() if over is None else tuple(each.levels[over.name] for each in group),
        verdict=first.verdict,
        best=first.best,
        could_be=first.could_be,
        apart=first.apart,
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
    apart = _held_apart(made.apart)
    is_best = made.verdict == "best"
    size = ""
    if made.ratio is not None and made.ci is not None and between is not None:
        known = responses.lookup(response)
        better = "lower is better; " if known.better == "lower" else ""
        p = "no p" if made.p_adjusted is None else f"adjusted {sentences.probability(made.p_adjusted)}"
        whose = f"{made.runner_up}, the runner-up" if is_best else f"{made.runner_up}"
        times = format_ratio(made.ratio, made.ci)
        size = f": {first} has {times} the {known.title} of {whose} ({better}{p}, n = {made.n})"
        if is_best and between.equivalent:
            size += f", a difference shown to be within {format_share(between.margin or 0.0)}"
        size += sentences.confounded(between) if is_best else ""
    if is_best:
        return f"{first} is the best{size}{apart}"
    among = sentences.joined(made.could_be, most=len(made.could_be))
    if made.verdict == "alike":
        return f"{among} are shown to be alike{size}{apart}"
    return f"cannot tell between {among}{size}{apart}"


def _held_apart(apart: Sequence[str]) -> str:
    """As the end of a sentence."""
    return f"; {sentences.joined(apart, most=len(apart))} cannot be held against them" if apart else ""


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
    """`a`, `a or b, alike`, `cannot tell between a and b`."""
    if of.best is not None:
        return of.best
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


def _in_all(factor: str, found: Sequence[Decided]) -> str:
    """How many combinations are decided, and for which level."""
    if any(each.verdict == "not judged" for each in found):
        return f"Which {factor} is the best is not judged: {sentences.NOT_JUDGED}."
    wins: dict[str, int] = {}
    for each in found:
        if each.best is not None:
            wins[each.best] = wins.get(each.best, 0) + 1
    best, alike = sum(wins.values()), sum(each.verdict == "alike" for each in found)
    open_ = len(found) - best - alike
    by_level = sentences.joined([f"{level} in {number}" for level, number in wins.items()], most=len(wins))
    parts = [f"a best {factor} is shown in {best}{f' ({by_level})' if wins else ''}"]
    if alike:
        parts.append(f"in {alike} those that could be are shown to be alike")
    if open_:
        parts.append(f"in {open_} it cannot be told")
    return f"Of {counted(len(found), 'combination')}, {', '.join(parts)}."
