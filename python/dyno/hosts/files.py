"""Copying a data set: every byte on the device when it returns, and never past its deadline."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from dyno.model.base import RunError

_CHUNK = 8 * 1024 * 1024
_FICLONE = 0x40049409  # linux/fs.h: _IOW(0x94, 9, int)
_libc = ctypes.CDLL(None, use_errno=True)


def copy_tree(source: Path, target: Path, *, reflink: bool, deadline: float) -> None:
    """Copy files and folders. Raises OSError, and TimeoutError past `deadline` (time.monotonic)."""
    _copy_folder(source, target, reflink=reflink, deadline=deadline)
    sync_file_system(target)


def sync_file_system(folder: Path) -> None:
    """Write back all that is dirty there. At once, since a sync of each of a server's thousand files takes seconds."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(handle) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))
    finally:
        os.close(handle)


def _copy_folder(source: Path, target: Path, *, reflink: bool, deadline: float) -> None:
    target.mkdir(exist_ok=True)  # a new file system has folders of its own
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            inner = target / entry.name
            if time.monotonic() > deadline:
                raise TimeoutError("the copy took longer than the study allows")
            if entry.is_dir(follow_symlinks=False):
                _copy_folder(Path(entry.path), inner, reflink=reflink, deadline=deadline)
            elif entry.is_file(follow_symlinks=False):
                _copy_file(Path(entry.path), inner, reflink=reflink, deadline=deadline)
            else:
                raise OSError(f"{entry.path} is neither a file nor a folder")
    status = source.stat()
    target.chmod(stat.S_IMODE(status.st_mode))  # last, since it may forbid writing
    if os.geteuid() == 0:
        os.chown(target, status.st_uid, status.st_gid)  # a server that root starts has an account of its own


def bytes_on_disk(folder: Path) -> int:
    """Bytes that a folder's files take on disk. Raises RunError."""
    if not folder.is_dir():
        return 0
    try:
        return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise RunError(f"cannot read the size of {folder.name}: {error}") from error


def room(folder: Path) -> tuple[int, int]:
    """Bytes that are used and that are free for all on the file system of a folder."""
    status = os.statvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_bavail * status.f_frsize


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy_file(source: Path, target: Path, *, reflink: bool, deadline: float) -> None:
    with source.open("rb", buffering=0) as reader, target.open("xb", buffering=0) as writer:
        status = os.fstat(reader.fileno())
        if os.geteuid() == 0:
            os.fchown(writer.fileno(), status.st_uid, status.st_gid)  # before the mode, of which it takes bits away
        os.fchmod(writer.fileno(), status.st_mode & 0o7777)
        if reflink:
            try:
                fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
            except OSError as error:
                if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EXDEV):
                    raise OSError(f"the file system of {target.parent} cannot reflink; use `restore: copy`") from error
                raise
        else:
            # sendfile and not copy_file_range: the latter may share extents, which makes later random writes slower.
            offset = 0
            while sent := os.sendfile(writer.fileno(), reader.fileno(), offset, _CHUNK):
                offset += sent
                if time.monotonic() > deadline:
                    raise TimeoutError("the copy took longer than the study allows")
