"""Control groups: what the processes of a system may use of the machine together, in a container or not.

A group of ours lies at the top of its hierarchy and has the limits. Processes join children of it, natively one named
`native`, in containers one that the engine makes: version 2 lets no process be beside children with controllers, and
so a native process is as deep in the hierarchy as one in a container. Nodes of a system have groups of the same form,
each its own: below the system's where that has one, else beside it.

Which version a controller is of is looked at for each: on hybrid machines those of version 1 stand beside version 2.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dyno.hosts import leftovers
from dyno.hosts.confinement import Confinement
from dyno.hosts.devices import Device
from dyno.hosts.undo import Change, UndoJournal
from dyno.model.base import RunError, UserError
from dyno.model.study import Machine
from dyno.model.units import format_size

CONTROLLERS = ("cpu", "memory")

_PERIOD_US = 100_000  # the kernel's own default
_LEAST_QUOTA_US = 1_000  # the kernel refuses less
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NO_LIMIT = 2**62  # version 1 writes "none" as the largest multiple of a page below 2^63
_CPUS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_NATIVE = "native"


@dataclass(frozen=True)
class Hierarchy:
    """Where a controller's groups are, and by which version's files it is set."""

    top: Path
    version: int


def hierarchies(root: Path | None = None) -> dict[str, Hierarchy]:
    """By controller, of those that are needed here; one that this machine does not have is absent."""
    root = root or leftovers.CGROUPS
    found = {name: Hierarchy(root / name, 1) for name in CONTROLLERS if (root / name / "cgroup.procs").exists()}
    for top in (root, root / "unified"):
        try:
            offered = (top / "cgroup.controllers").read_text().split()
        except OSError:
            continue
        found |= {name: Hierarchy(top, 2) for name in CONTROLLERS if name in offered}
    return found


_CALLED_BY_V1 = {"cpu": "cpu", "memory": "memory", "io": "blkio"}


def controller(name: str, root: Path | None = None) -> Hierarchy | None:
    """Where the groups of `cpu`, `memory` or `io` are; None where this kernel offers none."""
    root = root or leftovers.CGROUPS
    if (root / _CALLED_BY_V1[name] / "cgroup.procs").exists():
        return Hierarchy(root / _CALLED_BY_V1[name], 1)
    for top in (root, root / "unified"):
        try:
            if name in (top / "cgroup.controllers").read_text().split():
                return Hierarchy(top, 2)
        except OSError:
            continue
    return None


def cpu_numbers(text: str) -> frozenset[int]:
    """The CPUs that a list such as `0-1,3` names. Raises UserError, also for those that dyno may not use itself."""
    usable = _usable()
    numbers: set[int] = set()
    for part in text.split(","):
        found = _CPUS.fullmatch(part.strip())
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise UserError(f"{text!r} is not a list of CPUs such as 0-1,3")
        for cpu in range(int(found[1]), int(found[2] or found[1]) + 1):
            if cpu not in usable:
                there = ",".join(map(str, sorted(usable)))
                raise UserError(f"there is no CPU {cpu}, of {text!r}, that may be used here; there are {there}")
            numbers.add(cpu)
    return frozenset(numbers)


def _usable() -> set[int]:
    return os.sched_getaffinity(0)


class ControlGroups:
    """The groups of a session, one for each machine that its studies ask for. All go when the journal is closed."""

    def __init__(self, undo: UndoJournal) -> None:
        self._undo = undo
        self._made: dict[Machine, Confinement] = {}
        self._nodes: dict[tuple[str | None, str, Machine], Confinement] = {}

    def confine(self, machine: Machine, cpus: str | None, *, parent: bool) -> Confinement:
        """See `LocalHost.confine`."""
        _refuse(machine, cpus)
        if machine == Machine() and not parent:
            return Confinement(cpus=cpus)
        if machine not in self._made:
            name = f"dyno-{self._undo.token}" + (f"-{len(self._made) + 1}" if self._made else "")
            self._made[machine] = self._make(machine, name, with_io=bool(machine.disk.limits))
        return replace(self._made[machine], cpus=cpus)

    def confine_node(self, name: str, machine: Machine, site: Confinement) -> Confinement:
        """See `LocalHost.confine_node`."""
        _refuse(machine, site.cpus)
        if site.group is not None and machine.cpus is not None:
            most = limits_in_force(site.group).get("cpus")
            if most is not None and machine.cpus > most:  # which version 1 refuses, and version 2 does not tell
                raise UserError(f"a node of {machine.cpus:g} CPUs does not fit into a machine of {most:g}")
        key = (site.group, name, machine)
        if key not in self._nodes:
            number = len(self._nodes) + 1
            above = f"dyno-{self._undo.token}-node" if site.group is None else f"{site.group.strip('/')}/node"
            with_io = controller("io") is not None  # for a disk that becomes slow
            self._nodes[key] = self._make(machine, f"{above}-{number}-{name}", with_io=with_io)
        return replace(self._nodes[key], cpus=site.cpus)

    def _make(self, machine: Machine, group: str, *, with_io: bool) -> Confinement:
        """`group` is its name, below that of another where it has a slash."""
        found = hierarchies()
        if with_io:
            io = controller("io")
            if io is None:
                raise RunError("host.machine.disk cannot be kept to: this kernel offers no control groups for io")
            found["io"] = io
        for name, asked in (("cpu", machine.cpus), ("memory", machine.memory)):
            if asked is not None and name not in found:
                raise RunError(f"host.machine cannot be kept to: this kernel offers no control groups for {name}")
        if not found:
            raise RunError("containers cannot be kept together: this kernel offers no control groups")
        if os.geteuid() != 0:
            raise RunError("control groups (host.machine, containers) need root")
        for top in {hierarchy.top for hierarchy in found.values() if hierarchy.version == 2}:
            self._enable(top, found)
        change = self._undo.will(Change("cgroup", {"name": group}))
        tops = tuple(dict.fromkeys(hierarchy.top for hierarchy in found.values()))
        try:
            for top in tops:
                # The group above is there, but where it needed no controller of this hierarchy; its own entry has it.
                (top / group).mkdir(parents=True)
            for top in {hierarchy.top for hierarchy in found.values() if hierarchy.version == 2}:
                for above in list((top / group).parents)[: group.count("/")]:
                    _turn_on(above, _missing(above, found))
            for kind, hierarchy in found.items():
                _limit(kind, hierarchy.version, hierarchy.top / group, machine)
                if hierarchy.version == 2:
                    _turn_on(hierarchy.top / group, _missing(hierarchy.top / group, found))
            for top in tops:
                (top / group / _NATIVE).mkdir()
        except (OSError, RunError) as error:
            self._undo.undo(change)
            if isinstance(error, OSError):
                raise RunError(f"cannot make the control group {error.filename}: {error.strerror}") from error
            raise
        return Confinement(tuple(top / group / _NATIVE / "cgroup.procs" for top in tops), f"/{group}")

    def _enable(self, top: Path, controllers: Collection[str]) -> None:
        """Have the controllers in the groups at the top of a hierarchy of version 2."""
        missing = _missing(top, controllers)
        if not missing:
            return
        change = self._undo.will(Change("cgroup-controllers", {"folder": str(top), "names": missing}))
        try:
            _turn_on(top, missing)
        except RunError:
            self._undo.undo(change)
            raise


def _refuse(machine: Machine, cpus: str | None) -> None:
    """Raise UserError for what this machine has not."""
    chosen = cpu_numbers(cpus) if cpus is not None else _usable()
    if machine.cpus is not None and machine.cpus > len(chosen):
        where = "may be used here" if cpus is None else f"are in {cpus!r}"
        raise UserError(f"a machine of {machine.cpus:g} CPUs cannot be had: {len(chosen)} {where}")
    if machine.memory is not None and machine.memory > (total := _memory_bytes()):
        has = format_size(total)
        raise UserError(f"a machine with {format_size(machine.memory)} of memory cannot be had: this one has {has}")


def _missing(group: Path, controllers: Collection[str]) -> list[str]:
    offered = (group / "cgroup.controllers").read_text().split()
    enabled = (group / "cgroup.subtree_control").read_text().split()
    return [name for name in controllers if name in offered and name not in enabled]


def _turn_on(group: Path, names: list[str]) -> None:
    if not names:
        return
    try:
        (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names))
    except OSError as error:
        raise RunError(f"cannot enable the controllers {', '.join(names)} in {group}: {error.strerror}") from error


def _limit(kind: str, version: int, group: Path, machine: Machine) -> None:
    if kind == "cpu" and machine.cpus is not None:
        quota = max(round(machine.cpus * _PERIOD_US), _LEAST_QUOTA_US)
        if version == 2:
            _write(group / "cpu.max", f"{quota} {_PERIOD_US}")
        else:
            _write(group / "cpu.cfs_period_us", str(_PERIOD_US))
            _write(group / "cpu.cfs_quota_us", str(quota))
    if kind == "memory" and machine.memory is not None:
        # Whole pages, as the kernel would round it. Nothing goes to swap: it would be memory that was not asked for.
        size = machine.memory // _PAGE * _PAGE
        if version == 2:
            _write(group / "memory.max", str(size))
            swap = group / "memory.swap.max"
            if swap.exists():
                _write(swap, "0")
        else:
            _count_children(group)
            _write(group / "memory.limit_in_bytes", str(size))
            with_swap = group / "memory.memsw.limit_in_bytes"
            if with_swap.exists():
                _write(with_swap, str(size))


def _count_children(group: Path) -> None:
    """Older kernels of version 1 count what children use only where that is asked for."""
    hierarchical = group / "memory.use_hierarchy"
    if _text(hierarchical) == "0":
        _write(hierarchical, "1")


def _write(file: Path, value: str) -> None:
    """A limit, read back. Raises RunError."""
    try:
        file.write_text(value)
    except OSError as error:
        raise RunError(f"cannot set {file.name} to {value}: {error.strerror}") from error
    if (found := _text(file)) != value:
        raise RunError(f"cannot set {file.name} to {value}: it is {found} after that was written")


def limits_in_force(group: str) -> dict[str, float]:
    """What the processes of a group of ours are held to; its own limits and those of the groups above it.

    `cpus` and `memory_bytes` are left out where there is no limit. Since the group was made, and left out where the
    kernel does not tell: `memory_peak_bytes` is the most that it used, `throttled_s` how long it had to wait for CPU
    time, `oom_kills` how many of its processes the kernel killed for memory.
    """
    return _in_force({name: (hierarchy, hierarchy.top / group.strip("/")) for name, hierarchy in hierarchies().items()})


class Kills:
    """How many processes of a group of ours the kernel killed for memory since this was made. To be closed.

    Version 1 counts those of a container in the container's own group, which goes when it ends: that the memory of the
    group above was used up is told of it all the same, and stands for one.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._told = 0
        self._bell: int | None = None
        memory = hierarchies().get("memory")
        if memory is not None and memory.version == 1:
            self._bell = _bell(memory.top / group.strip("/"))
        self._before = self._counted()

    def count(self) -> int:
        """Until now."""
        if self._bell is not None:
            with contextlib.suppress(BlockingIOError):
                self._told += os.eventfd_read(self._bell)
        return max(self._counted() - self._before, min(self._told, 1))

    def close(self) -> None:
        """Nothing is counted any more."""
        if self._bell is not None:
            os.close(self._bell)
            self._bell = None

    def _counted(self) -> int:
        return int(limits_in_force(self._group).get("oom_kills", 0))


