"""What ended sessions leave on a machine, and how each is put away: by what the undo journal wrote down of it.

Each function takes what its entry has, may be called again where it was cut off, does nothing where nothing is left,
and raises UndoError where something stays.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dyno.hosts import holders
from dyno.hosts.descendants import descendants

TOKEN_VARIABLE = "DYNO_SESSION"
"""Every process that a session starts carries the session's token under this name in its environment."""

CGROUPS = Path("/sys/fs/cgroup")

CGROUP_PREFIX = "dyno-"
"""Of the names of control groups that sessions make: what is in others is nobody's to end."""

BRIDGE_PREFIX = "dyno-"
"""Of the names of bridges that sessions make."""

_KILL_LIMIT_S = 10.0
_ASK_LIMIT_S = 5.0
_ASK_BRIEFLY_S = 1.0
_BUSY_LIMIT_S = 10.0
_BETWEEN_LOOKS_S = 0.01
_POSIX_SEGMENTS = Path("/dev/shm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOOP_CLR_FD = 0x4C01  # linux/loop.h
_IPC_RMID = 0  # linux/ipc.h
_SIOCSIFFLAGS = 0x8914  # linux/sockios.h
_SIOCBRDELBR = 0x89A1
_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes blanks and backslashes

_libc = ctypes.CDLL(None, use_errno=True)


class UndoError(Exception):
    """A change could not be undone; the journal keeps it for the next attempt."""


def end_processes(token: str) -> None:
    """End every process that carries the token, by its id.

    Asked first, and killed soon after: the one that makes a data folder of PostgreSQL leaves shared memory when it is
    killed.
    """
    _end(lambda: _processes_with(token), signal.SIGTERM, ask_limit_s=_ASK_BRIEFLY_S)


def end_server(marker: str, undo_by: str) -> None:
    """End the processes that have the marker among their arguments: asked first, then killed."""
    farewell = getattr(signal, undo_by, signal.SIGKILL)
    _end(lambda: _processes_called_with(marker), farewell, ask_limit_s=_ASK_LIMIT_S)


def _end(processes: Callable[[], Iterator[int]], farewell: signal.Signals, *, ask_limit_s: float) -> None:
    begun = time.monotonic()
    asked: set[int] = set()
    while pids := list(processes()):
        past = time.monotonic() - begun
        if past > ask_limit_s + _KILL_LIMIT_S:
            raise UndoError(f"processes {pids} do not end")
        for pid in pids:
            try:
                if past > ask_limit_s:
                    os.kill(pid, signal.SIGKILL)
                elif pid not in asked:
                    os.kill(pid, farewell)
                    _thaw(pid)
                    asked.add(pid)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise UndoError(f"process {pid} may not be ended: {error}") from error
        time.sleep(0.01)


def _thaw(pid: int) -> None:
    """One that was frozen would not hear that it is to end, and what it had started would outlive it."""
    for each in (*descendants(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGCONT)


def _processes_called_with(marker: str) -> Iterator[int]:
    wanted = os.fsencode(marker)
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile; the arguments of one that has ended and was not yet reaped are empty
        if wanted in words:
            yield int(entry.name)


def _processes_with(token: str) -> Iterator[int]:
    wanted = f"{TOKEN_VARIABLE}={token}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = Path(entry.path, "environ").read_bytes()
            state = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue  # ended meanwhile, or another user's
        if state not in "ZX" and wanted in environment.split(b"\0"):
            yield int(entry.name)


def remove_tree(path: str) -> None:
    """Remove a folder and all that is in it, but nothing that is only mounted there."""
    if points := mounts_below(os.path.realpath(path)):
        raise UndoError(f"{points[0]} is still mounted")
    while os.path.lexists(path):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            continue  # something in it went at the same time; that does not mean that all of it did
        except OSError as error:
            raise UndoError(str(error)) from error


def remove_shared_memory(creator: int) -> None:
    """Remove the System V segments that an ended process made and nobody uses any more: a kill leaves them behind.

    PostgreSQL makes one, and after it POSIX segments, which do not say whose they are: those of the same user that are
    no older and that nobody has mapped go too.
    """
    for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
        words = line.split()
        segment, made_by, users, owner, made = (int(words[place]) for place in (1, 4, 6, 7, 13))
        if made_by != creator or users != 0:
            continue
        if _libc.shmctl(segment, _IPC_RMID, None) != 0:
            code = ctypes.get_errno()
            if code not in (errno.EINVAL, errno.EIDRM):  # it went meanwhile
                raise UndoError(f"cannot remove the shared memory {segment}: {os.strerror(code)}")
        _remove_unmapped(owner, made)


def _remove_unmapped(owner: int, since: int) -> None:
    found: dict[str, Path] = {}
    for path in _POSIX_SEGMENTS.glob("PostgreSQL.*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if status.st_uid == owner and status.st_ctime >= since:
                found[str(path)] = path
    # Looked for after the segments: one that is being made right now is mapped by then.
    for entry in os.scandir("/proc") if found else ():
        with contextlib.suppress(OSError):  # it ended meanwhile, or is no process
            for line in Path(entry.path, "maps").read_text(errors="replace").splitlines():
                found.pop(line.partition("/")[1] + line.partition("/")[2], None)
    for path in found.values():
        path.unlink(missing_ok=True)


def mounts_below(folder: str) -> list[str]:
    """The mount points at a folder and below it, in the order in which they can be unmounted."""
    points = []
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split()[4])
        if point == folder or point.startswith(f"{folder.rstrip('/')}/"):
            points.append(point)
    return points[::-1]  # the newest is last in the kernel's list, and lies above or within older ones


def unmount(target: str) -> None:
    """Unmount what is mounted at a folder and below it."""
    deadline = time.monotonic() + _BUSY_LIMIT_S
    while points := mounts_below(target):
        for point in points:
            if _libc.umount2(os.fsencode(point), 0) != 0:
                code = ctypes.get_errno()
                if code not in (errno.EBUSY, errno.EINVAL):
                    raise UndoError(f"cannot unmount {point}: {os.strerror(code)}")
        if time.monotonic() > deadline:
            raise UndoError(f"cannot unmount {', '.join(points)}: something still uses it")
        if mounts_below(target):
            time.sleep(_BETWEEN_LOOKS_S)


def released_within(limit: float, device: Path) -> bool:
    """Whether nobody has a device any more that was unmounted, `limit` seconds from now at the latest."""
    deadline = time.monotonic() + limit
    while holders.in_use(device):
        if time.monotonic() > deadline:
            return False
        time.sleep(_BETWEEN_LOOKS_S)
    return True


def loop_devices(file: str) -> list[Path]:
    """The loop devices that a file backs, also one that was removed meanwhile."""
    found = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            name = backing.read_text(errors="surrogateescape").rstrip("\n")
        except OSError:
            continue  # detached meanwhile
        if name.removesuffix(" (deleted)") == file:
            found.append(Path("/dev") / backing.parts[3])
    return found


def attached_as(device: Path) -> dict[str, str]:
    """What tells a loop device with the file that it has now from the same with another one; empty if nothing does.

    Of a file whose file system is gone, as that of a program that was killed, the kernel no longer has a path.
    """
    try:
        return {"device": device.name, "sequence": _sequence(device.name), "boot": _BOOT.read_text().strip()}
    except OSError:  # Linux before 5.15 does not count them
        return {}


def _sequence(name: str) -> str:
    return Path("/sys/block", name, "diskseq").read_text().strip()


def detach_loop(file: str) -> None:
    """Detach the loop devices of a file. One that is in use goes as soon as it no longer is."""
    _detach(lambda: loop_devices(file))


def detach_loop_device(device: str, sequence: str, boot: str) -> None:
    """Detach a loop device that is still attached as it was, as `attached_as` says."""

    def as_it_was() -> list[Path]:
        path = Path("/dev", device)
        there = Path("/sys/block", device, "loop/backing_file").exists()
        return [path] if there and attached_as(path) == {"device": device, "sequence": sequence, "boot": boot} else []

    _detach(as_it_was)


def _detach(attached: Callable[[], list[Path]]) -> None:
    deadline = time.monotonic() + _BUSY_LIMIT_S
    while devices := attached():
        for device in devices:
            try:
                handle = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise UndoError(f"cannot open {device}: {error.strerror}") from error
            try:
                fcntl.ioctl(handle, _LOOP_CLR_FD)
            except OSError as error:
                if error.errno not in (errno.EBUSY, errno.ENXIO):
                    raise UndoError(f"cannot detach {device}: {error.strerror}") from error
            finally:
                os.close(handle)
        if time.monotonic() > deadline:
            who = "; ".join(f"{device}: {holders.told(device)}" for device in devices)
            raise UndoError(f"cannot detach {who}")
        if attached():
            time.sleep(_BETWEEN_LOOKS_S)


def remove_cgroup(name: str) -> None:
    """End every process in a control group of that name, in whichever hierarchies it is, and remove the group."""
    if not name.startswith(CGROUP_PREFIX) or ".." in Path(name).parts:
        raise UndoError(f"the control group {name} is none of ours")
    deadline = time.monotonic() + _KILL_LIMIT_S
    while groups := [group for parent in (CGROUPS, *CGROUPS.glob("*")) if (group := parent / name).is_dir()]:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                _empty_group(Path(folder))
        if time.monotonic() > deadline:
            raise UndoError(f"the control group {name} does not become empty")
        time.sleep(_BETWEEN_LOOKS_S)


def _empty_group(folder: Path) -> None:
    try:
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            os.kill(pid, signal.SIGKILL)
        folder.rmdir()
    except (FileNotFoundError, ProcessLookupError):
        return
    except PermissionError as error:
        raise UndoError(f"the control group {folder} may not be removed: {error.strerror}") from error
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENODEV, errno.EOPNOTSUPP):
            raise UndoError(f"cannot remove the control group {folder}: {error.strerror}") from error


def disable_controllers(folder: str, names: list[str]) -> None:
    """Take controllers from the groups of a folder, where no group needs them for groups of its own."""
    for name in names:
        try:
            Path(folder, "cgroup.subtree_control").write_text(f"-{name}")
        except FileNotFoundError:
            return  # the machine has started anew, with control groups of another version
        except OSError as error:
            if error.errno == errno.EBUSY:
                continue  # others came to use what was there, and have no entry for it
            raise UndoError(f"cannot disable {name} in {folder}: {error.strerror}") from error


def write_back(path: str, value: str) -> None:
    """Write the value that a setting of the kernel had. Nothing is written where it has that value."""
    try:
        if Path(path).read_text().split() != value.split():
            Path(path).write_text(value)
    except FileNotFoundError:
        return  # the device whose setting it was is gone
    except OSError as error:
        raise UndoError(f"cannot write {value} to {path}: {error.strerror}") from error


def remove_bridge(name: str) -> None:
    """Remove a bridge of the network."""
    if not name.startswith(BRIDGE_PREFIX):
        raise UndoError(f"the bridge {name} is none of ours")
    named = name.encode()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", named, 0))  # one that is up is not removed
            fcntl.ioctl(any_socket, _SIOCBRDELBR, named + b"\0")
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.ENXIO):
            raise UndoError(f"cannot remove the bridge {name}: {error.strerror}") from error


def remove_file(path: str) -> None:
    """Remove a file or a socket."""
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        raise UndoError(f"cannot remove {path}: {error.strerror}") from error


def remove_if_empty(paths: list[str]) -> None:
    """Remove folders, the last first. One in which there is something is somebody else's by now, and stays."""
    for path in reversed(paths):
        try:
            Path(path).rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
                raise UndoError(f"cannot remove {path}: {error.strerror}") from error


UNDOERS: dict[str, Callable[..., None]] = {
    "server": end_server,
    "processes": end_processes,
    "cgroup": remove_cgroup,
    "cgroup-controllers": disable_controllers,
    "mount": unmount,
    "loop": detach_loop,
    "loop-device": detach_loop_device,
    "kernel-setting": write_back,
    "remove-tree": remove_tree,
    "bridge": remove_bridge,
    "file": remove_file,
    "empty-folders": remove_if_empty,
}
"""By the kind of change."""
