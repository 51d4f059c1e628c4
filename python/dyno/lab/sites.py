"""Where each system lives in each deployment that a study has: its limits, and a file system of its own if asked for.

One site for each combination of what sites differ in. All are made before the first run, so that what a machine cannot
give is a refusal and not a failed run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dyno.deployments.base import Deployment
from dyno.deployments.base import Site as Given
from dyno.hosts import LocalHost
from dyno.hosts.devices import Device, device_of
from dyno.hosts.filesystems import Mounted
from dyno.hosts.kernel import Setting, settings_of
from dyno.hosts.leftovers import UndoError
from dyno.lab.disk import DiskGuard
from dyno.lab.meter import MachineMeter, unknown_kind
from dyno.model.base import RunError, Scalar, UserError
from dyno.model.study import Cell, FileSystem, Machine, Study
from dyno.model.units import format_size


class SiteKey(NamedTuple):
    """What two cells must agree in to have a site together."""

    system: str
    deployment: str
    file_system: FileSystem | None
    machine: Machine
    cpus: str | None
    engine: str | None

    @classmethod
    def of(cls, cell: Cell) -> SiteKey:
        """That of a cell."""
        host = cell.host
        return cls(cell.system.kind, cell.deployment, host.file_system, host.machine, host.pin.system, host.containers)


@dataclass
class Site:
    """A deployment that is ready, and what is to be known of the place where its data are."""

    deployment: Deployment
    guard: DiskGuard
    device: Device
    mounted: Mounted | None = None
    machine: Machine = field(default_factory=Machine)
    versions: dict[str, str] = field(default_factory=dict)

    def machine_meter(self) -> MachineMeter | None:
        """What reads of its machine what is used; None where that has no limits."""
        group = self.deployment.site.confinement.group
        return None if group is None or self.machine == Machine() else MachineMeter(group, self.machine)

    def facts(self) -> dict[str, Scalar]:
        """Whose device it is that the meter reads, since others write to a shared one too; what was made for it.

        And what of it may be used: of a system within its driver nothing else tells.
        """
        disk = self.deployment.site.disk
        limits = {f"io.limit.{name}": limit for name, limit in disk.limits.items()} if disk is not None else {}
        if self.mounted is None:
            return {"device": "shared", **limits}
        of_mounted = {f"file_system.{name}": value for name, value in self.mounted.facts.items()}
        return {"device": "its own", **of_mounted, **limits}

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Within, its disk is not limited: what is loaded is kept for all sites, and loading is not measured."""
        given = self.deployment.site
        if given.disk is None:
            yield
            return
        given.host.release_disk(given.confinement, given.disk.limits, given.folder)
        try:
            yield
        finally:
            given.host.limit_disk(given.confinement, given.disk.limits, given.folder)

    def notes(self) -> Iterator[str]:
        """What its limits do not hold, in sentences."""
        disk = self.deployment.site.disk
        if disk is not None and not disk.inherited and disk.limits.keys() & {"write_bytes", "writes"}:
            yield (
                "Control groups of version 1 hold what the system writes past the page cache, or syncs itself, to "
                "host.machine.disk, and not what the kernel writes later from page cache."
            )


