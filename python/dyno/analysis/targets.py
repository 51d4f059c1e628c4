"""Whether the cells reach what the study asks of them: by the interval of each cell's mean, never by the mean alone.

Losses are asked of each fault by itself, since the mean of many would make up for one: a single fault that breaks the
target misses it. Where none does, that says little of a few faults, however certain the mean of their zeros looks: the
target is met where the exact bound of the share that could still break it is at most `MOST_BREAKING`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.sentences import NOT_JUDGED, levels
from dyno.analysis.table import Table, of_fault
from dyno.model import bounds, measures, responses
from dyno.model.faults import LOSSES, OF_FAULTS
from dyno.model.findings import (
    CellSummary,
    ResourceFigure,
    TargetCell,
    TargetResult,
    TargetVerdict,
    format_estimate,
    format_quantity,
    format_share,
)
from dyno.model.study import Cell, Study
from dyno.model.targets import Target
from dyno.model.units import counted, format_percent
from dyno.model.usage import is_resource

MOST_BREAKING = 0.1
"""Of all faults, that may break a target on losses which is met: at 95 % confidence 29 in which it holds show that."""
_VERDICTS: Mapping[bool | None, TargetVerdict] = {True: "met", False: "missed", None: "cannot tell"}


def judge(
    study: Study, target: Target, table: Table, cells: Sequence[CellSummary], used: Sequence[ResourceFigure] = ()
) -> TargetResult:
    """The target in each cell that it is asked of, and from those of the study: met in all of them, or missed in one.

    `cells` may be of any response, and `used` of any resource. A response of one operation is not asked of cells
    without that operation, and one of faults not of those in which nothing is struck.
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
    if target.response in OF_FAULTS:
        asked = [cell for cell in asked if cell.fault is not None]
    judged = tuple(_of_cell(study, table, target.response, cell, found.get(cell.index), bound) for cell in asked)
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
    study: Study,
    table: Table,
    response: str,
    cell: Cell,
    found: CellSummary | ResourceFigure | None,
    bound: bounds.Bound,
) -> TargetCell:
    interval = found.ci if found else None
    if cell.fault is not None and _is_of_each(response, found):
        return _of_each_fault(study, table, response, cell, bound)
    made = TargetCell(
        cell=cell.index,
        levels=cell.levels,
        n=found.n if found else 0,
        mean=found.mean if found else None,
        ci=interval,
        verdict=_VERDICTS[bound.holds(interval) if interval and study.judged else None],
    )
    if cell.fault is None:
        return made
    # What was not over has no mean; but it is as long as was seen at the least, which may be too long in all of them.
    struck = table.struck.get(cell.index, ())
    seen = [seen for run in struck if (seen := of_fault(run, response)) is not None]
    beyond = sum(each.high > each.low for each in seen)
    left_out = len(struck) - beyond - made.n if beyond or response in OF_FAULTS else 0
    if not beyond and left_out <= 0:
        return made
    broken = bool(seen) and all(bound.holds(each) is False for each in seen)
    remarks = [sentences.not_over(beyond, len(struck))] if beyond else []
    remarks += [f"{left_out} of {counted(len(struck), 'fault')} are in no mean, as their runs are not ok"] * (
        left_out > 0
    )
    verdict: TargetVerdict = "missed" if broken and study.judged else "cannot tell"
    return made.model_copy(update={"verdict": verdict, "remark": "; ".join(remarks)})


def _is_of_each(response: str, found: CellSummary | ResourceFigure | None) -> bool:
    """Losses, and other counts that are alike in all runs: an interval without a width promises what nobody knows."""
    if response in LOSSES:
        return True
    is_count = not is_resource(response) and responses.lookup(response).counted
    return is_count and found is not None and found.ci is not None and found.ci[0] == found.ci[1]


def _of_each_fault(study: Study, table: Table, response: str, cell: Cell, bound: bounds.Bound) -> TargetCell:
    """By every fault of which it is known, whatever came of the run afterwards."""
    confidence = study.replicates.confidence
    struck = table.struck.get(cell.index, ())
    seen = [seen for run in struck if (seen := of_fault(run, response)) is not None]
    known = [each for each in seen if each.low == each.high]
    values, n = [each.low for each in known], len(known)
    broken, unknown = sum(bound.holds(each) is False for each in seen), len(struck) - n
    holds: bool | None = None
    if broken:
        holds, remark = False, f"it does not hold in {broken} of {counted(len(seen), 'fault')}"
    elif not n:
        remark = "it is not known of any fault"
    else:
        share = stats.bound_of_none(n, confidence)
        # Those of which nothing is known may be the very ones that break it.
        holds = True if share <= MOST_BREAKING and not unknown else None
        most = f"at {format_percent(confidence)} confidence at most {format_share(share)} of such faults"
        least, largest = format_quantity(min(values)), format_quantity(max(values))
        remark = (
            f"it is {least if least == largest else f'{least} to {largest}'} in {counted(n, 'fault')}: {most} break it"
        )
        if not any(values) and math.isinf(bound.low):
            remark = f"0 in {counted(n, 'fault')}: {most} have any"
        if share > MOST_BREAKING:
            takes = math.ceil(math.log(1 - confidence) / math.log1p(-MOST_BREAKING))
            remark += f", and to say {format_percent(MOST_BREAKING)} takes {takes} faults"
    if unknown and n + broken:
        what = "were not audited" if response in LOSSES else "say nothing of it for certain"
        remark += f"; {unknown} of {counted(len(struck), 'fault')} {what}"
    return TargetCell(
        cell=cell.index,
        levels=cell.levels,
        n=n,
        mean=fmean(values) if values else None,
        ci=None,
        verdict=_VERDICTS[holds if study.judged else None],
        remark=remark,
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
    remarks = list(dict.fromkeys(cell.remark for cell in judged if cell.remark))
    told = f" ({sentences.listed(remarks, most=3)})" if remarks else ""
    if all(cell.mean is None and not cell.remark for cell in judged):
        return f"{asked}: cannot tell; it was not measured{_remedy(target.response)}."
    verdict = _of_all(judged)
    if len(judged) == 1:
        (only,) = judged
        if only.remark:
            return f"{asked}: {verdict}; {only.remark}."
        size = "no ok run" if only.mean is None else f"{format_estimate(only.mean, only.ci)} {known.unit}"
        return f"{asked}: {verdict}, {size} (n = {counted(only.n, 'run')})."
    by_verdict = {name: [cell for cell in judged if cell.verdict == name] for name in _VERDICTS.values()}
    if len(by_verdict[verdict]) == len(judged):
        why = ""
        if all(cell.ci is None and not cell.remark for cell in judged):
            why = f", none of which has an interval{_remedy(target.response)}"
        number = "both" if len(judged) == 2 else f"all {len(judged)}"
        return f"{asked}: {verdict} in {number} cells{why}{told}."
    parts = [f"{name} in {len(some)}" for name, some in by_verdict.items() if some]
    return f"{asked}: {verdict}; of {len(judged)} cells, {', '.join(parts)}{told}."
