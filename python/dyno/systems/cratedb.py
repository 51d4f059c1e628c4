"""CrateDB: one node or several that share tables, each a process, from a distribution that is unpacked here.

All nodes are of this machine, and by default on ports of its loopback. Each keeps its own shards: what is loaded is
loaded into all of them, and a snapshot has the folders of all.
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from dyno import sql
from dyno.deployments.base import Running
from dyno.deployments.native import Native, for_node
from dyno.hosts import files, java
from dyno.hosts.crate_home import VARIABLE, CrateHome, missing_in
from dyno.hosts.networks import CLIENT
from dyno.hosts.ports import free_port
from dyno.model.base import InvalidRun, NeverValid, RunError, Scalar
from dyno.model.counters import Counters
from dyno.model.endpoint import Endpoint
from dyno.model.faults import FaultKind, Struck
from dyno.model.table_options import Deduplicate, PartitionBy, Replicas, Shards, TableOptions
from dyno.model.units import Size
from dyno.systems.base import Place, files_below
from dyno.systems.cluster import Cluster, NodeState, OfNode, Role, facts_of_nodes, machine_of_node, told_of
from dyno.systems.nested import flattened
from dyno.systems.server import Asking, Figures, ServerOptions, ServerSystem, binary_number, truth
from dyno.systems.tabled import AT_REST, Tabled, of_devops

_USER, _DATABASE = "crate", "doc"
_LOOPBACK = "127.0.0.1"
_PORTS = ("http", "transport", "psql")
_OPEN_FILES = 65_536
"""What its bootstrap checks ask for as soon as a node listens to others than this machine."""
_PER_WORD = str.maketrans({each: f"\\{each}" for each in '\\"$`'})
_LOOK_EVERY_S = 0.1
_ASK_LIMIT_S = 10.0
_DYING_TAKES_S = 5.0
_NOT_OURS = "table_schema NOT IN ('information_schema', 'pg_catalog', 'sys', 'blob')"

_OURS = (
    "cluster.name", "node.name", "node.attr.dyno", "network.host", "http.port", "transport.tcp.port", "psql.port",
    "path.data", "path.logs", "path.home", "discovery.type", "discovery.seed_hosts", "cluster.initial_master_nodes",
    "gateway.expected_data_nodes", "gateway.recover_after_data_nodes", "udc.enabled", "auth.host_based.enabled",
    "cluster.routing.allocation.disk.threshold_enabled",
)  # fmt: skip

_TELLING = (
    "indices.breaker.query.limit", "indices.breaker.total.limit", "memory.allocation.type", "stats.enabled",
    "overload_protection.dml.max_concurrency",
)  # fmt: skip

_LEAVES_DATA_ALONE = frozenset({
    "bulk.request_timeout", "indices.breaker.query.limit", "indices.breaker.request.limit",
    "indices.breaker.total.limit", "statement_timeout", "stats.enabled", "stats.jobs_log_size",
    "stats.operations_log_size",
})  # fmt: skip


class CratedbTables(TableOptions):
    """Columns have an index there unless it is turned off."""

    of = "cratedb"

    partition_by: PartitionBy = "none"
    shards: Shards = 4
    replicas: Replicas = 0
    deduplicate: Deduplicate = False


def _cratedb_setting(name: str) -> str:
    if not all(part and part.replace("_", "").isalnum() and part == part.lower() for part in name.split(".")):
        raise ValueError("is no name of a setting: they are lower-case words with dots between them")
    return name


class CratedbOptions(ServerOptions):
    """Besides settings of the cluster, by their own names."""

    __pydantic_extra__: dict[Annotated[str, AfterValidator(_cratedb_setting)], Scalar]

    ours = frozenset(_OURS)

    connect: Annotated[Literal["tcp"], Field(description="clients come by TCP")] = "tcp"
    stop: Annotated[Literal["clean"], Field(description="asked to end, all nodes at once")] = "clean"
    nodes: Annotated[int, Field(ge=1, le=9, description="how many")] = 3
    home: Annotated[
        str | None, Field(min_length=1, description=f"the folder of the distribution; that of {VARIABLE} if left out")
    ] = None
    heap: Annotated[Size, Field(ge=256 << 20, description="of Java, of each node")] = 512 << 20
    network: Annotated[
        Literal["loopback", "own"],
        Field(
            description="loopback: nodes have ports of this machine; own: each has a network of its own, where it "
            "checks the machine as in production"
        ),
    ] = "loopback"
    node_cpus: Annotated[
        float | None, Field(ge=0.01, description="seconds of CPU time a second of each node; all if left out")
    ] = None
    node_memory: Annotated[
        Size | None, Field(gt=0, description="memory of each node, page cache included; no limit if left out")
    ] = None
    merged: Annotated[
        bool,
        Field(
            description="after loading, OPTIMIZE makes one segment of each shard; else they are as loading left them"
        ),
    ] = False
    tables: CratedbTables = CratedbTables()

    @property
    def node_disk(self) -> None:
        """They are in folders of one file system."""
        return

    @model_validator(mode="before")
    @classmethod
    def _names_have_dots(cls, given: Any) -> Any:
        return flattened(given, frozenset(cls.model_fields)) if isinstance(given, Mapping) else given


@dataclass(frozen=True)
class _Way:
    """How a node is reached, and how it finds the others."""

    host: str
    ports: Mapping[str, int]
    seeds: tuple[str, ...]
    names: tuple[str, ...]


class _OfCratedb:
    kind: ClassVar[str] = "cratedb"


class CrateNode(_OfCratedb, OfNode, ServerSystem[CratedbOptions]):
    """One node. Whether it is one of a cluster is for the cluster to see."""

    # Its kind is that of a base, since a study names clusters alone.
    backend = "cratedb"
    Options = CratedbOptions
    program = "crate"
    account = "nobody"
    telling = r"[\w.]+(?:Exception|Error)\b.*|\[ERROR\].*|^ERROR.*"
    leaves_data_alone = _LEAVES_DATA_ALONE
    asked_to_end = java.ASKED_TO_END

    way: _Way
    home: Path

    def programs(self) -> dict[str, Path]:
        """Its script."""
        return {"crate": self.home / "bin" / "crate"}

    def make_empty(self, folder: Path, limit: float) -> None:
        """It fills it by itself when it starts."""

    def command(self, folder: Path, port: int | None) -> list[str]:
        """By its own script, which becomes Java. What it is told passes through a shell there, once more."""
        way = self.way
        told: dict[str, Scalar] = {
            "cluster.name": "dyno",
            "node.name": self.node,
            "network.host": way.host,
            **dict(zip(("http.port", "transport.tcp.port", "psql.port"), self._ports(), strict=True)),
            "path.data": str(self.place.data),
            "path.logs": str(folder),
            "udc.enabled": False,
            # It counts the whole file system, which others fill too; dyno guards free space itself.
            "cluster.routing.allocation.disk.threshold_enabled": False,
            "auth.host_based.enabled": False,
        }
        if len(way.names) == 1:
            told["discovery.type"] = "single-node"
        else:
            told |= {
                "discovery.seed_hosts": ",".join(way.seeds),
                "cluster.initial_master_nodes": ",".join(way.names),
                "gateway.expected_data_nodes": len(way.names),
                "gateway.recover_after_data_nodes": len(way.names) // 2 + 1,
            }
        words = [for_script(name, value) for name, value in {**told, **self.options.settings}.items()]
        variables = [f"CRATE_HEAP_SIZE={self.options.heap // (1 << 20)}m", "CRATE_DISABLE_GC_LOGGING=1"]
        variables.append(f"CRATE_HEAP_DUMP_PATH={folder}")
        options = (f'"{option.translate(_PER_WORD)}"' for option in java.leaving_nothing_but(folder))
        variables.append(f"CRATE_JAVA_OPTS={' '.join(options)}")
        # It logs to its standard output, where nobody would look for why it ended.
        quiet = ["sh", "-c", 'exec "$@" >&2', "sh", "env", *variables]
        return [*quiet, str(self.programs()["crate"]), *words, self.marker(folder)]

    def _ports(self) -> tuple[int, ...]:
        return tuple(self.way.ports[name] for name in _PORTS)

    def reached(self) -> dict[str, Any]:
        """By HTTP, and by the protocol of PostgreSQL."""
        ports = self.way.ports
        who = {"user": _USER, "password": "", "database": _DATABASE}
        return {"host": self.way.host, "port": ports["http"], "pg_port": ports["psql"], **who}

    def further_ways(self) -> dict[str, Any]:
        """In place of a port that it was not started with."""
        return self.reached()

    def socket_file(self, folder: Path) -> Path:
        """It has none."""
        return folder / "none"

    def marker(self, folder: Path) -> str:
        """The folder is new with each start."""
        return f"-Cnode.attr.dyno={folder}"

    def is_ours(self, connection: sql.Connection, folder: Path) -> bool:
        """By what it was given when it was started."""
        rows = connection.rows("SELECT attributes['dyno'] FROM sys.nodes WHERE name = %s", self.node)
        return rows == [(str(folder),)]

    def attest(self, connection: sql.Connection) -> None:
        """By the cluster, once there is one."""

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """From sys.cluster, which has those that are of the cluster."""
        known = _flat(connection.value("SELECT settings FROM sys.cluster"))
        effective: dict[str, Any] = {name: known[name] for name in _TELLING if name in known}
        asked: dict[str, Any] = {}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            if name in known:
                asked[name], effective[name] = canonical(wish, known[name])
        heap = connection.value("SELECT heap['max'] FROM sys.nodes WHERE name = %s", self.node)
        return {**asked, "heap": self.options.heap}, {**effective, "heap": heap}

    def read_counters(self, connection: sql.Connection) -> Figures:
        """By the cluster."""
        return {}

    def read_sizes(self, connection: sql.Connection) -> Figures:
        """By the cluster."""
        return {}

    def reader(self, endpoint: Endpoint, limit: float) -> tuple[sql.Connection, Callable[[], Counters]]:
        """By the cluster."""
        raise RunError("a node of CrateDB is asked by its cluster")


class CratedbSystem(Tabled, Cluster[CratedbOptions]):
    """One to nine nodes. Reads and writes go to the first, which asks the others."""

    kind = "cratedb"
    backend = "cratedb"
    Options = CratedbOptions
    has_counters = True
    buffers_writes = maps_files = True

    def __init__(self, options: CratedbOptions, place: Place) -> None:
        super().__init__(options, place)
        self._nodes: dict[str, CrateNode] = {}
        self._endpoint: Endpoint | None = None
        self._effective: dict[str, Any] = {}
        self._asked: dict[str, Any] | None = None
        self._home: Path | None = None
        self._jobs_before: dict[str, float] = {}
        self._loading = False

    # What a study may ask for

    @classmethod
    def reached_by(cls, options: CratedbOptions) -> str | None:  # noqa: ARG003 - always
        """By TCP."""
        return "tcp"

    @classmethod
    def why_not_valgrind(cls, options: CratedbOptions) -> str | None:  # noqa: ARG003 - never
        """It is Java."""
        return "a Java program is not counted by valgrind"

    @classmethod
    def refuses(cls, options: CratedbOptions, workload: str, *, rolls_back: bool) -> str | None:  # noqa: ARG003
        """More replicas than there are other nodes would never be there."""
        if options.tables.replicas >= options.nodes:
            return (
                f"of tables.replicas: {options.tables.replicas} each has to be on another node, and there are "
                f"{options.nodes} nodes: write at most {options.nodes - 1}"
            )
        return "CrateDB has no transactions that could be rolled back" if rolls_back else None

    @classmethod
    def why_not_struck(cls, options: CratedbOptions, kind: FaultKind) -> str | None:
        """Processes can be; networks where each node has one."""
        if options.nodes == 1:
            return "there is one node, and nobody who would go on: write system.config.nodes: 3"
        if kind in ("disk-full", "slow-disk"):
            return f"{kind} needs a disk of each node's own, and those of cratedb share one"
        if kind not in ("kill", "freeze", "shutdown") and options.network != "own":
            return f"{kind} needs a network of each node's own: write system.config.network: own"
        return None

    # The life

    @property
    def names(self) -> tuple[str, ...]:
        """Of all nodes."""
        return tuple(f"n{number}" for number in range(1, self.options.nodes + 1))

    def design(self) -> Mapping[str, Any]:
        """As asked for."""
        return self.options.tables.design()

    @classmethod
    def needs(cls, options: CratedbOptions) -> Sequence[str]:
        """A distribution, unless the study names its folder; and what nodes apart from one another take."""
        limited = options.node_cpus is not None or options.node_memory is not None
        found = [] if options.home else ["CrateDB"]
        if limited or options.network == "own":
            found.append("root")
        if limited:
            found.append("CPU and memory limits")
        return [*found, "networks of nodes"] if options.network == "own" else found

    def provision(self, limit: float) -> dict[str, str]:
        """Find the distribution and a Java for it, and see whether this machine lets nodes be."""
        options = self.options
        if not isinstance(self.deployment, Native):
            raise RunError(f"cratedb lives natively: deployment {self.deployment.kind} cannot hold its nodes")
        limited = options.node_cpus is not None or options.node_memory is not None
        if os.geteuid() != 0 and (limited or options.network == "own"):
            raise RunError("nodes with limits or networks of their own need root: run dyno as root, or leave them out")
        if options.network == "own":
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            if most < _OPEN_FILES:
                raise RunError(
                    f"network: own needs {_OPEN_FILES} open files for each node, as CrateDB checks, and this machine "
                    f"lets a process have {most} (ulimit -Hn): raise that, or write network: loopback"
                )
        home = self._distribution()
        if (found := home.java()) is None:
            raise RunError(
                f"CrateDB {home.version} needs a Java of {home.least_java} or newer: {home.folder} has no jdk, and "
                "JAVA_HOME names none"
            )
        self._home_of_nodes(home, found)
        with self._folder_for_data():
            node = self._node(self.names[0], self.deployment)
            account = node._account()
            if account is not None:
                for path in (home.folder / "lib", self.place.data / "n1"):
                    if barrier := account.barrier(path):
                        raise RunError(
                            f"user {account.name}, as whom CrateDB runs since it refuses root, may not enter "
                            f"{barrier}: `chmod a+x {barrier}`, or choose another place (--work, {VARIABLE})"
                        )
        return {"cratedb": home.version, "java": str(java.version_of(found))}

    @contextmanager
    def _folder_for_data(self) -> Iterator[None]:
        there = self.place.data.is_dir()
        self.place.data.mkdir(exist_ok=True)
        # Ours to open, and nobody chose its mode.
        for own in (self.place.data.parent, self.place.shared or self.place.data.parent):
            own.mkdir(parents=True, exist_ok=True)
            own.chmod(own.stat().st_mode | 0o011)
        yield
        if not there:
            self.place.data.rmdir()

    def _distribution(self) -> CrateHome:
        given = self.options.home or os.environ.get(VARIABLE)
        if given is None:
            raise RunError(
                f"there is no CrateDB: it is in no registry of packages; unpack its distribution, and name the folder "
                f"by system.config.home or by {VARIABLE}"
            )
        named_by = VARIABLE if self.options.home is None else "system.config.home"
        if not Path(given).is_dir():
            raise RunError(f"{named_by}: there is no folder {given}")
        if lacks := missing_in(Path(given)):
            raise RunError(f"{named_by}: {given} is no distribution of CrateDB: it has no {', '.join(lacks)}")
        return CrateHome(Path(given).resolve())

    def _home_of_nodes(self, home: CrateHome, found: Path) -> Path:
        """The folder itself; where it brings no Java, one of dyno's that has all of it, and a Java that there is.

        Its script takes no other Java than that of its own folder.
        """
        if found.is_relative_to(home.folder):
            self._home = home.folder
            return home.folder
        shared = self.place.shared or self.place.data.parent
        view = shared / f"crate-{home.version}"
        if not view.exists():
            making = shared / f"{view.name}-{secrets.token_hex(4)}"
            (making / "bin").mkdir(parents=True)
            for path in home.folder.iterdir():
                if path.name not in ("bin", "jdk"):
                    (making / path.name).symlink_to(path)
            (making / "jdk").symlink_to(found.resolve().parents[1])
            (making / "bin" / "crate").write_bytes((home.folder / "bin" / "crate").read_bytes())
            for folder in (making, making / "bin", making / "bin" / "crate"):
                folder.chmod(0o755)
            making.rename(view)
        self._home = view
        return view

    def data_key(self) -> dict[str, Any]:
        """All that shapes which shards there are, and of how many segments."""
        options = self.options
        given = {name: value for name, value in options.settings.items() if name not in _LEAVES_DATA_ALONE}
        return {**given, "nodes": options.nodes, "merged": options.merged, "tables": dict(self.design())}

    def after_load(self) -> tuple[str, ...]:
        """Besides merging."""
        return self.options.after_load

    def prepare(self, limit: float) -> None:
        """An empty folder for each node, which belongs to their account."""
        self.place.host.remove_tree(self.place.data)
        self.place.data.mkdir()
        self.place.data.chmod(0o711)
        for name in self.names:
            self._node(name, self.deployment).prepare(limit)

    def finish_load(self, endpoint: Endpoint, limit: float) -> None:
        """What the study adds, and one segment a shard where it wants that."""
        super().finish_load(endpoint, limit)
        with sql.connect(endpoint, limit=limit) as connection:
            for table in self._tables(connection):
                connection.rows(f"REFRESH TABLE {table}")
                if self.options.merged:
                    connection.rows(f"OPTIMIZE TABLE {table} WITH (max_num_segments = 1, flush = true)")

    def data_files(self) -> list[Path]:
        """Of all nodes."""
        return files_below(self.place.data)

    def start(self, run: int, limit: float) -> None:
        """All nodes at once."""
        if not (self.place.data / self.names[0]).is_dir():
            raise RunError("there are no data to start on")
        deadline = time.monotonic() + limit
        self._struck.clear()
        self._loading = run == 0
        own = self.options.network == "own"
        self._network = self.place.host.networks.make(self.names) if own else None
        ways = self._ways()
        self._nodes = {name: self._node(name, self._of_node(name)) for name in self.names}
        try:
            for name, node in self._nodes.items():
                node.way = ways[name]
                node.start(run, deadline - time.monotonic())
        except BaseException:
            with suppress(RunError):
                self.stop(limit)
            raise

    def _ways(self) -> dict[str, _Way]:
        taken: list[int] = []
        while len(taken) < len(_PORTS) * len(self.names):
            taken += [port for port in [free_port()] if port not in taken]
        ports = {name: dict(zip(_PORTS, taken[n * 3 : n * 3 + 3], strict=True)) for n, name in enumerate(self.names)}
        network = self._network
        hosts = {name: _LOOPBACK if network is None else network.address(name) for name in self.names}
        seeds = tuple(f"{hosts[name]}:{ports[name]['transport']}" for name in self.names)
        return {name: _Way(hosts[name], ports[name], seeds, self.names) for name in self.names}

    def _node(self, name: str, deployment: Any) -> CrateNode:
        shared = self.place.shared or self.place.data.parent
        place = replace(self.place, data=self.place.data / name, shared=shared, deployment=deployment)
        made = CrateNode(self.options, place)
        made.node = name
        if self._home is None:
            home = self._distribution()
            if (found := home.java()) is None:
                raise RunError(f"CrateDB {home.version} needs a Java of {home.least_java} or newer")
            self._home_of_nodes(home, found)
        assert self._home is not None
        made.home = self._home
        return made

    def _of_node(self, name: str) -> Native:
        options, confinement = self.options, self.deployment.site.confinement
        if options.node_cpus is not None or options.node_memory is not None:
            confinement = self.place.host.confine_node(name, machine_of_node(options), confinement)
        return for_node(self.deployment, confinement, () if self._network is None else self._network.words(name))

    def ready(self, limit: float) -> Endpoint:
        """Have every node answer, see that they are one cluster with all shards in place, and what it runs with."""
        if not self._nodes:
            raise RunError(f"{self.kind} was not started")
        if self._endpoint is not None:
            return self._endpoint
        deadline = time.monotonic() + limit
        try:
            for node in self._nodes.values():
                self._answers(node, deadline)
            endpoint = self._reached()
            with sql.connect(endpoint, limit=max(deadline - time.monotonic(), 0.1)) as connection:
                self._until_whole(connection, deadline)
                self._attest(connection)
                self._jobs_before = _jobs(connection)
        except BaseException:
            self._endpoint = None
            raise
        self._endpoint = endpoint
        self._sent_before = self.sent_bytes() or 0
        return endpoint

    def _answers(self, node: CrateNode, deadline: float) -> None:
        with told_of(node.node):
            if node._endpoint is not None and self._network is not None:
                node._endpoint = replace(node._endpoint, namespace=str(self._network.path(CLIENT)))
            node.ready(deadline - time.monotonic())

    def _reached(self) -> Endpoint:
        return Endpoint(
            backend=self.backend,
            settings=self._nodes[self.names[0]].reached(),
            processes=self.processes(),
            namespace=None if self._network is None else str(self._network.path(CLIENT)),
            others={name: node.reached() for name, node in self._nodes.items()},
            tables=self.design(),
        )

    def _until_whole(self, connection: sql.Connection, deadline: float) -> None:
        while (lacks := self._lacks(connection)) is not None:
            for node in self._nodes.values():
                running = node.running
                # Waits for the end of a process and not for time to pass.
                if running is not None and running.wait(_LOOK_EVERY_S / len(self._nodes)) is not None:
                    raise RunError(f"{node.node}: crate ended before the cluster was whole")
            if time.monotonic() > deadline:
                raise RunError(f"the cluster did not become whole in time: {lacks}")

    def _lacks(self, connection: sql.Connection) -> str | None:
        """What it is not, to be whole: by its own view. A count of rows would be too low then, without an error."""
        there = int(connection.value("SELECT count(*) FROM sys.nodes"))
        if there != self.options.nodes:
            return f"it has {there} of {self.options.nodes} nodes"
        health = str(connection.value("SELECT health FROM sys.cluster_health"))
        if health != "GREEN":
            return f"its health is {health}"
        ill = connection.rows("SELECT table_name, health FROM sys.health WHERE health <> 'GREEN' LIMIT 3")
        return ", ".join(f"{table} is {health}" for table, health in ill) or None

    # What it runs with

    def _attest(self, connection: sql.Connection) -> None:
        first = self._nodes[self.names[0]]
        self._asked, effective = first.read_settings(connection)
        self._effective = {**effective, "connect": self.options.connect, "translog.durability": "REQUEST"}
        self._effective |= self.told_tables()
        for node in self._nodes.values():
            heap = connection.value("SELECT heap['max'] FROM sys.nodes WHERE name = %s", node.node)
            if heap != self.options.heap:
                raise NeverValid(
                    f"{node.node}: heap is {heap}, the study asks for {self.options.heap}: it was not effective"
                )
        for name, value in self._asked.items():
            if effective.get(name) != value:
                raise NeverValid(
                    f"{name} is {effective.get(name, 'not a setting that the cluster shows')}, the study asks "
                    f"for {value}: the setting was not effective"
                )
        self.attest_tables(connection)
        most = _shards(connection)["segments_most"]
        if self.options.merged and not self._loading and most > 1:
            raise InvalidRun(f"a shard has {most:.0f} segments, the study asks for merged ones: it was not effective")

    def attest_tables(self, connection: sql.Connection) -> None:
        """And how a table's log is synced, which its maker may have said, and whether its segments were merged."""
        super().attest_tables(connection)
        for table, durability in connection.rows(
            "SELECT table_name, settings['translog']['durability'] FROM information_schema.tables "
            f"WHERE table_name IN ({of_devops()}) AND {_NOT_OURS}"
        ):
            if durability != "REQUEST":
                raise InvalidRun(
                    f"translog.durability of {table} is {durability}, and all stores are told to sync alike"
                )

    def read_tables(self, connection: sql.Connection) -> Mapping[str, Mapping[str, Any]]:
        """From its information_schema."""
        found = {}
        for schema, table, shards, replicas, parts in connection.rows(
            "SELECT table_schema, table_name, number_of_shards, number_of_replicas, partitioned_by "
            f"FROM information_schema.tables WHERE table_name IN ({of_devops()}) AND {_NOT_OURS}"
        ):
            told: dict[Any, Any] = dict(
                connection.rows(
                    "SELECT column_name, generation_expression FROM information_schema.columns "
                    "WHERE table_name = %s AND table_schema = %s",
                    table,
                    schema,
                )
            )
            keyed = connection.value(
                "SELECT count(*) FROM information_schema.table_constraints "
                "WHERE table_name = %s AND table_schema = %s AND constraint_type = 'PRIMARY KEY'",
                table,
                schema,
            )
            spans = [str(told.get(column)) for column in parts or ()]
            found[str(table)] = {
                "partition_by": partitioned_by(spans),
                "shards": int(shards),
                "replicas": int(replicas) if str(replicas).isdigit() else str(replicas),
                "deduplicate": bool(keyed),
            }
        return found

    def asked(self) -> dict[str, Any]:
        """Of every node."""
        return dict(self.options.settings if self._asked is None else self._asked)

    def settings(self) -> dict[str, Any]:
        """As the cluster said when it was ready."""
        return dict(self._effective)

    def facts(self) -> dict[str, Scalar]:
        """How many nodes there are and what each has, and whether its segments were merged."""
        return {**facts_of_nodes(self.options), "network": self.options.network, "merged": self.options.merged}

    # What it says of itself

    def counters(self, limit: float) -> Asking | None:
        """Of each node, by one that lives."""
        if not self._alive() or self._endpoint is None:
            return None
        connection = self._to_any_node(min(limit, _ASK_LIMIT_S))
        return Asking(connection, partial(counters_of, connection), self._have_ended)

    def _to_any_node(self, limit: float) -> sql.Connection:
        """To the first that answers. Raises SqlError."""
        assert self._endpoint is not None
        wrong = sql.SqlError("no node of it lives")
        for name in self._alive():
            try:
                return sql.connect(self._endpoint.by(name), limit=limit)
            except sql.SqlError as error:
                wrong = error
        raise wrong

    def _have_ended(self) -> bool:
        """Whether all have; the connections of one end before it does."""
        alive = self._alive()
        running = self._nodes[alive[0]].running if alive else None
        return running is None or (len(alive) == 1 and running.wait(_DYING_TAKES_S) is not None)

    def status(self) -> dict[str, float]:
        """What it holds, by node and by shard, once all rows can be read; and what it was asked since it was ready."""
        alive = self._alive()
        if self._endpoint is None or not alive:
            return {}
        with sql.connect(self._endpoint.by(alive[0]), limit=60.0) as connection:
            self.attest_tables(connection)
            for table in self._tables(connection):
                connection.rows(f"REFRESH TABLE {table}")
            figures = _shards(connection)
            jobs = _jobs(connection)
        figures |= {name: max(value - self._jobs_before.get(name, 0.0), 0.0) for name, value in jobs.items()}
        return {**figures, **self.costs(self.options.nodes)}

    def at_rest(self) -> dict[str, float]:
        """Of the stopped nodes together, and of each."""
        each = {f"at_rest.{name}.bytes": float(files.bytes_on_disk(self.place.data / name)) for name in self.names}
        return {AT_REST: sum(each.values()), **each}

    def _tables(self, connection: sql.Connection) -> list[str]:
        rows = connection.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_name IN ({of_devops()}) AND {_NOT_OURS}"
        )
        return [f'"{schema}"."{name}"' for schema, name in rows]

    # The end

    def stop(self, limit: float) -> None:
        """Ask all to end at once. Raises RunError where one had to be killed, or had ended though nobody struck it."""
        if not self._nodes:
            return
        struck = {name for each in self._struck for name in each.nodes}
        for each in list(self._struck):
            with suppress(RunError):
                self._undo(each)
        wrong = []
        try:
            early = {name for name, node in self._nodes.items() if not node.lives()}
            for name, node in self._nodes.items():
                if name not in early:
                    # All at once: one that ends by itself would have the others move its shards first.
                    node.signal(node.farewell)
            for name, node in self._nodes.items():
                if (why := _ended(node, limit, early=name in early)) and name not in struck:
                    wrong.append(f"{name}: {why}")
        finally:
            self._struck.clear()
            self._nodes.clear()
            self._endpoint = None
            network, self._network = self._network, None
            if network is not None:
                network.destroy()
        if wrong:
            raise RunError("; ".join(wrong))

    # Faults

    @property
    def running(self) -> Running | None:
        """The first of its nodes that runs."""
        return next((node.running for node in self._nodes.values() if node.lives()), None)

    def processes(self) -> dict[str, int]:
        """Of all nodes; one that has ended until it is started again."""
        return {name: running.pid for name, node in self._nodes.items() if (running := node.running) is not None}

    def nodes(self) -> tuple[NodeState, ...]:
        """The master is `primary`: it alone changes what tables there are. Rows are written everywhere."""
        roles = self._roles() if self._endpoint is not None else {}
        return tuple(self._state(name, node, roles) for name, node in self._nodes.items())

    def _state(self, name: str, node: CrateNode, roles: Mapping[str, Role]) -> NodeState:
        running = node.running
        pid = running.pid if running is not None and node.lives() else None
        role = roles.get(name, "none")
        return NodeState(name, node.way.host, pid, role, "in the cluster" if role != "none" else "not in the cluster")

    def _alive(self) -> list[str]:
        """Those that would answer: neither ended nor stopped as processes, nor just starting again."""
        silent = {name for each in self._struck if each.kind == "freeze" for name in each.nodes}
        living = (name for name, node in self._nodes.items() if node.lives() and not node.comes_back)
        return [name for name in living if name not in silent]

    def _roles(self) -> dict[str, Role]:
        """By the first that answers."""
        assert self._endpoint is not None
        for name in self._alive():
            with suppress(sql.SqlError), sql.connect(self._endpoint.by(name), limit=_ASK_LIMIT_S) as connection:
                rows = connection.rows("SELECT n.name, n.id = c.master_node FROM sys.nodes n, sys.cluster c")
                return {str(each): "primary" if master else "secondary" for each, master in rows}
        return {}

    def carry_out(self, kind: FaultKind, node: str) -> None:
        """By a signal, or by the network of the node."""
        server = self._nodes[node]
        match kind:
            case "kill":
                server.signal(signal.SIGKILL)
            case "freeze":
                server.signal(signal.SIGSTOP)
            case "shutdown":
                server.signal(server.farewell)
            case _:
                self.strike_network(kind, node)

    def _undo(self, struck: Struck) -> None:
        self.taken_back(struck)
        if struck.kind == "freeze":
            self._nodes[struck.nodes[0]].signal(signal.SIGCONT)
        elif struck.kind not in ("kill", "shutdown"):
            self.network.heal()

    def carry_back(self, struck: Struck, limit: float) -> None:
        """Take it back; a node that has ended is started again on its data."""
        deadline = time.monotonic() + limit
        self._undo(struck)
        node = self._nodes[struck.nodes[0]]
        running = node.running
        assert running is not None
        ends = max(deadline - time.monotonic(), 0.1) if struck.kind in ("kill", "shutdown") else 0.0
        if running.wait(ends) is None:
            if struck.kind in ("kill", "shutdown"):
                raise RunError(f"{node.node}: crate did not end in time")
            return
        with told_of(node.node), node.coming_back():
            node.end_process(0.0)
            node.start_again(max(deadline - time.monotonic(), 0.1))
            self._answers(node, deadline)

    def whole(self) -> bool:
        """Whether all nodes and all shards are there, by its own view."""
        if self._endpoint is None or len(self._alive()) < self.options.nodes:
            return False
        try:
            with sql.connect(self._endpoint.by(self._alive()[0]), limit=_ASK_LIMIT_S) as connection:
                return self._lacks(connection) is None
        except sql.SqlError:
            return False


