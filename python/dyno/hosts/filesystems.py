"""File systems made for the data of a study: an image, a loop device, mkfs, a mount; what of it was asked and is so."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dyno.hosts import pagecache
from dyno.hosts.devices import Mount, mount_of
from dyno.model.base import RunError, Scalar
from dyno.model.study import FileSystem
from dyno.model.units import format_size

_PROBE = 64 * 1024
_VERSION = re.compile(r"\d+\.[\d.]*\d")
_CHUNK = 8 * 1024 * 1024
KEY = "host.file_system"
"""Where a study says which file system is to be made, if it is no system of its own."""


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
    programs: tuple[str, ...]
    words: tuple[str, ...]
    mount: tuple[str, ...] = ()


_MAKERS = {
    # Below 512 MiB its blocks would be of 1 KiB, and a small scale of a study would measure something else.
    "ext4": _Maker(
        "e2fsprogs",
        ("mkfs.ext4", "dumpe2fs", "e2fsck", "e2freefrag", "filefrag"),
        ("-q", "-F", "-m", "0", "-b", "4096"),
    ),
    "xfs": _Maker("xfsprogs", ("mkfs.xfs", "xfs_info", "xfs_repair", "xfs_db"), ("-q", "-f", "-K")),
    "btrfs": _Maker("btrfs-progs", ("mkfs.btrfs", "btrfs"), ("-q", "-f", "-K"), ("nodiscard",)),
}
_CHECKERS = {
    "ext4": ("e2fsck", "-f", "-n"),
    "xfs": ("xfs_repair", "-n"),
    "btrfs": ("btrfs", "check", "--readonly"),
}
_EXT4_AT_ONCE = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
"""What ext4 leaves for later a thread of the kernel does in the middle of what is measured. Extended options are one
word, and the last such word that is given counts alone."""

_SIZE = re.compile(r"(\d+)([kmg]?)", re.IGNORECASE)
_ALWAYS_SHOWN = {"ro", "rw", "noatime", "nodiratime", "nosuid", "nodev", "noexec", "sync", "dirsync", "lazytime"}
"""Options of every file system, which mountinfo shows whenever they are in force."""


def refuse_missing(kind: str, key: str = KEY) -> None:
    """What a kind of file system lacks here, which the study asks for at that key. Raises RunError."""
    if os.geteuid() != 0:
        raise RunError(f"a file system of its own ({key}) needs root")
    if mkfs(kind) is None:
        raise RunError(f"mkfs.{kind} is missing: install Debian's {_MAKERS[kind].package}")


def refuse(spec: FileSystem, image: Path, free: int) -> None:
    """What can be told before anything is made; `free` is in bytes. Raises RunError."""
    refuse_missing(spec.kind)
    if any(word == "discard" or word.startswith("discard=") for word in spec.mount):
        raise RunError("the mount option discard would give back what was allocated for host.file_system: leave it out")
    if spec.size > free:
        raise RunError(
            f"the file system for the data (host.file_system) takes {format_size(spec.size)}, "
            f"and {image.parent} has {format_size(free)} free"
        )


def mkfs(kind: str) -> str | None:
    """The program that makes a kind of file system; None where it is not installed."""
    return _found(f"mkfs.{kind}")


def program(name: str) -> str:
    """A program of a kind of file system, by its path. Raises RunError where it is not installed."""
    if (found := _found(name)) is None:
        package = next((maker.package for maker in _MAKERS.values() if name in maker.programs), "util-linux")
        raise RunError(f"{name} is missing: install Debian's {package}")
    return found


def checker(kind: str) -> str:
    """The name of the program that looks for damage in a kind of file system."""
    return _CHECKERS[kind][0]


def check_command(kind: str, device: Path) -> list[str]:
    """The command that looks for damage, and repairs nothing. Raises RunError where it is not installed."""
    words = _CHECKERS[kind]
    return [program(words[0]), *words[1:], str(device)]


def version(kind: str) -> str:
    """Which one mkfs of a kind is, as it says. Raises RunError."""
    try:
        answer = subprocess.run(
            [program(f"mkfs.{kind}"), "-V"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"mkfs.{kind} does not say which one it is: {error}") from error
    found = _VERSION.search(answer.stdout + answer.stderr)
    return found[0] if found is not None else "unknown"


def _found(name: str) -> str | None:
    """A user's PATH may lack where they are."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


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


