"""What a run's measured part used: of the machine, by whom, and for each operation.

Names are `whose.what`: `server.cpu` is the CPU time of the system's processes, `driver.cpu` that of the driver's,
`machine.cpu` that of all. Each is counted in its base unit (seconds, bytes, or 1) and shown in another.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dyno.model.base import Frozen


class Told(Frozen):
    """What a store said of itself in the measured part of one run, by its own names (`dyno.model.counters`)."""

    seconds: float
    operations: Annotated[float, Field(description="done in that time; a sample's end may cut an interval")]
    per_s: Annotated[dict[str, float], Field(description="counters: growth per second")] = {}
    means: Annotated[dict[str, float], Field(description="what goes up and down: its mean over time")] = {}
    waiting: Annotated[dict[str, float], Field(description="class of wait -> clients in it at a time, on average")] = {}


class Usage(Frozen):
    """Of one run, over the samples that are wholly of its measured part. What was not observed is absent.

    Figures of one observer are over the same samples; those of two may differ by the length of a sample.
    """

    seconds: Annotated[float, Field(description="of the machine's samples")]
    operations: Annotated[float, Field(description="done in that time; a sample's end may cut an interval")]
    samples: Annotated[int, Field(description="of the machine")]
    cpus: Annotated[float, Field(description="CPUs that the machine has, used or not")]
    per_op: Annotated[dict[str, float], Field(description="resource -> use per operation, in the base unit")] = {}
    per_s: Annotated[dict[str, float], Field(description="resource -> use per second, in the base unit")] = {}
    means: Annotated[
        dict[str, float],
        Field(description="gauges and shares over time: the metric of a sample -> its mean, each sample by its length"),
    ] = {}
    own_device: Annotated[bool, Field(description="whether the device of the data is the system's own")] = False
    told: Annotated[Told | None, Field(description="what the store said of itself, where it was asked")] = None


USER_HZ = 100.0
"""Clock ticks that /proc/stat counts for a second of CPU time."""


def cpu_time_used(cpus: float, seconds: float, *, counted: float, rested: float) -> float:
    """Seconds of CPU time that a machine's CPUs did not rest, of `seconds` that passed.

    `counted` is the CPU time of which /proc/stat tells any state, `rested` that of which it tells rest. A CPU that
    sleeps in between is told exactly for how long (NO_HZ), but what it did only by the clock ticks that met it at work:
    of short bursts these miss up to a quarter, and processes then use more than the machine. So what it did not rest
    was used.
    """
    return max(max(cpus * seconds, counted) - rested, 0.0)


@dataclass(frozen=True)
class Resource:
    """One that is used for operations. `scale` turns the base unit into `unit`, which a person reads.

    Those that are `relative` are one use over another, such as kernel time over CPU time, and not of an operation.
    """

    name: str
    title: str
    unit: str
    scale: float = 1.0
    relative: bool = False


_KNOWN = {
    resource.name: resource
    for resource in (
        Resource("server.cpu", "CPU time of the system", "us", 1e6),
        Resource("server.usr", "user time of the system", "us", 1e6),
        Resource("server.sys", "kernel time of the system", "us", 1e6),
        Resource("driver.cpu", "CPU time of the driver", "us", 1e6),
        Resource("driver.usr", "user time of the driver", "us", 1e6),
        Resource("driver.sys", "kernel time of the driver", "us", 1e6),
        # Of no process that is watched: the kernel's own threads, interrupts, and whatever else runs here.
        Resource("rest.cpu", "CPU time of the rest of the machine", "us", 1e6),
        Resource("machine.cpu", "CPU time of the machine", "us", 1e6),
        Resource("machine.steal", "CPU time taken by the hypervisor", "us", 1e6),
        Resource("server.wait", "time that the system's threads waited for a CPU", "us", 1e6),
        Resource("driver.wait", "time that the driver's threads waited for a CPU", "us", 1e6),
        Resource("server.throttled", "time that the system was held back by its CPU limit", "us", 1e6),
        Resource("server.switches", "context switches of the system", "1"),
        Resource("driver.switches", "context switches of the driver", "1"),
        Resource("machine.switches", "context switches of the machine", "1"),
        Resource("server.faults", "page faults of the system", "1"),
        Resource("server.major_faults", "major page faults of the system", "1"),
        Resource("driver.faults", "page faults of the driver", "1"),
        Resource("driver.major_faults", "major page faults of the driver", "1"),
        Resource("machine.faults", "page faults of the machine", "1"),
        Resource("server.read", "read from storage by the system", "B"),
        Resource("server.written", "written to storage by the system", "B"),
        # Of an embedded system, or of a file system: its work is done within the driver's calls.
        Resource("driver.read", "read from storage by the driver", "B"),
        Resource("driver.written", "written to storage by the driver", "B"),
        Resource("disk.read", "read from the device of the data", "B"),
        Resource("disk.written", "written to the device of the data", "B"),
        Resource("disk.reads", "reads of the device of the data", "1"),
        Resource("disk.writes", "writes of the device of the data", "1"),
        Resource("disk.transfers", "reads, writes and discards of the device of the data", "1"),
        Resource("disk.flushes", "flushes of the device of the data", "1"),
        Resource("disk.busy", "time that the device of the data was busy", "us", 1e6),
        Resource("disk.waited", "time that requests to the device of the data took, summed", "us", 1e6),
        Resource("net.sent", "sent over the network, loopback included", "B"),
        Resource("net.packets", "packets sent, loopback included", "1"),
        Resource("nodes.sent", "sent over the network of the system's nodes", "B"),
        Resource("server.syncs", "syncs that the system asked for", "1"),
        Resource("server.logged", "written to its log by the system", "B"),
        Resource("server.lock_waits", "waits for row locks", "1"),
        Resource("server.lock_wait", "time waited for row locks", "us", 1e6),
        Resource("server.cache_reads", "pages that the system looked for in its own cache", "1"),
        Resource("server.cache_misses", "pages that were not in the system's own cache", "1"),
        Resource("server.instructions", "instructions of the system", "1"),
        Resource("server.cycles", "cycles of the system", "1"),
        Resource("server.branches", "branches of the system", "1"),
        Resource("server.branch_misses", "branches of the system that were predicted wrongly", "1"),
        Resource("server.llc_references", "references of the system to the CPUs' last cache", "1"),
        Resource("server.llc_misses", "misses of the system in the CPUs' last cache", "1"),
        Resource("server.l1d_loads", "loads of the system from the CPUs' first cache", "1"),
        Resource("server.l1d_misses", "loads of the system that missed the CPUs' first cache", "1"),
        Resource("server.l1i_loads", "fetches of instructions of the system from the CPUs' first cache", "1"),
        Resource("server.l1i_misses", "fetches of instructions of the system that missed the CPUs' first cache", "1"),
        Resource("server.dtlb_loads", "look-ups of the system in the TLB, of data", "1"),
        Resource("server.dtlb_misses", "misses of the system in the TLB, of data", "1"),
        Resource("server.itlb_misses", "misses of the system in the TLB, of instructions", "1"),
        Resource("server.migrations", "moves of the system's threads to another CPU", "1"),
        Resource("driver.instructions", "instructions of the driver", "1"),
        Resource("driver.cycles", "cycles of the driver", "1"),
        Resource("driver.l1d_loads", "loads of the driver from the CPUs' first cache", "1"),
        Resource("driver.l1d_misses", "loads of the driver that missed the CPUs' first cache", "1"),
        Resource("driver.l1i_loads", "fetches of instructions of the driver from the CPUs' first cache", "1"),
        Resource("driver.l1i_misses", "fetches of instructions of the driver that missed the CPUs' first cache", "1"),
        Resource("driver.migrations", "moves of the driver's threads to another CPU", "1"),
        Resource("workload.written", "written by the workload", "B"),
        Resource("workload.read", "read by the workload", "B"),
    )
}


_RELATIVE = {
    share.name: share
    for share in (
        # What a solution occupies, whatever is asked of it.
        Resource("server.nodes", "servers that the system consists of", "1", relative=True),
        Resource("server.conflicts", "conflicts for each transaction that was certified", "1", relative=True),
        Resource("server.memory", "resident memory of the system's processes", "MiB", 1 / 2**20, relative=True),
        Resource("data.at_rest", "what the data take on disk, after a clean stop", "MiB", 1 / 2**20, relative=True),
        Resource(
            "server.cpu_of_machine", "share that the system used of the CPU time that it may use", "%", relative=True
        ),
        Resource("server.sys_share", "share of kernel time in the CPU time of the system", "%", relative=True),
        Resource("server.user_system_ratio", "user time over kernel time of the system", "1", relative=True),
        Resource("driver.sys_share", "share of kernel time in the CPU time of the driver", "%", relative=True),
        Resource("machine.sys_share", "share of kernel time in the CPU time of the machine", "%", relative=True),
        Resource("machine.user_system_ratio", "user time over kernel time of the machine", "1", relative=True),
        # As sysstat has it: idle with a request to a disk outstanding.
        Resource("machine.iowait_share", "share of time in which CPUs waited for a disk", "%", relative=True),
        Resource("disk.busy_share", "share of time in which the device of the data was busy", "%", relative=True),
        Resource(
            "disk.write_amplification",
            "bytes written to the device of the data for each that the workload wrote",
            "1",
            relative=True,
        ),
        Resource(
            "disk.read_amplification",
            "bytes read from the device of the data for each that the workload read",
            "1",
            relative=True,
        ),
        Resource(
            "server.write_amplification",
            "bytes written to storage by the system for each that the workload wrote",
            "1",
            relative=True,
        ),
    )
}

FOREMOST = (
    "server.cpu",
    "server.sys_share",
    "driver.cpu",
    "server.switches",
    "server.syncs",
    "disk.read",
    "disk.written",
    "disk.flushes",
    "data.at_rest",
    "net.sent",
    "nodes.sent",
    "server.instructions",
)
FOREMOST_WITHIN = (
    "driver.cpu",
    "driver.sys_share",
    "driver.switches",
    "disk.transfers",
    "disk.read",
    "disk.written",
    "disk.flushes",
    "disk.read_amplification",
    "disk.write_amplification",
)
"""The same of a system that works within the driver's calls: an embedded store, or a file system."""


def foremost(used: Collection[str]) -> tuple[str, ...]:
    """Those of `used` that a reader looks at first."""
    of = FOREMOST if any(name.startswith("server.") for name in used) else FOREMOST_WITHIN
    return tuple(name for name in of if name in used)


def resources() -> tuple[str, ...]:
    """All that an operation may use, in the order in which they are shown."""
    return tuple(_KNOWN)


def shares() -> tuple[str, ...]:
    """Those that are relative, in the order in which they are shown."""
    return tuple(_RELATIVE)


def resource(name: str) -> Resource:
    """The resource or share of that name. Raises KeyError."""
    return _RELATIVE[name] if name in _RELATIVE else _KNOWN[name]


def is_resource(name: str) -> bool:
    """Whether it is the name of a resource or share."""
    return name in _KNOWN or name in _RELATIVE
