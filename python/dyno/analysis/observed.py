"""What was observed of one run, in the terms of the rules: how much of what there was, and where its clients were.

Everything is of the *system's processes*: those of the server, or the driver's where the system is embedded in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dyno.analysis.demands import clients_set
from dyno.analysis.device import amounts_a_second
from dyno.analysis.table import pace_of
from dyno.model.forms import cpus_named
from dyno.model.run import RunRecord
from dyno.model.study import Cell
from dyno.model.usage import Usage

THRESHOLDS: Final[Mapping[str, float]] = {
    "quota_used": 90.0,
    "throttled": 1.0,
    "cpus_busy": 90.0,
    "waited_share": 10.0,
    "busiest": 90.0,
    "io_limit": 85.0,
    "device_busy": 90.0,
    "at_device": 0.5,
    "large_request": 64 * 1024.0,
    "syncing": 0.5,
    "locked_share": 50.0,
    "memory_full": 90.0,
    "refaulted": 50.0,
    "swapped": 1024.0,
    "interface": 80.0,
    "retransmitted": 1.0,
    "share": 25.0,
    "most": 50.0,
    "rest": 25.0,
    "steal": 5.0,
    "kept": 95.0,
}
"""From which value on a figure counts; docs/verdicts.md says why."""


_SWAPPED_AT_ONCE: Final = 32.0
"""KiB that a major fault brings in at the most: eight pages, unless vm.page-cluster was changed."""


@dataclass(frozen=True)
class Figure:
    """As a reader sees it; `rule` is its threshold's name where it has one."""

    title: str
    unit: str
    rule: str | None = None


FIGURES: Final = {
    "clients": Figure("clients in the store or in the driver", "1"),
    "cpu": Figure("CPUs that the system used", "1"),
    "waited": Figure("threads of the system that waited for a CPU", "1"),
    "waited_share": Figure("share of the time that the system wanted a CPU and had none", "%", "waited_share"),
    "quota": Figure("CPUs of its quota", "1"),
    "quota_used": Figure("use of its CPU quota", "%", "quota_used"),
    "throttled": Figure("time that it was held back by its CPU quota, summed over CPUs", "%", "throttled"),
    "cpus": Figure("CPUs that it may use", "1"),
    "cpus_busy": Figure("use of these CPUs, by whomever", "%", "cpus_busy"),
    "busiest": Figure("CPU time of its busiest thread, of one CPU", "%", "busiest"),
    "blocked": Figure("threads of the system that waited for a device", "1", "at_device"),
    "syncing": Figure("threads of the system that waited for a sync", "1", "syncing"),
    "locked": Figure("clients that waited for a row lock", "1"),
    "locked_share": Figure("share of the other clients that waited for a row lock", "%", "locked_share"),
    "device_busy": Figure("time that the device was busy", "%", "device_busy"),
    "request": Figure("mean size of a request to the device", "B"),
    "read": Figure("read from the device", "B/s"),
    "written": Figure("written to the device", "B/s"),
    "limit.read_bytes": Figure("use of its limit of bytes read", "%", "io_limit"),
    "limit.write_bytes": Figure("use of its limit of bytes written", "%", "io_limit"),
    "limit.reads": Figure("use of its limit of reads", "%", "io_limit"),
    "limit.writes": Figure("use of its limit of writes", "%", "io_limit"),
    "memory_full": Figure("use of its memory limit", "%", "memory_full"),
    "refaulted": Figure("share of what was read that had been evicted not long before", "%", "refaulted"),
    "swapped": Figure("swapped in and out", "KiB/s", "swapped"),
    "pressure": Figure("time in which some task of the machine waited for memory", "%"),
    "interface": Figure("use of the busiest network interface", "%", "interface"),
    "retransmitted": Figure("TCP segments sent anew", "%", "retransmitted"),
    "driver": Figure("clients that were in the driver, running or waiting for a CPU", "1"),
    "rest": Figure("share of the CPUs used by what was not watched", "%", "rest"),
    "steal": Figure("share of the CPUs taken by the hypervisor", "%", "steal"),
    "kept": Figure("share of the given rate that was reached", "%", "kept"),
    "unseen": Figure("share of the clients' time that was seen nowhere", "%", "most"),
}


