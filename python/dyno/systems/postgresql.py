"""PostgreSQL, from Debian's postgresql-15 or newer."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dyno import sql
from dyno.deployments.base import Recipe
from dyno.model.base import InvalidRun, RunError, Scalar
from dyno.model.counters import WAIT, Counters, is_gauge
from dyno.model.endpoint import Endpoint
from dyno.model.table_options import Deduplicate, Hypertable, Index, PartitionBy, TableOptions
from dyno.systems.base import files_below
from dyno.systems.lone import LoneServer
from dyno.systems.server import (
    DATABASE,
    PASSWORD,
    USER,
    Figures,
    ServerOptions,
    newest,
    truth,
)
from dyno.systems.tabled import Tabled, of_devops

_PACKAGE = "postgresql"
_PORT = 5432  # names the socket file where it is reached by that alone

_OURS = frozenset({
    "cluster_name", "config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "listen_addresses",
    "log_destination", "logging_collector", "port", "unix_socket_directories",
})  # fmt: skip

_LEAVES_DATA_ALONE = frozenset({
    "backend_flush_after", "bgwriter_delay", "bgwriter_flush_after", "bgwriter_lru_maxpages",
    "bgwriter_lru_multiplier", "checkpoint_completion_target", "checkpoint_flush_after", "checkpoint_timeout",
    "commit_delay", "commit_siblings", "cpu_index_tuple_cost", "cpu_operator_cost", "cpu_tuple_cost",
    "deadlock_timeout", "default_transaction_isolation", "effective_cache_size", "effective_io_concurrency",
    "enable_seqscan", "fsync", "full_page_writes", "huge_pages", "jit", "lock_timeout",
    "maintenance_work_mem", "max_connections", "max_parallel_workers", "max_parallel_workers_per_gather",
    "max_wal_size", "max_worker_processes", "min_wal_size", "random_page_cost", "seq_page_cost", "shared_buffers",
    "statement_timeout", "synchronous_commit", "temp_buffers", "wal_buffers", "wal_sync_method", "wal_writer_delay",
    "wal_writer_flush_after", "work_mem",
})  # fmt: skip

_TELLING = (
    "server_version", "autovacuum", "block_size", "checkpoint_timeout", "data_checksums",
    "default_transaction_isolation", "effective_io_concurrency", "fsync", "full_page_writes", "io_method", "jit",
    "max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_level", "wal_sync_method",
)  # fmt: skip

_OF_DATABASE = (
    "xact_commit", "xact_rollback", "blks_read", "blks_hit", "tup_returned", "tup_fetched", "tup_inserted",
    "tup_updated", "tup_deleted", "conflicts", "temp_files", "temp_bytes", "deadlocks", "sessions",
)  # fmt: skip

_VIEWS = {"pg_stat_bgwriter": "bgwriter", "pg_stat_checkpointer": "checkpointer", "pg_stat_wal": "wal"}
"""Of one row each; the columns of these differ from version to version, and not every version has all."""

_NO_FIGURES = ("database.datid", "database.datname", "database.checksum_last_failure")

_LOOKING = "looking"
"""The schema of what shows the server's buffers."""

_FIRST_OWN_OID = 16384  # FirstNormalObjectId: what is below came with the cluster

_OPENING_TAKES_PAGES = 4
"""Pages of a table or index that may be in the shared buffers after a cold start: planning reads the head of an index;
its rows are not looked at before they are asked for."""

_HYPERTABLES = "timescaledb"

_TABLES = """
SELECT t.relname,
  (SELECT array_agg((regexp_match(pg_get_expr(p.relpartbound, p.oid), 'TO \\(''([^'']+)''\\)'))[1]::date
                  - (regexp_match(pg_get_expr(p.relpartbound, p.oid), 'FROM \\(''([^'']+)''\\)'))[1]::date)
     FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhrelid WHERE h.inhparent = t.oid),
  (SELECT array_agg(a.attname::text ORDER BY i.indexrelid) FROM pg_index i
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = t.oid AND NOT i.indisprimary),
  EXISTS (SELECT FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary)
FROM pg_class t
WHERE t.relkind IN ('r', 'p') AND t.relname IN ({names}) AND pg_table_is_visible(t.oid)
"""
"""Of each: the days that its partitions span, the first column of each index, and whether it has a key."""

_DEFAULT_MAX_CONNECTIONS, _DEFAULT_RESERVED = 100, 3


class PostgresqlTables(TableOptions):
    """Declarative partitions, and a btree index for each of the tags, with the time behind it."""

    of = "postgresql"

    partition_by: PartitionBy = "none"
    index: Index = "none"
    deduplicate: Deduplicate = False
    hypertable: Hypertable = False


