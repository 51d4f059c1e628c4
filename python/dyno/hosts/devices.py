"""Which block device a path's data are on, what that device has read and written, and how fast its kind can be."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dyno.model.base import RunError

Kind = Literal["loop", "hdd", "ssd", "nvme", "virtual", "unknown"]

_SECTOR = 512  # bytes; of /sys/block/*/stat, whatever the device's own sector is
_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes blanks and backslashes
_VIRTUAL = re.compile(r"qemu|vbox|virtual|vmware|msft|amazon elastic block|persistentdisk|nvme_card|xen", re.IGNORECASE)
_VIRTUAL_NAMES = re.compile(r"(?:vd|xvd)[a-z]+")

FASTEST_READ_BYTES_S: dict[Kind, float] = {
    # The outer tracks of the fastest 7200 rpm disks of one actuator are sold with 285 MB/s (Seagate Exos X22).
    "hdd": 300e6,
    # Serial ATA revision 3: 6 Gbit/s, of which 8b/10b coding leaves 600 MB/s.
    "ssd": 600e6,
    # NVM Express on four lanes of PCI Express 5.0: 4 x 32 GT/s, 128/130 coding: 15.75 GB/s, less the heads of packets.
    "nvme": 15e9,
}
"""Bytes a second that no device of a kind can pass; the kinds that are not here have no known bound."""

HDD_RANDOM_READS_S = 400.0
"""At 7200 rpm half a turn takes 4.2 ms, at 15,000 rpm 2 ms; with the shortest seeks and a queue, not more than this."""

_RANDOM_BELOW = 32 * 1024
"""Reads in sequence arrive in larger pieces than this, by read-ahead and since neighbours are merged."""


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo. `options` are those of the mount and those of the file system."""

    id: int
    device: tuple[int, int]
    point: str
    kind: str
    source: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class DeviceCounters:
    """What a device has done since it is there; take one from a later one. `flushes` is None where they are not told.

    `busy_ms` is the time in which it had something to do.
    """

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    busy_ms: int
    flushes: int | None

    def __sub__(self, earlier: DeviceCounters) -> DeviceCounters:
        known = self.flushes is not None and earlier.flushes is not None
        return DeviceCounters(
            self.reads - earlier.reads,
            self.read_bytes - earlier.read_bytes,
            self.writes - earlier.writes,
            self.written_bytes - earlier.written_bytes,
            self.busy_ms - earlier.busy_ms,
            (self.flushes or 0) - (earlier.flushes or 0) if known else None,
        )


@dataclass(frozen=True)
class Device:
    """A block device. `below` is the one under a loop device's file.

    Where a file system has none (tmpfs, NFS), `name` is the file system's, the kind is unknown and `folder` is None.
    """

    name: str
    kind: Kind
    folder: Path | None = None
    """Where /sys tells of it."""
    below: Device | None = None

    def counters(self) -> DeviceCounters:
        """What it has done so far. Raises RunError where it is no block device, or is gone."""
        if self.folder is None:
            raise RunError(f"{self.name} has no block device whose reads and writes could be counted")
        try:
            told = [int(word) for word in (self.folder / "stat").read_text().split()]
        except OSError as error:
            raise RunError(f"cannot read what {self.name} has read and written: {error.strerror}") from error
        # Documentation/block/stat.rst. Flushes are told since Linux 5.5, and of whole disks only.
        flushes = told[15] if len(told) > 15 and not (self.folder / "partition").exists() else None
        return DeviceCounters(told[0], told[2] * _SECTOR, told[4], told[6] * _SECTOR, told[9], flushes)

    def numbers(self) -> frozenset[str]:
        """Its own (`7:0`), that of the disk that it is a part of, and those below it: by these the kernel limits it."""
        folders = () if self.folder is None else (self.folder, self.folder.parent)
        own = {file.read_text().strip() for folder in folders if (file := folder / "dev").is_file()}
        return frozenset(own | (self.below.numbers() if self.below else frozenset()))

    def fastest_read_bytes_s(self) -> float | None:
        """What a device of its kind can read at most, in bytes a second; of a loop device, the one below it.

        None where the kind is not known: a virtual disk is as fast as what the hypervisor does with it.
        """
        if self.kind == "loop":
            return self.below.fastest_read_bytes_s() if self.below else None
        return FASTEST_READ_BYTES_S.get(self.kind)

    def disk(self) -> str | None:
        """The whole disk that it is or is a partition of, by the kernel's name; None where it is no block device."""
        if self.folder is None:
            return None
        whole = self.folder.resolve()
        return whole.parent.name if (whole / "partition").exists() else whole.name

    def hardware(self) -> Device:
        """The device itself, or what is at the bottom of a loop device."""
        return self.below.hardware() if self.below else self