def observed(cell: Cell, run: RunRecord, used: Usage, of: str) -> Iterator[tuple[str, float]]:
    """The figures of a run by their names; what was not observed is left out. `of` is server or driver."""
    per_s, means = used.per_s, used.means
    cpu, wait = per_s[f"{of}.cpu"], per_s.get(f"{of}.wait", 0.0)
    yield "cpu", cpu
    yield "waited", wait
    yield "waited_share", 100 * wait / (cpu + wait) if cpu + wait else 0.0
    yield from _of_cpus(cell, run, used, of)
    blocked, syncing = (means.get(f"{of}.proc.{name}") for name in ("blocked", "syncing"))
    for name, value in (("blocked", blocked), ("syncing", syncing)):
        if value is not None:
            yield name, value
    yield from _of_device(cell, run, used, of)
    yield from _of_memory(cell, run, used, of)
    sent = means.get("tcp.oseg_s", 0.0)
    if used.seconds > 0 and sent >= used.operations / used.seconds:  # else the network is not how it is asked
        yield "retransmitted", 100 * means.get("tcp.retrans_s", 0.0) / sent if sent else 0.0
        yield "interface", means.get("net.ifutil", 0.0)
    inside = per_s.get("driver.cpu", 0.0) + per_s.get("driver.wait", 0.0) if of == "server" else 0.0
    if of == "server" and "driver.cpu" in per_s:
        yield "driver", inside
    if run.rate_per_s and used.seconds > 0:
        yield "kept", 100 * used.operations / used.seconds / run.rate_per_s
    locked = _locked(run, used)
    clients = _clients(cell, run, used)
    if locked is not None:
        yield "locked", locked
    if clients is None:
        return
    yield "clients", clients
    if locked is not None and clients > 1:
        yield "locked_share", 100 * min(locked / (clients - 1), 1.0)
    seen = cpu + wait + inside + (blocked or 0.0) + (syncing or 0.0) + (locked or 0.0)
    if clients > 0:
        yield "unseen", 100 * max(1 - seen / clients, 0.0)


def _of_cpus(cell: Cell, run: RunRecord, used: Usage, of: str) -> Iterator[tuple[str, float]]:
    per_s, means = used.per_s, used.means
    cpu, cpus = per_s[f"{of}.cpu"], used.cpus
    if (busiest := means.get(f"{of}.proc.cpu_max_thread")) is not None:
        yield "busiest", busiest
    quota = _quota(cell, run)
    if quota is not None and (not cpus or quota < cpus):
        yield "quota", quota
        yield "quota_used", 100 * cpu / quota
        throttled = run.status.get("machine.throttled_s")
        if throttled is not None and run.driver_s > 0:
            yield "throttled", 100 * throttled / run.driver_s
        elif per_s.get("server.throttled", 0.0) > 0:  # a group below that of the quota is told none
            yield "throttled", 100 * per_s["server.throttled"]
    if not cpus:
        return
    mine = _cpus(run.deployed.get("cpus.allowed"), cell.host.pin.system if of == "server" else cell.host.pin.driver)
    allowed = min(float(len(mine)), cpus) if mine else cpus
    yield "cpus", allowed
    yield "rest", 100 * per_s.get("rest.cpu", 0.0) / cpus
    yield "steal", 100 * per_s.get("machine.steal", 0.0) / cpus
    if allowed < cpus:
        theirs = _cpus(None, cell.host.pin.driver)
        shared = of == "server" and theirs and theirs <= mine
        busy = 100 * (cpu + (per_s.get("driver.cpu", 0.0) if shared else 0.0)) / allowed
        if busy >= THRESHOLDS["cpus_busy"]:  # else others may fill them, unseen
            yield "cpus_busy", busy
    elif "machine.cpu" in per_s:
        yield "cpus_busy", 100 * (per_s["machine.cpu"] + per_s.get("machine.steal", 0.0)) / cpus


