"""The machine that dyno runs on as a host: commands, files, the page cache."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts import files, filesystems, joint, kernel, pagecache, volumes
from dyno.hosts.accounts import Account
from dyno.hosts.cgroups import ControlGroups, DiskLimits, limit_disk, release_disk
from dyno.hosts.confinement import Confinement
from dyno.hosts.devices import device_of
from dyno.hosts.filesystems import Mounted
from dyno.hosts.gist import gist
from dyno.hosts.leftovers import TOKEN_VARIABLE, UndoError
from dyno.hosts.networks import Networks
from dyno.hosts.process import Process
from dyno.hosts.undo import Change, UndoJournal
from dyno.hosts.volumes import Until, Volumes
from dyno.model.base import RunError, UserError
from dyno.model.study import FileSystem, Machine

_LONG_COMMAND = 300  # characters; behind such a one nobody would come to the cause
_PASS_ON = 'cat >/dev/null; kill -s "$1" "$2" 2>/dev/null'
"""For a shell: at the end of its standard input, which dyno holds however it ends, send a signal to a process."""


def core_binary() -> str:
    """Where the `dyno-core` of this very installation is. Not by PATH, where another one may stand.

    Raises UserError where it is missing.
    """
    found = Path(sysconfig.get_path("scripts")) / "dyno-core"
    if not found.is_file():
        raise UserError(f"{found} is missing: install dyno again (`pip install .` builds it; it needs Rust's cargo)")
    return str(found)


@dataclass(frozen=True)
class _Server:
    process: Process
    marker: str
    change: Change
    watcher: Process
    """What waits for the end of dyno."""


class LocalHost:
    """Commands run here as the present user. Every process and folder is in the undo journal before it exists."""

    name = "local"

    def __init__(self, undo: UndoJournal) -> None:
        self._undo = undo
        self._environment = {**os.environ, TOKEN_VARIABLE: undo.token}
        self._folders: dict[Path, Change] = {}
        self._servers: dict[int, _Server] = {}  # by id
        self._settings = kernel.KernelSettings(undo)
        self._groups = ControlGroups(undo)
        self._mounts: dict[Path, Change] = {}
        self.volumes = Volumes(undo, self.run)
        """Images on loop devices, file systems on them and on devices that are given, and where they are mounted."""
        self.networks = Networks(self._environment)
        """Networks of nodes, each in a namespace of its own."""

    def start(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        lines: bool = False,
        folder: Path | None = None,
        account: Account | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a process whose output goes to `log`.stdout and `log`.stderr. Raises RunError.

        `environment` is all that it has beside the session's token; where it is not given it has dyno's own.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        has = self._environment if environment is None else {**environment, TOKEN_VARIABLE: self._undo.token}
        return Process(argv, log=log, environment=has, lines=lines, folder=folder, account=account)

    def start_server(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        marker: str,
        undo_by: signal.Signals = signal.SIGKILL,
        account: Account | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a server, to be ended by `end_server`. Raises RunError.

        `marker` is one of its arguments and nobody else's: the journal finds it by that, since another user's
        environment can not be read everywhere. `undo_by` is what the journal tells it to end by: a server that leaves
        shared memory behind when it is killed must be asked. It is also what a server ends by as soon as dyno is gone.
        `environment`: see `start`.
        """
        assert marker in argv, "by this argument it is found again"
        change = self._undo.will(Change("server", {"marker": marker, "undo_by": undo_by.name}))
        try:
            process = self.start(argv, log=log, account=account, environment=environment)
        except RunError:
            self._undo.undo(change)
            raise
        # A server asks nothing of its standard input, so somebody else reads the end of dyno from it and passes it on.
        # Not by PR_SET_PDEATHSIG: Python would have to run between fork and exec, beside the threads of others.
        words = ["sh", "-c", _PASS_ON, "sh", undo_by.name.removeprefix("SIG"), str(process.pid)]
        try:
            watcher = self.start(words, log=log.with_name(f"{log.name}-watcher"))
        except RunError:
            process.kill()
            self._undo.undo(change)
            raise
        self._servers[process.pid] = _Server(process, marker, change, watcher)
        return process

    def server(self, marker: str) -> Process | None:
        """The server that was started with that marker and not ended since."""
        return next((known.process for known in self._servers.values() if known.marker == marker), None)

    def end_server(self, process: Process, *, limit: float, farewell: signal.Signals = signal.SIGTERM) -> int:
        """Ask a server to end, and kill it past `limit` seconds; its exit status. Raises UndoError."""
        status = process.stop(limit, farewell)
        if known := self._servers.pop(process.pid, None):
            known.watcher.kill()
            self._undo.undo(known.change)
        return status

    def run(
        self,
        argv: Sequence[str],
        *,
        limit: float,
        log: Path,
        account: Account | None = None,
        told: Sequence[str] = (),
        folder: Path | None = None,
        telling: str = "",
    ) -> str:
        """The standard output of a command that must end with status 0 within `limit` seconds. Raises RunError.

        `told` are the lines of its standard input, which then ends; a line with the pattern `telling` is why it failed.
        """
        output = log.with_name(f"{log.name}.stdout")
        earlier = output.stat().st_size if output.exists() else 0  # of another command with the same log
        process = self.start(argv, log=log, account=account, folder=folder)
        for line in told:
            process.tell(line)
        if told:
            process.hush()
        status = process.wait(limit)
        if status is None:
            process.kill()
            raise RunError(f"`{' '.join(argv)}` did not end within {limit:g} s")
        process.stop()
        said = output.read_bytes()[earlier:].decode(errors="replace")
        if status != 0:
            # Some programs, such as e2fsck, complain by their standard output.
            why = process.complaint(telling=telling) or gist(said) or "it said nothing"
            command = f"`{' '.join(argv)}`"
            if len(command) <= _LONG_COMMAND:
                raise RunError(f"{command} ended with status {status}: {why}")
            # A loader's name says nothing of what it starts.
            name = Path(argv[0]).name
            name = log.name if name.startswith("ld-") else name
            raise RunError(f"{name} ended with status {status}: {why}; the command was {command}")
        return said

    def temporary_folder(self, path: Path) -> Path:
        """Make a folder that goes again with the session, whatever ends it. Raises UserError, also where it exists."""
        if path.exists():
            # Before it is in the journal: what was there already is not ours to remove.
            raise UserError(f"cannot make the folder {path}: it exists already")
        self._folders[path] = self._undo.will(Change("remove-tree", {"path": str(path.absolute())}))
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {path}: {error.strerror or error}") from error
        return path

    def remove_temporary_folder(self, path: Path) -> None:
        """Remove a folder made by `temporary_folder`, now. Raises UndoError."""
        self._undo.undo(self._folders.pop(path))

    def copy_into(self, source: Path, target: Path, *, reflink: bool, limit: float) -> None:
        """Copy what is in a folder into one that is there, as `copy_tree` does. Raises RunError."""
        try:
            files.copy_tree(source, target, reflink=reflink, deadline=time.monotonic() + limit)
        except (OSError, TimeoutError) as error:
            raise RunError(f"cannot copy {source.name} into {target.name}: {error}") from error

    def copy_tree(self, source: Path, target: Path, *, reflink: bool, limit: float) -> None:
        """Copy a folder, synced to the device. `target` must not exist. Raises RunError, also past `limit` seconds."""
        if target.exists():
            raise RunError(f"cannot copy {source.name} to {target.name}: that exists already")
        deadline = time.monotonic() + limit
        try:
            files.copy_tree(source, target, reflink=reflink, deadline=deadline)
        except (OSError, TimeoutError) as error:
            with contextlib.suppress(OSError):
                shutil.rmtree(target)
            raise RunError(f"cannot copy {source.name} to {target.name}: {error}") from error

    def remove_tree(self, path: Path) -> None:
        """Remove a folder within a temporary folder; nothing happens where there is none. Raises RunError."""
        if not any(path.is_relative_to(folder) for folder in self._folders):
            raise RunError(f"refusing to remove {path}: it is not in a folder that this session made")
        try:
            shutil.rmtree(path)
        except OSError as error:
            if path.exists():
                raise RunError(f"cannot remove {path}: {error}") from error

    def make_file_system(self, spec: FileSystem, image: Path, mount: Path, limit: float) -> Mounted:
        """Make a file system in a file, and mount it at a folder that does not exist yet.

        Both have to lie in a temporary folder of this session; what the programs say is kept beside the image. `limit`
        is in seconds, for all of it. Raises RunError; nothing is then left but what the programs said.
        """
        for path in (image, mount):
            if not any(path.is_relative_to(folder) for folder in self._folders):
                raise RunError(f"refusing to make {path}: it is not in a folder that this session made")
        deadline = time.monotonic() + limit
        log = image.with_name(f"{image.name}-made")
        try:
            image.parent.mkdir(parents=True, exist_ok=True)
            filesystems.refuse(spec, image, self.free_disk(image.parent))
            mount.mkdir(parents=True)
        except OSError as error:
            raise RunError(f"cannot make the file system {mount.name}: {error}") from error
        # The kernel tells of files and mounts by these names, and so are they found again.
        image, mount = image.resolve(), mount.resolve()

        until = Until(deadline, log)
        try:
            device = self.volumes.attach(image, spec.size, direct_io=spec.direct_io, until=until)
            self.volumes.make(spec, device, until)
            self.volumes.mount(spec, device, mount, until)
            found = filesystems.facts(spec, device, filesystems.attest_mount(spec, device, mount), image)
        except BaseException:
            with contextlib.suppress(UndoError):  # the journal keeps what stays, and the cause is what went wrong first
                self._undo_file_system(image, mount)
            raise
        return Mounted(folder=mount, device=device, image=image, spec=spec, facts=found)

    def remove_file_system(self, mounted: Mounted) -> None:
        """Unmount it, detach its device and remove its image. Raises UndoError where something still uses it."""
        self._undo_file_system(mounted.image, mounted.folder)

    def _undo_file_system(self, image: Path, mount: Path) -> None:
        self.volumes.unmount(mount)
        self.volumes.detach(image)
        mount.rmdir()

    def remove_volume(self, folder: Path) -> None:
        """Unmount what a system has mounted at a folder or below it, and remove the images. Raises RunError."""
        try:
            self.volumes.remove_at(folder)
        except UndoError as error:
            raise RunError(f"cannot remove the file system at {folder}: {error}") from error

    def fill_disk(self, folder: Path) -> None:
        """Leave no room on a file system that this session made and has mounted there. Raises RunError."""
        if not any(folder.is_relative_to(each) for each in self._folders) or not folder.is_mount():
            raise RunError(f"refusing to fill {folder}: no file system of this session is mounted there")
        volumes.fill(folder)

    def make_room(self, folder: Path) -> None:
        """Take back `fill_disk`; nothing happens where it was not done. Raises RunError."""
        volumes.make_room(folder)

    def expect_mounts(self, folder: Path) -> Path:
        """Before something is mounted at a folder or below it, by whomever; gives the folder as the kernel names it."""
        folder = folder.resolve()
        self._mounts[folder] = self._undo.will(Change("mount", {"target": str(folder)}))
        return folder

    def unmount(self, folder: Path) -> None:
        """Unmount all that was expected at a folder and below it. Raises UndoError where something still uses it."""
        self._undo.undo(self._mounts[folder])
        del self._mounts[folder]

    def expect_file(self, path: Path) -> Change:
        """Before somebody else makes a file or socket for us, and may leave it. It goes with `put_back`."""
        return self._undo.will(Change("file", {"path": str(path)}))

    def expect_folders(self, folders: Sequence[Path]) -> Change:
        """Before somebody else makes these folders and leaves them; those within others come later.

        What is there already is not ours. The others go with `put_back` where they are empty.
        """
        missing = [str(folder) for folder in folders if not folder.exists()]
        return self._undo.will(Change("empty-folders", {"paths": missing}))

    def expect_bridge(self, name: str) -> Change:
        """Before a bridge of the network is made, which goes with `put_back`."""
        return self._undo.will(Change("bridge", {"name": name}))

    def put_back(self, change: Change) -> None:
        """What was expected goes now. Raises UndoError."""
        self._undo.undo(change)

    def free_disk(self, path: Path) -> int:
        """Bytes that this user may still write on the file system of `path`."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def set_kernel(self, wanted: Mapping[kernel.Setting, str]) -> None:
        """Have these settings in force, and those of earlier calls that are not among them as they were before.

        Raises RunError naming the setting where one cannot be written, or is not what was written.
        """
        self._settings.set(wanted)

    def drop_caches(self) -> None:
        """Write back what is dirty and drop the caches of the whole machine. Raises RunError, also without root."""
        kernel.drop_caches()

    def sync(self) -> None:
        """Write back what is dirty on the whole machine."""
        os.sync()

    def write_back(self, folder: Path) -> None:
        """Write back what is dirty on the file system of a folder."""
        files.sync_file_system(folder)

    def confine(self, machine: Machine, cpus: str | None = None, *, parent: bool = False) -> Confinement:
        """What holds processes to a machine and to CPUs. Equal machines share one group, which goes with the session.

        Without limits there is no group, unless it is to be the `parent` of containers: they end by it. Raises
        UserError where this machine has no such CPUs or not as much memory, RunError where it cannot be kept to.
        """
        return self._groups.confine(machine, cpus, parent=parent)

    def confine_node(self, name: str, machine: Machine, site: Confinement | None = None) -> Confinement:
        """What holds the processes of a node to a machine of its own, within that of its site, on the site's CPUs.

        A group for each node, also without limits, so that its disk can be limited at any time (`limit_disk`); the same
        again for the same name, machine and site. It goes with the session. Raises UserError where the machine does not
        fit, RunError where it cannot be kept to.
        """
        return self._groups.confine_node(name, machine, site or Confinement())

    def limit_disk(self, confinement: Confinement, limits: Mapping[str, int], data: Path) -> DiskLimits:
        """Hold what is confined to so much a second of the device that `data` is on; see `cgroups.limit_disk`.

        They go with the group. Raises RunError where the device cannot be limited.
        """
        assert confinement.group is not None, "a machine with limits has a group"
        return limit_disk(confinement.group, device_of(data), limits)

    def release_disk(self, confinement: Confinement, limits: Mapping[str, int], data: Path) -> None:
        """Take those limits back until they are set again. Raises RunError."""
        assert confinement.group is not None, "a machine with limits has a group"
        release_disk(confinement.group, device_of(data), limits)

    def joint_group(self, controllers: Sequence[str]) -> joint.Joint:
        """A control group for a system and its driver, with these controllers; it goes with the session.

        Raises RunError.
        """
        return joint.make(self._undo, controllers)

    def evict(self, paths: Sequence[Path]) -> None:
        """Write the files back and drop them from page cache; needs no root. Raises RunError."""
        for path in paths:
            try:
                pagecache.evict(path)
            except FileNotFoundError:
                continue  # a running server removes files of its own
            except OSError as error:
                raise RunError(f"cannot drop {path.name} from page cache: {error}") from error

    def resident_bytes(self, paths: Sequence[Path]) -> int:
        """How much of the files is in page cache now, in bytes. Raises RunError."""
        resident = 0
        for path in paths:
            try:
                resident += pagecache.resident_bytes(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RunError(f"cannot read page-cache residency: {error}") from error
        return resident

    def bytes_of(self, paths: Sequence[Path]) -> int:
        """The sizes of the files, added up; one that is gone counts nothing. Raises RunError."""
        total = 0
        for path in paths:
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RunError(f"cannot read the size of {path.name}: {error}") from error
        return total
