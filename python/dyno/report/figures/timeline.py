"""A run's resource use and its throughput on one time line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import polars as pl

from dyno.model.findings import format_estimate, format_quantity
from dyno.model.run import MeasuredPart, RunRecord
from dyno.model.study import Cell
from dyno.report.figures.style import HUES, INK, SOFT, Figure, Row, Spec, draw, heading

WIDTH, HEIGHT = 680, 64
PNG_SCALE = 1.5  # these are tall, and many
MOST_POINTS = 150  # of a curve; beyond it, neighbours are drawn as their mean
MOST_SUBJECTS = 4  # disks or processes in a panel: those with the most to show
LEAST_SPAN = 0.05  # of the longest curve: a panel whose own are shorter looks empty
SECOND = 1e9
CHANGED = HUES[5]  # what the classification of a run's course says
GAP = HUES[6]  # a time of which no sample tells by itself
MOST_GAPS = 200  # that are drawn; beyond them only the longest
FAULT_LINES = {"struck": [1, 0], "mended": [6, 4], "whole": [2, 3]}  # each with its dashes
LATE = 0.5  # of the time between two samples: one that is later than that is marked
DRIVERS = ("driver", "populate")  # it too, before anything is measured: neither is the system's

CPU = {
    "usr": ("cpu.usr", "cpu.nice"),
    "sys": ("cpu.sys", "cpu.irq", "cpu.soft"),
    "iowait": ("cpu.iowait",),
    "steal": ("cpu.steal",),
}
RESTING = ("cpu.idle", "cpu.iowait", "cpu.steal")
WHOM = ("system, user", "system, kernel", "driver", "rest of the machine")
SWITCHES = ("machine", "system", "driver")
PRESSURE = {"cpu": ("psi.cpu.some",), "memory": ("psi.memory.some",), "io": ("psi.io.some",)}
# The columns read here, for a run that left no table at all.
SAMPLES = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "source": pl.String,
    "subject": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
}
INTERVALS = {"start_ns": pl.Int64, "end_ns": pl.Int64, "count": pl.Int64}


@dataclass(frozen=True)
class Panel:
    """One small multiple: `points` has t (s), series and value."""

    title: str
    unit: str
    points: pl.DataFrame
    stacked: bool = False
    top: float | None = None  # the axis ends here; None: where the values do
    sampled: bool = True  # made of samples, which may be late or missing
    sliver: bool = False  # the last point is a rate over so short a time that it would set the axis

    def drawn(self) -> Panel:
        """What the drawing has of it; the table has all."""
        return replace(self, points=self.points.filter(pl.col("t") < pl.col("t").max())) if self.sliver else self


def timeline(cell: Cell, run: RunRecord, samples: pl.DataFrame, intervals: pl.DataFrame) -> Figure | None:
    """Panels over seconds since the run's start; None where nothing was recorded."""
    samples = samples if samples.height else pl.DataFrame(schema=SAMPLES)
    intervals = intervals if intervals.height else pl.DataFrame(schema=INTERVALS)
    found = [panel for panel in _panels(run, samples, intervals) if panel.points.height]
    kept = _long_enough([panel for panel in found if _is_curve(panel)])
    if not kept:
        return None
    width = _bin_width(kept)
    rows = [
        {"panel": panel.title, "unit": panel.unit, **row} for panel in kept for row in _points(_thinned(panel, width))
    ]
    panels = [_thinned(panel.drawn(), width) for panel in kept]
    marks, before, changes = _measured(run), _left_out(run), _changes(run)
    gaps, of_gaps = _gaps(samples, run.started_ns)
    end = max(float(str(panel.points["t"].max())) for panel in kept)
    end = max([end, *(mark["to"] for mark in marks)])
    charts = [
        _chart(
            panel,
            f"panel {place}",
            bool(marks),
            bool(before or changes),
            end,
            gaps=bool(gaps) and panel.sampled,
            faults=run.faulted is not None,
            last=panel is panels[-1],
        )
        for place, panel in enumerate(panels)
    ]
    data = {f"panel {place}": _points(panel) for place, panel in enumerate(panels)}
    data["measured"] = marks
    data["left out"] = before
    data["edges"] = [{"at": at} for mark in marks for at in mark.values()]
    data["changes"] = changes
    data["gaps"] = gaps
    data["faults"] = _faults(run)
    title = f"Run {run.run}, {cell.name}: {run.outcome.value}"
    note = "The measured part is marked." if marks else "No part of it was measured."
    note = " ".join([note, *_in_words(run.measured)]) if run.measured else note
    note = f"{note} {_of_fault(run)}".strip()
    binned = f"Each point is the mean of {width:.3g} s." if width else ""
    cut = "The last interval is far shorter than the others and not drawn." if any(map(_is_of_intervals, kept)) else ""
    if any(panel.sliver and panel.sampled for panel in kept):
        cut = f"{cut} The last sample is of a far shorter time than the others and not drawn.".strip()
    shown = [panel.title for panel in kept]
    lost = [panel.title for panel in found if panel.title not in shown]
    unseen = f"Too few samples for a curve: {', '.join(lost)}." if lost else ""
    below = f"Over seconds since the run's start. {note} {binned} {cut} {unseen} {of_gaps}"
    spec = {
        "vconcat": charts,
        "spacing": 12,
        "resolve": {"scale": {"color": "independent"}},
        "title": heading(title, below, run.cause or "").to_dict(),
    }
    return draw(spec, f"run-{run.run:04}", title, data, rows, ["panel", "unit", "t", "series", "value"], PNG_SCALE)