def fill_in(image: Path, size: int) -> None:
    """Allocate again what was given back of an image, so that its every block is its own. Raises RunError."""
    try:
        handle = os.open(image, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_fallocate(handle, 0, size)
        finally:
            os.close(handle)
    except OSError as error:
        raise RunError(f"cannot allocate {format_size(size)} for {image}: {error.strerror}") from error


def write_all(image: Path, size: int, deadline: float) -> None:
    """Write every block of an image once, past the page cache where that can be; until `deadline` (time.monotonic).

    What is allocated and was never written, the file system below has to mark when it is: the first run that writes
    somewhere would pay for that, and the next would not. Raises RunError.
    """
    try:
        with mmap.mmap(-1, _CHUNK) as zeros, _opened_past_the_cache(image) as file:
            written = 0
            while written < size:
                if time.monotonic() > deadline:
                    raise RunError(f"writing {format_size(size)} to {image} took longer than the study allows")
                written += os.write(file.fileno(), memoryview(zeros)[: min(_CHUNK, size - written)])
            os.fdatasync(file.fileno())
        pagecache.evict(image)
    except OSError as error:
        raise RunError(f"cannot write {format_size(size)} to {image}: {error.strerror}") from error


def _opened_past_the_cache(image: Path) -> IO[bytes]:
    try:
        handle = os.open(image, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:  # tmpfs of old kernels
        handle = os.open(image, os.O_WRONLY | os.O_CLOEXEC)
    return os.fdopen(handle, "wb", buffering=0)


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


def refuse_files(words: Sequence[str]) -> None:
    """Raise RunError where a word of mkfs names a file or device in the folder where dyno was started."""
    for word in words:
        for part in re.split("[,=]", word):
            if part and Path(part).exists() and not Path(part).is_dir():
                raise RunError(
                    f"mkfs would be told {word!r}, and {Path(part).absolute()} is there, which it might write over; "
                    "leave that word out, or start dyno in another folder"
                )


def mount_command(spec: FileSystem, device: Path, folder: Path) -> list[str]:
    """The command that mounts it."""
    options = ",".join((*_MAKERS[spec.kind].mount, *spec.mount))
    return ["mount", "-t", spec.kind, *(["-o", options] if options else []), str(device), str(folder)]


def attest_direct_io(device: Path, image: Path, *, asked: bool, key: str = KEY) -> None:
    """Raises RunError where the loop device reads and writes otherwise than asked; writes over its first bytes.

    What the device says of itself (loop/dio in /sys) is not enough: a file system may take direct I/O and go by the
    page cache all the same, as tmpfs does, and ext4 that journals its data. So something is written to the device, and
    nothing of the image is to be in the page cache then.
    """
    try:
        direct = _passes_by_the_cache(device, image)
    except OSError as error:
        raise RunError(f"cannot see whether {device} does direct I/O: {error}") from error
    if direct == asked:
        return
    below = mount_of(image)
    if asked:
        raise RunError(
            f"{device} does no direct I/O: the file system below it ({below.kind} of {below.point}) does not offer it; "
            f"choose another folder, or set {key}.direct_io to false"
        )
    raise RunError(f"{device} does direct I/O on {below.kind} of {below.point}, and {key}.direct_io is false")


def does_direct_io(device: Path) -> bool:
    """What a loop device says of itself."""
    return Path("/sys/class/block", device.resolve().name, "loop/dio").read_text().strip() == "1"


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
    mount = attest_source(spec.kind, str(device), folder)
    if wrong := not_in_force(spec.mount, mount.options):
        raise RunError(
            f"mount options of host.file_system are not in force: {', '.join(wrong)} ({spec.kind} shows "
            f"{','.join(mount.options)})"
        )
    return mount


def attest_source(kind: str, source: str, folder: Path) -> Mount:
    """The mount at a folder. Raises RunError where it is not of that kind, or of another source."""
    mount = mount_of(folder)
    if mount.source != source or mount.kind != kind:
        raise RunError(f"{folder} is {mount.kind} of {mount.source}, not {kind} of {source}")
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


def facts(spec: FileSystem, device: Path, mount: Mount, image: Path | None) -> dict[str, Scalar]:
    """What somebody would need to know of it, as read back; nothing that differs from one making to the next."""
    status = os.statvfs(mount.point)
    queue = Path("/sys/class/block", device.resolve().name).resolve()
    queue = queue.parent if (queue / "partition").exists() else queue
    of_image: dict[str, Scalar] = (
        {} if image is None else {"direct_io": does_direct_io(device), "image_on": mount_of(image).kind}
    )
    return {
        "type": mount.kind,
        "options": ",".join(dict.fromkeys(mount.options)),
        "bytes": status.f_blocks * status.f_frsize,
        "block_bytes": status.f_bsize,
        "sector_bytes": int((queue / "queue/logical_block_size").read_text()),
        **of_image,
        "made_by": " ".join(mkfs_command(spec, Path("DEVICE"))),
    }
