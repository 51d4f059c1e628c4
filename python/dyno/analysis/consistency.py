"""Whether the figures of a run agree with each other: laws that hold whatever was measured.

Each sets a reading against another that was taken in another way. Where they contradict each other, the measurement is
at fault, and not the system: nothing that is reckoned from them is to be believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dyno.analysis.demands import clients_set, think_time
from dyno.analysis.rounding import rounded
from dyno.analysis.sentences import capital, levels
from dyno.analysis.table import UNSTEADY, Table
from dyno.model.answers import IN_BATCH
from dyno.model.findings import LawCheck, LawFault, format_quantity
from dyno.model.run import IN_TURN, RunRecord
from dyno.model.study import Cell, Study
from dyno.model.usage import Usage

_STATES = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "idle", "guest", "gnice")
_TICK_S = 0.01  # what /proc/stat counts in
_PERIOD_S = 0.1  # over which a CPU quota is enforced (cpu.cfs_period_us)
_MIB = 2**20

OF_CLOCKS = 0.05
"""CPU time of processes is taken exactly and that of the machine by clock ticks: they differ by a few per cent."""

OF_LATENCY = (0.10, 5e-6)
"""What a driver does between operations is in no latency: up to a share of an operation's time, or seconds of it."""

OF_WINDOWS = 0.20
"""Samples tell of most of the measured part and not of all, and throughput moves within a run."""

_MOST_FAILED = 0.01  # of operations: what a failed one takes is in no mean latency


@dataclass(frozen=True)
class Look:
    """What a law sees in a run: a figure, what it is held against, and from where to where it may be."""

    found: float
    expected: float
    low: float
    high: float

    @property
    def broken(self) -> bool:
        """Whether the figure is beyond what is tolerated."""
        return not self.low <= self.found <= self.high

    @property
    def off(self) -> float:
        """How far the figure is off: the size of the log of its ratio; of a bound, only where it is above."""
        if not self.expected > 0 or not self.found > 0:
            return math.inf if self.broken else -math.inf
        off = math.log(self.found / self.expected)
        return abs(off) if self.low > -math.inf else off


_NOTHING = Usage(seconds=0.0, operations=0.0, samples=0, cpus=0.0)


@dataclass(frozen=True)
class _Seen:
    """An ok run, with what it used where it was observed."""

    cell: Cell
    run: RunRecord
    used: Usage


@dataclass(frozen=True)
class _Law:
    name: str
    says: str
    tolerance: str
    unit: str
    look: Callable[[_Seen], Look | None]


def _states(seen: _Seen) -> Look | None:
    if "cpu.idle" not in seen.used.means:
        return None
    found = sum(seen.used.means.get(f"cpu.{name}", 0.0) for name in _STATES)
    return Look(found, 100.0, 99.0, 101.0)


def _ticks(seen: _Seen) -> Look | None:
    if "stat.ticks" not in seen.used.means or not seen.used.cpus:
        return None
    cpus = seen.used.cpus
    slack = OF_CLOCKS * cpus + cpus * 2 * _TICK_S / seen.used.seconds
    return Look(seen.used.means["stat.ticks"] * _TICK_S, cpus, cpus / 2, cpus + slack)


def _processes(seen: _Seen) -> Look | None:
    if "machine.cpu" not in seen.used.per_s:
        return None
    watched = [seen.used.per_s[name] for name in ("server.cpu", "driver.cpu") if name in seen.used.per_s]
    if not watched:
        return None
    # Some hypervisors' kernels count as a process's what was stolen from it.
    whole = seen.used.per_s["machine.cpu"] + seen.used.per_s.get("machine.steal", 0.0)
    return _at_most(sum(watched), whole, OF_CLOCKS * whole + OF_CLOCKS)


def _group(seen: _Seen) -> Look | None:
    if "server.cgroup.cpu" not in seen.used.means or "server.cpu" not in seen.used.per_s:
        return None
    group = seen.used.means["server.cgroup.cpu"] / 100
    return _at_most(seen.used.per_s["server.cpu"], group, OF_CLOCKS * group + OF_CLOCKS)


