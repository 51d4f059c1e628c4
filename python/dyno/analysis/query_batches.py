"""Queries that are asked many times at once: which configuration answers most a second, by the number of clients."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

from dyno.analysis.cells import intervals
from dyno.analysis.table import Table
from dyno.model.answers import IN_BATCH, BatchCell, BatchFinding, QueryAnswer, QueryFinding
from dyno.model.findings import CellSummary
from dyno.model.study import Study


def batches(
    study: Study, table: Table, found: Sequence[QueryFinding], cells: Sequence[CellSummary]
) -> Iterator[BatchFinding]:
    """Of each query and number of clients, the best and the worst of those cells that compare with the most others.

    They do whose answers are the same, whose CPUs are of one kind, and who promise the same of a commit where they are
    of several kinds. Nothing is claimed of what is not apart: a reader sees both with their intervals. The best and the
    worst of many are apart by luck alone more often than two that were named before: they are where intervals are that
    hold for all pairs of all these at once (Bonferroni).
    """
    asked = tuple(_asked(study, table, found, cells))
    pairs = sum(math.comb(len(alike), 2) for _, _, alike, _ in asked)
    confidence = 1 - (1 - study.replicates.confidence) / max(pairs, 1)
    for query, count, alike, left_out in asked:
        together = intervals(study, table, f"{query}.throughput", confidence)
        best, worst = max(alike, key=lambda one: one.mean), min(alike, key=lambda one: one.mean)
        of_best, of_worst = together.get(best.cell), together.get(worst.cell)
        yield BatchFinding(
            query=query.partition(".")[2],
            workers=count,
            best=best,
            worst=worst,
            of=len(alike),
            left_out=left_out,
            apart=of_best is not None and of_worst is not None and of_worst[1][1] < of_best[1][0],
        )


def _asked(
    study: Study, table: Table, found: Sequence[QueryFinding], cells: Sequence[CellSummary]
) -> Iterator[tuple[str, int, list[BatchCell], int]]:
    """Each query and number of clients with the cells that compare, and how many were left out."""
    workers = {cell.index: cell.workload.options.get("workers") for cell in study.cells}
    for each in found:
        if not each.query.startswith(f"{IN_BATCH}."):
            continue
        summaries = {
            one.cell: one for one in cells if one.response == f"{each.query}.throughput" and one.mean is not None
        }
        measured = [one for one in each.answers if one.cell in summaries and not one.varies]
        for count in sorted({value for one in measured if isinstance(value := workers[one.cell], int)}):
            here = [one for one in measured if workers[one.cell] == count]
            groups = _groups(study, table, here)
            most = max(dict.fromkeys(groups), key=groups.count)
            alike = [_cell(summaries[one.cell]) for one, group in zip(here, groups, strict=True) if group == most]
            if len(alike) > 1:
                yield each.query, count, alike, len(here) - len(alike)


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
