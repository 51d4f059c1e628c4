"""What MariaDB and MySQL share: InnoDB tables, reached by the MySQL protocol."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from dyno import sql
from dyno.deployments.base import Recipe
from dyno.model.base import InvalidRun, RunError, Scalar
from dyno.model.counters import WAIT, Counters, is_gauge
from dyno.model.endpoint import Endpoint
from dyno.systems.base import files_below
from dyno.systems.server import DATABASE, USER, Figures, ServerOptions, ServerSystem, binary_number, truth

# Where a server's place in the machine is dyno's to choose, and what would make a cold start warm.
OURS = frozenset({
    "basedir", "bind_address", "datadir", "init_file", "innodb_buffer_pool_dump_at_shutdown",
    "innodb_buffer_pool_load_at_startup", "log_error", "pid_file", "port", "skip_grant_tables", "skip_name_resolve",
    "skip_networking", "socket", "tmpdir", "user",
})  # fmt: skip

LEAVES_DATA_ALONE = frozenset({
    "back_log", "eq_range_index_dive_limit", "flush_time", "host_cache_size", "innodb_adaptive_flushing",
    "innodb_adaptive_hash_index", "innodb_autoextend_increment", "innodb_buffer_pool_chunk_size",
    "innodb_buffer_pool_size", "innodb_deadlock_detect", "innodb_doublewrite", "innodb_fast_shutdown",
    "innodb_flush_log_at_timeout", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_flush_neighbors",
    "innodb_flush_sync", "innodb_flushing_avg_loops", "innodb_io_capacity", "innodb_io_capacity_max",
    "innodb_lock_wait_timeout", "innodb_log_buffer_size", "innodb_lru_scan_depth", "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm", "innodb_old_blocks_pct", "innodb_old_blocks_time", "innodb_open_files",
    "innodb_purge_batch_size", "innodb_purge_threads", "innodb_random_read_ahead", "innodb_read_ahead_threshold",
    "innodb_read_io_threads", "innodb_rollback_on_timeout", "innodb_spin_wait_delay", "innodb_stats_auto_recalc",
    "innodb_sync_spin_loops", "innodb_use_native_aio", "innodb_write_io_threads", "join_buffer_size",
    "key_buffer_size", "max_connections", "max_heap_table_size", "optimizer_switch", "performance_schema",
    "performance_schema_instrument",
    "read_buffer_size", "read_rnd_buffer_size", "sort_buffer_size", "sync_binlog", "table_definition_cache",
    "table_open_cache", "table_open_cache_instances", "thread_cache_size", "thread_handling", "thread_stack",
    "tmp_table_size", "transaction_isolation",
})  # fmt: skip

# Recorded with each run whether or not the study sets them: what the server promises and what it works with.
TELLING = (
    "version", "innodb_adaptive_hash_index", "innodb_buffer_pool_chunk_size", "innodb_buffer_pool_size",
    "innodb_buffer_pool_dump_at_shutdown", "innodb_buffer_pool_load_at_startup", "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_io_capacity", "innodb_page_size",
    "innodb_use_native_aio", "log_bin", "max_connections", "performance_schema", "sync_binlog", "thread_handling",
)  # fmt: skip

_COUNTERS = (
    "Aborted_clients", "Aborted_connects", "Bytes_received", "Bytes_sent", "Com_commit", "Com_rollback",
    "Connections", "Created_tmp_disk_tables", "Created_tmp_tables", "Handler_read_key", "Handler_read_next",
    "Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads", "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_write_requests", "Innodb_data_fsyncs", "Innodb_data_read", "Innodb_data_reads",
    "Innodb_data_writes", "Innodb_data_written", "Innodb_dblwr_pages_written", "Innodb_deadlocks",
    "Innodb_log_waits", "Innodb_log_write_requests", "Innodb_log_writes", "Innodb_os_log_written",
    "Innodb_pages_read", "Innodb_pages_written", "Innodb_row_lock_time", "Innodb_row_lock_waits", "Questions",
    "Slow_queries", "Table_locks_waited",
)  # fmt: skip
_SIZES = (
    "Innodb_buffer_pool_bytes_data", "Innodb_buffer_pool_bytes_dirty", "Innodb_checkpoint_age",
    "Innodb_history_list_length", "Max_used_connections", "Threads_connected",
)  # fmt: skip
_POOL = ("Innodb_buffer_pool_bytes_data", "Innodb_buffer_pool_bytes_dirty")

# Of each resource the counter, and what it counts in the resource's base unit.
_RESOURCES = {
    "server.syncs": ("innodb_data_fsyncs", 1.0),
    "server.logged": ("innodb_os_log_written", 1.0),
    "server.lock_waits": ("innodb_row_lock_waits", 1.0),
    "server.lock_wait": ("innodb_row_lock_time", 0.001),
    "server.cache_reads": ("innodb_buffer_pool_read_requests", 1.0),
    "server.cache_misses": ("innodb_buffer_pool_reads", 1.0),
}
INSTRUMENT = "performance_schema_instrument"
_WAITS = (
    "SELECT EVENT_NAME, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_by_user_by_event_name "
    f"WHERE USER = '{USER}' AND SUM_TIMER_WAIT > 0"
)
"""Of clients alone: threads in the background wait for work most of the time, and nobody waits for them."""

_OPENING_TAKES_PAGES = 16
"""Pages of a table that may be in the buffer pool after a cold start. Opening one reads the header of its tablespace,
its map of free pages, its segments and the root of each index; recovery and statistics may come by too. Reading its
rows takes far more: read-ahead alone brings 64 pages at a time."""

_DEFAULT_MAX_CONNECTIONS = 151

_ENGINES = {
    "io_uring": re.compile(r"InnoDB\W+Using (?:io_uring|liburing)"),
    "libaio": re.compile(r"InnoDB\W+Using (?:Linux native AIO|libaio)"),
}
"""What the log says of how pages are read and written, by engine."""


class InnodbOptions(ServerOptions):
    """Besides the server's own variables."""

    known = LEAVES_DATA_ALONE | frozenset(TELLING)
    units: ClassVar[Mapping[str, str]] = {
        f"{letter}{rest}": letter.upper() for letter in "KMGTPkmgtp" for rest in ("iB", "ib", "B", "b")
    }

    check: Annotated[
        Literal["none", "checksums"],
        Field(description="after each run: innochecksum over every page of the workload's tables, or none"),
    ] = "checksums"