def too_fast(device: Device, read_bytes: int, reads: int, seconds: float) -> str | None:
    """Why a cache below must have answered some of these reads, in a sentence; None where that does not show.

    Never more than a lower bound: a cache below that is no faster than a device can be does not show.
    """
    hardware = device.hardware()
    fastest = hardware.fastest_read_bytes_s()
    if fastest is None or seconds <= 0:
        return None
    if read_bytes / seconds > fastest:
        return (
            f"{device.name} read {read_bytes / seconds / 1e6:.0f} MB/s, more than the {fastest / 1e6:.0f} MB/s that a "
            f"device of its kind ({hardware.kind}) can: a cache below it answered"
        )
    small = reads > 0 and read_bytes / reads < _RANDOM_BELOW
    if hardware.kind == "hdd" and small and reads / seconds > HDD_RANDOM_READS_S:
        return (
            f"{device.name} answered {reads / seconds:.0f} small reads a second, more than the "
            f"{HDD_RANDOM_READS_S:.0f} that a rotating disk can: a cache below it answered"
        )
    return None


def device_of(path: Path) -> Device:
    """The block device below a path's file system, through overlays, bind mounts and partitions.

    Raises RunError where the path cannot be looked at.
    """
    mount = mount_of(path)
    if mount.device[0] != 0:
        return _block_device(*mount.device)
    # A file system over several devices, or over none, has a number of its own; btrfs tells one of its devices.
    if mount.kind == "overlay":
        upper = next((word.partition("=")[2] for word in mount.options if word.startswith("upperdir=")), None)
        if upper is not None and Path(upper).is_dir():
            return device_of(Path(upper))
    elif mount.source.startswith("/dev/"):
        try:
            status = Path(mount.source).stat()
        except OSError:
            return Device(mount.kind, "unknown")
        if stat.S_ISBLK(status.st_mode):
            return _block_device(os.major(status.st_rdev), os.minor(status.st_rdev))
    return Device(mount.kind, "unknown")


def block_device(node: Path) -> Device:
    """The block device of a node such as /dev/sdb. Raises RunError where it is none."""
    try:
        status = node.stat()
    except OSError as error:
        raise RunError(f"cannot look at {node}: {error.strerror}") from error
    if not stat.S_ISBLK(status.st_mode):
        raise RunError(f"{node} is no block device")
    return _block_device(os.major(status.st_rdev), os.minor(status.st_rdev))


def discards(node: Path) -> bool:
    """Whether a block device can be told that blocks are free; the kernel takes `discard` for others too."""
    folder = block_device(node).folder
    return folder is not None and _read(_disk(folder) / "queue/discard_max_bytes") not in (None, "0")


def mount_of(path: Path) -> Mount:
    """The mount that a path is on. Raises RunError where the path cannot be looked at."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise RunError(f"cannot see which file system {path} is on: {error.strerror}") from error
    try:
        # By the kernel's own number of it: mount points may lie above one another, or be named otherwise.
        told = Path(f"/proc/self/fdinfo/{handle}").read_text()
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    finally:
        os.close(handle)
    number = next(line.split()[1] for line in told.splitlines() if line.startswith("mnt_id:"))
    for line in mounts.splitlines():
        if line.split(maxsplit=1)[0] == number:
            return _mount(line)
    raise RunError(f"the file system of {path} is not among those that this process sees")


def mounts_of(pid: int) -> list[Mount]:
    """All mounts as a process sees them, the newest last. Raises OSError where it has ended."""
    text = Path(f"/proc/{pid}/mountinfo").read_text(errors="surrogateescape")
    return [_mount(line) for line in text.splitlines()]


def _mount(line: str) -> Mount:
    """Documentation/filesystems/proc.rst: id, parent, device, root, point, options, optional words, -, and the rest."""
    before, _, after = line.partition(" - ")
    words = before.split()
    kind, source, options = after.split()[:3]
    major, minor = map(int, words[2].split(":"))
    both = (*words[5].split(","), *options.split(","))
    return Mount(int(words[0]), (major, minor), _plain(words[4]), kind, _plain(source), tuple(map(_plain, both)))


def _plain(word: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), word)


def _block_device(major: int, minor: int) -> Device:
    folder = Path(f"/sys/dev/block/{major}:{minor}").resolve()
    if not folder.is_dir():
        return Device(f"{major}:{minor}", "unknown")
    disk = folder.parent if (folder / "partition").exists() else folder
    backing = _read(disk / "loop/backing_file")
    if backing is not None:
        file = Path(backing)
        return Device(folder.name, "loop", folder, device_of(file) if file.exists() else None)
    return Device(folder.name, _kind(disk), folder)


def _kind(disk: Path) -> Kind:
    """Only what is sure: a RAID controller, a USB bridge or a hypervisor may say anything of what is behind it."""
    made_of = sorted(disk.glob("slaves/*"))
    if made_of:  # a volume; of several devices it is faster than one of them
        kinds = {_kind(_disk(each.resolve())) for each in made_of}
        return kinds.pop() if len(made_of) == 1 else "virtual" if "virtual" in kinds else "unknown"
    if _VIRTUAL_NAMES.fullmatch(disk.name):
        return "virtual"
    vendor, model = _read(disk / "device/vendor") or "", _read(disk / "device/model") or ""
    if _VIRTUAL.search(f"{vendor} {model}"):
        return "virtual"
    if disk.name.startswith("nvme"):
        return "nvme"
    rotational = _read(disk / "queue/rotational")
    if vendor == "ATA" and rotational in ("0", "1"):
        return "hdd" if rotational == "1" else "ssd"
    return "unknown"


def _disk(folder: Path) -> Path:
    return folder.parent if (folder / "partition").exists() else folder


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="surrogateescape").strip()
    except OSError:
        return None
