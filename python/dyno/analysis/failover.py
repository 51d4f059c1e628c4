"""What a fault cost: how long outages were, and what became of the rows. See docs/failover.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.table import Table, of_fault
from dyno.model import responses
from dyno.model.faults import TITLES
from dyno.model.findings import Failover, FaultFigure, format_share
from dyno.model.run import CLIENTS, Audited, Faulted, Outcome, RunRecord
from dyno.model.study import Cell, Study
from dyno.model.units import counted, format_duration, format_percent

FIGURES = (
    "outage",
    "first_success",
    "former_throughput",
    "rejoin",
    "rejoin_outage",
    "requests_failed",
    "requests_late",
    "lost_work",
    "stale_reads",
    "staleness_max",
    "reads_unseen",
    "rows_lost",
)
"""What is told of each cell, in this order. Redundancy is rejoin and what the study lets the fault last."""
COARSE = 0.2
"""Of an outage: where no request was sent for longer before the first success, its end is that of clients' waits."""


def failovers(study: Study, table: Table) -> Iterator[Failover]:
    """Of each cell with a fault, in the order of the study. A run that failed afterwards was struck all the same."""
    for cell in study.cells:
        struck = table.struck.get(cell.index, ())
        if cell.fault is not None and struck:
            yield _failover(study, cell, struck)


def not_over(study: Study, table: Table, response: str) -> str:
    """Of which cells a response is not known in some faults, as a sentence; empty where there are none."""
    told = [
        f"{sentences.levels(cell.levels)} {sentences.not_over(len(beyond), len(table.struck[cell.index]))}"
        for cell in study.cells
        if (beyond := table.beyond(response, cell.index))
    ]
    title = responses.lookup(response).title
    return (
        f"Of {title} nothing speaks for these, whatever their other runs say: {sentences.listed(told)}." if told else ""
    )


def _failover(study: Study, cell: Cell, runs: Sequence[RunRecord]) -> Failover:
    assert cell.fault is not None, "only such cells have failovers"
    fault, confidence = cell.fault.fault, study.replicates.confidence
    struck = [run.faulted for run in runs if run.faulted is not None]
    counted_runs = [run for run in runs if run.faulted is not None and CLIENTS in run.faulted.audits]
    found = [each.audits[CLIENTS] for each in struck if CLIENTS in each.audits]
    with_loss = sum(each.lost > 0 for each in found)
    told = Failover(
        cell=cell.index,
        levels=cell.levels,
        kind=fault.kind,
        node=fault.node,
        title=TITLES[fault.kind],
        lasts=fault.lasts,
        runs=len(struck),
        not_ok=sum(run.outcome is not Outcome.OK for run in runs),
        outages=tuple(sorted(each.outage_s for each in struck if each.outage_s is not None)),
        unended=tuple(sorted(each.at_least["outage"] for each in struck if "outage" in each.at_least)),
        uninterrupted=sum(each.interrupted is False for each in struck),
        interrupted_again=sum(len(each.interruptions) > 1 for each in struck),
        cut_short=sum(map(_return_was_cut_short, struck)),
        figures=tuple(_figures(runs, confidence)),
        resolution_s=max((each.resolution_s for each in struck if each.resolution_s is not None), default=None),
        coarse=any(map(_is_coarse, struck)),
        audited=len(found),
        acknowledged=_sum(found, "acknowledged"),
        lost=_sum(found, "lost"),
        phantom=_sum(found, "phantom"),
        duplicated=_sum(found, "duplicated"),
        altered=_sum(found, "altered"),
        foreign=_sum(found, "foreign"),
        timeouts=_errors(counted_runs, "timeout"),
        broken=_errors(counted_runs, "connection_lost"),
        with_loss=with_loss,
        loss_share_ci=stats.share_interval(with_loss, len(found), confidence) if with_loss else None,
        loss_bound=stats.bound_of_none(len(found), confidence) if found and not with_loss else None,
        nodes_apart=sum(_apart(each) for each in struck),
        confidence=confidence,
        sentence="",
    )
    return told.model_copy(update={"sentence": f"{_outages(told)}{_rejoin(told)} {_rows(told)}"})


def _figures(runs: Sequence[RunRecord], confidence: float) -> Iterator[FaultFigure]:
    for name in FIGURES:
        seen = [seen for run in runs if (seen := of_fault(run, name)) is not None]
        beyond = [each.low for each in seen if each.high > each.low]
        if not seen:
            continue
        # The more each is, the more is any of their order statistics: bounds of the values are bounds of those.
        low, high = [each.low for each in seen], [each.high for each in seen]
        least, most = median(low), median(high)
        first, last = stats.median_interval(low, confidence), stats.median_interval(high, confidence)
        yield FaultFigure(
            response=name,
            title=responses.lookup(name).title,
            unit=responses.lookup(name).unit,
            n=len(seen),
            beyond=len(beyond),
            at_least=min(beyond, default=None),
            median=least if least == most else None,
            median_least=least,
            median_most=most if math.isfinite(most) else None,
            ci=(first[0], last[1] if math.isfinite(last[1]) else None) if first and last else None,
        )