def _limit(seen: _Seen) -> Look | None:
    limit = seen.cell.host.machine.cpus
    if limit is None:
        return None
    of = "server.cpu" if "server.cpu" in seen.used.per_s else "driver.cpu"
    if of not in seen.used.per_s:
        return None
    return _at_most(seen.used.per_s[of], limit, OF_CLOCKS * limit + _PERIOD_S * limit / seen.used.seconds)


def _disk(seen: _Seen) -> Look | None:
    if "disk.busy" not in seen.used.per_s:
        return None
    return _at_most(100 * seen.used.per_s["disk.busy"], 100.0, 1.0)


def _device(seen: _Seen) -> Look | None:
    counted = [seen.run.responses.get(name) for name in ("device_read", "device_written")]
    if "disk.read" not in seen.used.per_s or "disk.written" not in seen.used.per_s:
        return None
    if counted[0] is None or counted[1] is None:
        return None
    sampled = (seen.used.per_s["disk.read"] + seen.used.per_s["disk.written"]) * seen.used.seconds / _MIB
    whole = counted[0] + counted[1]
    return _at_most(sampled, whole, 0.01 * whole + 1.0)


def _little(seen: _Seen) -> Look | None:
    clients, think = clients_set(seen.cell), think_time(seen.run)
    rate, latency = seen.run.responses.get("throughput"), seen.run.responses.get("latency_mean")
    if seen.run.loop != "closed" or clients is None or think is None or not rate or not latency:
        return None
    seconds = seen.run.responses.get("elapsed", 0.0)
    if seen.run.responses.get("failed_operations", 0.0) > _MOST_FAILED * rate * seconds > 0:
        return None
    share, between = OF_LATENCY
    low = clients - max(share * clients, between * rate) - _with_nothing_left(seen.run, clients, seconds)
    # Of what is under way as the run ends all of its time is in the mean, and it may be the longest.
    beyond = seen.run.responses.get("latency_max", 0.0) / 1000 / seconds if seconds > 0 else 0.0
    return Look(rate * (latency / 1000 + think), clients, low, clients * (1.05 + beyond))


def _with_nothing_left(run: RunRecord, clients: float, seconds: float) -> float:
    """How many clients at the most have nothing left to ask, on average, since their batch is about to end.

    A client ends only when no query of the batch is left to be taken. Then the query that ends last was sent already,
    so that nobody waits for that end longer than this query takes, and its own client not at all: of W clients the
    others are idle for (W - 1) L at the most, L being the batch's longest answer. Batches come one after the other, so
    of all clients' time W T it is (W - 1) times the sum of these L. It is so too where there are fewer queries than
    clients, who then all begin at once. Clients that do nothing while queries are left are in no such allowance.
    """
    longest = (
        value
        for name, value in run.responses.items()
        if name.startswith(f"{IN_BATCH}.") and name.endswith(".latency_max")
    )
    return (clients - 1) * math.fsum(longest) / 1000 / seconds if seconds > 0 else 0.0


def _throughput(seen: _Seen) -> Look | None:
    rate, seconds = seen.run.responses.get("throughput"), seen.run.responses.get("elapsed")
    if not rate or not seconds or seen.used.seconds < seconds / 2 or seen.used.samples < 2:
        return None
    if seen.run.status.get(IN_TURN, 1.0) > 1:
        return None
    if seen.run.measured is not None and (seen.run.measured.course is None or seen.run.measured.course in UNSTEADY):
        return None
    return Look(seen.used.operations / seen.used.seconds, rate, (1 - OF_WINDOWS) * rate, (1 + OF_WINDOWS) * rate)


def _at_most(found: float, limit: float, slack: float) -> Look:
    return Look(found, limit, -math.inf, limit + slack)


