"""From the samples and intervals of runs to what their measured parts used.

A sample tells of the time since the one before. Only samples that are wholly of the measured part count, and the
operations of just that time: those of an interval that a sample's end cuts are taken to be spread evenly over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from dyno.model.counters import LOOKS, NOW, SOURCE, is_gauge, is_wait
from dyno.model.run import RunRecord
from dyno.model.usage import USER_HZ, Told, Usage, cpu_time_used, resources

_KIB: Final = 1024.0
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
_OF_MACHINE: Final = {"vm.cs": ("machine.switches", 1.0), "vm.pgfault": ("machine.faults", 1.0)}
_TRANSFERS: Final = ("disk.r_s", "disk.w_s", "disk.d_s")  # as sysstat's tps has them
# Of several subjects the one that has most tells, not their sum: the busiest thread, the busiest interface.
_MOST: Final = ("proc.cpu_max_thread", "net.ifutil")
# Events of perf. Switches and faults are those of the processes above, and CPU time is that of the scheduler.
EVENTS: Final = {
    "cycles": "cycles",
    "instructions": "instructions",
    "branches": "branches",
    "branch-misses": "branch_misses",
    "cache-references": "llc_references",
    "cache-misses": "llc_misses",
    "L1-dcache-loads": "l1d_loads",
    "L1-dcache-load-misses": "l1d_misses",
    "L1-icache-loads": "l1i_loads",
    "L1-icache-load-misses": "l1i_misses",
    "dTLB-loads": "dtlb_loads",
    "dTLB-load-misses": "dtlb_misses",
    "iTLB-load-misses": "itlb_misses",
    "cpu-migrations": "migrations",
}
_RESTING: Final = ("cpu.idle", "cpu.iowait", "cpu.steal")


def usages(
    runs: Sequence[RunRecord], samples: pl.LazyFrame, intervals: pl.LazyFrame, cpus: int | None = None
) -> dict[int, Usage]:
    """By run, of those that were observed and of which operations were counted.

    `samples` and `intervals` are those of a results folder, with the run's number in `run`; `cpus` is how many the
    machine has, taken from its clock ticks where it is not known. Sums are made in the order of the rows, here and in
    the time lines, since another order may give another last digit, and a report is to be the same each time.
    """
    windows = _windows(runs)
    if not windows.height or not {"run", "metric"} <= set(samples.collect_schema().names()):
        return {}
    spans = _spans(samples, windows)
    if not spans.height:
        return {}
    counted = _operations(intervals, spans)
    asked = {
        "workload.written": _asked({run.run: run.written for run in runs}, intervals, spans),
        "workload.read": _asked({run.run: run.read for run in runs}, intervals, spans),
    }
    seen = (
        samples.join(spans.lazy(), on=["run", "source", "time_ns"], how="inner", maintain_order="left")
        .with_columns((pl.col("value") * pl.col("seconds")).alias("amount"))
        .group_by("run", "source", "subject", "metric", maintain_order=True)
        .agg(pl.col("amount").sum(), pl.col("seconds").sum().alias("told_s"))
        .collect()
    )
    ticks = _cpu_seconds(samples, spans)
    records = {run.run: run for run in runs}
    found = {}
    for (number,), table in seen.group_by("run", maintain_order=True):
        run = int(str(number))
        if run in counted:
            own = spans.filter(pl.col("run") == run)
            of_run = {name: by_source[run] for name, by_source in asked.items() if run in by_source}
            found[run] = _usage(table, own, counted[run], of_run, ticks.get(run), records[run], cpus)
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
    """The times of the samples that count, each source's own, with what they tell of: `since_ns` and `seconds`.

    Of the time before somebody else counts in the store nothing is told, and its operations are not to be counted.
    """
    someone_else = (pl.col("source") == SOURCE) & (pl.col("metric") == LOOKS) & (pl.col("value") == 0)
    return (
        samples.select("run", "source", "time_ns")
        .unique()
        .sort("run", "source", "time_ns")
        .with_columns(pl.col("time_ns").shift(1).over("run", "source").alias("since_ns"))
        .join(windows.lazy(), on="run", how="inner", maintain_order="left")
        .filter((pl.col("since_ns") >= pl.col("from_ns")) & (pl.col("time_ns") <= pl.col("to_ns")))
        .join(samples.filter(someone_else), on=["run", "source", "time_ns"], how="anti", maintain_order="left")
        .with_columns(((pl.col("time_ns") - pl.col("since_ns")) / 1e9).alias("seconds"))
        .select("run", "source", "time_ns", "since_ns", "seconds")
        .collect()
    )


def _operations(intervals: pl.LazyFrame, spans: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Run -> source -> operations done in the time that its samples tell of."""
    if not {"run", "count"} <= set(intervals.collect_schema().names()):
        return {}
    found = _within(intervals.select("run", "start_ns", "end_ns", pl.col("count").alias("amount")), spans)
    some = {run: {source: count for source, count in of.items() if count > 0} for run, of in found.items()}
    return {run: of for run, of in some.items() if of}


