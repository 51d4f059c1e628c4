"""From the samples and intervals of runs to what their measured parts used.

A sample tells of the time since the one before. Only samples that are wholly of the measured part count, and the
operations of just that time: those of an interval that a sample's end cuts are taken to be spread evenly over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from dyno.model.run import RunRecord
from dyno.model.usage import Usage, resources

_KIB: Final = 1024.0
_TICKS_S: Final = 100.0  # a second of CPU time, in what /proc/stat counts in (USER_HZ)
_DRIVER: Final = "driver"

# metric -> resource and what a unit of the metric is in the base unit of the resource, for each second
_OF_PROCESSES: Final = {
    "proc.cpu": ("cpu", 0.01),
    "proc.usr": ("usr", 0.01),
    "proc.sys": ("sys", 0.01),
    "proc.wait": ("wait", 0.01),
    "proc.cswch": ("switches", 1.0),
    "proc.nvcswch": ("switches", 1.0),
    "proc.minflt": ("faults", 1.0),
    "proc.majflt": ("faults", 1.0),
    "proc.read": ("read", 1.0),
    "proc.write": ("written", 1.0),
}
_OF_DISK: Final = {
    "disk.rkB_s": ("disk.read", _KIB),
    "disk.wkB_s": ("disk.written", _KIB),
    "disk.r_s": ("disk.reads", 1.0),
    "disk.w_s": ("disk.writes", 1.0),
    "disk.f_s": ("disk.flushes", 1.0),
    "disk.util": ("disk.busy", 0.01),
    "disk.aqu_sz": ("disk.waited", 1.0),
}
_OF_NETWORK: Final = {"net.txkB_s": ("net.sent", _KIB), "net.txpck_s": ("net.packets", 1.0)}
_OF_MACHINE: Final = {"vm.cs": ("machine.switches", 1.0)}
# Events of perf. Switches and faults are those of the processes above, and CPU time is that of the scheduler.
_OF_PERF: Final = {
    "cycles": "cycles",
    "instructions": "instructions",
    "branches": "branches",
    "branch-misses": "branch_misses",
    "cache-references": "cache_references",
    "cache-misses": "cache_misses",
    "dTLB-load-misses": "dtlb_misses",
    "iTLB-load-misses": "itlb_misses",
    "cpu-migrations": "migrations",
}
_RESTING: Final = ("cpu.idle", "cpu.iowait", "cpu.steal")


def usages(runs: Sequence[RunRecord], samples: pl.LazyFrame, intervals: pl.LazyFrame) -> dict[int, Usage]:
    """By run, of those that were observed and of which operations were counted.

    `samples` and `intervals` are those of a results folder, with the run's number in `run`.
    """
    windows = _windows(runs)
    if not windows.height or not {"run", "metric"} <= set(samples.collect_schema().names()):
        return {}
    spans = _spans(samples, windows)
    if not spans.height:
        return {}
    counted = _operations(intervals, spans)
    seen = (
        samples.join(spans.lazy(), on=["run", "source", "time_ns"], how="inner")
        .with_columns((pl.col("value") * pl.col("seconds")).alias("amount"))
        .group_by("run", "source", "subject", "metric")
        .agg(pl.col("amount").sum(), pl.col("seconds").sum().alias("told_s"))
        .collect()
    )
    ticks = _cpu_seconds(samples, spans)
    disks = {run.run: run.disk for run in runs}
    found = {}
    for (number,), table in seen.group_by("run"):
        run = int(str(number))
        if run in counted:
            found[run] = _usage(table, spans.filter(pl.col("run") == run), counted[run], ticks.get(run), disks[run])
    return found


def _windows(runs: Sequence[RunRecord]) -> pl.DataFrame:
    """The measured parts."""
    rows = [
        {"run": run.run, "from_ns": run.measured_from_ns, "to_ns": run.measured_to_ns}
        for run in runs
        if run.measured_from_ns is not None and run.measured_to_ns is not None
    ]
    return pl.DataFrame(rows, schema={"run": pl.Int32, "from_ns": pl.Int64, "to_ns": pl.Int64})


def _spans(samples: pl.LazyFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The times of the samples that count, each source's own, with what they tell of: `since_ns` and `seconds`."""
    return (
        samples.select("run", "source", "time_ns")
        .unique()
        .sort("run", "source", "time_ns")
        .with_columns(pl.col("time_ns").shift(1).over("run", "source").alias("since_ns"))
        .join(windows.lazy(), on="run", how="inner")
        .filter((pl.col("since_ns") >= pl.col("from_ns")) & (pl.col("time_ns") <= pl.col("to_ns")))
        .with_columns(((pl.col("time_ns") - pl.col("since_ns")) / 1e9).alias("seconds"))
        .select("run", "source", "time_ns", "since_ns", "seconds")
        .collect()
    )


