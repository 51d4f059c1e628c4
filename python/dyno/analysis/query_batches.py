"""Queries that are asked many times at once: which configuration answers most a second, by the number of clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dyno.model.answers import IN_BATCH, BatchCell, BatchFinding, QueryFinding
from dyno.model.findings import CellSummary
from dyno.model.study import Study


def batches(study: Study, found: Sequence[QueryFinding], cells: Sequence[CellSummary]) -> Iterator[BatchFinding]:
    """Of each query and number of clients, the best and the worst of those cells that answer as the most others do.

    Nothing is claimed of what is not apart: a reader sees both with their intervals.
    """
    workers = {cell.index: cell.workload.options.get("workers") for cell in study.cells}
    for each in found:
        if not each.query.startswith(f"{IN_BATCH}."):
            continue
        summaries = {
            one.cell: one for one in cells if one.response == f"{each.query}.throughput" and one.mean is not None
        }
        asked = [one for one in each.answers if one.cell in summaries and not one.varies]
        for count in sorted({value for one in asked if isinstance(value := workers[one.cell], int)}):
            here = [one for one in asked if workers[one.cell] == count]
            groups = [one.group for one in here]
            group = max(dict.fromkeys(groups), key=groups.count)
            alike = [_cell(summaries[one.cell]) for one in here if one.group == group]
            if len(alike) < 2:
                continue
            best, worst = max(alike, key=lambda one: one.mean), min(alike, key=lambda one: one.mean)
            yield BatchFinding(
                query=each.query.partition(".")[2],
                workers=count,
                best=best,
                worst=worst,
                of=len(alike),
                left_out=len(here) - len(alike),
                apart=best.ci is not None and worst.ci is not None and worst.ci[1] < best.ci[0],
            )


def _cell(of: CellSummary) -> BatchCell:
    assert of.mean is not None, "only those with a mean are asked"
    return BatchCell(cell=of.cell, levels=of.levels, mean=of.mean, ci=of.ci)