def _is_of_intervals(panel: Panel) -> bool:
    """Whether its last point is one of the driver's intervals that is not drawn."""
    return panel.sliver and not panel.sampled


def _is_curve(panel: Panel) -> bool:
    """Whether there is a line to be drawn: it takes two points of one series, and one point would be an empty panel."""
    counts = panel.drawn().points.group_by("series", maintain_order=True).agg(pl.col("t").n_unique())["t"]
    return bool((counts > 1).any())


def _long_enough(panels: Sequence[Panel]) -> list[Panel]:
    """Without those of a run that was over at the first or second sample."""
    longest = max(map(_span, panels), default=0)
    return [panel for panel in panels if _span(panel) >= LEAST_SPAN * longest]


def _span(panel: Panel) -> float:
    """Seconds from its first point to its last."""
    times = panel.drawn().points["t"]
    return float(str(times.max())) - float(str(times.min()))


def _panels(run: RunRecord, samples: pl.DataFrame, intervals: pl.DataFrame) -> list[Panel]:
    start = run.started_ns
    several_hosts = samples["host"].n_unique() > 1 if samples.height else False
    subject = pl.concat_str("host", "subject", separator=" ") if several_hosts else pl.col("subject")
    timed = samples.with_columns(
        ((pl.col("time_ns") - start) / SECOND).round(3).alias("t"),
        subject.alias("subject"),
        pl.col("host").alias("host") if several_hosts else pl.lit("").alias("host"),
    )
    ends = not several_hosts and _ends_at_once(timed)
    disks = _of_subjects(timed, {"read": "disk.rkB_s", "written": "disk.wkB_s"}, run.disk)
    sampled = [
        Panel("CPU", "%", _machine(timed, CPU), stacked=True, top=None if several_hosts else 100),
        *([] if several_hosts else [Panel("CPU by whom", "% of one", _by_whom(timed), stacked=True)]),
        Panel("disk busy", "%", _of_subjects(timed, {"": "disk.util"}, run.disk), top=100),
        Panel("disk traffic", "KiB/s", disks),
        Panel("context switches", "1/s", _switches(timed, several_hosts)),
        Panel("waiting for (pressure)", "%", _machine(timed, PRESSURE)),
        *([Panel("CPU of processes", "% of one", _processes(timed))] if several_hosts or _are_many(timed) else []),
    ]
    throughput = _throughput(intervals, start)
    return [
        Panel("throughput", "ops/s", throughput, sampled=False, sliver=_ends_in_sliver(intervals)),
        *(replace(panel, sliver=ends) for panel in sampled),
    ]