O = TypeVar("O", bound=InnodbOptions)  # noqa: E741 - the options of one kind


class InnodbSystem(ServerSystem[O]):
    """One server without option files: what the study does not set has the server's own default."""

    backend = "mysql"
    account = "mysql"
    # A statement that fails while the system tables are made is told without brackets; that it aborts says nothing.
    telling = r"\[ERROR\] (?!Aborting)|(?m:^ERROR: \d)"
    brings_recipe = True
    buffers_writes = True  # logs and tables of other engines are, also where InnoDB's own files are not
    dictionary: ClassVar[str]
    """The table of information_schema that has the name of every table and the id of its tablespace, opened or not."""

    @classmethod
    def most_clients(cls, options: O) -> int | None:
        """As many as it has connections; its one spare is only for administrators, which dyno's account is none of."""
        return binary_number(options.settings.get("max_connections", _DEFAULT_MAX_CONNECTIONS))

    @classmethod
    def opens_directly(cls, options: O) -> str | None:
        """By the one setting that MariaDB and MySQL have in common for it."""
        method = options.settings.get("innodb_flush_method")
        return None if method is None or "direct" not in str(method).lower() else f"innodb_flush_method={method}"

    @abstractmethod
    def own_words(self) -> list[str]:
        """What this one needs on its command line besides what all do."""

    def listening(self, port: int | None) -> list[str]:
        """Where it listens besides its socket."""
        return ["--skip-networking"] if port is None else ["--bind-address=127.0.0.1", f"--port={port}"]

    def recipe_of(self, program: Path) -> Recipe:
        """The server, its plugins, its messages in English and its character sets: where it says that they are."""
        log = self.place.logs / f"{program.name}-help"
        said = self.place.host.run([str(program), "--no-defaults", "--verbose", "--help"], limit=60.0, log=log)
        folders = {name: Path(path) for name, path in re.findall(r"^([a-z-]+-dir) +(/\S+)", said, re.MULTILINE)}
        if missing := sorted({"character-sets-dir", "plugin-dir"} - folders.keys()):
            raise RunError(f"{program} --help does not say where its {missing[0]} is")
        charsets = folders["character-sets-dir"]
        return Recipe(
            name=self.kind,
            programs=(program, *sorted(folders["plugin-dir"].glob("*.so"))),
            files=(charsets.parent / "english" / "errmsg.sys", *files_below(charsets)),
            account=self.account,
        )

    def command(self, folder: Path, port: int | None) -> list[str]:
        """Buffer pool dumps off, so that a cold start is cold."""
        # What loading leaves to be purged would be purged at the begin of each run, in a buffer pool that is to be
        # cold: after 100,000 rows a page of theirs and ten changed ones of undo logs were there in MariaDB 10.11.
        tidy = ["--innodb-fast-shutdown=0"] if self.loading else []
        return [
            *self.words(self.program),
            "--no-defaults",
            *self.own_words(),
            f"--datadir={self.place.data}",
            # As it starts MariaDB removes whatever temporary tables it finds there, those of other servers too.
            f"--tmpdir={folder}",
            self.marker(folder),
            f"--pid-file={folder}/pid",
            *self.listening(port),
            "--skip-name-resolve",
            "--innodb-buffer-pool-dump-at-shutdown=0",
            "--innodb-buffer-pool-load-at-startup=0",
            "--character-set-server=utf8mb4",
            *tidy,
            *arguments(self.options.settings),
        ]

    def socket_file(self, folder: Path) -> Path:
        """Short, for the sake of the limit."""
        return folder / "s"

    def marker(self, folder: Path) -> str:
        """The folder is new with each start."""
        return f"--socket={self.socket_file(folder)}"

    def is_ours(self, connection: sql.Connection, folder: Path) -> bool:
        """By the path of its socket."""
        return str(connection.value("SELECT @@socket")) == str(self.socket_file(folder))

    def facts(self) -> dict[str, Scalar]:
        """By what it reads and writes, from its log of this start: containers may keep io_uring from it."""
        said = self.said()
        found = [engine for engine, pattern in _ENGINES.items() if pattern.search(said)]
        if len(found) == 1:
            return {"io_engine": found[0]}
        off = self.settings().get("innodb_use_native_aio") in ("OFF", 0)
        return {"io_engine": "none" if off and not found else "not told"}

    def read_cached(self, connection: sql.Connection, cold: bool) -> dict[str, Any]:
        """The buffer pool; of the workload's tables only where they should hardly be there, since every page counts."""
        pool = _status(connection, _POOL)
        evidence: dict[str, Any] = {
            "pool_bytes": int(pool["innodb_buffer_pool_bytes_data"]),
            "pool_dirty_bytes": int(pool["innodb_buffer_pool_bytes_dirty"]),
        }
        if not cold:
            return evidence
        of_ours = f"FROM information_schema.{self.dictionary} WHERE NAME LIKE '{DATABASE}/%' AND SPACE > 0"
        tables = int(connection.value(f"SELECT COUNT(*) {of_ours}"))
        if not tables:
            return evidence  # they share the system's tablespace, or there are none: nothing tells their pages apart
        (row,) = connection.rows(
            "SELECT COUNT(*), COALESCE(SUM(OLDEST_MODIFICATION > 0), 0) "
            f"FROM information_schema.INNODB_BUFFER_PAGE_LRU WHERE SPACE IN (SELECT SPACE {of_ours})",
        )
        pages, dirty = int(row[0]), int(row[1])
        size = int(connection.value("SELECT @@innodb_page_size"))
        evidence |= {"tables": tables, "tables_bytes": pages * size, "tables_dirty_bytes": dirty * size}
        if pages > _OPENING_TAKES_PAGES * tables:
            raise InvalidRun(
                f"caches are not cold: {pages} pages of the workload's {tables} tables are in the buffer pool, and "
                f"opening takes {_OPENING_TAKES_PAGES} a table at most"
            )
        return evidence

    def read_counters(self, connection: sql.Connection) -> Figures:
        """SHOW GLOBAL STATUS: reads, writes, syncs, waits and what was done."""
        return _status(connection, _COUNTERS)

    def read_sizes(self, connection: sql.Connection) -> Figures:
        """What the buffer pool and the log hold."""
        return _status(connection, _SIZES)

    def reader(self, endpoint: Endpoint, limit: float) -> tuple[sql.Connection, Callable[[], Counters]]:
        """All of SHOW GLOBAL STATUS, and what clients waited for where the server keeps account of it."""
        connection = sql.connect(endpoint, limit=limit)
        try:
            told = int(connection.value("SELECT @@performance_schema")) == 1
        except RunError:
            connection.close()
            raise
        return connection, partial(_counters, connection, waits=told)

    def check(self, limit: float) -> None:
        """The checksum of every page, by the server's own tool."""
        if self.options.check == "none":
            return
        for table in sorted((self.place.data / DATABASE).glob("*.ibd")):
            words = [*self.words("innochecksum"), str(table)]
            self.place.host.run(words, limit=limit, log=self.place.logs / "innochecksum")


