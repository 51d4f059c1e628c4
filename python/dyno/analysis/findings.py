"""From runs to findings, a line a stage."""

from __future__ import annotations

from collections.abc import Sequence

from dyno.analysis.answer import answer, staged_answer
from dyno.analysis.cells import summarise
from dyno.analysis.choices import choose, compared_runs, stage_notes, with_tuning
from dyno.analysis.comparisons import compare
from dyno.analysis.notes import notes
from dyno.analysis.table import response_order, tabulate
from dyno.model.findings import CellSummary, Comparison, Failure, Findings
from dyno.model.run import Outcome, RunRecord
from dyno.model.stages import comparing
from dyno.model.study import Study


def analyse(study: Study, runs: Sequence[RunRecord], *, ended: str | None) -> Findings:
    """All that the runs of a study say. `ended` is why the study ended; None where it has not.

    Raises ValueError for a run of a cell that the study has not.
    """
    return _whole(study, runs, ended) if study.stages is None else _staged(study, runs, ended)


def _staged(study: Study, runs: Sequence[RunRecord], ended: str | None) -> Findings:
    """Findings of stage two alone, with what stage one picked for it beside them."""
    chosen = choose(study, runs)
    compared = compared_runs(runs, chosen)
    found = _whole(comparing(study, [choice.cell for choice in chosen]), compared, ended)
    return found.model_copy(
        update={
            "answer": staged_answer(study, found.answer, any_ok=any(cell.n for cell in found.cells)),
            "runs": len(runs),
            "comparisons": tuple(
                each.model_copy(update={"sentence": with_tuning(study, each, chosen)}) for each in found.comparisons
            ),
            "failures": tuple(_failure(run) for run in runs if run.outcome is not Outcome.OK),
            "choices": tuple(chosen),
            "notes": (*stage_notes(study, runs, chosen, ended), *found.notes),
        }
    )


def _whole(study: Study, runs: Sequence[RunRecord], ended: str | None) -> Findings:
    table = tabulate(study, runs)
    cells: list[CellSummary] = []
    order = response_order(study, table)
    compared = compare(study, table, order)
    comparisons = [found for _, found in compared]
    for response in order:
        of_cell: dict[int, list[Comparison]] = {}
        for pair, found in compared:
            if found.response == response:
                of_cell.setdefault(pair.a.index, []).append(found)
                of_cell.setdefault(pair.b.index, []).append(found)
        cells += summarise(study, table, response, of_cell)
    rule = study.replicates
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
        notes=tuple(notes(study, table, deciding_cells, comparisons, ended)),
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