def _is_coarse(struck: Faulted) -> bool:
    if struck.resolution_s is None or struck.outage_s is None or not struck.interrupted:
        return False
    return struck.resolution_s > COARSE * struck.outage_s


def _return_was_cut_short(struck: Faulted) -> bool:
    """Whether the cluster became whole after all, when the driver had ended: what that cost was seen in part."""
    if "rejoin_outage" not in struck.at_least or struck.whole_ns is None or struck.watched_s is None:
        return False
    return struck.whole_ns > struck.at_ns + struck.watched_s * 1e9


def _sum(found: Sequence[Audited], name: str) -> int:
    return sum(int(getattr(each, name) or 0) for each in found)


def _errors(runs: Sequence[RunRecord], kind: str) -> int:
    return sum(of.get(kind, 0) for run in runs for of in run.errors.values())


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
    outage = told.figure("outage")
    if outage is None:
        return f"{of}: how long the outage was is not known of any run."
    words = f"median outage {_median(outage)}{_between(outage)}"
    longest = f", longest {_seconds(told.outages[-1])}" if len(told.outages) > 1 and not told.unended else ""
    open_ended = (
        f"; {len(told.unended)} did not end within {_seconds(told.unended[0])} and more" if told.unended else ""
    )
    none = f"; in {told.uninterrupted} no time without a success stood out" if told.uninterrupted else ""
    again = f"; in {told.interrupted_again} there was more than one before mending" if told.interrupted_again else ""
    return f"{of}: {words}{longest}{open_ended}{none}{again}."


def _rejoin(told: Failover) -> str:
    """How long it took until all was whole, and what that cost those who asked meanwhile."""
    rejoin, gap = told.figure("rejoin"), told.figure("rejoin_outage")
    if rejoin is None:
        return ""
    if rejoin.beyond == rejoin.n:
        whole, some = " It was not whole again as long as it was waited for", ""
    else:
        whole = f" It was whole again {_median(rejoin)}{_between(rejoin)} after mending began"
        some = f", in {rejoin.beyond} of {rejoin.n} not at all" if rejoin.beyond else ""
    meanwhile = ""
    if gap is not None:
        up_to = "up to " if gap.median is not None else ""
        meanwhile = f"; from then on nothing succeeded for {up_to}{_median(gap)}{_between(gap)} (median)"
        ongoing = gap.beyond - told.cut_short
        meanwhile += f", and in {ongoing} of {gap.n} that was not over" if ongoing else ""
        meanwhile += (
            f"; in {told.cut_short} of {gap.n} it was not whole before the driver ended, so that this time is not "
            f"known but to be at least {_seconds(gap.at_least or 0.0)}: lengthen workload.duration"
            if told.cut_short
            else ""
        )
    return f"{whole}{some}{meanwhile}."


def _rows(told: Failover) -> str:
    if not told.audited:
        return "What became of the rows is not known of any run."
    unaudited = told.runs - told.audited
    unknown = (
        f" What became of the rows is not known of {unaudited} of {counted(told.runs, 'fault')}." if unaudited else ""
    )
    rows = f"{told.lost:,} of {told.acknowledged:,} acknowledged rows lost"
    if told.loss_share_ci is not None:
        low, high = told.loss_share_ci
        said = f"{rows}, in {told.with_loss} of {told.audited} faults ({format_share(low)} to {format_share(high)})"
    else:
        bound = f"at {format_percent(told.confidence)} confidence at most {format_share(told.loss_bound or 1.0)}"
        said = f"{rows} in {counted(told.audited, 'fault')}: {bound} of such faults lose any"
    also = [
        f"{count:,} {what}"
        for count, what in (
            (told.duplicated, "there more than once"),
            (told.altered, "altered"),
            (told.foreign, "there that no client can have written"),
            (told.phantom, f"there and never acknowledged, which is allowed{_why_phantoms(told)}"),
        )
        if count
    ]
    apart = (
        f" In {counted(told.nodes_apart, 'run')} a node had other rows than clients found." if told.nodes_apart else ""
    )
    return f"{said}{''.join(f'; {each}' for each in also)}.{apart}{unknown}"


def _why_phantoms(told: Failover) -> str:
    parts = [f"{counted(told.timeouts, 'request')} timed out"] if told.timeouts else []
    parts += [f"the connection of {counted(told.broken, 'request')} broke"] if told.broken else []
    return f": {' and '.join(parts)}, and what they asked for may be carried out all the same" if parts else ""


def _median(figure: FaultFigure) -> str:
    """`5.2 s`; `5.1 s to 5.7 s` or `at least 5.5 s` where some were not over and it hangs on them."""
    if figure.median is not None:
        return _seconds(figure.median)
    if figure.median_most is None:
        return f"at least {_seconds(figure.median_least)}"
    return f"{_seconds(figure.median_least)} to {_seconds(figure.median_most)}"


def _between(figure: FaultFigure) -> str:
    if figure.ci is None:
        return ""
    low, high = figure.ci
    return f" [{_seconds(low)} or more]" if high is None else f" [{_seconds(low)}, {_seconds(high)}]"


def _seconds(value: float) -> str:
    """Milliseconds where it is less than a tenth of a second."""
    return format_duration(value) if value < 1 else f"{value:.3g} s"
