"""What a publication observed of its machine, beside what was observed here.

A run gives one value a quantity, as it does of a resource; means, intervals and ratios are made as those of responses.
A published figure without an interval judges nothing, so there are no verdicts here, and none has to be corrected for
the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from dyno.analysis.cells import intervals
from dyno.analysis.comparisons import between
from dyno.analysis.hot_spots import Spent, shares_by_block
from dyno.analysis.sentences import levels as in_words
from dyno.analysis.table import Table
from dyno.analysis.targets import is_chosen
from dyno.analysis.unmeasured import why_unmeasured, why_unobserved
from dyno.model import bounds, measures
from dyno.model.findings import Interval, ObservedCell, ObservedFigure, ObservedResult
from dyno.model.hot_spots import OBSERVER, Rule
from dyno.model.published import ObservedTable, PublishedObservation, Quantity
from dyno.model.sampled import SAMPLED
from dyno.model.study import Cell, Study
from dyno.model.units import counted
from dyno.model.usage import Usage, resource

SHARE = "share of the samples of call stacks"


@dataclass(frozen=True)
class Runs:
    """The runs by their responses and by what they used, and call stacks with the rules that are asked first."""

    responses: Table
    used: Table
    stacks: pl.DataFrame | None = None
    rules: Sequence[Rule] = ()


def observed(study: Study, runs: Runs) -> Iterator[ObservedResult]:
    """Each published table of observations, where the study names some."""
    tables = study.published.observed if study.published else ()
    if not tables:
        return
    wanted = list(dict.fromkeys(figure.quantity for table in tables for figure in table.figures))
    table = _tabulate(study, runs, wanted)
    found = {name(each): intervals(study, table, name(each), study.replicates.confidence) for each in wanted}
    for each in tables:
        yield _beside(study, runs, each, table, found)


def name(quantity: Quantity) -> str:
    """`server.instructions/server.cycles`, `disk.written per second`, `hot spots: copy`."""
    if quantity.of is None:
        kind = next(kind for kind in ("group", "symbol", "module") if getattr(quantity, kind) is not None)
        return f"hot spots: {kind} {getattr(quantity, kind)}"
    if quantity.over is not None:
        return f"{quantity.of}/{quantity.over}"
    return f"{quantity.of} per second" if quantity.per == "s" else quantity.of


def _title(quantity: Quantity) -> str:
    if quantity.of is None:
        if quantity.group is not None:
            return f"{quantity.group}, {SHARE}"
        return f"{f'function {quantity.symbol}' if quantity.symbol else quantity.module}, {SHARE}"
    if quantity.over is not None:
        return f"{resource(quantity.of).title} / {resource(quantity.over).title}"
    if quantity.per == "s":
        return f"{resource(quantity.of).title} per second"
    return measures.lookup(quantity.of).title if measures.is_one(quantity.of) else f"mean of {quantity.of}"


# From runs to values


def _tabulate(study: Study, runs: Runs, wanted: Sequence[Quantity]) -> Table:
    """A value of each quantity by cell and block, where the run tells of it, in the quantity's unit."""
    table = replace(
        runs.responses,
        values=defaultdict(lambda: defaultdict(list)),
        by_block=defaultdict(lambda: defaultdict(dict)),
        unknown=set(),
        not_finite=0,
    )
    spent: dict[int, dict[int, Spent]] = {}
    if runs.stacks is not None and any(quantity.of is None for quantity in wanted):
        spent = shares_by_block(study, runs.responses, runs.stacks, runs.rules)
    for quantity in wanted:
        for cell, of_cell in _values(runs, quantity, spent).items():
            for block in sorted(of_cell, key=lambda block, cell=cell: table.times[block, cell]):  # type: ignore[misc]
                table.values[name(quantity)][cell].append(of_cell[block])
                table.by_block[name(quantity)][cell][block] = of_cell[block]
    return table


