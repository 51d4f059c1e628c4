"""Queries that are asked many times at once: which configuration answers most a second, by the number of clients."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from dyno.analysis.table import Table
from dyno.model.answers import IN_BATCH, BatchCell, BatchFinding, QueryAnswer, QueryFinding
from dyno.model.findings import CellSummary
from dyno.model.study import Study


def batches(
    study: Study, table: Table, found: Sequence[QueryFinding], cells: Sequence[CellSummary]
) -> Iterator[BatchFinding]:
    """Of each query and number of clients, the best and the worst of those cells that compare with the most others.

    They do whose answers are the same, whose CPUs are of one kind, and who promise the same of a commit where they are
    of several kinds. Nothing is claimed of what is not apart: a reader sees both with their intervals.
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
            groups = _groups(study, table, here)
            most = max(dict.fromkeys(groups), key=groups.count)
            alike = [_cell(summaries[one.cell]) for one, group in zip(here, groups, strict=True) if group == most]
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


def _groups(study: Study, table: Table, asked: Sequence[QueryAnswer]) -> list[Hashable]:
    """Cells of one group compare, as elsewhere: within one kind of store durability is what is varied."""
    systems = {cell.index: cell.system.kind for cell in study.cells}
    durability = [frozenset(each.durability for each in table.promises[one.cell]) for one in asked]
    apart = len({systems[one.cell] for one in asked}) > 1 and not any(None in each for each in durability)
    return [
        (one.group, True in table.emulated[one.cell], each if apart else None)
        for one, each in zip(asked, durability, strict=True)
    ]


def _cell(of: CellSummary) -> BatchCell:
    assert of.mean is not None, "only those with a mean are asked"
    return BatchCell(cell=of.cell, levels=of.levels, mean=of.mean, ci=of.ci)
