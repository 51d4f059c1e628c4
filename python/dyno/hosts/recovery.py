"""A disk as a power failure left it: mounted, so that the kernel recovers what is on it, and checked by a program."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts import filesystems
from dyno.hosts.leftovers import UndoError
from dyno.hosts.local import LocalHost
from dyno.hosts.volumes import Until
from dyno.model.base import RunError
from dyno.model.study import FileSystem

_ENDED_BADLY = " ended with status "
"""Within what is raised of a program that came to an end of its own."""


@dataclass(frozen=True)
class Recovered:
    """How mounting went. `seconds` is None where the kernel refused to, and `why` is then what mount said."""

    seconds: float | None
    why: str = ""


class CutDisk:
    """One image that holds one cut after the other, and its loop device. A context manager: both go in the end.

    The device reads through the page cache: what is timed is the kernel's work, and no disk's.
    """

    def __init__(self, host: LocalHost, spec: FileSystem, folder: Path) -> None:
        self.image = folder / "cut-image"
        self.folder = folder / "cut"
        self._host = host
        self._spec = spec
        self._device: Path | None = None

    def recover(self, until: Until) -> Recovered:
        """Mount what the image holds. Raises RunError where that took too long."""
        volumes = self._host.volumes
        self.folder.mkdir(exist_ok=True)
        self._device = self._device or volumes.attach_file(self.image, direct_io=False, until=until)
        try:
            return Recovered(volumes.mount(self._spec, self._device, self.folder, until))
        except RunError as error:
            if _ENDED_BADLY not in str(error):
                raise
            self.let_go(until)
            return Recovered(None, str(error))

    def let_go(self, until: Until) -> None:
        """Unmount it, and see that nobody else has it. Raises RunError."""
        assert self._device is not None, "it was mounted before"
        self._unmount()
        self._host.volumes.see_released(self._device, until)

    def _unmount(self) -> None:
        try:
            self._host.volumes.unmount(self.folder)
        except UndoError as error:
            raise RunError(str(error)) from error

    def is_consistent(self, until: Until) -> bool:
        """Whether the file system's own program finds nothing wrong, once it was recovered. Raises RunError."""
        assert self._device is not None, "it was mounted before"
        words = filesystems.check_command(self._spec.kind, self._device)
        try:
            self._host.run(words, limit=until.left, log=until.log)
        except RunError as error:
            if _ENDED_BADLY not in str(error):
                raise
            return False
        return True

    def __enter__(self) -> CutDisk:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._unmount()
        try:
            self._host.volumes.detach_file(self.image)
        except UndoError as error:
            raise RunError(str(error)) from error
        with contextlib.suppress(FileNotFoundError):
            self.image.unlink()