def _operations(intervals: pl.LazyFrame, spans: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Run -> source -> operations done in the time that its samples tell of."""
    if not {"run", "count"} <= set(intervals.collect_schema().names()):
        return {}
    bounds = spans.group_by("run", "source").agg(pl.col("since_ns").min(), pl.col("time_ns").max().alias("until_ns"))
    shared = pl.min_horizontal("end_ns", "until_ns") - pl.max_horizontal("start_ns", "since_ns")
    table = (
        intervals.select("run", "start_ns", "end_ns", "count")
        .join(bounds.lazy(), on="run", how="inner")
        .with_columns((shared / (pl.col("end_ns") - pl.col("start_ns"))).alias("share"))
        .filter(pl.col("share") > 0)
        .group_by("run", "source")
        .agg((pl.col("count") * pl.col("share")).sum().alias("operations"))
        .filter(pl.col("operations") > 0)
        .collect()
    )
    found: dict[int, dict[str, float]] = {}
    for run, source, operations in table.select("run", "source", "operations").iter_rows():
        found.setdefault(run, {})[source] = operations
    return found


def _cpu_seconds(samples: pl.LazyFrame, spans: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Run -> `all`, and each state of the machine's CPUs -> seconds, summed over the CPUs.

    The shares of a sample are of the clock ticks that passed in it, which are few where samples are close together.
    """
    machine = (pl.col("source") == "machine") & (pl.col("subject") == "machine")
    wanted = samples.filter(machine & (pl.col("metric").str.starts_with("cpu.") | (pl.col("metric") == "stat.ticks")))
    seen = wanted.join(spans.lazy(), on=["run", "source", "time_ns"], how="inner")
    ticks = seen.filter(pl.col("metric") == "stat.ticks").select(
        "run", "time_ns", (pl.col("value") * pl.col("seconds") / _TICKS_S).alias("cpu_s")
    )
    table = (
        seen.filter(pl.col("metric") != "stat.ticks")
        .join(ticks, on=["run", "time_ns"], how="inner")
        .group_by("run", "metric")
        .agg((pl.col("value") * pl.col("cpu_s") / 100).sum().alias("state_s"), pl.col("cpu_s").sum())
        .collect()
    )
    found: dict[int, dict[str, float]] = {}
    for run, metric, state_s, cpu_s in table.select("run", "metric", "state_s", "cpu_s").iter_rows():
        found.setdefault(run, {"all": cpu_s})[metric] = state_s
    return found


def _usage(
    table: pl.DataFrame,
    spans: pl.DataFrame,
    operations: Mapping[str, float],
    cpu: Mapping[str, float] | None,
    disk: str | None,
) -> Usage:
    """`table` has what one run used, by source, subject and metric."""
    seconds = {str(source): float(some["seconds"].sum()) for (source,), some in spans.group_by("source")}
    totals: dict[str, tuple[float, str]] = {}  # resource -> amount, and the source that told
    means: dict[str, float] = {}

    def add(name: str, amount: float, source: str) -> None:
        totals[name] = (totals.get(name, (0.0, source))[0] + amount, source)

    known = set(resources())
    for source, subject, metric, amount, told_s in table.select(
        "source", "subject", "metric", "amount", "told_s"
    ).iter_rows():
        if source == "process":
            whose = _DRIVER if subject == _DRIVER else "server"
            if metric in _OF_PROCESSES:
                what, scale = _OF_PROCESSES[metric]
                for name in (f"{whose}.{what}", *([f"{whose}.major_faults"] if metric == "proc.majflt" else [])):
                    if name in known:
                        add(name, amount * scale, source)
            elif told_s > 0:
                means[f"{whose}.{metric}"] = means.get(f"{whose}.{metric}", 0.0) + amount / told_s
        elif source.startswith("perf"):
            whose = _DRIVER if subject == _DRIVER else "server"
            if metric in _OF_PERF and (name := f"{whose}.{_OF_PERF[metric]}") in known:
                add(name, amount, source)
        elif metric in known:
            add(metric, amount, source)  # an observer that tells of a resource by its name
        elif metric in _OF_DISK:
            if subject == disk:
                add(_OF_DISK[metric][0], amount * _OF_DISK[metric][1], source)
        elif metric in _OF_NETWORK:
            add(_OF_NETWORK[metric][0], amount * _OF_NETWORK[metric][1], source)
        elif metric in _OF_MACHINE:
            add(_OF_MACHINE[metric][0], amount * _OF_MACHINE[metric][1], source)
        elif metric == "cgroup.throttled" and subject != _DRIVER:
            add("server.throttled", amount * 0.01, source)
        if source != "process" and told_s > 0 and (subject == "machine" or subject == disk):
            means[metric] = amount / told_s
    if cpu is not None:
        used = cpu["all"] - sum(cpu.get(name, 0.0) for name in _RESTING)
        totals["machine.cpu"] = (used, "machine")
        totals["machine.steal"] = (cpu.get("cpu.steal", 0.0), "machine")
        watched = [totals[name][0] for name in ("server.cpu", "driver.cpu") if name in totals]
        if watched:
            # Processes are told of a moment after the machine is: a little less than nothing may be left.
            totals["rest.cpu"] = (max(used - sum(watched), 0.0), "machine")
        means |= {name: 100 * value / cpu["all"] for name, value in cpu.items() if name != "all"}
    of_machine = seconds.get("machine", max(seconds.values()))
    in_order = [name for name in resources() if name in totals]
    return Usage(
        seconds=of_machine,
        operations=operations.get("machine", max(operations.values())),
        samples=spans.filter(pl.col("source") == "machine").height,
        cpus=round(cpu["all"] / of_machine) if cpu is not None else 0,
        per_op={
            name: totals[name][0] / operations[totals[name][1]] for name in in_order if totals[name][1] in operations
        },
        per_s={name: totals[name][0] / seconds[totals[name][1]] for name in in_order},
        means=dict(sorted(means.items())),
    )