class PostgresqlOptions(ServerOptions):
    """Besides the server's own parameters."""

    ours = _OURS
    units: ClassVar[Mapping[str, str]] = {"KiB": "kB", "MiB": "MB", "GiB": "GB", "TiB": "TB"}

    data_checksums: Annotated[
        bool, Field(description="initdb --data-checksums: every page has one, and all are checked after each run")
    ] = False
    check: Annotated[
        Literal["none", "shutdown"],
        Field(
            description="after each run: that it was shut down cleanly, and its checksums where it has them; or none"
        ),
    ] = "shutdown"
    tables: PostgresqlTables = PostgresqlTables()


class PostgresqlSystem(Tabled, LoneServer[PostgresqlOptions]):
    """One cluster; what the study does not set is as initdb writes it."""

    kind = "postgresql"
    backend = "postgresql"
    Options = PostgresqlOptions
    program = "postgres"
    account = "postgres"
    telling = "FATAL|PANIC"
    first_of_child = "InitPostmasterChild"
    leaves_data_alone = _LEAVES_DATA_ALONE
    brings_recipe = True
    buffers_writes = True
    log_folders = ("pg_wal",)
    farewell = signal.SIGINT  # SIGTERM would wait for every client to leave by itself
    undo_by = signal.SIGQUIT  # SIGKILL would leave its shared memory behind

    @classmethod
    def most_clients(cls, options: PostgresqlOptions) -> int | None:
        """As many as it has connections, less those reserved for superusers."""
        given = options.settings
        try:
            most = int(given.get("max_connections", _DEFAULT_MAX_CONNECTIONS))
            return most - int(given.get("superuser_reserved_connections", _DEFAULT_RESERVED))
        except ValueError:
            return None  # the server says what is wrong with it

    @classmethod
    def needs(cls, options: PostgresqlOptions) -> Sequence[str]:  # noqa: ARG003 - whatever they are
        """The server."""
        return ("PostgreSQL",)

    def programs(self) -> dict[str, Path]:
        """Debian keeps those of each version in a folder of its own; the newest is taken, else those on the PATH."""
        found: dict[str, Path] = {}
        for name in ("postgres", "initdb", "pg_controldata", "pg_checksums"):
            on_path = shutil.which(name)
            where = newest(f"usr/lib/postgresql/*/bin/{name}") or (Path(on_path) if on_path else None)
            if where is None:
                raise RunError(
                    f"{name} not found in /usr/lib/postgresql/*/bin nor on the PATH: apt-get install {_PACKAGE}"
                )
            found[name] = where
        return found

    def recipe(self) -> Recipe:
        """The server, all that it may load into itself (its just-in-time compiler too), and the zones of time."""
        program = self.programs()["postgres"]
        where = {}
        for name in ("pkglibdir", "sharedir"):
            words = [str(program.with_name("pg_config")), f"--{name}"]
            said = self.place.host.run(words, limit=60.0, log=self.place.logs / "pg_config")
            where[name] = Path(said.strip())
        libraries = sorted(where["pkglibdir"].glob("*.so"))
        bitcode = [path for path in files_below(where["pkglibdir"]) if path.suffix == ".bc"]
        zones = Path("/usr/share/zoneinfo")
        return Recipe(
            name=self.kind,
            programs=(program, *libraries),
            files=(*files_below(where["sharedir"]), *bitcode, *files_below(zones)),
            account=self.account,
        )

    def provision(self, limit: float) -> dict[str, str]:
        """And the extension that hypertables are of, where the study has them."""
        found = super().provision(limit)
        if self.options.tables.hypertable:
            log = self.place.logs / "pg_config"
            config = str(self.programs()["postgres"].with_name("pg_config"))
            shared = Path(self.place.host.run([config, "--sharedir"], limit=limit, log=log).strip())
            control = shared / "extension" / f"{_HYPERTABLES}.control"
            if not control.is_file():
                raise RunError(
                    f"tables.hypertable needs the extension {_HYPERTABLES}, which this PostgreSQL has not ({control}): "
                    "install TimescaleDB's package for it, or write hypertable: false"
                )
        return found

    def design(self) -> Mapping[str, Any]:
        """As asked for."""
        return self.options.tables.design()

    def table_design(self) -> Mapping[str, Any]:
        """For whoever makes them."""
        return self.design()

    def data_key(self) -> dict[str, Any]:
        """And whether pages have checksums, and how tables are laid out."""
        return {**super().data_key(), "data_checksums": self.options.data_checksums, "tables": dict(self.design())}

    def make_empty(self, folder: Path, limit: float) -> None:
        """A cluster into which nobody is let but dyno's account, which is no superuser."""
        host, programs, account = self.place.host, self.programs(), self._account()
        words = [str(programs["initdb"]), "-D", str(folder), "--no-sync", "--no-instructions", "--username=postgres"]
        words += ["--auth=trust", "--encoding=UTF8", "--locale=C"]
        words += ["--data-checksums"] if self.options.data_checksums else []
        host.run(words, limit=limit, log=self.place.logs / "initdb", account=account)
        rules = [f"local all {USER} scram-sha-256", f"host all {USER} 127.0.0.1/32 scram-sha-256"]
        (folder / "pg_hba.conf").write_text("".join(f"{rule}\n" for rule in rules))
        self._tell(
            folder,
            "postgres",
            limit,
            [
                f"CREATE USER {USER} PASSWORD '{PASSWORD}'",
                f"GRANT pg_monitor TO {USER}",
                f"CREATE DATABASE {DATABASE} OWNER {USER}",
            ],
        )
        # Beside what workloads keep there; pg_monitor may use it.
        self._tell(
            folder,
            DATABASE,
            limit,
            [
                f"CREATE SCHEMA {_LOOKING}",
                f"GRANT USAGE ON SCHEMA {_LOOKING} TO {USER}",
                "DO $$ BEGIN IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_buffercache') "
                f"THEN CREATE EXTENSION pg_buffercache SCHEMA {_LOOKING}; END IF; END $$",
            ],
        )

        if self.options.tables.hypertable:
            # By a superuser, who alone may, and never listens.
            self._tell(folder, DATABASE, limit, [f"CREATE EXTENSION {_HYPERTABLES}"])

    def _tell(self, folder: Path, database: str, limit: float, statements: list[str]) -> None:
        """In single-user mode no superuser ever listens. It ends well whatever it was told, so its words are read."""
        log = self.place.logs / f"postgres-single-{database}"
        self.place.host.run(
            [*self.words("postgres"), "--single", "-D", str(folder), database],
            limit=limit,
            log=log,
            account=self._account(),
            told=statements,
        )
        said = log.with_name(f"{log.name}.stderr").read_text(errors="replace")
        if wrong := re.search(r"(?:ERROR|FATAL|PANIC):.*", said):
            raise RunError(f"postgres --single: {wrong[0]}")

    def command(self, folder: Path, port: int | None) -> list[str]:
        """Its log goes to standard error, which dyno keeps."""
        words = [str(self.programs()["postgres"]), "-D", str(self.place.data), self.marker(folder)]
        words += [f"--listen_addresses={'' if port is None else '127.0.0.1'}", f"--port={port or _PORT}"]
        words += [f"--shared_preload_libraries={_HYPERTABLES}"] if self.options.tables.hypertable else []
        words += ["--logging_collector=off", "--log_destination=stderr", f"--cluster_name={folder.name}"]
        given = self.options.settings.items()
        return words + [f"--{name}={_switch(value) if isinstance(value, bool) else value}" for name, value in given]

    def socket_file(self, folder: Path) -> Path:
        """PostgreSQL names it itself. By TCP nothing is looked for there."""
        return folder / f".s.PGSQL.{_PORT}"

    def marker(self, folder: Path) -> str:
        """The folder is new with each start."""
        return f"--unix_socket_directories={folder}"

    def is_ours(self, connection: sql.Connection, folder: Path) -> bool:
        """By the name that its cluster was given: paths are shown to some accounts only."""
        return str(connection.value("SHOW cluster_name")) == folder.name

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """From pg_settings, which has the unit and the type of each parameter too."""
        rows = connection.rows("SELECT lower(name), setting, coalesce(unit, ''), vartype FROM pg_settings")
        known = {str(name): (str(value), str(unit), str(kind)) for name, value, unit, kind in rows}
        effective = {name: _effective(*known[name]) for name in _TELLING if name in known}
        asked: dict[str, Any] = {"data_checksums": _switch(self.options.data_checksums)}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            if name in known:
                asked[name], effective[name] = canonical(wish, *known[name])
        return asked, effective

    def attest(self, connection: sql.Connection) -> None:
        """And what is there of its tables."""
        super().attest(connection)
        self._effective = {**self._effective, **self.told_tables()}
        self.attest_tables(connection)

    def read_tables(self, connection: sql.Connection) -> Mapping[str, Mapping[str, Any]]:
        """From its catalog, by what each partition spans: none may hold rows of several days or months."""
        rows = connection.rows(_TABLES.format(names=of_devops()))
        hyper = set()
        if self.options.tables.hypertable:
            hyper = {
                str(name)
                for (name,) in connection.rows("SELECT hypertable_name FROM timescaledb_information.hypertables")
            }
        found = {}
        for name, spans, indexed, keyed in rows:
            is_hyper = str(name) in hyper
            # Chunks of a hypertable are no partitions to PostgreSQL.
            by = self.design()["partition_by"] if is_hyper else partitioned_by(spans or [])
            found[str(name)] = {
                "partition_by": by,
                "index": list(indexed or []),
                "deduplicate": bool(keyed),
                "hypertable": is_hyper,
            }
        return found

    def status(self) -> dict[str, float]:
        """Besides its counters: that the tables are as they were to be."""
        if self._endpoint is not None and self.running is not None:
            with sql.connect(self._endpoint, limit=30.0) as connection:
                self.attest_tables(connection)
        return super().status()

    def facts(self) -> dict[str, Scalar]:
        """By what it reads and writes, where the server has a setting for it, as PostgreSQL 18 does."""
        return {"io_engine": str(self.settings().get("io_method", "not told"))}

    def read_cached(self, connection: sql.Connection, cold: bool) -> dict[str, Any]:
        """Its shared buffers, page by page, where it has the extension that shows them."""
        if not connection.rows("SELECT 1 FROM pg_extension WHERE extname = 'pg_buffercache'"):
            return {}
        (row,) = connection.rows(
            "SELECT count(b.relfilenode), count(*) FILTER (WHERE b.isdirty), count(c.oid), "
            "count(c.oid) FILTER (WHERE b.isdirty), current_setting('block_size')::int, "
            f"(SELECT count(*) FROM pg_class WHERE oid >= {_FIRST_OWN_OID} AND relkind IN ('r', 'i', 'm', 't')) "
            f"FROM {_LOOKING}.pg_buffercache b LEFT JOIN pg_class c ON c.oid >= {_FIRST_OWN_OID} "
            "AND b.relfilenode = pg_relation_filenode(c.oid) AND b.reldatabase = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        used, dirty, pages, dirty_pages, size, relations = map(int, row)
        if cold and pages > _OPENING_TAKES_PAGES * relations:
            raise InvalidRun(
                f"caches are not cold: {pages} pages of the workload's {relations} tables and indexes are in the "
                f"shared buffers, and opening takes {_OPENING_TAKES_PAGES} of each at most"
            )
        return {
            "pool_bytes": used * size,
            "pool_dirty_bytes": dirty * size,
            "tables": relations,
            "tables_bytes": pages * size,
            "tables_dirty_bytes": dirty_pages * size,
        }

    def read_counters(self, connection: sql.Connection) -> Figures:
        """Of the database, the background writer and the log."""
        columns = ", ".join(_OF_DATABASE)
        (row,) = connection.rows(f"SELECT {columns} FROM pg_stat_database WHERE datname = %s", DATABASE)
        counters = {f"database.{name}": float(value) for name, value in zip(_OF_DATABASE, row, strict=True)}
        # The columns of these differ from version to version.
        for view, prefix in (("pg_stat_bgwriter", "bgwriter"), ("pg_stat_wal", "wal")):
            for name, value in connection.rows(f"SELECT key, value FROM {view} AS v, jsonb_each_text(to_jsonb(v))"):
                if name != "stats_reset" and value is not None:
                    counters[f"{prefix}.{name}"] = float(value)
        return counters

    def read_sizes(self, connection: sql.Connection) -> Figures:
        """What the database takes on disk."""
        return {"database.bytes": float(connection.value("SELECT pg_database_size(%s)", DATABASE))}

    def reader(self, endpoint: Endpoint, limit: float) -> tuple[sql.Connection, Callable[[], Counters]]:
        """Its statistics views, and what its clients wait for now; by another database, so as not to be counted."""
        elsewhere = replace(endpoint, settings={**endpoint.settings, "database": "postgres"})
        connection = sql.connect(elsewhere, limit=limit)
        try:
            found = connection.rows("SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace")
        except RunError:
            connection.close()
            raise
        return connection, partial(_counters, connection, _statement({str(name) for (name,) in found}))

    def check(self, limit: float) -> None:
        """Its own tools' word on the stopped cluster."""
        if self.options.check == "none":
            return
        programs, logs = self.programs(), self.place.logs
        said = self.place.host.run(
            [str(programs["pg_controldata"]), "-D", str(self.place.data)], limit=limit, log=logs / "pg_controldata"
        )
        state = re.search(r"Database cluster state:\s*(.*)", said)
        if state is None or state[1].strip() != "shut down":
            raise RunError(f"the cluster was not shut down cleanly: it is {state[1].strip() if state else 'unknown'}")
        if self.options.data_checksums:
            words = [str(programs["pg_checksums"]), "--check", "-D", str(self.place.data)]
            self.place.host.run(words, limit=limit, log=logs / "pg_checksums")


def partitioned_by(spans: Sequence[float]) -> str:
    """By the days that each partition spans; `none` where there is none, and what no study asks for as it is."""
    if not spans:
        return "none"
    if all(span == 1 for span in spans):
        return "day"
    return "month" if all(28 <= span <= 31 for span in spans) else f"{min(spans):g} to {max(spans):g} days"


_BYTES = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_MICROSECONDS = {
    "us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000,
}  # fmt: skip


def canonical(wish: Scalar, value: str, unit: str, kind: str) -> tuple[Any, Any]:
    """What was asked for and what is effective in the same terms; quantities in bytes or microseconds."""
    effective = _effective(value, unit, kind)
    if kind == "bool":
        switch = truth(wish)
        return wish if switch is None else _switch(switch), effective
    if kind in ("integer", "real"):
        number = _quantity(wish, unit)
        return wish if number is None else number, effective
    return (str(wish).lower(), value.lower()) if kind == "enum" else (str(wish), value)


def _effective(value: str, unit: str, kind: str) -> Any:
    if kind not in ("integer", "real"):
        return value
    number = _quantity(value, unit)
    return value if number is None else number


def _quantity(value: Scalar, unit: str) -> float | int | None:
    """A number with or without a unit; without, it counts the parameter's own, such as `8kB`."""
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)", str(value).strip())
    own = re.fullmatch(r"(\d*)([A-Za-z]*)", unit)
    if found is None or own is None or isinstance(value, bool):
        return None
    scales = next((scales for scales in (_BYTES, _MICROSECONDS) if own[2] in scales), {})
    if found[2] and found[2] not in scales:
        return None
    factor = scales[found[2]] if found[2] else int(own[1] or 1) * scales.get(own[2], 1)
    number = float(found[1])
    if number < 0:
        return int(number)  # -1 stands for "as the server likes" and counts nothing
    amount = number * factor
    return int(amount) if amount.is_integer() else amount


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _statement(views: Set[str]) -> str:
    """What gives all of them as names and values; `views` are those that the server has."""
    each = "jsonb_each_text(to_jsonb(v)) AS e(key, value)"
    parts = [f"SELECT 'database.' || key, value FROM pg_stat_database AS v, {each} WHERE v.datname = '{DATABASE}'"]
    parts += [
        f"SELECT '{prefix}.' || key, value FROM {view} AS v, {each}" for view, prefix in _VIEWS.items() if view in views
    ]
    if "pg_stat_io" in views:
        parts.append(
            "SELECT 'io.' || replace(v.backend_type, ' ', '_') || '.' || key, sum(value::float8)::text "
            f"FROM pg_stat_io AS v, {each} "
            "WHERE key NOT IN ('backend_type', 'object', 'context', 'op_bytes', 'stats_reset') GROUP BY 1"
        )
    parts.append(
        f"SELECT '{WAIT}' || lower(coalesce(wait_event_type, 'none')), count(*)::text FROM pg_stat_activity "
        f"WHERE backend_type = 'client backend' AND datname = '{DATABASE}' AND state <> 'idle' GROUP BY 1"
    )
    return " UNION ALL ".join(parts)


def _counters(connection: sql.Connection, statement: str) -> Counters:
    grown: dict[str, float] = {}
    now: dict[str, float] = {}
    for name, value in connection.rows(statement):
        if str(name).startswith(WAIT):
            now[str(name)] = float(value)
        elif str(name) not in _NO_FIGURES and not str(name).endswith("stats_reset") and value is not None:
            (now if is_gauge(str(name)) else grown)[str(name)] = float(value)
    # Up to version 17 those of the log are counted apart; before 16 the others are not counted at all.
    synced = [value for name, value in grown.items() if name.startswith("io.") and name.endswith(".fsyncs")]
    grown["server.syncs"] = sum(synced) + grown.get("wal.wal_sync", 0.0)
    grown["server.logged"] = grown.get("wal.wal_bytes", 0.0)
    grown["server.cache_misses"] = grown.get("database.blks_read", 0.0)
    grown["server.cache_reads"] = grown["server.cache_misses"] + grown.get("database.blks_hit", 0.0)
    now["server.lock_wait"] = now.get(f"{WAIT}lock", 0.0)
    return Counters(grown, now)