def canonical(wish: Scalar, value: str, kind: str, choices: str) -> tuple[Any, Any]:
    """What was asked for and what is effective in the same terms, by the variable's type."""
    if "INT" in kind:
        number = binary_number(int(wish) if isinstance(wish, bool) else wish)
        return wish if number is None else number, int(value)
    if kind == "DOUBLE":
        try:
            return float(wish), float(value)
        except ValueError:
            return wish, float(value)
    if kind == "BOOLEAN":
        switch = truth(wish)
        return wish if switch is None else _switch(switch), value.upper()
    if kind == "ENUM":
        return _choice(wish, choices.split(",")), value.upper()
    if kind == "FLAGSET":
        # Flags that are not named keep what they had.
        flags = dict(flag.partition("=")[::2] for flag in value.lower().split(","))
        named = dict(flag.partition("=")[::2] for flag in str(wish).lower().replace(" ", "").split(","))
        return named, {name: flags.get(name) for name in named}
    if kind == "SET":
        # Some members stand for several others, as ANSI of sql_mode does, so more than was named may be there.
        wanted = _members(str(wish))
        return wanted, [member for member in _members(value) if member in wanted]
    return str(wish), value


def _members(text: str) -> list[str]:
    return sorted(filter(None, text.upper().replace(" ", "").split(",")))


