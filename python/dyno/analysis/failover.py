"""What a fault cost: how long outages were, and what became of the rows. See docs/failover.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from dyno import stats
from dyno.analysis.table import Table
from dyno.model.faults import TITLES
from dyno.model.findings import Failover, Interval, format_share
from dyno.model.run import CLIENTS, Audited, Faulted, Outcome, RunRecord
from dyno.model.study import Cell, Study
from dyno.model.units import counted, format_duration


def failovers(study: Study, table: Table) -> Iterator[Failover]:
    """Of each cell with a fault, in the order of the study. A run that failed afterwards was struck all the same."""
    runs = sorted([*table.ok_runs, *table.other_runs], key=lambda run: run.run)
    for cell in study.cells:
        struck = [run for run in runs if run.slot.cell == cell.index and run.faulted is not None]
        if cell.fault is not None and struck:
            yield _failover(study, cell, struck)


def _failover(study: Study, cell: Cell, runs: Sequence[RunRecord]) -> Failover:
    assert cell.fault is not None, "only such cells have failovers"
    fault, confidence = cell.fault.fault, study.replicates.confidence
    struck = [run.faulted for run in runs if run.faulted is not None]
    ended = sorted(each.outage_s for each in struck if each.outage_s is not None)
    unended = sorted(each.at_least_s for each in struck if each.at_least_s is not None)
    firsts = [each.first_success_s for each in struck if each.first_success_s is not None]
    audits = [each.audits for each in struck if CLIENTS in each.audits]
    found = [of[CLIENTS] for of in audits]
    with_loss = sum(each.lost > 0 for each in found)
    least = [*ended, *(math.inf for _ in unended)]
    since = [*firsts, *(math.inf for _ in unended)]
    told = Failover(
        cell=cell.index,
        levels=cell.levels,
        kind=fault.kind,
        node=fault.node,
        title=TITLES[fault.kind],
        runs=len(struck),
        not_ok=sum(run.outcome is not Outcome.OK for run in runs),
        outages=tuple(ended),
        unended=tuple(unended),
        uninterrupted=sum(each.interrupted is False for each in struck),
        median=_median(least),
        median_ci=_median_interval(least, confidence),
        first_success=_median(since),
        first_success_ci=_median_interval(since, confidence),
        resolution_s=max((each.resolution_s for each in struck if each.resolution_s is not None), default=None),
        audited=len(found),
        acknowledged=_sum(found, "acknowledged"),
        lost=_sum(found, "lost"),
        phantom=_sum(found, "phantom"),
        duplicated=_sum(found, "duplicated"),
        altered=_sum(found, "altered"),
        with_loss=with_loss,
        loss_share_ci=stats.share_interval(with_loss, len(found), confidence) if with_loss else None,
        loss_bound=stats.rule_of_three(len(found)) if found and not with_loss else None,
        loss_bound_exact=stats.bound_of_none(len(found), confidence) if found and not with_loss else None,
        nodes_apart=sum(_apart(each) for each in struck),
        confidence=confidence,
        sentence="",
    )
    return told.model_copy(update={"sentence": f"{_outages(told)} {_rows(told)}"})


def _median(values: Sequence[float]) -> float | None:
    """None where it lies among those that did not end."""
    middle = median(values) if values else math.inf
    return middle if math.isfinite(middle) else None


def _median_interval(values: Sequence[float], confidence: float) -> Interval | None:
    found = stats.median_interval(values, confidence)
    return found if found is not None and all(map(math.isfinite, found)) else None


def _sum(found: Sequence[Audited], name: str) -> int:
    return sum(int(getattr(each, name)) for each in found)


def _apart(struck: Faulted) -> bool:
    """Whether some node had other rows than clients found."""
    if CLIENTS not in struck.audits:
        return False
    first = struck.audits[CLIENTS]
    return any(each != first for each in struck.audits.values())


def _outages(told: Failover) -> str:
    """`kill of the primary, 30 runs: median outage 5.2 s [5.1 s, 5.4 s], longest 6.0 s.`"""
    whose = "a node" if told.node == "any" else f"the {told.node}"
    of = f"{told.kind} of {whose}, {counted(told.runs, 'run')}"
    if not told.outages and not told.unended:
        return f"{of}: how long the outage was is not known of any run."
    if told.median is None:
        words = "median outage beyond what was seen"
    else:
        words = f"median outage {_seconds(told.median)}{_between(told.median_ci)}"
    longest = f", longest {_seconds(told.outages[-1])}" if len(told.outages) > 1 and not told.unended else ""
    open_ended = (
        f"; {len(told.unended)} did not end within {_seconds(told.unended[0])} and more" if told.unended else ""
    )
    none = f"; in {told.uninterrupted} no time without a success stood out" if told.uninterrupted else ""
    return f"{of}: {words}{longest}{open_ended}{none}."


def _rows(told: Failover) -> str:
    if not told.audited:
        return "What became of the rows is not known of any run."
    rows = f"{told.lost:,} of {told.acknowledged:,} acknowledged rows lost"
    if told.loss_share_ci is not None:
        low, high = told.loss_share_ci
        said = f"{rows}, in {told.with_loss} of {told.audited} faults ({format_share(low)} to {format_share(high)})"
    else:
        bound = format_share(told.loss_bound or 1.0)
        said = f"{rows} in {counted(told.audited, 'fault')}: at 95 % confidence at most {bound} of them lose any (3/n)"
    also = [
        f"{count:,} {what}"
        for count, what in (
            (told.duplicated, "there more than once"),
            (told.altered, "altered"),
            (told.phantom, "there and never acknowledged"),
        )
        if count
    ]
    apart = (
        f" In {counted(told.nodes_apart, 'run')} a node had other rows than clients found." if told.nodes_apart else ""
    )
    return f"{said}{''.join(f'; {each}' for each in also)}.{apart}"


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f" [{_seconds(interval[0])}, {_seconds(interval[1])}]"


def _seconds(value: float) -> str:
    """Milliseconds where it is less than a tenth of a second."""
    return format_duration(value) if value < 1 else f"{value:.3g} s"