def _asked(
    each_asks: Mapping[int, Mapping[str, float]], intervals: pl.LazyFrame, spans: pl.DataFrame
) -> dict[int, dict[str, float]]:
    """Run -> source -> bytes that the workload asked for in that time, of runs that tell what their operations ask."""
    rows = [(run, operation, each) for run, of in each_asks.items() for operation, each in of.items()]
    if not rows or not {"run", "count", "operation"} <= set(intervals.collect_schema().names()):
        return {}
    schema = {"run": pl.Int32, "operation": pl.String, "bytes": pl.Float64}
    each = pl.DataFrame(rows, schema=schema, orient="row").lazy()
    amounts = intervals.join(each, on=["run", "operation"], how="inner", maintain_order="left").select(
        "run", "start_ns", "end_ns", (pl.col("count") * pl.col("bytes")).alias("amount")
    )
    return _within(amounts, spans)


def _within(amounts: pl.LazyFrame, spans: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Run -> source -> what of the `amount` of intervals is of the time that its samples tell of."""
    goes_on = pl.col("since_ns") == pl.col("time_ns").shift(1).over("run", "source")
    bounds = (
        spans.with_columns((~goes_on).fill_null(True).cum_sum().alias("stretch"))
        .group_by("run", "source", "stretch", maintain_order=True)
        .agg(pl.col("since_ns").min(), pl.col("time_ns").max().alias("until_ns"))
    )
    shared = pl.min_horizontal("end_ns", "until_ns") - pl.max_horizontal("start_ns", "since_ns")
    table = (
        amounts.join(bounds.lazy(), on="run", how="inner", maintain_order="left")
        .with_columns((shared / (pl.col("end_ns") - pl.col("start_ns"))).alias("share"))
        .filter(pl.col("share") > 0)
        .group_by("run", "source", maintain_order=True)
        .agg((pl.col("amount") * pl.col("share")).sum().alias("amount"))
        .collect()
    )
    found: dict[int, dict[str, float]] = {}
    for run, source, amount in table.select("run", "source", "amount").iter_rows():
        found.setdefault(run, {})[source] = amount
    return found


def _cpu_seconds(samples: pl.LazyFrame, spans: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Run -> `all`, and each state of the machine's CPUs -> seconds, summed over the CPUs.

    The shares of a sample are of the clock ticks that passed in it, which are few where samples are close together.
    """
    machine = (pl.col("source") == "machine") & (pl.col("subject") == "machine")
    wanted = samples.filter(machine & (pl.col("metric").str.starts_with("cpu.") | (pl.col("metric") == "stat.ticks")))
    seen = wanted.join(spans.lazy(), on=["run", "source", "time_ns"], how="inner", maintain_order="left")
    ticks = seen.filter(pl.col("metric") == "stat.ticks").select(
        "run", "time_ns", (pl.col("value") * pl.col("seconds") / USER_HZ).alias("cpu_s")
    )
    table = (
        seen.filter(pl.col("metric") != "stat.ticks")
        .join(ticks, on=["run", "time_ns"], how="inner", maintain_order="left")
        .group_by("run", "metric", maintain_order=True)
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
    asked: Mapping[str, Mapping[str, float]],
    cpu: Mapping[str, float] | None,
    record: RunRecord,
    cpus: int | None,
) -> Usage:
    """`table` has what one run used, by source, subject and metric."""
    seconds = {
        str(source): float(some["seconds"].sum()) for (source,), some in spans.group_by("source", maintain_order=True)
    }
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
                name, mean = f"{whose}.{metric}", amount / told_s
                means[name] = max(means.get(name, 0.0), mean) if metric in _MOST else means.get(name, 0.0) + mean
        elif source.startswith("perf"):
            whose = _DRIVER if subject == _DRIVER else "server"
            if metric in EVENTS and (name := f"{whose}.{EVENTS[metric]}") in known:
                add(name, amount, source)
        elif metric in known:
            add(metric, amount, source)  # an observer that tells of a resource by its name
        elif metric in _OF_DISK or metric in _TRANSFERS:
            if subject == record.disk and metric in _OF_DISK:
                add(_OF_DISK[metric][0], amount * _OF_DISK[metric][1], source)
            if subject == record.disk and metric in _TRANSFERS:
                add("disk.transfers", amount, source)
        elif metric in _OF_NETWORK:
            add(_OF_NETWORK[metric][0], amount * _OF_NETWORK[metric][1], source)
        elif metric in _OF_MACHINE:
            add(_OF_MACHINE[metric][0], amount * _OF_MACHINE[metric][1], source)
        elif metric == "cgroup.throttled" and subject != _DRIVER:
            add("server.throttled", amount * 0.01, source)
        if source == "cgroup" and told_s > 0:
            # Processes of one subject may be told of by the same group.
            name = f"{_DRIVER if subject == _DRIVER else 'server'}.{metric}"
            means[name] = max(means.get(name, 0.0), amount / told_s)
        elif metric in _MOST and source != "process" and told_s > 0:
            means[metric] = max(means.get(metric, 0.0), amount / told_s)
        elif source != "process" and told_s > 0 and subject in ("machine", record.disk):
            means[metric] = amount / told_s
    of_machine = seconds.get("machine", max(seconds.values()))
    if cpu is not None:
        cpus = cpus or round(cpu["all"] / of_machine)
        rested = sum(cpu.get(name, 0.0) for name in _RESTING)
        used = cpu_time_used(cpus, of_machine, counted=cpu["all"], rested=rested)
        totals["machine.cpu"] = (used, "machine")
        totals["machine.steal"] = (cpu.get("cpu.steal", 0.0), "machine")
        watched = [totals[name][0] for name in ("server.cpu", "driver.cpu") if name in totals]
        if watched:
            # Processes are told of a moment after the machine is: a little less than nothing may be left.
            totals["rest.cpu"] = (max(used - sum(watched), 0.0), "machine")
        means |= {name: 100 * value / cpu["all"] for name, value in cpu.items() if name != "all"}
    for name, by_source in asked.items():
        told_by = "machine" if "machine" in by_source else min(by_source)
        totals[name] = (by_source[told_by], told_by)
    in_order = [name for name in resources() if name in totals]
    return Usage(
        seconds=of_machine,
        operations=operations.get("machine", max(operations.values())),
        samples=spans.filter(pl.col("source") == "machine").height,
        cpus=cpus if cpus is not None and cpu is not None else 0,
        per_op={
            name: totals[name][0] / operations[totals[name][1]] for name in in_order if totals[name][1] in operations
        },
        per_s={name: totals[name][0] / seconds[totals[name][1]] for name in in_order},
        means=dict(sorted(means.items())),
        own_device=record.deployed.get("device") == "its own",
        told=_told(table.filter(pl.col("source") == SOURCE), seconds, operations),
    )


def _told(table: pl.DataFrame, seconds: Mapping[str, float], operations: Mapping[str, float]) -> Told | None:
    """`table` has the samples of the store itself; None where there are none, or no operation was done meanwhile."""
    if not table.height or SOURCE not in operations:
        return None
    parts: dict[str, dict[str, float]] = {"per_s": {}, "means": {}, "waiting": {}}
    known = {LOOKS, *resources()}
    for metric, amount in table.select("metric", "amount").sort("metric").iter_rows():
        if metric not in known:
            goes_up_and_down = metric.startswith(NOW) or is_gauge(metric)
            part = "waiting" if is_wait(metric) else "means" if goes_up_and_down else "per_s"
            parts[part][metric.removeprefix(NOW)] = amount / seconds[SOURCE]
    return Told(seconds=seconds[SOURCE], operations=operations[SOURCE], **parts)
