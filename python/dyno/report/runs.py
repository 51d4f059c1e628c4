"""Which runs are shown one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dyno.model.findings import CellSummary
from dyno.model.run import Outcome, RunRecord
from dyno.model.stages import PICKING

MOST_RUNS = 12  # a page with more is slow to load and no easier to read
MOST_NOT_OK = 4  # of them, where there are enough others


def notable(cells: Sequence[CellSummary], runs: Sequence[RunRecord]) -> list[RunRecord]:
    """One ok run of each cell, that whose deciding response is in the middle, and the first that are not ok.

    Where there are more than can be shown, the cells are thinned evenly. `cells` are those of the deciding response.
    """
    middle = list(_middle_runs(cells, runs))
    not_ok = [run for run in runs if run.outcome is not Outcome.OK and run.measured_from_ns is not None]
    not_ok += [run for run in runs if run.outcome is not Outcome.OK and run.measured_from_ns is None]
    room = MOST_RUNS - min(len(not_ok), max(MOST_NOT_OK, MOST_RUNS - len(middle)))
    middle = _thinned(middle, room)
    return middle + not_ok[: MOST_RUNS - len(middle)]


def _middle_runs(cells: Sequence[CellSummary], runs: Sequence[RunRecord]) -> Iterator[RunRecord]:
    of_cell: dict[int, list[RunRecord]] = {}
    for run in runs:
        if run.outcome is Outcome.OK and run.slot.stage != PICKING:  # the figures are not of those
            of_cell.setdefault(run.slot.cell, []).append(run)
    for cell in cells:
        measured = [run for run in of_cell.get(cell.cell, ()) if cell.response in run.responses]
        if measured:
            ranked = sorted(measured, key=lambda run: (run.responses[cell.response], run.run))
            yield ranked[(len(ranked) - 1) // 2]


def _thinned(runs: list[RunRecord], most: int) -> list[RunRecord]:
    if len(runs) <= most:
        return runs
    return [runs[place * (len(runs) - 1) // (most - 1)] for place in range(most)]
