"""Each response of each cell, over its ok runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.rounding import rounded
from dyno.analysis.table import Table
from dyno.model import responses
from dyno.model.findings import CellSummary, Comparison
from dyno.model.looks import looks
from dyno.model.run import Outcome
from dyno.model.study import Cell, Study


def summarise(
    study: Study, table: Table, response: str, of_cell: Mapping[int, Sequence[Comparison]]
) -> list[CellSummary]:
    """The cells in their order. `of_cell` has the comparisons of this response that each cell takes part in.

    A response of one operation is given only for the cells whose workload has that operation; all others for every
    cell, so that one without an ok run stands there as such.
    """
    everywhere = not responses.of_operation(response) or response == study.replicates.of
    cells = [cell for cell in study.cells if everywhere or table.of(response, cell.index)]
    found = _means(study, table, response, cells, study.replicates.confidence)
    widths = stats.relative_widths(found)
    return [
        _summary(study, table, response, cell, _interval(mean, half), wider, float(width), of_cell.get(cell.index, ()))
        for cell, mean, half, wider, width in zip(cells, found.mean, found.half, found.allowance, widths, strict=True)
    ]


def intervals(
    study: Study, table: Table, response: str, confidence: float
) -> dict[int, tuple[float, tuple[float, float]]]:
    """Cell -> its mean with an interval of any confidence, made as `summarise` makes them."""
    cells = [cell for cell in study.cells if table.of(response, cell.index)]
    found = _means(study, table, response, cells, confidence)
    return {
        cell.index: (float(mean), interval)
        for cell, mean, half in zip(cells, found.mean, found.half, strict=True)
        if (interval := _interval(mean, half))
    }


def _means(study: Study, table: Table, response: str, cells: Sequence[Cell], confidence: float) -> stats.Means:
    when = looks(study)
    return stats.cell_means(
        *table.arrays(response, [cell.index for cell in cells]),
        confidence,
        randomised=study.order == "randomised",
        widening=stats.widening_of_means(when.first, when.last),
    )


def _interval(mean: float, half: float) -> tuple[float, float] | None:
    """It ends at 0, below which no response has values: that takes no truth out of it."""
    if not math.isfinite(half):
        return None
    return (float(max(mean - half, 0.0) if mean >= 0 else mean - half), float(mean + half))


def _summary(
    study: Study,
    table: Table,
    response: str,
    cell: Cell,
    interval: tuple[float, float] | None,
    wider: float,
    width: float,
    comparisons: Sequence[Comparison],
) -> CellSummary:
    rule, when = study.replicates, looks(study)
    values = table.of(response, cell.index)
    found = stats.describe(values)
    outcomes, beyond = table.outcomes[cell.index], table.beyond(response, cell.index)
    if when.at == "ratio" and comparisons:
        converged = all(each.converged for each in comparisons)
    else:
        converged = found.n >= when.first and width <= rule.precision
    made = CellSummary(
        cell=cell.index,
        levels=cell.levels,
        response=response,
        unit=responses.lookup(response).unit,
        n=found.n,
        failed=outcomes[Outcome.FAILED],
        invalid=outcomes[Outcome.INVALID],
        partial=outcomes[Outcome.PARTIAL],
        mean=found.mean,
        sd=found.sd,
        variance=found.variance,
        cov=found.cov,
        mad=found.mad,
        min=found.min,
        max=found.max,
        range=found.range,
        ci=interval,
        allowance=rounded(float(wider)) if interval else None,
        precision=width if math.isfinite(width) else None,
        converged=converged,
        reached=_reached(width, comparisons if when.at == "ratio" else ()),
        values=tuple(values),
        unsteady=table.unsteady[cell.index],
        remark=sentences.unsteady(table.unsteady[cell.index], outcomes[Outcome.OK]),
    )
    if not beyond:
        return made
    # Of values of which the largest are not known there is no mean.
    unknown = dict.fromkeys(
        ("mean", "sd", "variance", "cov", "mad", "max", "range", "ci", "allowance", "precision", "reached")
    )
    remark = f"{sentences.not_over(len(beyond), len(table.struck[cell.index]))}, so that there is no mean"
    return made.model_copy(update={**unknown, "converged": False, "remark": remark})


def _reached(width: float, comparisons: Sequence[Comparison]) -> float | None:
    widths = [math.inf if each.precision is None else each.precision for each in comparisons] or [width]
    return max(widths) if math.isfinite(max(widths)) else None
