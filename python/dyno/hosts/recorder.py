"""A disk whose writes and flushes are recorded: `dyno-core record` serves it as a file, a loop device makes it a disk.

The program is in the undo journal as a server, its mount and the loop device by what the kernel knows them by. Where
the session is killed the program goes first: what the kernel then still asks of the disk fails, and nothing waits.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts.leftovers import UndoError
from dyno.hosts.local import LocalHost
from dyno.hosts.volumes import Until
from dyno.model.base import RunError

_LOOK_EVERY_S = 0.005
_FAREWELL_S = 10.0


@dataclass(frozen=True)
class Recording:
    """The files of a recording, all in one folder but the disk itself, which is below the folder that is mounted."""

    folder: Path

    @property
    def image(self) -> Path:
        """What the disk holds now."""
        return self.folder / "image"

    @property
    def log(self) -> Path:
        """What was asked of it."""
        return self.folder / "log"

    @property
    def point(self) -> Path:
        """How many records the log has, in 8 bytes."""
        return self.folder / "point"

    @property
    def mount(self) -> Path:
        """Where the program serves the disk."""
        return self.folder / "served"

    @property
    def disk(self) -> Path:
        """The disk as a file."""
        return self.mount / "disk"


class RecordedDisk:
    """One disk, of which one recording is made after the other."""

    def __init__(self, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        self.recording = Recording(folder)
        self.device: Path | None = None
        self._host = host
        self._core = core
        self._logs = logs

    def begin(self, size: int, until: Until) -> Path:
        """A disk of that size with nothing on it, whose recording begins; its loop device. Raises RunError."""
        self.end()
        files, host = self.recording, self._host
        files.mount.mkdir(parents=True)
        # Before the program mounts there by itself; it is found again by the argument that names the place.
        mount = host.expect_mounts(files.mount)
        try:
            words = [self._core, "record", "--image", str(files.image), "--size", str(size), "--log", str(files.log)]
            words += ["--point", str(files.point), "--mount", str(mount)]
            log = self._logs / "recorder"
            program = host.start_server(words, log=log, marker=str(mount))
            while not files.disk.exists():
                if program.wait(_LOOK_EVERY_S) is not None:
                    raise RunError(f"dyno-core record ended: {program.complaint() or 'it said nothing'}")
                until.look("starting dyno-core record")
            self.device = host.volumes.attach_file(files.disk, direct_io=True, until=until)
        except BaseException:
            with contextlib.suppress(RunError):  # the cause is what went wrong first
                self.end()
            raise
        return self.device

    def end(self) -> None:
        """Detach the device, end the program and remove what it wrote.

        Nothing happens where there is no recording. Raises RunError where something still uses the disk, or where not
        all was recorded.
        """
        files, host = self.recording, self._host
        try:
            if files.mount.is_dir():
                host.volumes.detach_file(files.disk)
                self.device = None
                host.unmount(files.mount.resolve())
        except UndoError as error:
            raise RunError(f"cannot end the recording in {files.folder.name}: {error}") from error
        status = 0
        # Also that of an earlier run, whose disk another object stood for.
        program = host.server(str(files.mount.resolve()))
        if program is not None:
            # Unmounted, it ends by itself.
            status = program.wait(_FAREWELL_S) or 0
            host.end_server(program, limit=_FAREWELL_S)
        host.remove_tree(files.folder)
        if program is not None and status != 0:
            raise RunError(f"dyno-core record ended with status {status}: {program.complaint()}")