def _values(
    runs: Runs, quantity: Quantity, spent: Mapping[int, Mapping[int, Spent]]
) -> Mapping[int, Mapping[int, float]]:
    """Cell -> block -> value."""
    of = quantity.of
    if of is None:
        return {
            cell: {block: 100 * _share(shares, quantity) for block, shares in blocks.items()}
            for cell, blocks in spent.items()
        }
    if measures.is_one(of) and quantity.over is None and quantity.per is None:
        for table in (runs.used, runs.responses):
            if of in table.by_block:
                return table.by_block[of]
        return {}
    found: dict[int, dict[int, float]] = {}
    for cell, of_cell in runs.responses.used.items():
        for block, usage in of_cell.items():
            if (value := _of_usage(usage, of, quantity)) is not None:
                found.setdefault(cell, {})[block] = value
    return found


def _share(shares: Spent, quantity: Quantity) -> float:
    """Of samples that are of the group, or whose innermost function it is."""
    return sum(
        share
        for kind, share in shares.items()
        if (quantity.group is None or kind.group == quantity.group)
        and (quantity.symbol is None or kind.symbol == quantity.symbol)
        and (quantity.module is None or kind.module == quantity.module)
    )


def _of_usage(usage: Usage, of: str, quantity: Quantity) -> float | None:
    if quantity.over is not None:
        part, whole = usage.per_op.get(of), usage.per_op.get(quantity.over)
        return part / whole if part is not None and whole else None
    if quantity.per == "s":
        rate = usage.per_s.get(of)
        return None if rate is None else rate * resource(of).scale
    return usage.means.get(of)


# Beside what was published


def _beside(
    study: Study,
    runs: Runs,
    given: ObservedTable,
    table: Table,
    found: Mapping[str, Mapping[int, tuple[float, Interval]]],
) -> ObservedResult:
    cells = [cell for cell in study.cells if cell.intervention is None and is_chosen(cell, given.where)]
    factor = _compared(study, given)
    figures = []
    for each in given.figures:
        mine = [cell for cell in cells if _has(cell, each.levels)]
        if mine:
            first = _first(study, given, each, factor)
            shown = tuple(_cell(study, table, each, cell, first, factor, found[name(each.quantity)]) for cell in mine)
            figures.append(_figure(study, runs, given, each, first, factor, shown))
    return ObservedResult(
        file=given.file, sentence=_stands_for(study, given, cells), figures=tuple(figures), left_out=given.left_out
    )


def _has(cell: Cell, chosen: Mapping[str, str]) -> bool:
    return all(cell.levels.get(factor) == level for factor, level in chosen.items())


def _compared(study: Study, given: ObservedTable) -> str | None:
    """The factor whose levels are set against each other: the study's where the table has it, or its first."""
    known = {factor.name for factor in study.factors}
    told = [factor for factor in (given.figures[0].levels if given.figures else ()) if factor in known]
    return study.compare if study.compare in told else next(iter(told), None)


def _first(
    study: Study, given: ObservedTable, of: PublishedObservation, factor: str | None
) -> PublishedObservation | None:
    """The figure of the level declared first among those that were published, all else equal; None for that itself."""
    if factor is None:
        return None
    alike = {
        each.levels[factor]: each
        for each in given.figures
        if (each.column, each.quantity) == (of.column, of.quantity)
        and {**each.levels, factor: ""} == {**of.levels, factor: ""}
    }
    first = next((alike[level.name] for level in study.factor(factor).levels if level.name in alike), None)
    return None if first is of else first


