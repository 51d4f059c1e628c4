"""Clusters of servers of the MySQL protocol: the life of their nodes, and every kind of fault.

What makes one cluster of them, and how its own view of itself is read, is said in the module of each kind. Nodes are
named n1, n2 and so on, each in a network namespace and a control group of its own, all of them alike.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, model_validator

from dyno import sql
from dyno.deployments.base import Deployment, Running
from dyno.deployments.native import Native, for_node
from dyno.hosts.confinement import Confinement
from dyno.hosts.networks import CLIENT
from dyno.hosts.volumes import image_of
from dyno.model.base import KeyProblem, RunError, Scalar
from dyno.model.endpoint import Endpoint
from dyno.model.faults import FaultKind, Struck
from dyno.model.study import FileSystem
from dyno.model.units import Size, format_size
from dyno.systems.base import Place, files_below
from dyno.systems.cluster import Cluster, NodeState, OfNode, Role, facts_of_nodes, machine_of_node, told_of
from dyno.systems.innodb import InnodbOptions, InnodbSystem
from dyno.systems.server import WHO, Asking, binary_number

PORT = 3306
"""Of every node, at its own address."""
LISTENING = ("--bind-address=0.0.0.0", f"--port={PORT}")
ADMIN, ADMIN_PASSWORD = "dyno_admin", "dyno-admin"
"""Who looks after the cluster: dyno by the socket of each node, its manager by the network."""
CATCHES_UP_S = 0.5
"""How far behind the others a node may be and count as in step: it is written to meanwhile."""

_DEFAULT_POOL = 128 << 20  # innodb_buffer_pool_size of MySQL and MariaDB
_LOOK_EVERY_S = 0.05
_ASK_LIMIT_S = 3.0
_DISK_LIMIT_S = 120.0
_TAKES_A_NODE_AWAY: frozenset[FaultKind] = frozenset({"kill", "freeze", "cut", "cut-one-way"})
"""From the others, who are not told."""
SLOW_DISK: Mapping[str, int] = {"write_bytes": 1 << 20, "writes": 25}
"""A second, of a node whose disk is made slow: a failing hard disk."""

T = TypeVar("T")


class ClusterOptions(InnodbOptions):
    """Of the cluster; every other key is a setting of each node's server, passed on as it is and read back on all."""

    besides_pool: ClassVar[int] = 64 << 20
    """Bytes that a server of this kind is sure to take besides its buffer pool: with less it is killed as it starts."""

    connect: Annotated[Literal["tcp"], Field(description="clients come from a node of their own, by TCP")] = "tcp"
    stop: Annotated[Literal["clean"], Field(description="asked to end, all nodes at once")] = "clean"
    nodes: Annotated[int, Field(ge=2, le=9, description="how many servers")] = 3
    node_cpus: Annotated[
        float | None, Field(ge=0.01, description="seconds of CPU time a second of each node; all if left out")
    ] = None
    node_memory: Annotated[
        Size | None, Field(gt=0, description="memory of each node, page cache included; no limit if left out")
    ] = None
    node_disk: Annotated[
        Size | None,
        Field(
            ge=64 << 20,
            description="a file system of this size for the data of each node, which faults disk-full and slow-disk "
            "need; if left out they are in folders of one file system",
        ),
    ] = None

    @model_validator(mode="after")
    def _a_server_fits_in_its_node(self) -> Self:
        if self.node_memory is None:
            return self
        pool = binary_number(self.settings.get("innodb_buffer_pool_size", _DEFAULT_POOL))
        least = (_DEFAULT_POOL if pool is None else pool) + self.besides_pool
        if self.node_memory < least:
            raise KeyProblem(
                "node_memory",
                f"{format_size(self.node_memory)} are too little for a server, which takes at least "
                f"{format_size(self.besides_pool)} besides its buffer pool: write {format_size(least)} or more, or "
                "lower innodb_buffer_pool_size",
            )
        return self


O = TypeVar("O", bound=InnodbOptions)  # noqa: E741 - the options of one kind of server
C = TypeVar("C", bound=ClusterOptions)