def _ended(node: CrateNode, limit: float, *, early: bool) -> str | None:
    """End a node that was asked to already; why it did not do so cleanly."""
    if node.running is None:
        return None
    try:
        if not early:
            # Told already: its end within the limit is not one by itself.
            node.running.wait(limit)
            status = node._end(node.running, 0.0)
            return None if status in (0, node.asked_to_end) else f"crate ended with status {status}"
        node.stop(limit)
    except RunError as error:
        return str(error)
    return None


def for_script(name: str, value: Scalar) -> str:
    """A setting as a word of its script's, which has a shell read it once more. Raises RunError where it cannot."""
    if "  " in _written(value):
        raise RunError(f"{name}: of two blanks in a row, as in {_written(value)!r}, CrateDB's own script makes one")
    return f"-C{name}={_written(value)}".translate(_PER_WORD)


def partitioned_by(expressions: list[str]) -> str:
    """`date_trunc('month', ts)` by what it cuts to; `none` without any."""
    if not expressions:
        return "none"
    return next((by for by in ("day", "month") if f"date_trunc('{by}'" in expressions[0]), ", ".join(expressions))


def counters_of(connection: sql.Connection) -> Counters:
    """What each node says of itself. Raises SqlError.

    A node that does not answer the one that is asked has a row there, with NULL for all that it would have to say;
    shards that are on no node have one without a name. Jobs are counted by each node, since it was started.
    """
    told: dict[str, Any] = {}
    by: list[str] = []
    for name, load, cpu, used, most in connection.rows(
        "SELECT name, load['1'], process['cpu']['percent'], heap['used'], heap['max'] FROM sys.nodes"
    ):
        told |= {f"{name}.load1": load, f"{name}.cpu_percent": cpu, f"{name}.heap_used_bytes": used}
        told[f"{name}.heap_share"] = used / most if used is not None and most else None
        if used is not None:
            by.append(str(name))
    for name, count in connection.rows("SELECT node['name'], count(*) FROM sys.jobs GROUP BY 1"):
        if name is not None:
            told[f"{name}.jobs"] = count
    for name, size, rows in connection.rows("SELECT node['name'], sum(size), sum(num_docs) FROM sys.shards GROUP BY 1"):
        if name is not None:
            told |= {f"{name}.shards_bytes": size or 0, f"{name}.shards_rows": rows or 0}
    now = {name: float(value) for name, value in told.items() if value is not None}
    return Counters(_jobs(connection), now, " ".join(sorted(by)))


