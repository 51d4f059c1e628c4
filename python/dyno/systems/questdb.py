"""QuestDB, as one process on a Java of 17 or newer; the server is one file, which `dyno get questdb` gets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from dyno import sql
from dyno.deployments.base import Deployment
from dyno.deployments.native import Native, for_node
from dyno.hosts import java
from dyno.hosts.cgroups import limits_in_force
from dyno.hosts.ports import free_port
from dyno.model.base import KeyProblem, NeverValid, RunError, Scalar
from dyno.model.counters import Counters
from dyno.model.endpoint import Endpoint
from dyno.model.study import Machine
from dyno.model.table_options import Deduplicate, Index, PartitionBy, TableOptions, Wal
from dyno.model.units import Size
from dyno.sql.metrics import Metrics
from dyno.systems.lone import LoneServer
from dyno.systems.nested import flattened
from dyno.systems.server import Figures, ServerOptions, binary_number, truth
from dyno.systems.tabled import Tabled, of_devops

_HOST = "127.0.0.1"
_CPU_STEP = 1e-4
"""To which the kernel keeps quotas: 10 us of a period of 100 ms."""
_SETTING = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9]+)*")

_COMMIT_MODE = "cairo.commit.mode"
_COMMIT_MODES = ("nosync", "async", "sync")

_OURS = frozenset({
    "cairo.root", "cairo.wal.enabled.default", "config.validation.strict", "http.bind.to", "http.enabled",
    "http.min.enabled", "http.min.net.bind.to", "line.default.partition.by", "line.tcp.enabled",
    "line.tcp.net.bind.to", "line.udp.enabled", "metrics.enabled", "pg.enabled", "pg.net.bind.to", "pg.password",
    "pg.user", "telemetry.enabled",
})  # fmt: skip

_LEAVES_DATA_ALONE = frozenset({
    "cairo.sql.jit.mode", "cairo.sql.parallel.filter.enabled", "cairo.sql.parallel.groupby.enabled",
    "http.worker.count", "pg.worker.count", "query.timeout", "shared.query.worker.count", "shared.worker.count",
})  # fmt: skip

_TELLING = (
    "cairo.commit.mode", "cairo.max.uncommitted.rows", "cairo.o3.max.lag", "cairo.o3.min.lag",
    "cairo.sql.jit.mode", "cairo.sql.parallel.filter.enabled", "cairo.sql.parallel.groupby.enabled",
    "cairo.wal.enabled.default", "cairo.writer.data.append.page.size", "line.default.partition.by",
    "shared.query.worker.count", "shared.worker.count",
)  # fmt: skip
"""Recorded with each run whether or not the study sets them."""


def _questdb_setting(name: str) -> str:
    if _SETTING.fullmatch(name) is None:
        raise ValueError("is no key of server.conf: they are lower-case words with dots between them")
    return name


class QuestdbTables(TableOptions):
    """As its line protocol makes tables, where nothing else is asked for."""

    of = "questdb"

    partition_by: PartitionBy = "day"
    index: Index = "none"
    wal: Annotated[
        Wal | None, Field(description="true where there are partitions, and not to be had where there are none")
    ] = None
    deduplicate: Deduplicate = False

    @model_validator(mode="after")
    def _goes_together(self) -> QuestdbTables:
        if self.wal and self.partition_by == "none":
            raise KeyProblem("wal", "true needs partitions: write partition_by: day or month, or leave wal out")
        if self.deduplicate and not self.design()["wal"]:
            raise KeyProblem("deduplicate", "true needs tables with partitions and a log: leave wal out, or write true")
        return self

    def design(self) -> dict[str, Any]:
        """With whether there is a log."""
        made = super().design()
        return {**made, "wal": self.partition_by != "none" if self.wal is None else self.wal}


class QuestdbOptions(ServerOptions):
    """Besides the keys of its server.conf."""

    __pydantic_extra__: dict[Annotated[str, AfterValidator(_questdb_setting)], Scalar]

    ours = _OURS

    connect: Annotated[Literal["tcp"], Field(description="clients come by TCP on 127.0.0.1")] = "tcp"
    heap: Annotated[
        Size | None, Field(ge=64 << 20, description="most of Java's heap; by the machine's memory if left out")
    ] = None
    node_cpus: Annotated[
        float | None,
        Field(
            ge=0.01,
            description="seconds of CPU time a second of its one node, as each node of a cluster has them; all if left "
            "out. What all that is compared has together is host.machine.cpus",
        ),
    ] = None
    tables: QuestdbTables = QuestdbTables()

    @model_validator(mode="before")
    @classmethod
    def _keys_have_dots(cls, given: Any) -> Any:
        return flattened(given, frozenset(cls.model_fields)) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _syncs_in_a_way_that_there_is(self) -> QuestdbOptions:
        """What it does not know it takes without a word, shows as it was written, and does not sync."""
        mode = self.settings.get(_COMMIT_MODE, _COMMIT_MODES[0])
        if mode not in _COMMIT_MODES:
            raise KeyProblem(_COMMIT_MODE, f"should be {', '.join(_COMMIT_MODES[:-1])} or {_COMMIT_MODES[-1]}: {mode}")
        return self


class QuestdbSystem(Tabled, LoneServer[QuestdbOptions]):
    """One server in a folder of its own. HTTP is what it is asked by; its endpoint names the other ports."""

    kind = "questdb"
    backend = "questdb"
    Options = QuestdbOptions
    program = "questdb"
    account = ""
    telling = r"[\w.]+(?:Exception|Error)\b"
    asked_to_end = java.ASKED_TO_END
    leaves_data_alone = _LEAVES_DATA_ALONE
    buffers_writes = maps_files = True
    log_folders = ("db/*/wal[0-9]*",)

    _ports: Mapping[str, int] = {}
    _node: Mapping[str, Scalar] = {}

    @cached_property
    def deployment(self) -> Deployment:
        """Within the CPUs of its node. Raises RunError where it cannot be."""
        given, cpus = super().deployment, self.options.node_cpus
        if cpus is None:
            return given
        if not isinstance(given, Native):
            raise RunError(
                f"node_cpus is of a server that lives natively; of one in {given.kind} write host.machine.cpus"
            )
        if os.geteuid() != 0:
            raise RunError("a node with limits of its own needs root: run dyno as root, or leave node_cpus out")
        return for_node(given, self.place.host.confine_node("n1", Machine(cpus=cpus), given.site.confinement))

    @classmethod
    def needs(cls, options: QuestdbOptions) -> Sequence[str]:
        """Its file and Java, and what a node with CPUs of its own takes."""
        return ("QuestDB",) if options.node_cpus is None else ("QuestDB", "root", "CPU and memory limits")

    def programs(self) -> dict[str, Path]:
        """Java, and the server as it was got."""
        found = java.find(java.QUESTDB_NEEDS)
        if found is None:
            raise RunError(
                f"questdb needs a Java of {java.QUESTDB_NEEDS} or newer: apt-get install {java.QUESTDB_JRE}, or set "
                "JAVA_HOME"
            )
        if java.QUESTDB.installed() is None:
            raise RunError(f"questdb {java.QUESTDB.version} is not here: `dyno get questdb`")
        return {"java": found, "questdb": java.QUESTDB.path()}

    def _account(self) -> None:
        """The present user: it does not refuse root, and its file is in the user's cache."""

    def provision(self, limit: float) -> dict[str, str]:
        """The server's version, and that of Java."""
        # A deployment that cannot keep node_cpus refuses it here, before anything is run.
        programs, _ = self.programs(), self.deployment
        return {"questdb": java.QUESTDB.version, "java": str(java.version_of(programs["java"]))}

    def design(self) -> Mapping[str, Any]:
        """As asked for."""
        return self.options.tables.design()

    def data_key(self) -> dict[str, Any]:
        """And how the tables are laid out."""
        return {**super().data_key(), "tables": dict(self.design())}

    def make_empty(self, folder: Path, limit: float) -> None:
        """It fills it by itself when it starts."""
        (folder / "conf").mkdir()

    def command(self, folder: Path, port: int | None) -> list[str]:
        """Its configuration is written anew each time: it lies in the data folder, and ports differ."""
        assert port is not None
        taken = [port]
        while len(taken) < 4:
            taken += [found for found in [free_port()] if found not in taken]
        self._ports = dict(zip(("metrics_port", "pg_port", "ilp_port"), taken[1:], strict=True))
        lines = [f"{name}={_written(value)}" for name, value in {**self._own(port), **self.options.settings}.items()]
        configuration = self.place.data / "conf" / "server.conf"
        configuration.parent.mkdir(exist_ok=True)
        configuration.write_text("\n".join([*lines, ""]))
        programs = self.programs()
        heap = [] if self.options.heap is None else [f"-Xmx{self.options.heap}"]
        # It logs to its standard output, where nobody would look for why it ended.
        words = ["sh", "-c", 'exec "$@" >&2', "sh", str(programs["java"]), *heap, self.marker(folder)]
        words += java.leaving_nothing_but(folder)
        words += ["-XX:+UseParallelGC", "--add-opens=java.base/jdk.internal.math=ALL-UNNAMED"]
        words += ["-p", str(programs["questdb"]), "-m", "io.questdb/io.questdb.ServerMain", "-d", str(self.place.data)]
        return words

    def _own(self, port: int) -> dict[str, Scalar]:
        design = self.design()
        return {
            "http.bind.to": f"{_HOST}:{port}",
            "http.min.net.bind.to": f"{_HOST}:{self._ports['metrics_port']}",
            "pg.net.bind.to": f"{_HOST}:{self._ports['pg_port']}",
            "line.tcp.net.bind.to": f"{_HOST}:{self._ports['ilp_port']}",
            "line.udp.enabled": False,
            "metrics.enabled": True,
            "telemetry.enabled": False,
            "pg.user": "dyno",
            "pg.password": "dyno",
            # Of tables that a loader has made by the line protocol.
            "line.default.partition.by": str(design["partition_by"]).upper(),
            "cairo.wal.enabled.default": bool(design["wal"]),
        }

    def further_ways(self) -> dict[str, Any]:
        """By the protocol of PostgreSQL, by lines over TCP, and what is asked for its metrics; HTTP takes lines too."""
        return {"database": "qdb", **self._ports}

    def table_design(self) -> Mapping[str, Any]:
        """For whoever makes them."""
        return self.design()

    def socket_file(self, folder: Path) -> Path:
        """It has none; a port is always asked for."""
        return folder / "none"

    def marker(self, folder: Path) -> str:
        """The folder is new with each start."""
        return f"-Ddyno.folder={folder}"

    def is_ours(self, connection: sql.Connection, folder: Path) -> bool:
        """By the ports that it was given, all four of them."""
        statement = "SELECT value FROM (SHOW PARAMETERS) WHERE property_path = 'http.min.net.bind.to'"
        return connection.rows(statement) == [(f"{_HOST}:{self._ports['metrics_port']}",)]

    def attest(self, connection: sql.Connection) -> None:
        """And what is there of its tables."""
        super().attest(connection)
        self._effective = {**self._effective, **self.told_tables()}
        self.attest_tables(connection)
        self._node = self._told_of_node()

    def facts(self) -> dict[str, Scalar]:
        """What its node has, as those of clusters tell it, where it has less than the machine."""
        return {**super().facts(), **self._node}

    def _told_of_node(self) -> Mapping[str, Scalar]:
        """As the kernel has it in force. Raises NeverValid where that is not what was asked for."""
        asked, group = self.options.node_cpus, self.deployment.site.confinement.group
        if asked is None:
            return {}
        found = None if group is None else limits_in_force(group).get("cpus")
        if found is None or abs(found - asked) > _CPU_STEP:
            raise NeverValid(
                f"node_cpus is {found or 'without a limit'}, the study asks for {asked}: it was not effective"
            )
        return {"node.cpus": found}

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """SHOW PARAMETERS has all that it knows; a key of server.conf that it does not know is not among them."""
        known = {
            str(name): str(value)
            for name, value in connection.rows("SELECT property_path, value FROM (SHOW PARAMETERS)")
        }
        effective: dict[str, Any] = {name: known[name] for name in _TELLING if name in known}
        asked: dict[str, Any] = {}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            if name in known:
                asked[name], effective[name] = canonical(wish, known[name])
        return asked, effective

    def read_tables(self, connection: sql.Connection) -> Mapping[str, Mapping[str, Any]]:
        """From tables() and the columns of each."""
        found = {}
        told = connection.rows(
            f"SELECT table_name, partitionBy, walEnabled, dedup FROM tables() WHERE table_name IN ({of_devops()})"
        )
        for name, by, wal, dedup in told:
            columns = connection.rows(f'SELECT "column" FROM (SHOW COLUMNS FROM {name}) WHERE indexed')
            found[str(name)] = {
                "partition_by": str(by).lower(),
                "wal": bool(wal),
                "deduplicate": bool(dedup),
                "index": [str(column) for (column,) in columns],
            }
        return found

    def read_counters(self, connection: sql.Connection) -> Figures:
        """Of its metrics, those that only grow."""
        return dict(self._metrics(30.0).read_once().grown)

    def read_sizes(self, connection: sql.Connection) -> Figures:
        """What is acknowledged and not yet to be read."""
        pending = connection.rows("SELECT sum(sequencerTxn - writerTxn) FROM wal_tables()")
        return {"wal_pending_transactions": float(pending[0][0] or 0) if pending else 0.0}

    def reader(self, endpoint: Endpoint, limit: float) -> tuple[Metrics, Callable[[], Counters]]:
        """Its metrics, which have a way in of their own."""
        metrics = self._metrics(limit)
        return metrics, metrics.read

    def _metrics(self, limit: float) -> Metrics:
        return Metrics(_HOST, self._ports["metrics_port"], limit=limit, prefix="questdb_")

    def status(self) -> dict[str, float]:
        """Besides its counters: no table has stopped taking what was acknowledged."""
        if self._endpoint is not None and self.running is not None:
            with sql.connect(self._endpoint, limit=30.0) as connection:
                self.attest_tables(connection)
                suspended = connection.rows("SELECT name FROM wal_tables() WHERE suspended")
            if suspended:
                names = ", ".join(str(name) for (name,) in suspended)
                raise RunError(f"the log of {names} is suspended: rows that were acknowledged are not applied")
        return super().status()


def canonical(wish: Scalar, value: str) -> tuple[Any, Any]:
    """What was asked for and what is effective in the same terms."""
    if (switch := truth(wish)) is not None and value in ("true", "false"):
        return ("true" if switch else "false"), value
    sizes = binary_number(wish), binary_number(value)
    if None not in sizes:
        return sizes
    try:
        return float(str(wish)), float(value)
    except ValueError:
        return str(wish).lower(), value.lower()


def _written(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