def _cell(
    study: Study,
    table: Table,
    of: PublishedObservation,
    cell: Cell,
    first: PublishedObservation | None,
    factor: str | None,
    found: Mapping[int, tuple[float, Interval]],
) -> ObservedCell:
    quantity = name(of.quantity)
    values = table.of(quantity, cell.index)
    scale = bounds.convert(1.0, of.quantity.measured_in, of.unit)
    mean = scale * sum(values) / len(values) if values else None
    ci = (scale * found[cell.index][1][0], scale * found[cell.index][1][1]) if cell.index in found else None
    ratio = None
    if first is not None and factor is not None and values:
        base = {**cell.levels, factor: first.levels[factor]}
        a = next((each for each in study.cells if each.levels == base), None)
        if a is not None and table.of(quantity, a.index):
            names = (base[factor], cell.levels[factor])
            ratio = between(study, table, quantity, a, cell, names).ratio(study.replicates.confidence)
    return ObservedCell(
        cell=cell.index,
        levels=cell.levels,
        n=len(values),
        mean=mean,
        ci=ci,
        of_published=mean / of.value if mean is not None and of.value > 0 else None,
        of_published_ci=(ci[0] / of.value, ci[1] / of.value) if ci is not None and of.value > 0 else None,
        relative=ratio.ratio if ratio else None,
        relative_ci=(ratio.lo, ratio.hi) if ratio else None,
    )


def _figure(
    study: Study,
    runs: Runs,
    given: ObservedTable,
    of: PublishedObservation,
    first: PublishedObservation | None,
    factor: str | None,
    cells: tuple[ObservedCell, ...],
) -> ObservedFigure:
    measured = any(cell.n for cell in cells)
    return ObservedFigure(
        column=of.column,
        quantity=name(of.quantity),
        title=_title(of.quantity),
        unit=of.unit,
        levels=of.levels,
        published=of.value,
        relative=of.value / first.value if first is not None and first.value > 0 else None,
        relative_to={factor: first.levels[factor]} if first is not None and factor is not None else {},
        cells=cells,
        reason="" if measured else _why_none(study, runs, of.quantity),
        note=" ".join(_notes(runs, given, of, cells)),
    )


def _why_none(study: Study, runs: Runs, quantity: Quantity) -> str:
    ok = runs.responses.ok_runs
    if not ok:
        return "no run is ok"
    unknown = "none of the ok runs tells of it"
    if quantity.of is None:
        if not any(each.kind == OBSERVER for each in study.observe):
            return f"the study has no observer `{OBSERVER}`, which takes call stacks"
        return "the runs left no call stacks of their measured parts"
    if quantity.of in SAMPLED and not measures.is_one(quantity.of):
        if why := why_unobserved(study, ok):
            return why
        if quantity.of.startswith("disk.") and all(run.disk is None for run in ok):
            return "these runs do not say which device their data are on"
        return unknown
    for each in (quantity.of, quantity.over):
        if each is not None and (why := why_unmeasured(study, ok, each)):
            return why
    return unknown


def _notes(runs: Runs, given: ObservedTable, of: PublishedObservation, cells: Sequence[ObservedCell]) -> Iterator[str]:
    if note := given.notes.get(of.column):
        yield note if note.endswith((".", "!", "?")) else f"{note}."
    if of.quantity.of is None and runs.stacks is not None and any(cell.n for cell in cells):
        events = sorted(set(runs.stacks["event"]) - {"cycles"})
        if events:
            yield f"Sampled by {', '.join(events)} here, a timer, and not by cycles."
        if not any(cell.mean for cell in cells):
            yield "No sample is of it: it may have another name here, or none."


def _stands_for(study: Study, given: ObservedTable, cells: Sequence[Cell]) -> str:
    """Which factors the publication does not tell, so that one of its figures stands for several cells."""
    told = set(given.figures[0].levels) if given.figures else set()
    where = {factor: " or ".join(some) for factor, some in given.where.items()}
    beside = f" with {in_words(where)}" if where else ""
    open_factors = [
        factor.name
        for factor in study.factors
        if factor.name not in told and len({cell.levels.get(factor.name) for cell in cells}) > 1
    ]
    if not cells:
        return f"No cell{beside} is in this study, so nothing stands beside the published figures."
    text = f"The published figures stand beside the {counted(len(cells), 'cell')}{beside}."
    if open_factors:
        text += (
            f" They do not tell {' and '.join(open_factors)}: each stands for all cells that have its levels, whatever "
            "they have of those."
        )
    return text
