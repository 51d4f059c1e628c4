"""Whether the cells reach what the study asks of them: by the interval of each cell's mean, never by the mean alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dyno.analysis.sentences import NOT_JUDGED, levels
from dyno.model import bounds, measures, responses
from dyno.model.findings import CellSummary, ResourceFigure, TargetCell, TargetResult, TargetVerdict, format_estimate
from dyno.model.study import Cell, Study
from dyno.model.targets import Target
from dyno.model.units import counted
from dyno.model.usage import is_resource

_VERDICTS: Mapping[bool | None, TargetVerdict] = {True: "met", False: "missed", None: "cannot tell"}


def judge(
    study: Study, target: Target, cells: Sequence[CellSummary], used: Sequence[ResourceFigure] = ()
) -> TargetResult:
    """The target in each cell that it is asked of, and from those of the study: met in all of them, or missed in one.

    `cells` may be of any response, and `used` of any resource. A response of one operation is not asked of cells
    without that operation.
    """
    known = measures.lookup(target.response)
    bound = bounds.parse(target.bound, known.unit)
    found: dict[int, CellSummary | ResourceFigure] = {
        cell.cell: cell for cell in cells if cell.response == target.response
    }
    found |= {figure.cell: figure for figure in used if figure.resource == target.response}
    asked = [cell for cell in study.cells if is_chosen(cell, target.where)]
    if not is_resource(target.response) and responses.of_operation(target.response) and found:
        asked = [cell for cell in asked if cell.index in found]
    judged = tuple(_of_cell(cell, found.get(cell.index), bound, judged=study.judged) for cell in asked)
    return TargetResult(
        response=target.response,
        unit=known.unit,
        bound=bound.text,
        where=target.where,
        verdict=_of_all(judged),
        sentence=_sentence(study, target, bound, judged),
        cells=judged,
    )


def is_chosen(cell: Cell, where: Mapping[str, Sequence[str]]) -> bool:
    """Whether a cell has one of the levels asked for of each factor."""
    return all(cell.levels.get(factor) in some for factor, some in where.items())


def _of_cell(
    cell: Cell, found: CellSummary | ResourceFigure | None, bound: bounds.Bound, *, judged: bool
) -> TargetCell:
    interval = found.ci if found else None
    return TargetCell(
        cell=cell.index,
        levels=cell.levels,
        n=found.n if found else 0,
        mean=found.mean if found else None,
        ci=interval,
        verdict=_VERDICTS[bound.holds(interval) if interval and judged else None],
    )


def _of_all(judged: Sequence[TargetCell]) -> TargetVerdict:
    verdicts = {cell.verdict for cell in judged}
    if "missed" in verdicts:
        return "missed"
    return "met" if verdicts == {"met"} else "cannot tell"


def _remedy(response: str) -> str:
    """What a run has to be for the figures that come from samples."""
    if not response.endswith(".util"):
        return ""
    return " (runs may be shorter than the time between two samples; observe: [{machine: {hz: 10}}] takes more of them)"


def _sentence(study: Study, target: Target, bound: bounds.Bound, judged: Sequence[TargetCell]) -> str:
    known = measures.lookup(target.response)
    where = {factor: " or ".join(some) for factor, some in target.where.items()}
    asked = f"{known.title} {bound.text}{f' with {levels(where)}' if where else ''}"
    if not study.judged:
        return f"{asked}: cannot tell; {NOT_JUDGED}."
    if not judged:
        return f"{asked}: cannot tell; no cell of this study is asked."
    if all(cell.mean is None for cell in judged):
        return f"{asked}: cannot tell; it was not measured{_remedy(target.response)}."
    verdict = _of_all(judged)
    if len(judged) == 1:
        (only,) = judged
        size = "no ok run" if only.mean is None else f"{format_estimate(only.mean, only.ci)} {known.unit}"
        return f"{asked}: {verdict}, {size} (n = {counted(only.n, 'run')})."
    by_verdict = {name: [cell for cell in judged if cell.verdict == name] for name in _VERDICTS.values()}
    if len(by_verdict[verdict]) == len(judged):
        why = ""
        if all(cell.ci is None for cell in judged):
            why = f", none of which has an interval{_remedy(target.response)}"
        number = "both" if len(judged) == 2 else f"all {len(judged)}"
        return f"{asked}: {verdict} in {number} cells{why}."
    parts = [f"{name} in {len(some)}" for name, some in by_verdict.items() if some]
    return f"{asked}: {verdict}; of {len(judged)} cells, {', '.join(parts)}."
