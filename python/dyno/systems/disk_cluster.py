"""Clusters whose server has nothing to do with replication: one runs at a time, on a disk that is kept twice.

What is loaded is loaded natively, into a plain folder; each run then begins with that on two disks that are alike.
What keeps the disks alike, and where they are, is said in the module of each kind.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from dyno import sql
from dyno.deployments.native import Native
from dyno.hosts.leftovers import UndoError
from dyno.hosts.vm_image import tree_image
from dyno.hosts.volumes import Until
from dyno.model.base import NeverValid, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Size, format_size
from dyno.systems.base import Place
from dyno.systems.cluster import Cluster, OfNode
from dyno.systems.members import LISTENING, ClusterOptions
from dyno.systems.mysql import MysqlOptions, MysqlSystem
from dyno.systems.mysql_member import MODEST
from dyno.systems.server import Asking, Figures

NAMES = ("n1", "n2")
FOLDER = "data"
"""Of the server, below the top of the file system, at which there is more."""
_LEAST_DISK = 192 * 2**20
_MIB = 2**20


class DiskClusterOptions(ClusterOptions):
    """Of the cluster; every other key is a setting of MySQL, passed on as it is and read back."""

    ours = MysqlOptions.ours
    besides_pool = 160 << 20

    nodes: Annotated[Literal[2], Field(description="a disk is kept twice")] = 2
    node_disk: Annotated[Size, Field(ge=_LEAST_DISK, description="of each of the two disks, in whole MiB")] = 512 * _MIB


C = TypeVar("C", bound=DiskClusterOptions)


class DiskServer(OfNode, MysqlSystem):
    """The server on a node that has the disk."""

    def own_words(self) -> list[str]:
        """As those of other clusters' nodes; what the study sets comes later, and counts."""
        return [*super().own_words(), *MODEST]

    def listening(self, port: int | None) -> list[str]:
        """At every address of its node."""
        return list(LISTENING)

    def way(self) -> Endpoint:
        """By its socket. Raises RunError where it was not started."""
        if self._endpoint is None:
            raise RunError(f"{self.node} has no server")
        return self._endpoint


