"""A file system on a disk that is recorded: every write and flush of it, so that power can be cut at any of them.

It is made and attested as any other (`filesystem`), but on a disk that `dyno-core record` serves; each run has a
recording of its own, which begins with an empty disk, before mkfs. `docs/crash.md` says what is done with it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import model_validator

from dyno.hosts import filesystems
from dyno.hosts.recorder import RecordedDisk
from dyno.hosts.volumes import Until
from dyno.model.base import RunError, Scalar
from dyno.model.endpoint import Endpoint
from dyno.systems.filesystem import FilesystemOptions, FilesystemSystem

_LOG_TO_DISK = 3
"""About how much is written in all, to the size of the disk."""


class RecordedFilesystemOptions(FilesystemOptions):
    """What is made and how it is mounted."""

    @model_validator(mode="after")
    def _it_lies_on_the_recorded_disk(self) -> RecordedFilesystemOptions:
        if self.device is not None:
            raise ValueError("what is recorded is a disk of its own: write size in place of device")
        if self.type == "overlay":
            raise ValueError("an overlay keeps nothing by itself: write the type of what it would lie on")
        if self.aged is not None:
            raise ValueError("a recording begins with an empty disk: leave aged out")
        if not self.direct_io:
            raise ValueError("writes that are held back above the recorder would be in no record: leave direct_io out")
        return self


class RecordedFilesystemSystem(FilesystemSystem):
    """Whoever drives it may unmount it for a while: two file systems of one identity are not mounted at once."""

    kind = "recorded-filesystem"
    backend = "recorded-files"
    Options = RecordedFilesystemOptions

    @classmethod
    def needs(cls, options: FilesystemOptions) -> Sequence[str]:
        """And what its writes are recorded by."""
        return (*super().needs(options), "FUSE")

    def provision(self, limit: float) -> dict[str, str]:
        """Whether this machine can: root, programs, room, and FUSE."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise RunError("/dev/fuse cannot be opened: the recorder needs root, and the kernel's FUSE (modprobe fuse)")
        # What is left after a cut is looked at by it too.
        filesystems.program(filesystems.checker(self.options.base))
        return super().provision(limit)

    @cached_property
    def _disk(self) -> RecordedDisk:
        folder = self.place.data.with_name(f"{self.place.data.name}-recorded")
        return RecordedDisk(self.place.host, self.place.core, folder, self.place.logs)

    def _attach(self, until: Until) -> Path:
        return self._disk.begin(self._size, until)

    def _on(self) -> Path | None:
        return self._disk.device

    @property
    def _image(self) -> Path:
        return self._disk.recording.image

    def needs_bytes(self) -> int:
        """Room for the image, a cut one, and the log of what is written."""
        return max(_LOG_TO_DISK * self._size - self.live_bytes(), 0)

    def live_bytes(self) -> int:
        """What the recording takes."""
        files = (self._disk.recording.image, self._disk.recording.log)
        return sum(file.stat().st_blocks * 512 for file in files if file.exists())

    def restored_bytes(self, source: Path) -> int:
        """The log goes on to grow while it is driven."""
        return _LOG_TO_DISK * self._size

    def ready(self, limit: float) -> Endpoint:
        """Also where the recording is, and by what the file system, or what a cut leaves of it, is mounted."""
        folder = super().ready(limit).settings["folder"]
        settings = {
            "folder": folder,
            "log": str(self._disk.recording.log),
            "point": str(self._disk.recording.point),
            "device": str(self._on()),
            "spec": self._spec.model_dump(mode="json"),
        }
        return Endpoint(backend=self.backend, settings=settings)

    def facts(self) -> dict[str, Scalar]:
        """As any other's, on a disk that is recorded."""
        return {**super().facts(), "device": "recorded"}

    def cached(self, cold: bool) -> dict[str, Any]:
        """Its image is no device whose answers were to be measured."""
        return {}

    def destroy(self) -> None:
        """Unmounted, and all that was recorded removed."""
        self._unmount_here()
        self._disk.end()
        if self.place.data.is_dir() and not any(self.place.data.iterdir()):
            self.place.data.rmdir()
