"""What was read from and written to the device of the data while a run was driven, and by the system's processes.

And what CPU time these took, and what was sent over the network of its nodes, where they have one. Two readings tell
of a run however short it is, where a sample a second may tell of none.

Data that fit the page cache never reach the device: a comparison of disks is one only where these figures say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dyno.hosts.cgroups import Kills, forget_peak, limits_in_force
from dyno.hosts.devices import Device, DeviceCounters, too_fast
from dyno.hosts.usage import StorageUse, cpu_seconds, storage_use
from dyno.model.base import RunError
from dyno.model.study import Machine
from dyno.model.units import format_size
from dyno.workloads.base import Measured

_MIB = 2**20


@dataclass(frozen=True)
class Reading:
    """The counters at one moment, which is in seconds of a monotonic clock.

    `device` is None where the data are on no block device, `system` where it has no processes of its own, and `sent`
    (bytes) where its nodes have no network of their own. `cpu_s` is of the system's processes.
    """

    at_s: float
    device: DeviceCounters | None
    system: StorageUse | None
    sent: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True)
class Metered:
    """What came to be between two readings; None where one of them had it not."""

    seconds: float
    device: DeviceCounters | None
    system: StorageUse | None
    sent: int | None = None
    cpu_s: float | None = None

    @classmethod
    def between(cls, before: Reading, after: Reading) -> Metered:
        """The later reading without the earlier."""
        return cls(
            seconds=after.at_s - before.at_s,
            device=after.device - before.device if after.device and before.device else None,
            system=after.system - before.system if after.system and before.system else None,
            sent=after.sent - before.sent if after.sent is not None and before.sent is not None else None,
            cpu_s=after.cpu_s - before.cpu_s if after.cpu_s is not None and before.cpu_s is not None else None,
        )

    def responses(self, operations: int | None) -> dict[str, float]:
        """In the units of `dyno.model.responses`; those per operation are left out where nobody counted them."""
        found: dict[str, float] = {}
        if self.device is not None:
            read, written = self.device.read_bytes, self.device.written_bytes
            found |= {"device_read": read / _MIB, "device_written": written / _MIB}
            if operations:
                found |= {"device_read_per_op": read / operations, "device_written_per_op": written / operations}
        if self.system is not None and operations:
            found["system_read_per_op"] = self.system.read_bytes / operations
            found["system_written_per_op"] = self.system.written_bytes / operations
        if self.cpu_s is not None and operations:
            found["system_cpu_per_op"] = 1e6 * self.cpu_s / operations
        if self.sent is not None:
            found["network_sent"] = self.sent / _MIB
            if operations:
                found["network_sent_per_op"] = self.sent / operations
        return found

    def why_not_cold(self, device: Device) -> str | None:
        """Why what was read of that device cannot all have come from it, or is not known to; None where it can."""
        if self.device is None or device.fastest_read_bytes_s() is None:
            return unknown_kind(device)
        return too_fast(device, self.device.read_bytes, self.device.reads, self.seconds)


def unknown_kind(device: Device) -> str:
    """Why nothing can be said of how fast a device may be."""
    bottom = device.hardware()
    return (
        f"the data are on {bottom.name}, of which it is not known how fast a device of its kind ({bottom.kind}) can "
        "be: a cache below the machine may answer unseen"
    )


class MachineMeter:
    """What the processes of a machine with limits had of it. Counts kills from when it is made; to be closed."""

    def __init__(self, group: str, machine: Machine) -> None:
        """`group` is the control group that has the limits."""
        self._group = group
        self._machine = machine
        self._kills = Kills(group)
        self._before: dict[str, float] = {}
        self._peaks = False

    def begin(self) -> None:
        """Just before driving."""
        self._peaks = forget_peak(self._group)
        self._before = self._read()

    def end(self) -> dict[str, float]:
        """Since it began, as `status` of a run has it; what the kernel does not tell is left out."""
        after = self._read()
        found = {name: after[name] - before for name, before in self._before.items() if name in after}
        if self._peaks and (peak := limits_in_force(self._group).get("memory_peak_bytes")) is not None:
            found["machine.memory_peak_bytes"] = peak
        return found

    def why_killed(self) -> str | None:
        """Why the kernel killed a process of it since this was made; None where it did not, as far as it tells."""
        if self._machine.memory is None or not self._kills.count():
            return None
        return f"the memory of its machine (host.machine.memory, {format_size(self._machine.memory)}) was used up"

    def close(self) -> None:
        """Nothing is counted any more."""
        self._kills.close()

    def _read(self) -> dict[str, float]:
        told = limits_in_force(self._group)
        found = {"machine.throttled_s": told["throttled_s"]} if "throttled_s" in told else {}
        return {**found, "machine.oom_kills": float(self._kills.count())} if "oom_kills" in told else found


class Meter:
    """Read just before driving, and just after.

    What is still in page cache then has not been written, and is in no figure of the device.
    """

    def __init__(self, device: Device, processes: Iterable[int], sent: Callable[[], int | None] = lambda: None) -> None:
        """`sent` gives the bytes that were sent over the nodes' own network until it is asked."""
        self._device = device
        self._processes = tuple(processes)
        self._sent = sent
        self._before = self._read()

    def end(self) -> Metered:
        """Since it was made."""
        return Metered.between(self._before, self._read())

    def _read(self) -> Reading:
        try:
            device = self._device.counters()
        except RunError:
            device = None
        system = storage_use(self._processes) if self._processes else None
        cpu_s = cpu_seconds(self._processes) if self._processes else None
        return Reading(time.monotonic(), device, system, self._sent(), cpu_s)


def operations(measured: Measured, *, warmed_up: bool) -> int | None:
    """How many operations were done in all of the drive, those of the warm-up included; None where nobody counted.

    `warmed_up`: the drive had a warm-up, of which some drivers keep no count.
    """
    table = measured.intervals
    if table is None or not table.height or (warmed_up and not table["warmup"].any()):
        return None
    return int(table["count"].sum())