class DiskCluster(Cluster[C]):
    """Two nodes, n1 and n2; the first has the server first."""

    backend = "mysql"
    has_counters = True
    buffers_writes = True

    def __init__(self, options: C, place: Place) -> None:
        super().__init__(options, place)
        self._lone: MysqlSystem | None = None
        self._asked: dict[str, Any] | None = None
        self._effective: dict[str, Any] = {}
        self._before: Figures = {}
        self._clean = False
        self._given_up = False

    @classmethod
    def reached_by(cls, options: C) -> str | None:  # noqa: ARG003 - there is one way
        """By the network of the nodes."""
        return "tcp"

    @classmethod
    def why_not_valgrind(cls, options: C) -> str | None:  # noqa: ARG003 - whatever they are
        """It would count what keeps the disks alike."""
        return "a cluster's servers are not counted by valgrind"

    @abstractmethod
    def _pids(self) -> dict[str, int]:
        """Of what runs, by subject."""

    def processes(self) -> dict[str, int]:
        """Of both nodes."""
        return self._pids()

    # What is loaded, and restored for each run

    def server(self, data: Path, **more: Any) -> MysqlSystem:
        """A server by itself on a folder, by a socket."""
        options = MysqlOptions(check=self.options.check, **more, **self.options.settings)
        shared = self.place.shared or self.place.data.parent
        return MysqlSystem(options, replace(self.place, data=data, shared=shared))

    def taken_of_disk(self) -> int:
        """Bytes of each disk that are not for the file system."""
        return 0

    @property
    def loaded(self) -> Path:
        """What is loaded, with the server's folder in it."""
        return self.place.data / "loaded"

    def disk(self, node: str) -> Path:
        """The image of a node's disk."""
        return self.place.data / f"{node}.img"

    def provision_server(self, limit: float) -> dict[str, str]:
        """Programs and account of the server. Raises RunError."""
        if not isinstance(self.deployment, Native):
            raise RunError(f"{self.kind} lives natively: deployment {self.deployment.kind} cannot hold its nodes")
        there = self.loaded.is_dir()
        self.loaded.mkdir(parents=True, exist_ok=True)
        self._let_in()
        versions = self.server(self.loaded / FOLDER).provision(limit)
        if not there:
            self.place.host.remove_tree(self.place.data)
        return versions

    def _let_in(self) -> None:
        for folder in (self.place.data, self.loaded):
            folder.chmod(0o711)

    def data_key(self) -> dict[str, Any]:
        """That of the server: neither disks nor what keeps them alike shape any data."""
        return self.server(self.loaded / FOLDER).data_key()

    def after_load(self) -> tuple[str, ...]:
        """As a single server has it."""
        return self.options.after_load

    def prepare(self, limit: float) -> None:
        """The empty store of one server."""
        self._clear()
        self.loaded.mkdir()
        self._let_in()
        self.server(self.loaded / FOLDER).prepare(limit)

    def needs_bytes(self) -> int:
        """Both disks."""
        return len(NAMES) * self.options.node_disk

    def restored_bytes(self, source: Path) -> int:
        """On each of them."""
        return len(NAMES) * super().restored_bytes(source)

    def snapshot(self, target: Path, limit: float) -> None:
        """Of what was loaded."""
        self.place.host.copy_tree(self.loaded, target, reflink=False, limit=limit)

    def restore(self, source: Path, limit: float, *, reflink: bool) -> None:
        """A file system with it on two disks that are alike in every byte; synced to the device."""
        deadline = time.monotonic() + limit
        self._clear()
        host, log = self.place.host, self.place.logs / "disks"
        first, second = (self.disk(name) for name in NAMES)
        whole = self.options.node_disk // _MIB * _MIB
        size = (whole - self.taken_of_disk()) // 4096 * 4096
        if (holds := super().restored_bytes(source)) > size:
            raise RunError(
                f"what was loaded takes {format_size(holds)}, and the disk of a node holds {format_size(size)}: raise "
                "system.config.node_disk"
            )
        tree_image(host, source, first, size, journal=True, limit=limit, log=log)
        with first.open("r+b") as file:
            file.truncate(whole)
        copying = ["cp", "--sparse=always", "--reflink=never", str(first), str(second)]
        host.run(copying, limit=deadline - time.monotonic(), log=log)
        host.run(["sync", str(first), str(second)], limit=deadline - time.monotonic(), log=log)

    def _clear(self) -> None:
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()
        self.place.data.chmod(0o711)

    def start_alone(self, run: int, limit: float) -> None:
        """To be loaded."""
        self._lone = self.server(self.loaded / FOLDER)
        self._lone.start(run, limit)

    # What is asked of the server while it runs on the disk

    @abstractmethod
    def way_of_dyno(self) -> Endpoint:
        """How dyno itself reaches the server that runs, by a socket. Raises RunError where none does."""

    @abstractmethod
    def primary(self) -> str | None:
        """The node whose server answers; None where there is none."""

    def attest(self, said: dict[str, Any], asked: dict[str, Any], limit: float) -> None:
        """See that what the study asks for is in force: of the server, and of what keeps the disks alike.

        `said` and `asked` are of the latter. Raises NeverValid.
        """
        with sql.connect(self.way_of_dyno(), limit=limit) as connection:
            server = self.server(self.loaded / FOLDER)
            wanted, effective = server.read_settings(connection)
            self._before = server.read_counters(connection)
        self._asked = {**wanted, **asked}
        self._effective = {**effective, **said, "connect": self.options.connect}
        for name, value in self._asked.items():
            if self._effective.get(name) != value:
                found = self._effective.get(name, "not a setting that is shown")
                raise NeverValid(f"{name} is {found}, the study asks for {value}: the setting was not effective")

    def asked(self) -> dict[str, Any]:
        """In the terms of who has them, as soon as it was ready."""
        return dict(self.options.settings if self._asked is None else self._asked)

    def settings(self) -> dict[str, Any]:
        """What was said when it was ready."""
        return dict(self._effective)

    def server_status(self, limit: float) -> dict[str, float]:
        """What the server counted since it was ready, and its sizes."""
        server = self.server(self.loaded / FOLDER)
        with sql.connect(self.way_of_dyno(), limit=limit) as connection:
            now, sizes = server.read_counters(connection), server.read_sizes(connection)
        return {**{name: value - self._before.get(name, 0.0) for name, value in now.items()}, **sizes}

    def server_counters(self) -> dict[str, float]:
        """`server_status`, where the server is the one that was there at first."""
        return self.server_status(30.0) if not self._struck and self.primary() == NAMES[0] else {}

    def counters(self, limit: float) -> Asking | None:
        """Of the server that runs now."""
        if self.primary() is None:
            return None
        connection, reads = self.server(self.loaded / FOLDER).reader(self.way_of_dyno(), limit)
        return Asking(connection, reads, lambda: self.primary() is None)

    def check(self, limit: float) -> None:
        """The checksums of pages on the disk that was written to last, where its server ended cleanly."""
        if not self._clean or self.options.check == "none":
            return
        host, last = self.place.host, self.disk(self._last)
        point = self.place.data / "checked"
        point.mkdir()
        until = Until.within(limit, self.place.logs / "check")
        try:
            device = host.volumes.attach_file(last, direct_io=False, until=until)
            point = host.expect_mounts(point)
            host.run(["mount", "-t", "ext4", "-o", "ro", str(device), str(point)], limit=until.left, log=until.log)
            self.server(point / FOLDER).check(until.left)
        finally:
            try:
                host.unmount(point.resolve())
                host.volumes.detach_file(last)
            except (UndoError, KeyError) as error:
                raise RunError(f"cannot let go of the disk that was checked: {error}") from error
            point.rmdir()

    _last = NAMES[0]
    """The node that had the server last."""


def other_of(name: str) -> str:
    """The node besides one."""
    return next(each for each in NAMES if each != name)