def _bell(group: Path) -> int | None:
    """An eventfd that is told of each time that the memory of a group of version 1 is used up; None without root."""
    bell = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        with (group / "memory.oom_control").open() as watched:
            (group / "cgroup.event_control").write_text(f"{bell} {watched.fileno()}")
    except OSError:
        os.close(bell)
        return None
    return bell


def forget_peak(group: str) -> bool:
    """Have `memory_peak_bytes` of a group count from now on; whether the kernel lets one, which version 1 does."""
    memory = hierarchies().get("memory")
    if memory is None or memory.version != 1:
        return False
    try:
        (memory.top / group.strip("/") / "memory.max_usage_in_bytes").write_text("0")
    except OSError:
        return False
    return True


def limits_of(pid: int) -> dict[str, float]:
    """`limits_in_force` of the group, of each controller, that a process is in. Empty where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return {}
    groups = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for name, hierarchy in hierarchies().items():
            if name in controllers.split(",") if hierarchy.version == 1 else not controllers:
                groups[name] = (hierarchy, hierarchy.top / path.strip("/"))
    return _in_force(groups)


IO_LIMITS = {
    # What it is called here -> by version 1, by version 2.
    "read_bytes": ("read_bps_device", "rbps"),
    "write_bytes": ("write_bps_device", "wbps"),
    "reads": ("read_iops_device", "riops"),
    "writes": ("write_iops_device", "wiops"),
}


@dataclass(frozen=True)
class DiskLimits:
    """What was written for a device: `device` is its path, `limits` are by the names of `IO_LIMITS`.

    `inherited`: whether groups below are held to them together, as of version 2; else each needs its own.
    """

    device: Path
    limits: Mapping[str, int]
    inherited: bool


def limit_disk(group: str, device: Device, limits: Mapping[str, int]) -> DiskLimits:
    """Hold the processes of a group of ours to so many bytes and requests a second of a device, its whole disk.

    They go with the group, which is in the journal. Containers have groups of their own below it, which version 1 does
    not hold to them: their engine has to. Raises RunError.
    """
    io, disk = controller("io"), device.disk()
    if disk is None:
        raise RunError(f"host.machine.disk cannot be kept to: the data are on {device.name}, which is no block device")
    if io is None:
        raise RunError("host.machine.disk cannot be kept to: this kernel offers no control groups for io")
    number = Path(f"/sys/block/{disk}/dev").read_text().strip()
    ours = io.top / group.strip("/")
    for name, limit in limits.items():
        v1, v2 = IO_LIMITS[name]
        if io.version == 1:
            _write_of_device(ours / _NATIVE / f"blkio.throttle.{v1}", number, str(limit), str(limit))
        else:
            _write_of_device(ours / "io.max", number, f"{v2}={limit}", f"{v2}={limit}")
    return DiskLimits(Path("/dev") / disk, dict(limits), inherited=io.version == 2)


def release_disk(group: str, device: Device, limits: Collection[str]) -> None:
    """Undo `limit_disk` for a while: loading is not measured, and would take as many times longer. Raises RunError."""
    io = controller("io")
    assert io is not None, "it was limited by one"
    number = Path(f"/sys/block/{device.disk()}/dev").read_text().strip()
    ours = io.top / group.strip("/")
    for name in limits:
        v1, v2 = IO_LIMITS[name]
        file = ours / _NATIVE / f"blkio.throttle.{v1}" if io.version == 1 else ours / "io.max"
        try:
            file.write_text(f"{number} 0" if io.version == 1 else f"{number} {v2}=max")
        except OSError as error:
            raise RunError(f"cannot take back {file.name} of device {number}: {error.strerror}") from error


def _write_of_device(file: Path, device: str, words: str, expected: str) -> None:
    """A limit of one device, read back. Raises RunError."""
    try:
        file.write_text(f"{device} {words}")
    except OSError as error:
        raise RunError(f"cannot set {file.name} of device {device} to {words}: {error.strerror}") from error
    lines = [line.split() for line in _text(file).splitlines()]
    if not any(line[0] == device and expected in line[1:] for line in lines):
        raise RunError(f"cannot set {file.name} of device {device} to {words}: it is not there after that was written")


def io_limits_of(pid: int, devices: Collection[str]) -> dict[str, float]:
    """What the group of a process is held to on these devices (`254:0`), a second: bytes and requests.

    Version 1 holds a group to its own limits alone, version 2 to those above it too. Empty where there is none, where
    the process has ended, and where the kernel offers no such limits.
    """
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, float] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for name, limit in _io_limits(controllers.split(","), path.strip("/"), devices):
            found[name] = min(limit, found.get(name, limit))
    return found


def _io_limits(controllers: list[str], path: str, devices: Collection[str]) -> Iterator[tuple[str, float]]:
    if "blkio" in controllers:
        group = leftovers.CGROUPS / "blkio" / path
        for name, (file, _) in IO_LIMITS.items():
            for line in _text(group / f"blkio.throttle.{file}").splitlines():
                device, _, limit = line.partition(" ")
                if device in devices and limit.isdigit():
                    yield name, float(limit)
    elif controllers == [""]:
        top = next((top for top in (leftovers.CGROUPS, leftovers.CGROUPS / "unified") if (top / path).is_dir()), None)
        group = leftovers.CGROUPS if top is None else top / path
        while top is not None and group != top:
            for line in _text(group / "io.max").splitlines():
                device, *words = line.split()
                limits = dict(word.partition("=")[::2] for word in words)
                if device in devices:
                    known = ((name, limits.get(key, "")) for name, (_, key) in IO_LIMITS.items())
                    yield from ((name, float(limit)) for name, limit in known if limit.isdigit())
            group = group.parent


def _in_force(groups: dict[str, tuple[Hierarchy, Path]]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for name, (hierarchy, group) in groups.items():
        above = [group, *(folder for folder in group.parents if folder.is_relative_to(hierarchy.top))]
        v2 = hierarchy.version == 2
        if name == "cpu":
            cpus = [limit for folder in above if (limit := (_cpus_v2 if v2 else _cpus_v1)(folder)) is not None]
            if cpus:
                limits["cpus"] = min(cpus)
            stat = dict(line.split() for line in _text(group / "cpu.stat").splitlines())
            throttled = stat.get("throttled_usec" if v2 else "throttled_time")
            if throttled is not None:
                limits["throttled_s"] = int(throttled) / (1e6 if v2 else 1e9)
        else:
            file = "memory.max" if v2 else "memory.limit_in_bytes"
            sizes = [
                int(text) for folder in above if (text := _text(folder / file)).isdigit() and int(text) < _NO_LIMIT
            ]
            if sizes:
                limits["memory_bytes"] = min(sizes)
            peak = _text(group / ("memory.peak" if v2 else "memory.max_usage_in_bytes"))
            if peak:
                limits["memory_peak_bytes"] = int(peak)
            if (kills := _oom_kills(group, v2=v2)) is not None:
                limits["oom_kills"] = kills
    return limits


def _oom_kills(group: Path, *, v2: bool) -> int | None:
    # Version 1 counts those of each group apart.
    files = [group / "memory.events"] if v2 else group.rglob("memory.oom_control")
    pairs = [line.split() for file in files for line in _text(file).splitlines()]
    counts = [int(count) for key, count in pairs if key == "oom_kill"]
    return sum(counts) if counts else None


def _cpus_v1(group: Path) -> float | None:
    quota, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period else None


def _cpus_v2(group: Path) -> float | None:
    quota, _, period = _text(group / "cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdigit() else None


def _text(file: Path) -> str:
    """Empty where there is none: at the top of a hierarchy nothing is limited."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * _PAGE
