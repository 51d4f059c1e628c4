"""Who still has a block device that was unmounted here: a mount namespace that somebody made meanwhile has copies of
all mounts, and private ones stay there until its last process ends.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from dyno.hosts.devices import Mount, mounts_of
from dyno.model.base import RunError

_LONGEST_COMMAND = 80
_NAMED = 3


def in_use(device: Path) -> bool:
    """Whether the kernel has it for a file system that is mounted in whichever namespace. Raises RunError."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return True
        raise RunError(f"cannot see whether {device} is in use: {error.strerror}") from error
    return False


def told(device: Path) -> str:
    """Who has it mounted in another mount namespace, in words: the first process of each."""
    try:
        number = device.stat().st_rdev
    except OSError:
        return "something still uses it"
    found: dict[Path, str] = {}
    mine = Path("/proc/self/ns/mnt").readlink()
    for pid in sorted(int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()):
        try:
            namespace = Path(f"/proc/{pid}/ns/mnt").readlink()
            if namespace in (mine, *found) or not any(_is_of(mount, device, number) for mount in mounts_of(pid)):
                continue
            found[namespace] = f"process {pid} (`{_command(pid)}`)"
        except OSError:
            continue  # ended meanwhile, or another user's
    if not found:
        return "something still uses it"
    first = ", ".join(list(found.values())[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{first}{more} still has it mounted, in a mount namespace of its own"


def _is_of(mount: Mount, device: Path, number: int) -> bool:
    # A file system over several devices has a number of its own, and tells of the device by its name.
    return mount.device == (os.major(number), os.minor(number)) or mount.source == str(device)


def _command(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    command = " ".join(words.split()) or Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return command if len(command) <= _LONGEST_COMMAND else f"{command[:_LONGEST_COMMAND]}..."