def _choice(wish: Scalar, choices: list[str]) -> str:
    """A choice may be given by its place in the list, or as a switch where it is one of ON and OFF."""
    known = [choice.upper() for choice in choices]
    if isinstance(wish, bool):
        return _switch(wish)
    if str(wish).isdigit() and str(wish) not in known and int(wish) < len(known):
        return known[int(wish)]
    return str(wish).upper()


def _switch(on: bool) -> str:
    return "ON" if on else "OFF"


def typed(value: str, kind: str) -> Any:
    """A value as it is recorded."""
    return int(value) if "INT" in kind else value


def arguments(settings: dict[str, Scalar]) -> list[str]:
    """Settings as words of a command line."""
    words = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if name == "log_bin" and truth(value) is not None:
            # Its value would be taken for the name of a file.
            words.append("--log-bin=binlog" if truth(value) else "--skip-log-bin")
        else:
            words.append(f"--{option}={_switch(value) if isinstance(value, bool) else value}")
    return words


def _status(connection: sql.Connection, names: tuple[str, ...]) -> Figures:
    rows = connection.rows("SHOW GLOBAL STATUS")
    values = {str(name): value for name, value in rows}
    return {name.lower(): float(values[name]) for name in names if name in values}


def _counters(connection: sql.Connection, *, waits: bool) -> Counters:
    """`waits`: whether the performance schema is on."""
    grown: dict[str, float] = {}
    now: dict[str, float] = {}
    # Most are 0 and stay so, and a row that is not sent costs nothing.
    for name, value in connection.rows("SHOW GLOBAL STATUS WHERE Value <> '0'"):
        known = str(name).lower()
        if (number := _number(value)) is not None and not known.startswith("uptime"):
            (now if is_gauge(known) else grown)[known] = number
    for name in ("threads_connected", "threads_running"):
        if name in now:
            now[name] -= 1  # who asks
    for resource, (counter, scale) in _RESOURCES.items():
        grown[resource] = grown.get(counter, 0.0) * scale
    grown[f"{WAIT}lock/row"] = grown["server.lock_wait"]
    if waits:
        for event, waited_ps in connection.rows(_WAITS):
            if (kind := wait_class(str(event))) is not None:
                grown[kind] = grown.get(kind, 0.0) + float(waited_ps) * 1e-12
    return Counters(grown, now)


def instruments(connection: sql.Connection, settings: Mapping[str, Scalar]) -> dict[str, str]:
    """What is effective of `performance_schema_instrument`, which is no variable; empty where it was not asked for."""
    if (wish := settings.get(INSTRUMENT)) is None:
        return {}
    pattern, _, state = str(wish).rpartition("=")
    rows = connection.rows(
        "SELECT ENABLED FROM performance_schema.setup_instruments WHERE NAME LIKE %s", pattern.replace("_", r"\_")
    )
    wanted = "YES" if truth(state) else "NO"
    unlike = sum(str(enabled) != wanted for (enabled,) in rows)
    if rows and not unlike:
        return {INSTRUMENT: str(wish)}
    return {INSTRUMENT: f"not so for {unlike} of {len(rows)} events"}


def wait_class(event: str) -> str | None:
    """`wait/synch/mutex` of an event of the performance schema; of files their kind too. None of what is no wait.

    That of a table's handler holds all the others, and at its socket a server waits for its client.
    """
    parts = event.split("/")
    if len(parts) < 3 or parts[0] != "wait" or parts[1:3] in (["io", "table"], ["io", "socket"]):
        return None
    return "/".join([*parts[:3], parts[-1]] if parts[1:3] == ["io", "file"] else parts[:3])


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