class Member(OfNode, InnodbSystem[O]):
    """A server that is a node. `words_of_node` are what its command has for that; without any it is by itself."""

    words_of_node: tuple[str, ...] = ()
    before_asking: tuple[str, ...] = ()
    """What an administrator's connection begins with."""
    not_of_data: ClassVar[tuple[str, ...]] = ()
    """How the names of settings begin that are of the cluster, and shape no data."""

    @property
    def template_name(self) -> str:
        """Nodes have more accounts than a server that is by itself."""
        return f"{self.kind}-node"

    def data_key(self) -> dict[str, Any]:
        """Without what makes a cluster of it."""
        return {name: value for name, value in super().data_key().items() if not name.startswith(self.not_of_data)}

    def listening(self, port: int | None) -> list[str]:
        """At the address of its node."""
        return list(self.words_of_node) or super().listening(port)

    def ready(self, limit: float) -> Endpoint:
        """Let in the administrator too, by the socket: the server then knows both when they come by the network."""
        deadline = time.monotonic() + limit
        endpoint = super().ready(limit)
        self.ask(max(deadline - time.monotonic(), 0.1)).close()
        return endpoint

    def start_again(self, limit: float) -> Running:
        """With the words that a node has by now."""
        assert self._launch is not None
        assert self._folder is not None
        self._launch = replace(self._launch, argv=tuple(self.command(self._folder, None)))
        return super().start_again(limit)

    def ask(self, limit: float = _ASK_LIMIT_S) -> sql.Connection:
        """A connection of the administrator's by the socket. Raises SqlError."""
        if self._endpoint is None:
            raise sql.SqlError(f"{self.node} does not run")
        connection = sql.connect(as_admin(self._endpoint), limit=limit)
        try:
            for statement in self.before_asking:
                connection.rows(statement)
        except sql.SqlError:
            connection.close()
            raise
        return connection

    def as_client(self, limit: float = _ASK_LIMIT_S) -> sql.Connection:
        """A connection of the workload's account by the socket. Raises SqlError."""
        if self._endpoint is None:
            raise sql.SqlError(f"{self.node} does not run")
        return sql.connect(self._endpoint, limit=limit)