LAWS = (
    _Law(
        "states of the CPUs",
        "the shares of all states of the CPUs add up to all of their time",
        "1 point: each share is rounded to a clock tick",
        "%",
        _states,
    ),
    _Law(
        "clock ticks",
        "no more time is in all states of the CPUs together than CPUs x time, by the clock of the samples",
        "5 % and 2 ticks a CPU above; half below, since ticks miss short work of a CPU that sleeps in between",
        "CPUs",
        _ticks,
    ),
    _Law(
        "utilisation, by processes",
        "system and driver use no more CPU time, by their own counts, than the machine by /proc/stat",
        "5 % and 0.05 CPUs: a process's time is exact, the machine's is of clock ticks",
        "CPUs",
        _processes,
    ),
    _Law(
        "utilisation, by the control group",
        "the system's processes use no more CPU time than the control group that they are in",
        "5 % and 0.05 CPUs: they are not read at the same moment",
        "CPUs",
        _group,
    ),
    _Law(
        "utilisation of the limit",
        "what a CPU limit holds back uses no more than the limit",
        "5 % and one period of 0.1 s, which may be used up before the first sample",
        "CPUs",
        _limit,
    ),
    _Law(
        "utilisation of the disk",
        "the device of the data is busy for no more than all of the time",
        "1 point: busy time is counted in whole clock ticks",
        "%",
        _disk,
    ),
    _Law(
        "bytes of the device",
        "samples of the measured part saw no more bytes than the device's own counters in the whole drive",
        "1 % and 1 MiB: counters and samples are not read at the same moment",
        "MiB",
        _device,
    ),
    _Law(
        "Little's law",
        "in a closed loop, throughput x (mean latency + think time) is the number of clients",
        "5 % above, and the longest operation's share of the run, which may end after it; below, 10 % or 5 us an "
        "operation: what a driver does between operations is in no latency; and, of batches, of all clients but one as "
        "much of the time as the longest answers took, since at its end they have nothing left to ask",
        "clients",
        _little,
    ),
    _Law(
        "utilisation, by operations",
        "the operations of the sampled time are those of the driver's throughput, so that X D is what was used",
        "20 %: samples tell of most of a steady run and not of all of it",
        "ops/s",
        _throughput,
    ),
)


def consistency(study: Study, table: Table) -> tuple[tuple[LawCheck, ...], tuple[LawFault, ...]]:
    """How the ok runs keep each law, laws that could not be looked at left out; and each that is broken, by run."""
    cells = study.numbered()
    checks, faults = [], []
    for law in LAWS:
        looks = [
            (run, look)
            for run in table.ok_runs
            if (
                look := law.look(
                    _Seen(cells[run.slot.cell], run, table.used[run.slot.cell].get(run.slot.block, _NOTHING))
                )
            )
        ]
        if not looks:
            continue
        run, worst = max(looks, key=lambda each: each[1].off)
        checks.append(
            LawCheck(
                law=law.name,
                says=law.says,
                tolerance=law.tolerance,
                runs=len(looks),
                broken=sum(look.broken for _, look in looks),
                worst=rounded(worst.found / worst.expected) if worst.expected > 0 else None,
                worst_run=run.run,
            )
        )
        faults += [_fault(study, law, run, look) for run, look in looks if look.broken]
    return tuple(checks), tuple(sorted(faults, key=lambda fault: fault.run))


def _fault(study: Study, law: _Law, run: RunRecord, look: Look) -> LawFault:
    told = levels(study.telling(run.levels))
    held = "at most " if look.low == -math.inf else ""
    found = f"{format_quantity(look.found)} {law.unit} were found for {held}{format_quantity(look.expected)}"
    return LawFault(
        law=law.name,
        run=run.run,
        cell=run.slot.cell,
        levels=run.levels,
        found=rounded(look.found),
        expected=rounded(look.expected),
        unit=law.unit,
        sentence=(
            f"Run {run.run}{f' ({told})' if told else ''} contradicts itself: {law.says}; {found} "
            f"({capital(law.name)}; tolerated: {law.tolerance})."
        ),
    )