class Sites:
    """Those of one study, below `workspace`."""

    def __init__(
        self,
        study: Study,
        host: LocalHost,
        deployments: Mapping[str, type[Deployment]],
        *,
        workspace: Path,
        results: Path,
        keep: int,
    ) -> None:
        """`results` is where runs are written, `keep` the bytes that stay free there and below the data."""
        self._study = study
        self._host = host
        self._deployments = deployments
        self._workspace = workspace
        self._results = results
        self._keep = keep
        self._made: dict[SiteKey, Site] = {}

    def of(self, cell: Cell) -> Site:
        """That of a cell."""
        return self._made[SiteKey.of(cell)]

    def make(self) -> Iterator[tuple[Cell, Site]]:
        """Make them all, each given with the first cell that has it. Raises UserError where one cannot be made."""
        first: dict[SiteKey, Cell] = {}
        for cell in sorted(self._study.cells, key=lambda cell: not cell.host.require.truly_cold):
            first.setdefault(SiteKey.of(cell), cell)
        self._refuse_too_large(list(first))
        for number, (key, cell) in enumerate(first.items(), 1):
            with refused(f"system {key.system} in deployment {key.deployment} has no place to live"):
                self._made[key] = self._make(number, key)
            yield cell, self._made[key]

    def _refuse_too_large(self, keys: list[SiteKey]) -> None:
        sizes = [key.file_system.size for key in keys if key.file_system is not None]
        free = self._host.free_disk(self._workspace)
        if sizes and free < sum(sizes) + self._keep:
            raise UserError(
                f"host.file_system: {len(sizes)} file systems for the data take {format_size(sum(sizes))} together, "
                f"and {format_size(self._keep)} are to stay free (host.require.free_disk); the file system of "
                f"{self._workspace.parent} has {format_size(free)}: lower host.file_system.size, or choose another "
                "place with --work"
            )

    def _make(self, number: int, key: SiteKey) -> Site:
        kind = self._deployments[key.deployment]
        own = self._folder("sites", str(number))
        # First, since what it refuses is the study's to mend, and nothing is mounted then.
        confinement = self._host.confine(key.machine, key.cpus, parent=kind.in_container)
        mounted, folder = None, self._workspace
        if key.file_system is not None:
            mounted = self._host.make_file_system(
                key.file_system, own / "image", own / "mount", self._study.limits.provision
            )
            folder = mounted.folder
        elif kind.in_container:
            folder = self._folder("sites", str(number), "data")
        limits = key.machine.disk.limits
        given = Given(
            host=self._host,
            folder=folder,
            work=self._folder("sites", str(number), "work"),
            logs=self._folder("logs"),
            confinement=confinement,
            engine=key.engine,
            disk=self._host.limit_disk(confinement, limits, folder) if limits else None,
        )
        guard = DiskGuard(
            self._host,
            folder,
            self._results,
            self._keep,
            snapshots=self._workspace,
            own=None if key.file_system is None else key.file_system.size,
        )
        return Site(kind(given), guard, device_of(folder), mounted, key.machine)

    def _folder(self, *names: str) -> Path:
        """Below the workspace, and open to the accounts that servers run as."""
        folder = self._workspace
        for name in names:
            folder = folder / name
            folder.mkdir(exist_ok=True)
            folder.chmod(folder.stat().st_mode | 0o011)
        return folder

    def make_room(self) -> None:
        """Remove the live data that lie where the snapshots do; they are restored before each run anyway."""
        for site in self._made.values():
            if site.mounted is None:
                self._host.remove_volume(site.deployment.data)
                self._host.remove_tree(site.deployment.data)

    def destroy(self) -> None:
        """End the deployments, and remove the file systems. What stays, the undo journal puts away."""
        for site in self._made.values():
            with contextlib.suppress(RunError, UndoError):
                site.deployment.destroy()
        for site in self._made.values():
            if site.mounted is not None:
                with contextlib.suppress(UndoError):
                    self._host.remove_file_system(site.mounted)


def refuse_unknown(cell: Cell, device: Device) -> None:
    """Raise UserError where a cell's data are to be truly cold, and it could not be shown of that device."""
    if cell.host.require.truly_cold and device.fastest_read_bytes_s() is None:
        raise UserError(f"host.require.truly_cold cannot be shown here: {unknown_kind(device)}")


@contextmanager
def refused(what: str) -> Iterator[None]:
    """What cannot be done before the first run is an error for the user."""
    try:
        yield
    except RunError as error:
        raise UserError(f"{what}: {error}") from error


class Wanting:
    """What cannot be done before the first run, gathered: a user who has to get several things is told of all."""

    def __init__(self) -> None:
        self._whys: dict[str, str] = {}  # what first wanted for each: several may for the same

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self._whys)

    @contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Within, what goes wrong is kept."""
        try:
            yield
        except RunError as error:
            self._whys.setdefault(str(error), what)

    def refuse(self) -> None:
        """Raise UserError where there is anything."""
        if self._whys:
            raise UserError("; ".join(f"{what}: {why}" for why, what in self._whys.items()))


def kernel_settings(cell: Cell) -> dict[Setting, str]:
    """What a cell asks of the kernel. Raises RunError."""
    return settings_of(cell.host.sysctl, cell.host.kernel)