def _jobs(connection: sql.Connection) -> dict[str, float]:
    """What was asked of all nodes, by kind of statement."""
    rows = connection.rows(
        "SELECT lower(classification['type']), sum(total_count), sum(failed_count) FROM sys.jobs_metrics GROUP BY 1"
    )
    counted = {f"jobs.{kind}": float(total) for kind, total, _ in rows}
    return {**counted, "jobs_failed": float(sum(failed or 0 for *_, failed in rows))}


def _shards(connection: sql.Connection) -> dict[str, float]:
    """By node what its shards take; of all shards how many there are, and of how many segments each."""
    figures: dict[str, float] = {}
    total = 0
    for name, count, size, rows in connection.rows(
        f"SELECT node['name'], count(*), sum(size), sum(num_docs) FROM sys.shards WHERE table_name IN ({of_devops()}) "
        "GROUP BY 1"
    ):
        if name is not None:
            figures |= {f"{name}.shards_bytes": float(size or 0), f"{name}.shards_rows": float(rows or 0)}
            total += int(count)
    counts = [
        int(count)
        for *_, count in connection.rows(
            "SELECT table_schema, table_name, partition_ident, shard_id, node['name'], primary, count(*) "
            f"FROM sys.segments WHERE table_name IN ({of_devops()}) GROUP BY 1, 2, 3, 4, 5, 6"
        )
    ]
    figures |= {"shards": float(total), "segments": float(sum(counts)), "segments_most": float(max(counts, default=0))}
    return figures


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": _written(value)}
    return flat


def canonical(wish: Scalar, value: str) -> tuple[Any, Any]:
    """What was asked for and what is effective in the same terms."""
    if (switch := truth(wish)) is not None and value in ("true", "false"):
        return ("true" if switch else "false"), value
    sizes = _size(str(wish)), _size(value)
    if sizes[0] is not None and sizes[1] is not None:
        return sizes
    return str(wish).lower(), value.lower()


def _size(text: str) -> int | None:
    """`256mb`, `60%` is none: the server shows what it is of its heap."""
    return binary_number(text.lower().removesuffix("b")) if text.lower().endswith("b") else binary_number(text)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list) else str(value)
