"""File systems made for the data of a study: an image, a loop device, mkfs, a mount; what of it was asked and is so."""

from __future__ import annotations

import mmap
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts import pagecache
from dyno.hosts.devices import Mount, mount_of
from dyno.model.base import RunError, Scalar
from dyno.model.study import FileSystem
from dyno.model.units import format_size

_PROBE = 64 * 1024


@dataclass(frozen=True)
class Mounted:
    """A file system that was made. `folder` is its root; `facts` is what of it is so, as read back."""

    folder: Path
    device: Path
    image: Path
    spec: FileSystem
    facts: Mapping[str, Scalar]


@dataclass(frozen=True)
class _Maker:
    """How a kind of file system is made. None of them may discard: that gives an image's allocated space back."""

    package: str
    words: tuple[str, ...]
    mount: tuple[str, ...] = ()


_MAKERS = {
    # Below 512 MiB its blocks would be of 1 KiB, and a small scale of a study would measure something else.
    "ext4": _Maker("e2fsprogs", ("-q", "-F", "-m", "0", "-b", "4096")),
    "xfs": _Maker("xfsprogs", ("-q", "-f", "-K")),
    "btrfs": _Maker("btrfs-progs", ("-q", "-f", "-K"), ("nodiscard",)),
}
_EXT4_AT_ONCE = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
"""What ext4 leaves for later a thread of the kernel does in the middle of what is measured. Extended options are one
word, and the last such word that is given counts alone."""

_SIZE = re.compile(r"(\d+)([kmg]?)", re.IGNORECASE)
_ALWAYS_SHOWN = {"ro", "rw", "noatime", "nodiratime", "nosuid", "nodev", "noexec", "sync", "dirsync", "lazytime"}
"""Options of every file system, which mountinfo shows whenever they are in force."""


def refuse(spec: FileSystem, image: Path, free: int) -> None:
    """What can be told before anything is made; `free` is in bytes. Raises RunError."""
    if os.geteuid() != 0:
        raise RunError("a file system of its own (host.file_system) needs root")
    maker = _MAKERS[spec.kind]
    if mkfs(spec.kind) is None:
        raise RunError(f"mkfs.{spec.kind} is missing: install Debian's {maker.package}")
    if any(word == "discard" or word.startswith("discard=") for word in spec.mount):
        raise RunError("the mount option discard would give back what was allocated for host.file_system: leave it out")
    if spec.size > free:
        raise RunError(
            f"the file system for the data (host.file_system) takes {format_size(spec.size)}, "
            f"and {image.parent} has {format_size(free)} free"
        )


def mkfs(kind: str) -> str | None:
    """The program that makes a kind of file system; None where it is not installed. A user's PATH may lack it."""
    return shutil.which(f"mkfs.{kind}", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


def allocate(image: Path, size: int) -> None:
    """Make a file whose every block is its own, so that the file system below cannot run full under it.

    Raises RunError.
    """
    try:
        handle = os.open(image, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, size)
        finally:
            os.close(handle)
    except OSError as error:
        raise RunError(f"cannot allocate {format_size(size)} for {image}: {error.strerror}") from error


def mkfs_command(spec: FileSystem, device: Path) -> list[str]:
    """The command that makes it; the options given stand last, where they count."""
    own = list(spec.mkfs)
    words = [*_MAKERS[spec.kind].words]
    if spec.kind == "ext4":
        extended = _EXT4_AT_ONCE
        while "-E" in own[:-1]:
            place = own.index("-E")
            extended = f"{extended},{own[place + 1]}"
            del own[place : place + 2]
        words += ["-E", extended]
    return [mkfs(spec.kind) or f"mkfs.{spec.kind}", *words, *own, str(device)]


def mount_command(spec: FileSystem, device: Path, folder: Path) -> list[str]:
    """The command that mounts it."""
    options = ",".join((*_MAKERS[spec.kind].mount, *spec.mount))
    return ["mount", "-t", spec.kind, *(["-o", options] if options else []), str(device), str(folder)]


def attest_direct_io(spec: FileSystem, device: Path, image: Path) -> None:
    """Raises RunError where the loop device reads and writes otherwise than asked; writes over its first bytes.

    What the device says of itself (loop/dio in /sys) is not enough: a file system may take direct I/O and go by the
    page cache all the same, as tmpfs does, and ext4 that journals its data. So something is written to the device, and
    nothing of the image is to be in the page cache then.
    """
    try:
        direct = _passes_by_the_cache(device, image)
    except OSError as error:
        raise RunError(f"cannot see whether {device} does direct I/O: {error}") from error
    if direct == spec.direct_io:
        return
    below = mount_of(image)
    if spec.direct_io:
        raise RunError(
            f"{device} does no direct I/O: the file system below it ({below.kind} of {below.point}) does not offer it; "
            "choose another folder, or set host.file_system.direct_io to false"
        )
    raise RunError(
        f"{device} does direct I/O on {below.kind} of {below.point}, and host.file_system.direct_io is false"
    )


def _passes_by_the_cache(device: Path, image: Path) -> bool:
    pagecache.evict(image)
    handle = os.open(device, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        with mmap.mmap(-1, _PROBE) as aligned:
            os.write(handle, aligned)
    finally:
        os.close(handle)
    return pagecache.resident_bytes(image) == 0


def attest_mount(spec: FileSystem, device: Path, folder: Path) -> Mount:
    """The mount at a folder as the kernel tells it. Raises RunError where it is not the one that was asked."""
    mount = mount_of(folder)
    if mount.source != str(device) or mount.kind != spec.kind:
        raise RunError(f"{folder} is {mount.kind} of {mount.source}, not {spec.kind} of {device}")
    if wrong := not_in_force(spec.mount, mount.options):
        raise RunError(
            f"mount options of host.file_system are not in force: {', '.join(wrong)} ({spec.kind} shows "
            f"{','.join(mount.options)})"
        )
    return mount


def not_in_force(asked: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Which options are shown to be otherwise. A file system's own that are its defaults are not shown at all."""
    values = {name: value for word in shown for name, _, value in [word.partition("=")]}
    wrong = []
    for word in (part for words in asked for part in words.split(",")):
        name, _, value = word.partition("=")
        if name in _ALWAYS_SHOWN:
            wrong += [word] if name not in values else []
        elif value and values.get(name) and not _alike(value, values[name]):
            wrong.append(word)
    return wrong


def _alike(asked: str, shown: str) -> bool:
    """Whether two values mean the same: sizes are shown with other units, levels are added (`zstd` is `zstd:3`)."""
    if (a := _SIZE.fullmatch(asked)) and (b := _SIZE.fullmatch(shown)):
        return _number(a) == _number(b)
    return shown == asked or shown.startswith(f"{asked}:")


def _number(found: re.Match[str]) -> int:
    return int(found[1]) << 10 * " kmg".index(found[2].lower() or " ")


def facts(spec: FileSystem, device: Path, mount: Mount, image: Path) -> dict[str, Scalar]:
    """What somebody would need to know of it, as read back; nothing that differs from one making to the next."""
    status = os.statvfs(mount.point)
    below = mount_of(image)
    return {
        "type": mount.kind,
        "options": ",".join(dict.fromkeys(mount.options)),
        "bytes": status.f_blocks * status.f_frsize,
        "block_bytes": status.f_bsize,
        "sector_bytes": int(Path("/sys/block", device.name, "queue/logical_block_size").read_text()),
        "direct_io": spec.direct_io,
        "image_on": below.kind,
        "made_by": " ".join(mkfs_command(spec, Path("DEVICE"))),
    }