def _of_device(cell: Cell, run: RunRecord, used: Usage, of: str) -> Iterator[tuple[str, float]]:
    per_s = used.per_s
    # Whole clock ticks count as busy (`demands.uses`): many short requests seem to fill a device that rests most of it.
    if busy := [per_s[name] for name in ("disk.busy", "disk.waited") if name in per_s]:
        yield "device_busy", 100 * min(busy)
    amounts = amounts_a_second(used, of)
    for name, key in (("read", "read_bytes"), ("written", "write_bytes")):
        if key in amounts:
            yield name, amounts[key]
    requests = per_s.get("disk.reads", 0.0) + per_s.get("disk.writes", 0.0)
    if requests:
        yield "request", (per_s.get("disk.read", 0.0) + per_s.get("disk.written", 0.0)) / requests
    for name, amount in amounts.items():
        limit = _limit(run, f"io.limit.{name}", cell.host.machine.disk.limits.get(name))
        if limit:
            yield f"limit.{name}", 100 * amount / limit


def _of_memory(cell: Cell, run: RunRecord, used: Usage, of: str) -> Iterator[tuple[str, float]]:
    means = used.means
    limit = _limit(run, "memory.limit", cell.host.machine.memory)
    if limit:
        most = _first(run.status.get("machine.memory_peak_bytes"), means.get(f"{of}.cgroup.mem"))
        if most is not None:
            yield "memory_full", 100 * most / limit
    elif "vm.pgsteal" in means and means.get("vm.pgscank", 0.0) + means.get("vm.pgscand", 0.0) > 0:
        yield "memory_full", 100.0  # the kernel looks for pages to give back: all are taken
    read = _first(used.per_s.get(f"{of}.read"), used.per_s.get("disk.read"))
    refaulted = _kib(means.get(f"{of}.cgroup.refkB_s"))
    if refaulted is None and not limit and (pages := means.get("vm.refault")) is not None:
        refaulted = pages * 4096
    if refaulted is not None and read:
        yield "refaulted", min(100 * refaulted / read, 100.0)
    if "vm.si" in means:
        swapped = means["vm.si"] + means.get("vm.so", 0.0)
        # What others swap is no matter of the system, which has a major fault for each that it waits for.
        own = used.per_s.get(f"{of}.major_faults", math.inf) * _SWAPPED_AT_ONCE
        yield "swapped", min(swapped, own)
    if "psi.memory.some" in means:
        yield "pressure", means["psi.memory.some"]


def _clients(cell: Cell, run: RunRecord, used: Usage) -> float | None:
    """How many had a request in the store or in the driver, in the mean: all of a closed loop without pauses, else by
    Little's law.
    """
    latency = run.responses.get("service_mean", run.responses.get("latency_mean"))
    by_littles_law = None
    if latency is not None and used.seconds > 0:
        by_littles_law = used.operations / used.seconds * latency / 1000
    asked = clients_set(cell) if pace_of(run) is None else None
    return by_littles_law if asked is None else asked


def _locked(run: RunRecord, used: Usage) -> float | None:
    """How many clients waited for a row lock, in the mean."""
    if "server.lock_wait" in used.per_s:
        return used.per_s["server.lock_wait"]
    waited_ms = run.status.get("innodb_row_lock_time")
    return None if waited_ms is None or run.driver_s <= 0 else waited_ms / 1000 / run.driver_s


def _quota(cell: Cell, run: RunRecord) -> float | None:
    """Of all processes together, in CPUs: what is in force of one of several nodes is that node's alone."""
    nodes, serving, each = (run.deployed.get(fact) for fact in ("nodes", "nodes.serving", "node.cpus"))
    nodes = nodes if serving is None else serving
    if not isinstance(nodes, int) or not isinstance(each, float | int):
        return _limit(run, "cpus.limit", cell.host.machine.cpus)
    together = cell.host.machine.cpus
    return min(float(nodes * each), math.inf if together is None else together)


def _limit(run: RunRecord, fact: str, asked: float | None) -> float | None:
    """What was in force while it ran, else what the study asks for."""
    found = run.deployed.get(fact)
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return float(found)
    return None if asked is None else float(asked)


def _cpus(found: object, pinned: str | None) -> frozenset[int]:
    if isinstance(found, str):
        return cpus_named(found)
    return cpus_named(pinned) if pinned else frozenset()


def _kib(value: float | None) -> float | None:
    return None if value is None else value * 1024


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
