"""What a fault cost, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from dyno.model.findings import Failover, FaultFigure, Findings, format_quantity, format_share
from dyno.report import tables

HEADING = "What a failover costs"
MEDIANS = "What each fault costs: medians, with intervals by order statistics"
BESIDE = 6
"""Responses beside each other on the page: with more the last column was cut off on a screen of usual width."""
_ODD: Sequence[tuple[str, str]] = (
    ("duplicated", "twice"),
    ("altered", "altered"),
    ("phantom", "never acknowledged"),
    ("foreign", "foreign"),
)
_ON_TERMINAL = (
    "first_success",
    "former_throughput",
    "rejoin_outage",
    "requests_failed",
    "requests_late",
    "stale_reads",
)
"""What there is room for beside the table of outages; the page has all of them."""


def of_failovers(findings: Findings) -> Iterator[RenderableType]:
    """For a terminal: a line a cell, a sentence each, and the medians of all responses."""
    if not findings.failovers:
        return
    names = factors(findings)
    outages = tables.table()
    tables.columns(outages, *names)
    tables.columns(
        outages, "runs", "median outage, s", "longest, s", "not ended", "rejoin, s", "rows lost", "of", justify="right"
    )
    for each in findings.failovers:
        tables.row(
            outages,
            *levels(each, names),
            str(each.runs),
            median(each),
            longest(each),
            str(len(each.unended)),
            estimate(each.figure("rejoin")),
            lost(each),
            of(each),
        )
    medians = tables.table()
    tables.columns(medians, *names)
    shown = [each for each in responses(findings) if each.response in _ON_TERMINAL]
    tables.columns(medians, *(f"{each.response}{unit(each)}" for each in shown), justify="right")
    for each in findings.failovers:
        tables.row(medians, *levels(each, names), *(estimate(each.figure(one.response)) for one in shown))
    yield from (Text(), tables.heading(HEADING), outages)
    yield from (Text(tables.plain(f"- {each.sentence}{_where(each, findings)}")) for each in findings.failovers)
    yield from (Text(), tables.heading(MEDIANS), medians)


def factors(findings: Findings) -> list[str]:
    """That tell the cells apart."""
    return list(dict.fromkeys(name for each in findings.failovers for name in each.levels))


def levels(each: Failover, names: Sequence[str]) -> list[str]:
    """A cell's own, in that order."""
    return [each.levels.get(name, "-") for name in names]


def responses(findings: Findings) -> list[FaultFigure]:
    """One of each response that some cell tells of, in their order; for its title and unit."""
    most = max((each.figures for each in findings.failovers), key=len, default=())
    found = {figure.response: figure for figure in most}
    for each in findings.failovers:
        found |= {figure.response: figure for figure in each.figures if figure.response not in found}
    return list(found.values())


def odd_rows(findings: Findings) -> list[tuple[str, str]]:
    """What some cell has rows of that are there and should not be: by the names of their counts, with headings."""
    return [(name, head) for name, head in _ODD if any(getattr(each, name) for each in findings.failovers)]


def unit(each: FaultFigure) -> str:
    """A unit of 1 is no unit."""
    return "" if each.unit == "1" else f", {each.unit}"


def median(each: Failover) -> str:
    """With its interval; how finely it is known, where that is coarse."""
    outage = estimate(each.figure("outage"))
    if not each.coarse or each.resolution_s is None:
        return outage
    return f"{outage}, seen to within {format_quantity(each.resolution_s)}"


def estimate(figure: FaultFigure | None) -> str:
    """A median with its interval; its bounds where it hangs on what was not over, and of how many that was so."""
    if figure is None:
        return "-"
    low, high = format_quantity(figure.median_least), figure.median_most
    if figure.median is not None:
        middle = format_quantity(figure.median)
    else:
        middle = f">= {low}" if high is None else f"{low} to {format_quantity(high)}"
    some = f"; {figure.beyond} not over, of {figure.n}" if figure.beyond else ""
    return f"{middle}{_between(figure)}{some}"


def longest(each: Failover) -> str:
    """Of those that ended."""
    return format_quantity(each.outages[-1]) if each.outages else "-"


def lost(each: Failover) -> str:
    """Rows, and in how many runs; `0 (< 10%)` with the bound where there were none."""
    if not each.audited:
        return "-"
    unaudited = f"; {each.runs - each.audited} of {each.runs} not audited" if each.audited < each.runs else ""
    if each.loss_bound is not None:
        return f"0 (at most {format_share(each.loss_bound)} of faults{unaudited})"
    return f"{each.lost:,} (in {each.with_loss} of {each.audited} runs{unaudited})"


def of(each: Failover) -> str:
    """All that were acknowledged."""
    return f"{each.acknowledged:,}" if each.audited else "-"


def _between(figure: FaultFigure) -> str:
    if figure.ci is None:
        return ""
    low, high = figure.ci
    return f" [>= {format_quantity(low)}]" if high is None else f" [{format_quantity(low)}, {format_quantity(high)}]"


def _where(each: Failover, findings: Findings) -> str:
    others = {name: level for name, level in each.levels.items() if name != "fault"}
    if len(findings.failovers) < 2 or not others:
        return ""
    return f" ({' '.join(f'{name}={level}' for name, level in others.items())})"
