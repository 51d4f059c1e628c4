"""How long outages were, run by run, and throughput around the fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

import altair as alt
import polars as pl

from dyno.model.findings import Failover, Findings
from dyno.model.run import RunRecord
from dyno.model.units import counted
from dyno.report.figures.style import HUES, INK, MOST_ROWS, SOFT, WIDTH, Figure, Row, draw, heading, label, named

AROUND_S = 90.0  # of the fault, that are drawn on either side
MOST_RUNS = 30  # a cell; more curves would be a smear
MOST_CELLS = 12  # of which curves are drawn
_S = 1e9
_ENDED = "ended"
_UNENDED = "did not end while it was watched"
_WITHOUT_END = " One without an upper end is drawn to the longest outage that was seen, and goes on."
_MARKS = ("fault", "mended", "whole")
_STEP = 34  # px of a row
_STRUCK = HUES[5]


def outages(findings: Findings) -> Figure | None:
    """Every outage of each cell, with the median and its interval; None where there is none."""
    shown = [each for each in findings.failovers if each.outages or each.unended][:MOST_ROWS]
    if not shown:
        return None
    rows: list[Row] = []
    medians: list[Row] = []
    for each in shown:
        name = label(each.levels)
        rows += [{"cell": name, "seconds": value, "what": _ENDED} for value in each.outages]
        rows += [{"cell": name, "seconds": value, "what": _UNENDED} for value in each.unended]
        if (outage := each.figure("outage")) is not None and outage.median is not None:
            low, high = outage.ci or (None, None)
            is_open = low is not None and high is None
            high = max(row["seconds"] for row in rows if row["cell"] == name) if is_open else high
            medians.append({"cell": name, "median": outage.median, "ci_low": low, "ci_high": high, "open": is_open})
    names = [label(each.levels) for each in shown]
    present = [what for what in (_ENDED, _UNENDED) if any(row["what"] == what for row in rows)]
    y = alt.Y("cell:N", sort=names, title=None, axis=alt.Axis(labelLimit=360))
    x_title = "longest time without a success between the fault and mending (s)"
    colours = alt.Scale(domain=present, range=[{_ENDED: HUES[0], _UNENDED: HUES[5]}[what] for what in present])
    of_median = alt.Chart(named("medians")).encode(y=y)
    chart = alt.layer(
        alt.Chart(named("outages"))
        .mark_point(size=40, strokeWidth=1.2, opacity=0.8)
        .encode(y=y, x=alt.X("seconds:Q", title=x_title), color=alt.Color("what:N", title=None, scale=colours)),
        of_median.mark_rule(strokeWidth=2, color=INK).encode(x=alt.X("ci_low:Q", title=x_title), x2="ci_high:Q"),
        of_median.mark_tick(thickness=3, size=18, color=INK).encode(x=alt.X("median:Q", title=x_title)),
    )
    title = "How long outages were"
    without_end = any(each["open"] for each in medians)
    below = (
        f"Each ring is a run. The tick is the median, the line its {findings.confidence * 100:.4g}% interval by order "
        f"statistics, where there are runs enough for one.{_WITHOUT_END if without_end else ''}"
    )
    spec = chart.properties(width=WIDTH, height=alt.Step(_STEP), title=heading(title, below)).to_dict()
    data = {"outages": rows, "medians": medians}
    return draw(spec, "outages", title, data, rows, ["cell", "what", "seconds"])


def around_faults(
    findings: Findings, runs: Sequence[RunRecord], intervals: Callable[[int], pl.DataFrame]
) -> list[Figure]:
    """Of each cell with a fault the throughput of its runs, interval by interval, with the fault at 0."""
    found = []
    for each in findings.failovers[:MOST_CELLS]:
        struck = [run for run in runs if run.slot.cell == each.cell and run.faulted is not None][:MOST_RUNS]
        rows = [row for run in struck for row in _around(run, intervals(run.run))]
        if rows:
            found.append(_curves(each, len(struck), rows, _marks(struck)))
    return found


def _around(run: RunRecord, intervals: pl.DataFrame) -> Iterator[Row]:
    """Throughput of each interval near the fault, at its middle."""
    if run.faulted is None or not intervals.height:
        return
    at = run.faulted.at_ns
    whole = (
        intervals.filter(pl.col("end_ns") > pl.col("start_ns"))
        .group_by("start_ns", "end_ns", maintain_order=True)
        .agg(pl.col("count").sum(), pl.col("errors").sum())
        .sort("start_ns")
    )
    longest = float(str((whole["end_ns"] - whole["start_ns"]).max() or 0))
    for start, end, count, errors in whole.iter_rows():
        middle = ((start + end) / 2 - at) / _S
        # The last one may be so short that a single operation gives it any rate.
        if abs(middle) <= AROUND_S and end - start >= longest / 2:
            seconds = (end - start) / _S
            yield {
                "run": f"run {run.run}",
                "t": round(middle, 3),
                "throughput": round(count / seconds, 3),
                "failed": round(errors / seconds, 3),
            }


def _marks(struck: Sequence[RunRecord]) -> list[Row]:
    """When mending began in half of the runs, and when all was whole: seconds since the fault."""
    marks: list[Row] = [{"t": 0.0, "what": "fault"}]
    faults = [run.faulted for run in struck if run.faulted is not None]
    for what, times in (
        ("mended", [(each.mended_ns - each.at_ns) / _S for each in faults if each.mended_ns is not None]),
        ("whole", [(each.whole_ns - each.at_ns) / _S for each in faults if each.whole_ns is not None]),
    ):
        if times and (middle := median(times)) <= AROUND_S:
            marks.append({"t": round(middle, 3), "what": what})
    return marks


def _curves(each: Failover, runs: int, rows: list[Row], marks: list[Row]) -> Figure:
    line = alt.Chart(named("around"))
    x = alt.X("t:Q", title="seconds since the fault")
    detail = alt.Detail("run:N")
    opacity = max(0.25, min(0.9, 3 / runs))
    chart = alt.layer(
        line.mark_line(strokeWidth=1.3, color=HUES[0], opacity=opacity, clip=True).encode(
            x=x, y=alt.Y("throughput:Q", title="operations a second"), detail=detail
        ),
        line.mark_line(strokeWidth=1, color=SOFT, strokeDash=[3, 3], opacity=opacity, clip=True).encode(
            x=x, y=alt.Y("failed:Q", title="operations a second"), detail=detail
        ),
        alt.Chart(named("fault"))
        .mark_rule(color=_STRUCK, strokeWidth=2)
        .encode(
            x=alt.X("t:Q"),
            strokeDash=alt.StrokeDash(
                "what:N", legend=None, scale=alt.Scale(domain=list(_MARKS), range=[[1, 0], [7, 4], [2, 3]])
            ),
        ),
    )
    title = f"Throughput around the fault: {label(each.levels)}"
    below = (
        f"{counted(runs, 'run')}, a curve each, interval by interval. The orange line is where {each.title}"
        f"{_told_of(marks)}. Grey and dashed: operations that failed. A backlog that is worked off afterwards is above "
        "the rate that was asked for."
    )
    spec = chart.properties(width=WIDTH, height=220, title=heading(title, below)).to_dict()
    columns = ["run", "t", "throughput", "failed"]
    return draw(spec, f"fault-{each.cell}", title, {"around": rows, "fault": marks}, rows, columns)


def _told_of(marks: Sequence[Row]) -> str:
    there = {row["what"] for row in marks}
    told = [
        words
        for what, words in (("mended", "dashed, mending began"), ("whole", "dotted, all was whole"))
        if what in there
    ]
    return f" ({'; '.join(told)}: medians)" if told else ""
