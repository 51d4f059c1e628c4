"""From runs to findings, a line a stage."""

from __future__ import annotations

from collections.abc import Sequence

from dyno.analysis.answer import answer
from dyno.analysis.cells import summarise
from dyno.analysis.comparisons import compare
from dyno.analysis.drift import drift
from dyno.analysis.notes import notes
from dyno.analysis.shape import shapes
from dyno.analysis.table import response_order, tabulate
from dyno.analysis.variation import explain
from dyno.model.findings import CellSummary, Comparison, Failure, Findings
from dyno.model.run import RunRecord
from dyno.model.study import Study


def analyse(study: Study, runs: Sequence[RunRecord], *, ended: str | None, explained: Sequence[str] = ()) -> Findings:
    """All that the runs of a study say. `ended` is why the study ended; None where it has not.

    What explains the variation, the shape over ordered factors and drift are given of the deciding response, and of
    those that `explained` names besides.

    Raises ValueError for a run of a cell that the study has not.
    """
    table = tabulate(study, runs)
    cells: list[CellSummary] = []
    comparisons: list[Comparison] = []
    for response in response_order(study, table):
        of_cell: dict[int, list[Comparison]] = {}
        for pair, found in compare(study, table, response):
            comparisons.append(found)
            of_cell.setdefault(pair.a.index, []).append(found)
            of_cell.setdefault(pair.b.index, []).append(found)
        cells += summarise(study, table, response, of_cell)
    rule = study.replicates
    in_depth = [rule.of, *(name for name in dict.fromkeys(explained) if name != rule.of and name in table.values)]
    drifts = tuple(drift(study, table, response) for response in in_depth)
    deciding_cells = [cell for cell in cells if cell.response == rule.of]
    deciding = [found for found in comparisons if found.response == rule.of]
    return Findings(
        study=study.study,
        question=study.question,
        scale=study.scale,
        answer=answer(deciding_cells, deciding, rule.of),
        response=rule.of,
        confidence=rule.confidence,
        precision=rule.precision,
        precision_of=rule.precision_of,
        compare=study.compare,
        ended=ended or "not ended yet",
        runs=len(runs),
        cells=tuple(cells),
        comparisons=tuple(comparisons),
        failures=tuple(_failure(run) for run in table.other_runs),
        notes=tuple(notes(study, table, deciding_cells, comparisons, drifts[0], ended)),
        variation=tuple(explain(study, table, response) for response in in_depth),
        shapes=tuple(shape for response in in_depth for shape in shapes(study, table, response)),
        drift=drifts,
    )


def _failure(run: RunRecord) -> Failure:
    return Failure(
        run=run.run,
        cell=run.slot.cell,
        levels=run.levels,
        outcome=run.outcome.value,
        step=run.step.value if run.step else None,
        cause=run.cause,
    )
