"""Images on loop devices, the file systems on them and on devices that are given, and where they are mounted.

Each change is in the undo journal before it is made. An image, its device and a mount are remembered by their paths, so
that the next run may have them again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts import filesystems, holders
from dyno.hosts.leftovers import UndoError, attached_as, released_within
from dyno.hosts.undo import Change, UndoJournal
from dyno.model.base import RunError
from dyno.model.study import FileSystem

_BALLAST = ".dyno-ballast"
_LARGEST_CHUNK, _SMALLEST_CHUNK = 64 * 2**20, 4096  # bytes
_KEPT = 2**18  # bytes; xfs keeps a few blocks for itself that statfs shows

Run = Callable[..., str]
"""As `LocalHost.run`."""


@dataclass(frozen=True)
class Until:
    """Until when all steps of a change have to be done (time.monotonic), and where what programs say is kept."""

    deadline: float
    log: Path

    @classmethod
    def within(cls, limit: float, log: Path) -> Until:
        """In so many seconds."""
        return cls(time.monotonic() + limit, log)

    @property
    def left(self) -> float:
        """Seconds, 0 where there are none."""
        return max(self.deadline - time.monotonic(), 0.0)

    def look(self, what: str) -> None:
        """Raise RunError past the deadline."""
        if self.left <= 0:
            raise RunError(f"{what} took longer than the study allows")


@dataclass(frozen=True)
class _Image:
    change: Change
    device: Path | None
    """None until it was seen to do what was asked."""

    size: int
    direct_io: bool


def image_of(folder: Path) -> Path:
    """Where the image is of the file system that is mounted at a folder: beside it."""
    return folder.with_name(f"{folder.name}-image")


def below_of(folder: Path) -> Path:
    """Where the file system is mounted that an overlay at a folder lies on."""
    return folder.with_name(f"{folder.name}-below")


def fill(folder: Path) -> None:
    """Have a file take all of the file system mounted at a folder, but for what its kind keeps. Raises RunError."""
    taken = 0
    try:
        handle = os.open(folder / _BALLAST, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            chunk = _LARGEST_CHUNK
            while chunk >= _SMALLEST_CHUNK:
                try:
                    os.posix_fallocate(handle, taken, chunk)
                    taken += chunk
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    chunk //= 2
        finally:
            os.close(handle)
        status = os.statvfs(folder)
    except OSError as error:
        raise RunError(f"cannot fill the disk at {folder}: {error.strerror}") from error
    if (free := status.f_bavail * status.f_frsize) > _KEPT:
        raise RunError(f"cannot fill the disk at {folder}: {free} bytes of it stay free")


def make_room(folder: Path) -> None:
    """Take that file away. Raises RunError."""
    try:
        (folder / _BALLAST).unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"cannot make room on the disk at {folder}: {error.strerror}") from error


class Volumes:
    """Those of one session, by their resolved paths, since by these the kernel tells of files and mounts."""

    def __init__(self, undo: UndoJournal, run: Run) -> None:
        self._undo = undo
        self._run = run
        self._images: dict[Path, _Image] = {}
        self._files: dict[Path, list[Change]] = {}
        self._mounts: dict[Path, Change] = {}

    def attach(
        self,
        image: Path,
        size: int,
        *,
        direct_io: bool,
        until: Until,
        key: str = filesystems.KEY,
        written: bool = False,
    ) -> Path:
        """A loop device on an image whose every block is its own; the same again where nothing of it is to change.

        `written`: every block was written once. Raises RunError.
        """
        image = image.resolve()
        known = self._images.get(image)
        if known is not None and known.device is not None and (known.size, known.direct_io) == (size, direct_io):
            filesystems.fill_in(image, size)
            return known.device
        self._detached(image)
        filesystems.allocate(image, size)
        if written:
            filesystems.write_all(image, size, until.deadline)
        change = self._undo.will(Change("loop", {"file": str(image)}))
        self._images[image] = _Image(change, None, size, direct_io)
        words = ["losetup", "--find", "--show", f"--direct-io={'on' if direct_io else 'off'}", str(image)]
        try:
            device = Path(self._do(words, until).strip())
            filesystems.attest_direct_io(device, image, asked=direct_io, key=key)
        except BaseException:
            with contextlib.suppress(UndoError):  # told by the next attempt, or by what undoes all in the end
                self.detach(image)
            raise
        self._images[image] = _Image(change, device, size, direct_io)
        return device

    def attach_file(self, file: Path, *, direct_io: bool, until: Until) -> Path:
        """A loop device on a file that somebody else has made, and keeps. Raises RunError."""
        file = file.resolve()
        changes = self._files[file] = [self._undo.will(Change("loop", {"file": str(file)}))]
        words = ["losetup", "--find", "--show", f"--direct-io={'on' if direct_io else 'off'}", str(file)]
        try:
            device = Path(self._do(words, until).strip())
            if known := attached_as(device):
                changes.append(self._undo.will(Change("loop-device", known)))
            if (is_direct := filesystems.does_direct_io(device)) != direct_io:
                raise RunError(f"{device} does {'' if is_direct else 'no '}direct I/O on {file}")
        except BaseException:
            with contextlib.suppress(UndoError):
                self.detach_file(file)
            raise
        return device

    def detach_file(self, file: Path) -> None:
        """Remove the device of such a file; nothing happens where it has none. Raises UndoError."""
        file = file.resolve()
        changes = self._files.get(file, [])
        while changes:
            self._undo.undo(changes[-1])
            changes.pop()
        self._files.pop(file, None)

    def device(self, image: Path) -> Path | None:
        """The loop device of an image; None where it has none of this session."""
        known = self._images.get(image.resolve())
        return None if known is None else known.device

    def make(self, spec: FileSystem, device: Path, until: Until) -> None:
        """Make a file system on a device: what was there is gone. Raises RunError."""
        filesystems.refuse_files(spec.mkfs)
        self._do(filesystems.mkfs_command(spec, device), until)

    def mount(self, spec: FileSystem, device: Path, folder: Path, until: Until) -> float:
        """Mount it at a folder that is there; how long that took, in s. Raises RunError."""
        folder = self._prepared(folder, until)
        begun = time.monotonic()
        self._do(filesystems.mount_command(spec, device, folder), until)
        return time.monotonic() - begun

    def mount_overlay(self, below: Path, folder: Path, until: Until) -> None:
        """Mount an overlay at a folder: of `lower` in the folder below, under `upper`, which takes all that is written.

        Raises RunError.
        """
        below = below.resolve()
        if any(mark in str(below) for mark in ",:\\"):
            raise RunError(f"{below} cannot be below an overlay: its path has a comma, a colon or a backslash")
        for name in ("lower", "upper", "work"):
            (below / name).mkdir(exist_ok=True)
        folder = self._prepared(folder, until)
        layers = f"lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work"
        self._do(["mount", "-t", "overlay", "-o", layers, "overlay", str(folder)], until)

    def _prepared(self, folder: Path, until: Until) -> Path:
        # One entry for both: undoing unmounts all that is at the folder. A mount namespace that somebody makes
        # meanwhile has copies of all mounts; below a shared one it follows when the file system is unmounted, else
        # it would keep the loop device busy.
        folder = folder.resolve()
        self._mounts[folder] = self._undo.will(Change("mount", {"target": str(folder)}))
        self._do(["mount", "--bind", str(folder), str(folder)], until)
        self._do(["mount", "--make-shared", str(folder)], until)
        return folder

    def mounted(self, folder: Path) -> bool:
        """Whether this session has something mounted there."""
        return folder.resolve() in self._mounts

    def unmount(self, folder: Path) -> None:
        """Unmount it; nothing happens where nothing of this session is mounted there. Raises UndoError."""
        folder = folder.resolve()
        if (change := self._mounts.get(folder)) is not None:
            self._undo.undo(change)
            del self._mounts[folder]

    def see_released(self, device: Path, until: Until) -> None:
        """Wait until nobody has a device that was unmounted. Raises RunError past the deadline, naming who has it.

        A copy of the mount in somebody's namespace keeps the file system alive: its device is then neither what its
        checker may judge nor what mkfs may write over.
        """
        if not released_within(until.left, device):
            raise RunError(f"{device} was unmounted and is not released: {holders.told(device)}")

    def detach(self, image: Path) -> None:
        """Remove an image and its device; nothing happens where there is none. Raises UndoError."""
        image = image.resolve()
        if (known := self._images.get(image)) is not None:
            self._undo.undo(known.change)
            del self._images[image]
        image.unlink(missing_ok=True)

    def remove_at(self, folder: Path) -> None:
        """All that there is of a file system mounted at a folder: overlay, mount, image; and of those below it.

        Raises UndoError.
        """
        top = folder.resolve()
        for inner in [each for each in self._mounts if each != top and each.is_relative_to(top)]:
            self.remove_at(inner)
        self.unmount(folder)
        self.unmount(below_of(folder))
        self.detach(image_of(folder))
        for point in (folder, below_of(folder)):
            if point.is_dir() and not any(point.iterdir()):
                point.rmdir()

    def _detached(self, image: Path) -> None:
        try:
            self.detach(image)
        except UndoError as error:
            raise RunError(f"cannot make {image} anew: {error}") from error

    def _do(self, words: Sequence[str], until: Until) -> str:
        return self._run(words, limit=until.left, log=until.log)
