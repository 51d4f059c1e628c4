"""Each response of each cell, over its ok runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dyno import stats
from dyno.analysis.table import Table
from dyno.model import responses
from dyno.model.findings import CellSummary, Comparison
from dyno.model.run import Outcome
from dyno.model.study import Cell, Study


def summarise(
    study: Study, table: Table, response: str, of_cell: Mapping[int, Sequence[Comparison]]
) -> list[CellSummary]:
    """The cells in their order. `of_cell` has the comparisons of this response that each cell takes part in.

    A response of one operation is given only for the cells whose workload has that operation; all others for every
    cell, so that one without an ok run stands there as such.
    """
    everywhere = "." not in response or response == study.replicates.of
    return [
        _summary(study, table, response, cell, of_cell.get(cell.index, ()))
        for cell in study.cells
        if everywhere or table.of(response, cell.index)
    ]


def _summary(study: Study, table: Table, response: str, cell: Cell, comparisons: Sequence[Comparison]) -> CellSummary:
    rule = study.replicates
    values = table.of(response, cell.index)
    found = stats.describe(values)
    interval = stats.mean_interval(values, rule.confidence)
    width = math.inf if interval is None or found.mean is None else stats.relative_half_width(interval, found.mean)
    outcomes = table.outcomes[cell.index]
    if rule.precision_of == "ratio" and comparisons:
        converged = all(each.converged for each in comparisons)
    else:
        converged = found.n >= rule.min and stats.mean_is_precise(values, rule.confidence, rule.precision)
    return CellSummary(
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
        precision=width if math.isfinite(width) else None,
        converged=converged,
        reached=_reached(width, comparisons if rule.precision_of == "ratio" else ()),
        values=tuple(values),
    )


def _reached(width: float, comparisons: Sequence[Comparison]) -> float | None:
    widths = [math.inf if each.precision is None else each.precision for each in comparisons] or [width]
    return max(widths) if math.isfinite(max(widths)) else None