def _ends_at_once(timed: pl.DataFrame) -> bool:
    """Whether the last sample is of less than half the time of the others, as one taken when the sampler is stopped."""
    times = sorted(timed["t"].unique().to_list())
    between = [b - a for a, b in pairwise(times)]
    return len(between) > 1 and between[-1] < median(between[:-1]) / 2


def _are_many(timed: pl.DataFrame) -> bool:
    """Whether the system has several processes, which "by whom" shows as one."""
    return timed.filter(pl.col("metric") == "proc.usr", ~pl.col("subject").is_in(DRIVERS))["subject"].n_unique() > 1


def _throughput(intervals: pl.DataFrame, start: int) -> pl.DataFrame:
    """All operations of an interval together, drawn at its middle."""
    whole = intervals.group_by("start_ns", "end_ns", maintain_order=True).agg(pl.col("count").sum()).sort("start_ns")
    seconds = (pl.col("end_ns") - pl.col("start_ns")) / SECOND
    return whole.filter(pl.col("end_ns") > pl.col("start_ns")).select(
        (((pl.col("start_ns") + pl.col("end_ns")) / 2 - start) / SECOND).round(3).alias("t"),
        pl.lit("all operations").alias("series"),
        (pl.col("count") / seconds).alias("value"),
    )


def _ends_in_sliver(intervals: pl.DataFrame) -> bool:
    """Whether the last interval is less than half of those before it: a few operations give it any rate."""
    whole = intervals.filter(pl.col("end_ns") > pl.col("start_ns")).unique(["start_ns", "end_ns"]).sort("start_ns")
    lengths = (whole["end_ns"] - whole["start_ns"]).to_list()
    return len(lengths) > 1 and lengths[-1] < median(lengths[:-1]) / 2


def _machine(timed: pl.DataFrame, groups: Mapping[str, tuple[str, ...]]) -> pl.DataFrame:
    """The machine's metrics, those of a group added up."""
    names = {metric: group for group, metrics in groups.items() for metric in metrics}
    series = pl.col("metric").replace_strict(names, default=None, return_dtype=pl.String)
    return _summed(timed.filter(pl.col("metric").is_in(list(names))), _joined(pl.col("host"), series))


def _of_subjects(timed: pl.DataFrame, metrics: dict[str, str], of_data: str | None) -> pl.DataFrame:
    """Disks' metrics: a curve for each of the busiest disks and each metric. That of the data is said to be it."""
    names = {metric: name for name, metric in metrics.items()}
    found = _busiest(timed.filter(pl.col("metric").is_in(list(names))))
    if of_data is not None:
        found = found.with_columns(pl.col("subject").replace({of_data: f"{of_data} (data)"}))
    series = pl.col("metric").replace_strict(names, default=None, return_dtype=pl.String)
    return _summed(found, _joined(pl.col("subject"), series))


def _by_whom(timed: pl.DataFrame) -> pl.DataFrame:
    """CPU time of the system by mode, of the driver, and what is left of the machine's; at each sample all of them.

    What is left is known where a sample says of how many clock ticks its shares are. Processes are told of a moment
    after the machine is, so that a little less than nothing may be left.
    """
    of_driver = pl.col("subject").is_in(DRIVERS)
    modes = timed.filter(pl.col("metric").is_in(["proc.usr", "proc.sys"])).with_columns(
        pl.when(of_driver)
        .then(pl.lit("driver"))
        .when(pl.col("metric") == "proc.usr")
        .then(pl.lit("system, user"))
        .otherwise(pl.lit("system, kernel"))
        .alias("whom")
    )
    watched = _summed(modes, pl.col("whom"))
    if not watched.height:
        return watched
    of_machine = timed.filter(pl.col("subject") == "machine")
    ticks = of_machine.filter(pl.col("metric") == "stat.ticks").select("t", (pl.col("value") / 100).alias("cpus"))
    busy = (
        of_machine.filter(pl.col("metric").str.starts_with("cpu."), ~pl.col("metric").is_in(RESTING))
        .group_by("t", maintain_order=True)
        .agg(pl.col("value").sum())
        .join(ticks, on="t", how="inner", maintain_order="left")
        .join(
            watched.group_by("t", maintain_order=True).agg(pl.col("value").sum().alias("watched")), on="t", how="left"
        )
        .select(
            "t",
            pl.lit("rest of the machine").alias("series"),
            (pl.col("value") * pl.col("cpus") - pl.col("watched").fill_null(0.0)).clip(lower_bound=0.0).alias("value"),
        )
    )
    # A process that is met between two samples is told of from the second one on; before that its time is nobody's.
    since = watched.group_by("series", maintain_order=True).agg(pl.col("t").min())["t"].max()
    known = pl.concat([watched, busy]).filter(pl.col("t") >= since)
    # Areas that stand upon each other need a point of each at the same times.
    every = known.select("t").unique().join(known.select("series").unique(), how="cross")
    filled = every.join(known, on=["t", "series"], how="left").with_columns(pl.col("value").fill_null(0.0))
    return filled.sort("t", "series")


