"""MariaDB with Galera: every node takes writes and certifies those of all; who may write haproxy is told."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from dyno import sql
from dyno.deployments.base import Running
from dyno.hosts import programs
from dyno.hosts.networks import CLIENT
from dyno.hosts.ports import free_port
from dyno.model.base import RunError, Scalar
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.units import PositiveDuration
from dyno.systems.balancer import Balancer
from dyno.systems.base import Place
from dyno.systems.cluster import Role, told_of
from dyno.systems.innodb import arguments
from dyno.systems.managed import ManagedCluster
from dyno.systems.manager import Line, Manager, Patience
from dyno.systems.mariadb import MariadbOptions, MariadbSystem
from dyno.systems.members import (
    ADMIN,
    ADMIN_PASSWORD,
    CATCHES_UP_S,
    LISTENING,
    ClusterOptions,
    Member,
    as_admin,
    together,
)
from dyno.systems.server import newest

READ_WRITE_PORT, READ_ONLY_PORT = 6446, 6447
_POOLS = {"write": READ_WRITE_PORT, "read": READ_ONLY_PORT}
_GROUP_PORT = 4567
_CACHE = "gcache.size=128M"
"""Of what a node keeps for one that comes back."""
_STATE_FILE = "grastate.dat"
_SEQNO = re.compile(r"^seqno:\s*(-?\d+)\s*$", re.MULTILINE)
_NOWHERE = "00000000-0000-0000-0000-000000000000"
"""In that note, of data that are no longer those of the cluster: they are copied anew, whatever the tables say."""
_GAVE_UP = "Inconsistent"
_SAFE = re.compile(r"^safe_to_bootstrap:\s*\d\s*$", re.MULTILINE)
_RECOVERED = re.compile(r"WSREP: Recovered position:?\s*([0-9a-f-]{36}):(-?\d+)")
_STATUS = (
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state_comment', "
    "'wsrep_cluster_size', 'wsrep_last_committed')"
)
_COUNTED = (
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts', "
    "'wsrep_replicated')"
)
_PROVIDER_SETTING = re.compile(r"[a-z_]+\.[a-z_0-9]+")
_OURS_OF_PROVIDER = ("base_", "gmcast.listen_addr", "gcache.dir", "gcache.name", "ist.recv_")
_LOOK_EVERY_S = 0.1
_ANSWERS_WITHIN_S = 1.0  # to its manager


def _provider_setting(name: str) -> str:
    if _PROVIDER_SETTING.fullmatch(name) is None or name.startswith(_OURS_OF_PROVIDER):
        raise ValueError("is no setting of Galera's that a study may make, such as evs.suspect_timeout")
    return name


class GaleraOptions(ClusterOptions):
    """Settings of the servers are passed on as they are: `wsrep_sync_wait`, `wsrep_slave_threads` and others."""

    ours: ClassVar[frozenset[str]] = MariadbOptions.ours | {
        "binlog_format", "default_storage_engine", "innodb_autoinc_lock_mode", "plugin_load", "plugin_load_add",
        "server_id", "wsrep_cluster_address", "wsrep_cluster_name", "wsrep_new_cluster", "wsrep_node_address",
        "wsrep_node_name", "wsrep_on", "wsrep_provider", "wsrep_provider_options", "wsrep_sst_method",
        "wsrep_start_position",
    }  # fmt: skip

    writers: Annotated[
        Literal["one", "all"], Field(description="whether clients write to one node or are spread over all")
    ] = "one"
    provider: Annotated[
        dict[Annotated[str, AfterValidator(_provider_setting)], Scalar],
        Field(description="settings of the replication library, such as {evs.suspect_timeout: PT3S}"),
    ] = {}
    check_every: Annotated[PositiveDuration, Field(description="how often the manager asks each node")] = 0.5
    silent_for: Annotated[
        PositiveDuration, Field(description="how long a node has to be silent before it gets no clients")
    ] = 3.0

    def of_member(self) -> MariadbOptions:
        """What each server is started with."""
        return MariadbOptions.model_validate({**self.settings, "check": self.check, "after_load": self.after_load})


class GaleraMember(Member[MariadbOptions], MariadbSystem):
    """One mariadbd of a cluster."""

    let_in = ("localhost", "%")
    not_of_data = ("wsrep_", "sync_binlog", "gtid_", "slave_")

    provider: Mapping[str, Scalar] = {}
    begins: bool = False
    """Whether it makes the cluster that the others join."""
    position: str | None = None
    """Where it was, where its own note does not say so since it was killed."""

    def statements(self) -> list[str]:
        """The administrator's account too."""
        mine = [f"CREATE USER {ADMIN}@'{host}' IDENTIFIED BY '{ADMIN_PASSWORD}'" for host in self.let_in]
        rights = [f"GRANT ALL ON *.* TO {ADMIN}@'{host}' WITH GRANT OPTION" for host in self.let_in]
        return [*super().statements(), *mine, *rights]

    def listening(self, port: int | None) -> list[str]:
        """How it comes into the cluster changes from start to start."""
        begins = ["--wsrep-new-cluster"] if self.begins else []
        position = [f"--wsrep-start-position={self.position}"] if self.position else []
        return [*super().listening(port), *begins, *position]

    def start_again(self, limit: float) -> Running:
        """It comes back to a cluster that is there, from where it was."""
        deadline = time.monotonic() + limit
        self.begins = False
        self.find_position(limit)
        return super().start_again(max(deadline - time.monotonic(), 0.1))

    def find_position(self, limit: float) -> int:
        """How far its data are: by its own note, and after a kill by what its tables say. Raises RunError."""
        self.position = None
        text = self._state_text()
        found = _SEQNO.search(text)
        if found is not None and int(found[1]) >= 0:
            return int(found[1])
        if not text or _NOWHERE in text:
            return -1
        log = self.place.logs / f"{self.node}-recover"
        own = [f"--datadir={self.place.data}", f"--tmpdir={self.place.data}"]
        words = [*self.words(self.program), "--no-defaults", *own, "--wsrep-recover"]
        self.place.host.run(
            [*words, "--skip-networking", "--innodb-buffer-pool-load-at-startup=0", *arguments(self.data_key())],
            limit=limit,
            log=log,
            account=self._account(),
            telling=self.telling,
        )
        said = [path.read_text(errors="replace") for path in (log.with_name(f"{log.name}.stderr"),) if path.exists()]
        positions = _RECOVERED.findall("".join(said))
        if not positions or int(positions[-1][1]) < 0:
            return -1
        self.position = ":".join(positions[-1])
        return int(positions[-1][1])

    def may_begin(self) -> None:
        """Say in its own note that it may make a cluster: it is known to be the most advanced."""
        file = self.place.data / _STATE_FILE
        if file.exists():
            file.write_text(_SAFE.sub("safe_to_bootstrap: 1", self._state_text()))

    def _state_text(self) -> str:
        file = self.place.data / _STATE_FILE
        return file.read_text() if file.exists() else ""

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the replication library too, which are one long text."""
        asked, effective = super().read_settings(connection)
        known = provider_settings(str(connection.value("SELECT @@GLOBAL.wsrep_provider_options")))
        for name, value in self.provider.items():
            key = f"provider.{name}"
            asked[key], effective[key] = str(value), known.get(name, "not a setting that Galera shows")
        effective["wsrep_sync_wait"] = int(connection.value("SELECT @@GLOBAL.wsrep_sync_wait"))
        return asked, effective


def provider_settings(text: str) -> dict[str, str]:
    """`evs.suspect_timeout = PT5S; gcache.size = 128M; ` by name."""
    pairs = (each.partition("=") for each in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


@dataclass(frozen=True)
class Wsrep:
    """What a node says of itself and of the cluster."""

    ready: bool
    primary: bool
    state: str
    size: int
    committed: int
    """The number of the last write set that it committed. What it has received and not applied has a higher one."""

    @classmethod
    def of(cls, rows: Sequence[sql.Row]) -> Wsrep:
        """From its status."""
        told = {str(name).lower(): str(value) for name, value in rows}
        return cls(
            ready=told.get("wsrep_ready") == "ON",
            primary=told.get("wsrep_cluster_status") == "Primary",
            state=told.get("wsrep_local_state_comment", "none"),
            size=int(told.get("wsrep_cluster_size", 0)),
            committed=int(told.get("wsrep_last_committed", -1)),
        )

    @property
    def serves(self) -> bool:
        """Whether clients are answered, and what they read is in step."""
        return self.ready and self.primary and self.state == "Synced"


def _ready_as_it_joins(member: Member[Any], deadline: float) -> None:
    """In the moment in which a server becomes one of the cluster it lets go of its clients, who come again then."""
    while True:
        try:
            member.ready(deadline - time.monotonic())
        except sql.ConnectionLost:
            if not member.lives() or time.monotonic() >= deadline:
                raise
        else:
            return


class GaleraSystem(ManagedCluster[GaleraOptions]):
    """A cluster of mariadbd."""

    kind = "galera"
    Options = GaleraOptions
    forms_in_s = 12.0
    rejoins_in_s = 13.0
    by_majority = True
    own_files = ("galera.cache", "gvwstate.dat")

    _writer: str | None = None
    _serving: frozenset[str] = frozenset()
    _first: str = ""
    _run: int = 0

    def __init__(self, options: GaleraOptions, place: Place) -> None:
        super().__init__(options, place, options.silent_for)

    @classmethod
    def opens_directly(cls, options: GaleraOptions) -> str | None:
        """As MariaDB does."""
        return MariadbSystem.opens_directly(options.of_member())

    def member(self, place: Place) -> GaleraMember:
        """A mariadbd."""
        made = GaleraMember(self.options.of_member(), place)
        made.provider = self.options.provider
        return made

    def provision(self, limit: float) -> dict[str, str]:
        """The replication library, what sends a whole copy, and haproxy."""
        _library()
        if programs.find("rsync") is None:
            raise RunError("rsync not found, by which Galera sends a whole copy: apt-get install rsync")
        return super().provision(limit)

    def _words(self, name: str, address: str, port: int, cluster: str) -> list[str]:
        provider = {"gmcast.listen_addr": f"tcp://{address}:{port}", **self.options.provider}
        options = ";".join([_CACHE, *(f"{key}={value}" for key, value in provider.items())])
        return [
            "--binlog-format=ROW",
            "--default-storage-engine=InnoDB",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            f"--wsrep-provider={_library()}",
            "--wsrep-cluster-name=dyno",
            f"--wsrep-cluster-address=gcomm://{cluster}",
            f"--wsrep-node-name={name}",
            f"--wsrep-node-address={address}",
            "--wsrep-sst-method=rsync",
            f"--wsrep-provider-options={options}",
        ]

    def words(self, name: str) -> list[str]:
        """All find each other by their addresses."""
        addresses = ",".join(self.network.address(each) for each in self.names)
        number = self.names.index(name) + 1
        own = self.network.address(name)
        return [*LISTENING, f"--server-id={number}", *self._words(name, own, _GROUP_PORT, addresses)]

    def words_alone(self) -> list[str]:
        """A cluster of one, on this machine alone: what it is loaded with has its place in the cluster's order."""
        return ["--skip-networking", *self._words(self.names[0], "127.0.0.1", free_port(), ""), "--wsrep-new-cluster"]

    def start_members(self, run: int, deadline: float) -> None:
        """The most advanced alone; the others join when it is there."""
        reached = {}
        for name, member in self._members.items():
            assert isinstance(member, GaleraMember)
            member.words_of_node = tuple(self.words(name))
            reached[name] = member.find_position(deadline - time.monotonic())
        first = self._members[max(reached, key=lambda name: reached[name])]
        assert isinstance(first, GaleraMember)
        first.begins = True
        first.may_begin()
        self._first, self._run = first.node, run
        first.start(run, deadline - time.monotonic())

    def members_ready(self, deadline: float) -> None:
        """The first; then the others, each of which answers once it is in step."""
        first = self._members[self._first]
        others = [member for member in self.members if member is not first]
        with told_of(first.node):
            first.ready(deadline - time.monotonic())
        for there, member in enumerate(others, 2):
            member.start(self._run, deadline - time.monotonic())
            # Two that come at once keep each other from being seen for seconds; their copying may overlap.
            self._until_seen(first, member, there, deadline)
        for member in others:
            with told_of(member.node):
                _ready_as_it_joins(member, deadline)

    def _until_seen(self, first: Member[Any], member: Member[Any], there: int, deadline: float) -> None:
        while time.monotonic() < deadline:
            with first.ask() as connection:
                if Wsrep.of(connection.rows(_STATUS)).size >= there:
                    return
            if member.running is None or member.running.wait(_LOOK_EVERY_S) is not None:
                return  # what it died of is told when it is asked

    def form(self, deadline: float) -> None:
        """They have found each other by themselves; haproxy is told who writes, from then on by its manager."""
        self.until(self.whole, deadline, "a cluster of all nodes")
        self._writer = self._first
        self._balancer = Balancer(self.place.host, self.place.logs)
        addresses = {name: self.network.address(name) for name in self.names}
        self._balancer.start(self.network.words(CLIENT), self.network.address(CLIENT), _POOLS, addresses)
        self._lines = {name: self._line(name) for name in self.names}
        self._patience = Patience(self.options.silent_for)
        self._manager = Manager(self._look, self.options.check_every)
        self._look()
        self._manager.start()

    def _line(self, name: str) -> Line:
        at = Endpoint(self.backend, self.address(name), namespace=str(self.network.path(CLIENT)))
        return Line(as_admin(at), _ANSWERS_WITHIN_S)

    def _look(self) -> None:
        """As whoever decides for haproxy sees the nodes: from where the clients are."""
        assert self._balancer is not None
        assert self._manager is not None
        answers = together(*(partial(self._serves, name) for name in self.names))
        serving = [name for name, serves in zip(self.names, answers, strict=True) if serves]
        writer = next_writer(self._writer, serving)
        writers, readers = serving, serving
        if self.options.writers == "one":
            writers = [writer] if writer in serving else []
            readers = [name for name in serving if name != writer] or serving
        if self._balancer.use("write", writers):
            self._manager.tell(f"clients write to {', '.join(writers) or 'nobody'}")
        self._balancer.use("read", readers)
        self._writer, self._serving = writer, frozenset(serving)

    def _serves(self, name: str) -> bool:
        """A node that says nothing is taken for what it was, for a while."""
        try:
            said = Wsrep.of(self._lines[name].rows(_STATUS))
        except sql.SqlError:
            return self._patience.told(name, answered=False) and name in self._serving
        self._patience.told(name, answered=True)
        return said.serves

    def ways(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Both ports of haproxy, which is where its clients are."""
        host = self.network.address(CLIENT)
        return {"host": host, "port": READ_WRITE_PORT}, {READ_ONLY: {"host": host, "port": READ_ONLY_PORT}}

    def events(self) -> tuple[tuple[int, str], ...]:
        """What the manager did, but for what it began with."""
        return super().events()[1:]

    def _told(self) -> dict[str, Wsrep]:
        """What each node that can be asked says."""

        def ask(member: Member[Any]) -> Wsrep | None:
            try:
                with member.ask() as connection:
                    return Wsrep.of(connection.rows(_STATUS))
            except sql.SqlError:
                return None

        asked = [member for member in self.members if self.asks(member)]
        answers = together(*(partial(ask, member) for member in asked))
        return {member.node: said for member, said in zip(asked, answers, strict=True) if said is not None}

    def view(self) -> dict[str, tuple[Role, str]]:
        """By what each says of itself; one that has no majority with it is none of the cluster."""
        told = self._told()
        found: dict[str, tuple[Role, str]] = {}
        for name in self.names:
            said = told.get(name)
            if said is None:
                found[name] = ("none", "does not answer")
            elif not said.primary:
                found[name] = ("none", f"{said.state}, without a majority")
            else:
                writes = said.serves and (self.options.writers == "all" or name == self._writer)
                found[name] = ("primary" if writes else "secondary" if said.serves else "none", said.state)
        return found

    def whole(self) -> bool:
        """Every node sees all others in step, and has applied what the most advanced had when they were asked.

        A node is "Synced" while write sets wait in its queue.
        """
        told = self._told()
        if not self._all_serve(told):
            return False
        most = max(said.committed for said in told.values())

        def have_it() -> bool:
            now = self._told()
            return self._all_serve(now) and all(said.committed >= most for said in now.values())

        try:
            self.until(have_it, time.monotonic() + CATCHES_UP_S, "a cluster in step")
        except RunError:
            return False
        return True

    def _all_serve(self, told: Mapping[str, Wsrep]) -> bool:
        return len(told) == len(self.names) and all(
            said.serves and said.size == len(self.names) for said in told.values()
        )

    def rejoin(self, member: Member[Any], deadline: float) -> None:
        """It does so by itself; one that gave up, since it could not write what the others wrote, begins anew."""
        while time.monotonic() < deadline:
            said = self._told().get(member.node)
            if said is not None and said.serves and said.size > 1:
                return
            gave_up = said is not None and said.state == _GAVE_UP
            if gave_up or member.running is None or member.running.wait(_LOOK_EVERY_S) is not None:
                if member.running is not None:
                    member.end_process(max(deadline - time.monotonic(), 0.1), member.farewell)
                member.start_again(max(deadline - time.monotonic(), 0.1))
                member.ready(deadline - time.monotonic())
        raise RunError("it did not join the cluster in time")

    def counted(self) -> dict[str, float]:
        """Of all nodes: what was sent to the others, and what was undone since another wrote the same."""
        conflicts = sent = 0.0
        for member in self.members:
            if not self.asks(member):
                continue
            try:
                with member.ask() as connection:
                    told = {str(name).lower(): float(value) for name, value in connection.rows(_COUNTED)}
            except sql.SqlError:
                continue
            conflicts += told.get("wsrep_local_cert_failures", 0.0) + told.get("wsrep_local_bf_aborts", 0.0)
            sent += told.get("wsrep_replicated", 0.0)
        return {"cluster.conflicts": conflicts, "cluster.certified": sent}


def next_writer(now: str | None, serving: Sequence[str]) -> str | None:
    """The one that writes goes on as long as it serves, also where one that was before it comes back."""
    if now in serving or not serving:
        return now
    return serving[0]


def _library() -> Path:
    found = newest("usr/lib/galera/libgalera_smm.so") or newest("usr/lib64/galera*/libgalera_smm.so")
    if found is None:
        raise RunError("the library of Galera was not found: apt-get install galera-4")
    return found
