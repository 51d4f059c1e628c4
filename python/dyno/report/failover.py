"""What a fault cost, in words and tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dyno.model.findings import Failover, Findings, Interval, format_quantity, format_share

HEADING = "What a failover costs"


def of_failovers(findings: Findings) -> list[RenderableType]:
    """For a terminal: a line a cell, then a sentence each."""
    if not findings.failovers:
        return []
    table = Table(box=None, padding=(0, 2, 0, 0))
    names = list(dict.fromkeys(name for each in findings.failovers for name in each.levels))
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for name in ("runs", "median outage, s", "longest, s", "not ended", "first success, s", "rows lost", "of"):
        table.add_column(Text(name), justify="right")
    for each in findings.failovers:
        fields = (
            *(each.levels.get(name, "-") for name in names),
            str(each.runs),
            median(each),
            longest(each),
            str(len(each.unended)),
            first_success(each),
            lost(each),
            of(each),
        )
        table.add_row(*(Text(field) for field in fields))
    sentences = [Text(f"- {each.sentence}{_where(each, findings)}") for each in findings.failovers]
    return [Text(), Text(HEADING, style="bold"), table, *sentences]


def median(each: Failover) -> str:
    """With its interval; `> 25` where more than half did not end."""
    if each.median is None and each.unended:
        return f"> {format_quantity(each.unended[0])}"
    return _estimate(each.median, each.median_ci)


def first_success(each: Failover) -> str:
    """Likewise, since the fault."""
    return _estimate(each.first_success, each.first_success_ci)


def longest(each: Failover) -> str:
    """Of those that ended."""
    return format_quantity(each.outages[-1]) if each.outages else "-"


def lost(each: Failover) -> str:
    """Rows, and in how many runs; `0 (< 10%)` with the bound where there were none."""
    if not each.audited:
        return "-"
    if each.loss_bound is not None:
        return f"0 (< {format_share(each.loss_bound)} of faults)"
    return f"{each.lost:,} (in {each.with_loss} of {each.audited} runs)"


def of(each: Failover) -> str:
    """All that were acknowledged."""
    return f"{each.acknowledged:,}" if each.audited else "-"


def _estimate(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    between = "" if interval is None else f" [{format_quantity(interval[0])}, {format_quantity(interval[1])}]"
    return f"{format_quantity(value)}{between}"


def _where(each: Failover, findings: Findings) -> str:
    others = {name: level for name, level in each.levels.items() if name != "fault"}
    if len(findings.failovers) < 2 or not others:
        return ""
    return f" ({' '.join(f'{name}={level}' for name, level in others.items())})"