def _switches(timed: pl.DataFrame, several_hosts: bool) -> pl.DataFrame:
    """Of the machine, and of the system and the driver where there is one machine to tell of."""
    whose = (
        pl.when(pl.col("metric") == "vm.cs")
        .then(pl.concat_str("host", pl.lit(" machine")).str.strip_chars())
        .when(pl.col("subject").is_in(DRIVERS))
        .then(pl.lit("driver"))
        .otherwise(pl.lit("system"))
    )
    metrics = ["vm.cs"] if several_hosts else ["vm.cs", "proc.cswch", "proc.nvcswch"]
    return _summed(timed.filter(pl.col("metric").is_in(metrics)), whose)


def _gaps(samples: pl.DataFrame, start: int) -> tuple[list[Row], str]:
    """The times of which no sample tells by itself, and a sentence on them: missed ones, and ones that came late."""
    told = samples.filter(pl.col("metric").is_in(["watch.missed", "watch.lag"]))
    spans: list[tuple[float, float]] = []
    missed, late, latest = 0, 0, 0.0
    for (_,), of_host in told.group_by("host", maintain_order=True):
        table = of_host.pivot("metric", index="time_ns", values="value", aggregate_function="max").sort("time_ns")
        times = [(at - start) / SECOND for at in table["time_ns"].to_list()]
        between = median(b - a for a, b in pairwise(times)) if len(times) > 1 else math.inf
        zeros = [0.0] * len(times)
        skipped = table["watch.missed"].to_list() if "watch.missed" in table.columns else zeros
        lags = table["watch.lag"].to_list() if "watch.lag" in table.columns else zeros
        for before, at, count, lag_ms in zip([times[0], *times], times, skipped, lags, strict=False):
            lag = (lag_ms or 0.0) / 1000
            if count:
                missed += int(count)
                spans.append((before, at))
            elif lag > LATE * between:
                late, latest = late + 1, max(latest, lag)
                spans.append((at - lag, at))
    merged = _merged(spans)
    if not merged:
        return [], ""
    words = [f"{missed:,} samples were not taken" if missed != 1 else "1 sample was not taken"] if missed else []
    if late:
        words.append(f"{late:,} came late, by up to {latest:.2g} s" if late > 1 else f"1 came late, by {latest:.2g} s")
    drawn = sorted(sorted(merged, key=lambda span: span[0] - span[1])[:MOST_GAPS])
    sentence = f"Shaded grey: {' and '.join(words)}; the next point is the mean over all of that time."
    return [{"from": a, "to": b} for a, b in drawn], sentence


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that touch as one."""
    merged: list[tuple[float, float]] = []
    for a, b in sorted(spans):
        if merged and a <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
        else:
            merged.append((a, b))
    return merged


def _processes(timed: pl.DataFrame) -> pl.DataFrame:
    return _summed(_busiest(timed.filter(pl.col("metric").is_in(["proc.usr", "proc.sys"]))), pl.col("subject"))


def _joined(first: pl.Expr, second: pl.Expr) -> pl.Expr:
    return pl.concat_str(first, second, separator=" ").str.strip_chars()


def _busiest(found: pl.DataFrame) -> pl.DataFrame:
    """Without the subjects that do nothing, and of the others those that do the most."""
    totals = found.group_by("subject", maintain_order=True).agg(pl.col("value").sum()).filter(pl.col("value") > 0)
    kept = totals.sort(["value", "subject"], descending=[True, False]).head(MOST_SUBJECTS)["subject"]
    return found.filter(pl.col("subject").is_in(kept.to_list()))


def _summed(found: pl.DataFrame, series: pl.Expr) -> pl.DataFrame:
    return (
        found.filter(pl.col("value").is_finite())
        .group_by("t", series.alias("series"), maintain_order=True)
        .agg(pl.col("value").sum())
        .sort("t", "series")
    )


def _bin_width(panels: Sequence[Panel]) -> float | None:
    """Seconds that a point stands for, where the curves have more points than can be drawn."""
    most = max(panel.points["t"].n_unique() for panel in panels)
    if most <= MOST_POINTS:
        return None
    times = pl.concat([panel.points["t"] for panel in panels])
    return math.ceil((float(str(times.max())) - float(str(times.min()))) / MOST_POINTS * 10) / 10


def _thinned(panel: Panel, width: float | None) -> Panel:
    if width is None:
        return panel
    middle = ((pl.col("t") / width).floor() + 0.5) * width
    points = (
        panel.points.group_by(middle.round(3).alias("t"), "series", maintain_order=True)
        .agg(pl.col("value").mean())
        .sort("t", "series")
    )
    return replace(panel, points=points)


def _measured(run: RunRecord) -> list[Row]:
    if run.measured_from_ns is None or run.measured_to_ns is None:
        return []
    edges = ((edge - run.started_ns) / SECOND for edge in (run.measured_from_ns, run.measured_to_ns))
    return [dict(zip(("from", "to"), edges, strict=True))]


def _left_out(run: RunRecord) -> list[Row]:
    """The warm-up that was found, which ends where the measured part begins."""
    if run.measured is None or run.measured.from_s == 0 or run.measured_from_ns is None:
        return []
    end = (run.measured_from_ns - run.started_ns) / SECOND
    return [{"from": end - run.measured.from_s, "to": end}]


def _changes(run: RunRecord) -> list[Row]:
    if run.measured is None or run.measured_from_ns is None:
        return []
    origin = (run.measured_from_ns - run.started_ns) / SECOND - run.measured.from_s
    return [{"at": origin + change.at_s} for change in run.measured.change_points]


def _faults(run: RunRecord) -> list[Row]:
    """When it was struck and mended, and when the cluster was whole again."""
    if run.faulted is None:
        return []
    times = (run.faulted.at_ns, run.faulted.mended_ns, run.faulted.whole_ns)
    return [
        {"at": (at - run.started_ns) / SECOND, "what": what}
        for what, at in zip(FAULT_LINES, times, strict=True)
        if at is not None
    ]


def _of_fault(run: RunRecord) -> str:
    """Which lines are its."""
    if run.faulted is None:
        return ""
    nodes = ", ".join(run.faulted.nodes)
    return f"{run.faulted.kind} struck {nodes} at the orange line; dashed, it was mended; dotted, all was whole again."


def _in_words(part: MeasuredPart) -> Iterator[str]:
    """What the run went through, what of it is left out, and how sure its own mean is."""
    changes = len(part.change_points)
    marked = f", throughput changed at the {changes} orange lines" if changes > 1 else ""
    marked = ", throughput changed at the orange line" if changes == 1 else marked
    yield f"Its course: {part.course or part.reason}{marked}."
    if part.from_s > 0:
        yield f"The first {part.from_s:.3g} s, shaded orange, are left out as warm-up."
    if part.within:
        mean = format_estimate(part.within.mean, (part.within.lo, part.within.hi))
        yield (
            f"Within this run alone {mean} ops/s at {part.within.confidence * 100:.4g}% by batch means, effective "
            f"sample size {format_quantity(part.within.effective)} of {part.within.intervals} intervals."
        )


def _names(panel: Panel) -> list[str]:
    """The curves in the order in which they are drawn and listed."""
    present = panel.points["series"].unique().to_list()
    for order in (tuple(CPU), WHOM, SWITCHES):
        if set(present) <= set(order):
            return [name for name in order if name in present]
    return sorted(present)


def _points(panel: Panel) -> list[Row]:
    order = {name: place for place, name in enumerate(_names(panel))}
    return [
        {"t": t, "series": series, "value": round(value, 3), "order": order[series]}
        for t, series, value in panel.points.select("t", "series", "value").iter_rows()
    ]


def _chart(
    panel: Panel, data: str, measured: bool, of_course: bool, end: float, *, gaps: bool, faults: bool, last: bool
) -> Spec:
    """A panel as Vega-Lite itself: the plotting library takes as long to copy a dozen of these as to draw them."""
    names = _names(panel)
    x = {
        "type": "quantitative",
        "scale": {"domain": [0, end], "nice": False},
        "axis": {"title": "seconds" if last else None, "labels": last, "ticks": last, "grid": False, "tickCount": 10},
    }
    curves = {
        "data": {"name": data},
        "mark": {"type": "area", "opacity": 0.8}
        if panel.stacked
        else {"type": "line", "strokeWidth": 1.5, "clip": True},
        "encoding": {
            "x": {"field": "t", **x},
            "y": _y(panel),
            "color": _colour(names, panel.stacked),
            "order": {"field": "order", "type": "quantitative"},
        },
    }
    shade = {
        "data": {"name": "measured"},
        "mark": {"type": "rect", "color": SOFT, "opacity": 0.08},
        "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}},
    }
    left_out = {
        "data": {"name": "left out"},
        "mark": {"type": "rect", "color": CHANGED, "opacity": 0.25},
        "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}},
    }
    changes = {
        "data": {"name": "changes"},
        "mark": {"type": "rule", "color": CHANGED, "strokeWidth": 1.5},
        "encoding": {"x": {"field": "at", **x}},
    }
    gap = {
        "data": {"name": "gaps"},
        # With a line around it: of a long run a gap may be narrower than a pixel.
        "mark": {"type": "rect", "color": GAP, "opacity": 0.4, "stroke": GAP, "strokeWidth": 1, "clip": True},
        "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}},
    }
    fault = {
        "data": {"name": "faults"},
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "at", **x},
            "color": {"value": CHANGED},
            "strokeDash": {
                "field": "what",
                "type": "nominal",
                "scale": {"domain": [*FAULT_LINES], "range": [*FAULT_LINES.values()]},
                "legend": None,
            },
        },
    }
    edges = {
        "data": {"name": "edges"},
        "mark": {"type": "rule", "color": SOFT, "strokeDash": [3, 3]},
        "encoding": {"x": {"field": "at", **x}},
    }
    only = f": {names[0]}" if len(names) == 1 and names[0] != panel.title else ""
    title = {
        "text": panel.title + only,
        "fontSize": 12,
        "fontWeight": 600,
        "color": INK,
        "offset": 4,
        "anchor": "start",
    }
    layers = [shade, curves, edges] if measured else [curves]
    if of_course:
        layers = [left_out, *layers, changes]
    if gaps:
        layers = [gap, *layers]
    if faults:
        layers = [*layers, fault]
    return {"layer": layers, "width": WIDTH, "height": HEIGHT, "title": title}


def _y(panel: Panel) -> Spec:
    return {
        "field": "value",
        "type": "quantitative",
        "title": panel.unit,
        "scale": {"domainMin": 0, "nice": True} if panel.top is None else {"domain": [0, panel.top]},
        "stack": "zero" if panel.stacked else None,
        "axis": {"tickCount": 3, "domain": False, "ticks": False, "format": ",.12~g", "minExtent": 48},
    }


def _colour(names: list[str], stacked: bool) -> Spec:
    legend = {
        "orient": "right",
        "symbolType": "square" if stacked else "stroke",
        "symbolStrokeWidth": 3,
        "rowPadding": 1,
        "offset": 10,
    }
    return {
        "field": "series",
        "type": "nominal",
        "sort": names,
        "title": None,
        "scale": {"domain": names, "range": [HUES[place % len(HUES)] for place in range(len(names))]},
        "legend": legend if len(names) > 1 else None,
    }