class ServerCluster(Cluster[C]):
    """Several servers, of which one is loaded, and all are restored from what was loaded."""

    backend = "mysql"
    has_counters = True
    buffers_writes = True
    own_files: ClassVar[tuple[str, ...]] = ("auto.cnf",)
    """Of the data, what tells a server from another."""
    besides: ClassVar[tuple[str, ...]] = ()
    """Who has a place in the network besides the nodes and their client."""
    by_majority: ClassVar[bool] = False
    """Whether nodes go on only where more than half of those that there were are left."""

    def __init__(self, options: C, place: Place) -> None:
        super().__init__(options, place)
        self._members: dict[str, Member[Any]] = {}
        self._lone: Member[Any] | None = None
        self._endpoint: Endpoint | None = None
        self._unclean: set[str] = set()
        self._at_ready: dict[str, int] = {}
        self._given_up = False

    # What each kind says of itself

    @abstractmethod
    def member(self, place: Place) -> Member[Any]:
        """A server that is one of its nodes."""

    @abstractmethod
    def words(self, name: str) -> list[str]:
        """What the command of a node has for being one of this cluster."""

    @abstractmethod
    def words_alone(self) -> list[str]:
        """The same of a server that is only loaded, with nobody beside it."""

    @abstractmethod
    def form(self, deadline: float) -> None:
        """Make one cluster of the servers that were started, and wait until it is whole. Raises RunError."""

    @abstractmethod
    def view(self) -> dict[str, tuple[Role, str]]:
        """Role and state of each node, as the cluster itself says."""

    @abstractmethod
    def rejoin(self, member: Member[Any], deadline: float) -> None:
        """Have a node whose server answers be one of the cluster again. Raises RunError."""

    @abstractmethod
    def ways(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Host and port by which clients come, and those of further ways in."""

    @abstractmethod
    def counted(self) -> dict[str, float]:
        """What the cluster counts of itself, for the status of a run."""

    def let_go(self) -> None:
        """End what is in front of the servers and what looks after them. May be called twice."""

    def helpers(self) -> dict[str, int]:
        """Processes besides the servers, by subject."""
        return {}

    def tidy(self, folder: Path) -> None:
        """Take from the data of a loaded server what is its own and no other node's."""
        for name in self.own_files:
            (folder / name).unlink(missing_ok=True)

    # The life

    @classmethod
    def reached_by(cls, options: C) -> str | None:  # noqa: ARG003 - always
        """By the network of the nodes."""
        return "tcp"

    @classmethod
    def most_clients(cls, options: C) -> int | None:
        """As many as the one node that is written to lets in."""
        return InnodbSystem.most_clients(options)

    @classmethod
    def opens_directly(cls, options: C) -> str | None:
        """As a single server."""
        return InnodbSystem.opens_directly(options)

    @classmethod
    def why_not_valgrind(cls, options: C) -> str | None:  # noqa: ARG003 - never
        """All nodes would have to be told apart."""
        return "a cluster's servers are not counted by valgrind"

    @classmethod
    def why_not_struck(cls, options: C, kind: FaultKind) -> str | None:
        """Those of the disk need one of the node's own, and of two nodes none is a majority."""
        if cls.by_majority and options.nodes == 2 and kind in _TAKES_A_NODE_AWAY:
            return (
                f"of two nodes neither has a majority once the other is gone, so nobody goes on after {kind} until it "
                "is mended: write system.config.nodes: 3"
            )
        if kind in ("disk-full", "slow-disk") and options.node_disk is None:
            return f"{kind} needs a disk of each node's own: write system.config.node_disk, such as 2 GiB"
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """Of all nodes."""
        return tuple(f"n{number}" for number in range(1, self.options.nodes + 1))

    @property
    def members(self) -> tuple[Member[Any], ...]:
        """The servers of all nodes, between start and stop."""
        return tuple(self._members.values())

    @property
    def running(self) -> Running | None:
        """The first of its servers that runs."""
        if self._lone is not None:
            return self._lone.running
        return next((member.running for member in self.members if member.lives()), None)

    def provision(self, limit: float) -> dict[str, str]:
        """Programs, accounts, and whether this machine can have nodes."""
        if os.geteuid() != 0:
            raise RunError("a cluster needs root: each of its nodes has a network and a control group of its own")
        if not isinstance(self.deployment, Native):
            raise RunError(f"a cluster lives natively: deployment {self.deployment.kind} cannot hold its nodes")
        with self._with_folder():
            return self._by_itself().provision(limit)

    @contextmanager
    def _with_folder(self) -> Iterator[None]:
        """Within, there is a folder for the data."""
        there = self.place.data.is_dir()
        self.place.data.mkdir(exist_ok=True)
        yield
        if not there:
            self.place.data.rmdir()

    def data_files(self) -> list[Path]:
        """Of all nodes; not the images that their disks are in."""
        return [path for name in self.names for path in files_below(self._data(name))]

    def data_key(self) -> dict[str, Any]:
        """That of each server: the topology shapes no data."""
        return self._by_itself().data_key()

    def after_load(self) -> tuple[str, ...]:
        """As a single server has it."""
        return self.options.after_load

    def prepare(self, limit: float) -> None:
        """The empty store of one node: it alone is loaded."""
        self._clear()
        self._by_itself().prepare(limit)

    def needs_bytes(self) -> int:
        """The disks of all nodes."""
        return self.options.nodes * (self.options.node_disk or 0)

    def live_bytes(self) -> int:
        """Those too, once they are there."""
        if self.options.node_disk is None:
            return super().live_bytes()
        return sum(self.options.node_disk for name in self.names if image_of(self.place.data / name).exists())

    def restored_bytes(self, source: Path) -> int:
        """A copy for each node."""
        return self.needs_bytes() or self.options.nodes * super().restored_bytes(source)

    def snapshot_bytes(self) -> int:
        """Of the one that was loaded."""
        return super().live_bytes()

    def snapshot(self, target: Path, limit: float) -> None:
        """Of the one server that was loaded."""
        self.tidy(self.place.data / self.names[0])
        self.place.host.copy_tree(self.place.data / self.names[0], target, reflink=False, limit=limit)

    def restore(self, source: Path, limit: float, *, reflink: bool) -> None:
        """To all nodes, synced to the device."""
        deadline = time.monotonic() + limit
        self._clear()
        for name in self.names:
            self._make_disk(name)
            target = self._data(name)
            self.place.host.copy_tree(source, target, reflink=reflink, limit=deadline - time.monotonic())
        self._unclean.clear()

    def _make_disk(self, name: str) -> None:
        if self.options.node_disk is None:
            return
        host, mount = self.place.host, self.place.data / name
        spec = FileSystem.model_validate({"size": f"{self.options.node_disk} B"})
        host.make_file_system(spec, image_of(mount), mount, _DISK_LIMIT_S)
        mount.chmod(0o711)

    def _data(self, name: str) -> Path:
        """The data of a node; below the top of its file system where it has one, at which there is more."""
        on_disk = self.options.node_disk is not None and image_of(self.place.data / name).exists()
        return self.place.data / name / "data" if on_disk else self.place.data / name

    def _clear(self) -> None:
        self.place.host.remove_volume(self.place.data)
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()
        self.place.data.chmod(0o711)

    def _by_itself(self) -> Member[Any]:
        """A server that is no node of a cluster."""
        return self._made(self.names[0], self.deployment)

    def _made(self, name: str, deployment: Deployment) -> Member[Any]:
        shared = self.place.shared or self.place.data.parent
        made = self.member(replace(self.place, data=self._data(name), shared=shared, deployment=deployment))
        made.node = name
        return made

    def start(self, run: int, limit: float) -> None:
        """One server by itself where it is loaded, else all nodes in a network of their own."""
        if not (self.place.data / self.names[0]).is_dir():
            raise RunError("there are no data to start on")
        if run == 0:
            self._lone = self._by_itself()
            self._lone.words_of_node = tuple(self.words_alone())
            self._lone.start(run, limit)
            return
        deadline = time.monotonic() + limit
        self._struck.clear()
        self._network = self.place.host.networks.make([*self.names, *self.besides])
        self._members = {name: self._made(name, self._of_node(name)) for name in self.names}
        try:
            self.start_members(run, deadline)
        except BaseException:
            with suppress(RunError):
                self.stop(limit)
            raise

    def start_members(self, run: int, deadline: float) -> None:
        """Start their servers. Raises RunError."""
        for member in self.members:
            member.words_of_node = tuple(self.words(member.node))
            member.start(run, deadline - time.monotonic())

    def confinement(self, name: str) -> Confinement:
        """The control group of a node, the same for all."""
        return self.place.host.confine_node(name, machine_of_node(self.options), self.deployment.site.confinement)

    def _of_node(self, name: str) -> Native:
        return for_node(self.deployment, self.confinement(name), self.network.words(name))

    def ready(self, limit: float) -> Endpoint:
        """Have every server answer, make a cluster of them, and see that each has the settings that were asked for."""
        if self._lone is not None:
            return self._lone.ready(limit)
        if not self._members:
            raise RunError(f"{self.kind} was not started")
        if self._endpoint is not None:
            return self._endpoint
        deadline = time.monotonic() + limit
        self.members_ready(deadline)
        self.form(deadline)
        for member in self.members:
            # Again, since joining may change what was set before.
            with told_of(member.node), member.as_client() as connection:
                member.attest(connection)
        self._at_ready = self._pids()
        self._sent_before = self.sent_bytes() or 0
        self._endpoint = self._reached()
        return self._endpoint

    def members_ready(self, deadline: float) -> None:
        """Wait until every server answers. Raises RunError."""
        for member in self.members:
            with told_of(member.node):
                member.ready(deadline - time.monotonic())

    def address(self, name: str) -> dict[str, Any]:
        """Host and port of a node."""
        return {"host": self.network.address(name), "port": PORT}

    def _reached(self) -> Endpoint:
        first, more = self.ways()
        others = {**more, **{name: self.address(name) for name in self.names}}
        return Endpoint(
            backend=self.backend,
            settings={**first, **WHO},
            processes=self.processes(),
            namespace=str(self.network.path(CLIENT)),
            others={name: {**way, **WHO} for name, way in others.items()},
        )

    def _pids(self) -> dict[str, int]:
        return {
            member.node: member.running.pid for member in self.members if member.running is not None and member.lives()
        }

    def processes(self) -> dict[str, int]:
        """Of all nodes, one that has ended until it is started again; and those besides."""
        servers = {each.node: running.pid for each in self.members if (running := each.running) is not None}
        return {**servers, **self.helpers()}

    def asked(self) -> dict[str, Any]:
        """That of each server, which has it attested by itself."""
        return self.members[0].asked() if self._members else self.options.settings

    def settings(self) -> dict[str, Any]:
        """Of the first node; the others were compared with what was asked for too."""
        return {**self.members[0].settings(), "connect": self.options.connect} if self._members else {}

    def facts(self) -> dict[str, Scalar]:
        """How many there are and what each has, and what a server says of itself."""
        return {**facts_of_nodes(self.options), **(self.members[0].facts() if self._members else {})}

    def cached(self, cold: bool) -> dict[str, Any]:
        """Of all nodes together."""
        found: dict[str, Any] = {}
        for member in self.members:
            with told_of(member.node):
                for name, value in member.cached(cold).items():
                    found[name] = found.get(name, 0) + value
        return found

    def counters(self, limit: float) -> Asking | None:
        """Of the server that is written to."""
        primary = self.primary()
        return None if primary is None else primary.counters(limit)

    def primary(self) -> Member[Any] | None:
        """The first of those that are written to; None where there is none."""
        roles = self.view() if self._members else {}
        named = (name for name, (role, _) in roles.items() if role == "primary")
        return next((self._members[name] for name in named if self._members[name].lives()), None)

    def status(self) -> dict[str, float]:
        """What its servers counted together, of those that ran all the time; and what the cluster cost."""
        figures: dict[str, float] = {}
        for member in self.members:
            if not self._is_as_it_was(member):
                continue
            for name, value in member.status().items():
                figures[name] = figures.get(name, 0.0) + value
        return {**figures, **self.costs(self.options.nodes), **self.counted()}

    def _is_as_it_was(self, member: Member[Any]) -> bool:
        return (
            member.node in self._at_ready
            and self._pids().get(member.node) == self._at_ready[member.node]
            and member.node not in self.silent()
        )

    def check(self, limit: float) -> None:
        """The checksums of every node's pages, of those whose server ended cleanly."""
        deadline = time.monotonic() + limit
        for name in self.names:
            member = self._made(name, self.deployment)
            if name not in self._unclean:
                with told_of(member.node):
                    member.check(deadline - time.monotonic())

    def stop(self, limit: float) -> None:
        """Ask all to end at once. Raises RunError where one had to be killed, or had ended though nobody struck it.

        Also where what looks after them did not end, when all of them have; a defect that it met is raised then too.
        """
        if self._lone is not None:
            lone, self._lone = self._lone, None
            lone.stop(limit)
            return
        if self._network is None:
            return
        wrong: list[str] = []
        stuck, defect = False, None
        try:
            struck = {name for each in self._struck for name in each.nodes}
            for each in list(self._struck):
                with suppress(RunError):
                    self._undo(each)
            try:
                self.let_go()
            except RunError as error:
                stuck = True
                wrong.append(str(error))
            except Exception as error:  # noqa: BLE001 - all are to end first; it is raised below
                defect = error
            for member, why in zip(
                self.members, together(*(partial(_ended, m, limit) for m in self.members)), strict=True
            ):
                if why:
                    self._unclean.add(member.node)
                if why and member.node not in struck and not self._given_up:
                    wrong.append(f"{member.node}: {why}")
            if stuck or defect:
                # What it waited for has ended now, and it must do nothing to the next run.
                with suppress(RunError):
                    self.let_go()
        finally:
            self._struck.clear()
            self._members.clear()
            self._endpoint = None
            network, self._network = self._network, None
            network.destroy()
        if defect is not None:
            raise defect
        if wrong:
            raise RunError("; ".join(wrong))

    def destroy(self) -> None:
        """Its data, and the disks that they are on."""
        self.stop(limit=60.0)
        self.place.host.remove_volume(self.place.data)
        self.place.host.remove_tree(self.place.data)

    # Faults

    def silent(self) -> set[str]:
        """Nodes that would not answer, since they were stopped as processes."""
        return {name for each in self._struck if each.kind == "freeze" for name in each.nodes}

    def asks(self, member: Member[Any]) -> bool:
        """Whether there is anybody to be asked at a node."""
        return member.node not in self.silent() and member.lives()

    def nodes(self) -> tuple[NodeState, ...]:
        """Roles and states by the cluster's own view."""
        roles = self.view() if self._members else {}
        pids = self._pids()
        return tuple(
            NodeState(name, self.network.address(name), pids.get(name), *roles.get(name, ("none", "not told")))
            for name in self.names
        )

    def carry_out(self, kind: FaultKind, node: str) -> None:
        """By a signal, by the network, or by the disk of the node."""
        member = self._members[node]
        match kind:
            case "kill":
                member.signal(signal.SIGKILL)
            case "freeze":
                member.signal(signal.SIGSTOP)
            case "shutdown":
                member.signal(member.farewell)
            case "cut" | "cut-client" | "cut-one-way" | "slow-network":
                self.strike_network(kind, node)
            case "disk-full":
                self.place.host.fill_disk(self.place.data / node)
            case "slow-disk":
                self.place.host.limit_disk(self.confinement(node), SLOW_DISK, self.place.data / node)

    def carry_back(self, struck: Struck, limit: float) -> None:
        """Take it back, start again what has ended, and have the node join again."""
        deadline = time.monotonic() + limit
        self._undo(struck)
        for name in struck.nodes:
            member = self._members[name]
            with told_of(member.node):
                self._bring_back(member, struck.kind, deadline)

    def give_up(self) -> None:
        """All servers: one whose disk was full would take a minute to end by itself."""
        self._given_up = True
        for member in self.members:
            member.signal(signal.SIGKILL)

    def _undo(self, struck: Struck) -> None:
        (node,) = struck.nodes
        self.taken_back(struck)
        match struck.kind:
            case "freeze":
                self._members[node].signal(signal.SIGCONT)
            case "cut" | "cut-client" | "cut-one-way" | "slow-network":
                self.network.heal()
            case "disk-full":
                self.place.host.make_room(self.place.data / node)
            case "slow-disk":
                self.place.host.release_disk(self.confinement(node), SLOW_DISK, self.place.data / node)
            case "kill" | "shutdown":
                pass

    def _bring_back(self, member: Member[Any], kind: FaultKind, deadline: float) -> None:
        """Also where it was not meant to end: a server may give up when its disk is full."""
        ends = deadline - time.monotonic() if kind in ("kill", "shutdown") else 0.0
        if member.running is not None and member.running.wait(ends) is None:
            if kind in ("kill", "shutdown"):
                raise RunError(f"{member.program} did not end in time")
        else:
            if member.running is not None:
                member.end_process(0.0)
            member.start_again(max(deadline - time.monotonic(), 0.1))
            member.ready(deadline - time.monotonic())
        self.rejoin(member, deadline)

    # What the kinds wait with

    def until(self, holds: Callable[[], bool], deadline: float, what: str) -> None:
        """Ask again and again until it holds. Raises RunError past the deadline, and where a server ended meanwhile."""
        while not holds():
            struck = {name for each in self._struck for name in each.nodes}
            if ended := [each for each in self.members if not each.lives() and each.node not in struck]:
                raise RunError(f"{ended[0].node}: {ended[0].program} ended before {what} came to be")
            for member in self.members:
                # Waits for the end of a process and not for time to pass, as far as there is one to wait for.
                if self.asks(member) and member.running is not None:
                    member.running.wait(_LOOK_EVERY_S)
                    break
            if time.monotonic() > deadline:
                told = ", ".join(f"{name} is {role} ({state})" for name, (role, state) in self.view().items())
                raise RunError(f"{what} did not come to be in time: {told}")


def _ended(member: Member[Any], limit: float) -> str | None:
    """End a node's server; why it did not do so cleanly."""
    if member.running is None:
        return None
    try:
        member.stop(limit)
    except RunError as error:
        return str(error)
    return None


def as_admin(endpoint: Endpoint) -> Endpoint:
    """The same server as its administrator reaches it."""
    who = {"user": ADMIN, "password": ADMIN_PASSWORD, "database": "mysql"}
    return replace(endpoint, settings={**endpoint.settings, **who})


def together(*calls: Callable[[], T]) -> list[T]:
    """Carry out all at the same time; what each gives, in their order. Raises what the first of them raises."""
    given: dict[int, T] = {}
    wrong: dict[int, BaseException] = {}

    def carry_out(number: int, call: Callable[[], T]) -> None:
        try:
            given[number] = call()
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits for it
            wrong[number] = error

    threads = [threading.Thread(target=carry_out, args=each, daemon=True) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[min(wrong)]
    return [given[number] for number in range(len(calls))]
