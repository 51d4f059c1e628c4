"""MariaDB, from Debian's mariadb-server: InnoDB tables, reached by the MySQL protocol."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dyno import sql
from dyno.deployments.base import Recipe
from dyno.model.base import RunError, Scalar
from dyno.systems.base import files_below
from dyno.systems.server import (
    DATABASE,
    PASSWORD,
    USER,
    Counters,
    ServerOptions,
    ServerSystem,
    binary_number,
    truth,
)

_PACKAGE = "mariadb-server"

# Where a server's place in the machine is dyno's to choose, and what would make a cold start warm.
_OURS = frozenset({
    "basedir", "bind_address", "bootstrap", "datadir", "innodb_buffer_pool_dump_at_shutdown",
    "innodb_buffer_pool_load_at_startup", "log_error", "pid_file", "port", "skip_grant_tables", "skip_name_resolve",
    "skip_networking", "socket", "tmpdir", "user",
})  # fmt: skip

_LEAVES_DATA_ALONE = frozenset({
    "back_log", "eq_range_index_dive_limit", "flush_time", "histogram_size", "host_cache_size",
    "innodb_adaptive_flushing", "innodb_adaptive_hash_index", "innodb_autoextend_increment",
    "innodb_buffer_pool_chunk_size", "innodb_buffer_pool_size", "innodb_deadlock_detect", "innodb_doublewrite",
    "innodb_flush_log_at_timeout", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_flush_neighbors",
    "innodb_flush_sync", "innodb_flushing_avg_loops", "innodb_io_capacity", "innodb_io_capacity_max",
    "innodb_lock_wait_timeout", "innodb_log_buffer_size", "innodb_lru_scan_depth", "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm", "innodb_old_blocks_pct", "innodb_old_blocks_time", "innodb_open_files",
    "innodb_purge_batch_size", "innodb_purge_threads", "innodb_random_read_ahead", "innodb_read_ahead_threshold",
    "innodb_read_io_threads", "innodb_rollback_on_timeout", "innodb_spin_wait_delay", "innodb_stats_auto_recalc",
    "innodb_sync_spin_loops", "innodb_use_native_aio", "innodb_write_io_threads", "join_buffer_size",
    "key_buffer_size", "max_connections", "max_heap_table_size", "metadata_locks_hash_instances", "optimizer_switch",
    "performance_schema", "query_cache_size", "query_cache_type", "read_buffer_size", "read_rnd_buffer_size",
    "sort_buffer_size", "sync_binlog", "table_definition_cache", "table_open_cache", "table_open_cache_instances",
    "thread_cache_size", "thread_handling", "thread_pool_size", "thread_stack", "tmp_table_size",
    "transaction_isolation",
})  # fmt: skip

# Recorded with each run whether or not the study sets them: what the server promises and what it works with.
_TELLING = (
    "version", "innodb_buffer_pool_size", "innodb_doublewrite", "innodb_flush_log_at_trx_commit",
    "innodb_flush_method", "innodb_log_file_size", "innodb_page_size", "innodb_use_native_aio", "log_bin",
    "max_connections", "performance_schema", "sync_binlog", "thread_handling", "tx_isolation",
)  # fmt: skip

# Options whose variable has another name; MariaDB 11.1 gave the second its option's.
_SHOWN_AS = {"transaction_isolation": "tx_isolation", "transaction_read_only": "tx_read_only"}

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

_DEFAULT_MAX_CONNECTIONS = 151


class MariadbOptions(ServerOptions):
    """Besides the server's own variables."""

    ours = _OURS

    check: Annotated[
        Literal["none", "checksums"],
        Field(description="after each run: innochecksum over every page of the workload's tables, or none"),
    ] = "checksums"


class MariadbSystem(ServerSystem[MariadbOptions]):
    """One mariadbd without option files: what the study does not set has the server's own default."""

    kind = "mariadb"
    backend = "mysql"
    Options = MariadbOptions
    program = "mariadbd"
    account = "mysql"
    telling = r"\[ERROR\]"
    leaves_data_alone = _LEAVES_DATA_ALONE
    brings_recipe = True

    @classmethod
    def most_clients(cls, options: MariadbOptions) -> int | None:
        """As many as it has connections; its one spare is only for administrators, which dyno's account is none of."""
        return binary_number(options.settings.get("max_connections", _DEFAULT_MAX_CONNECTIONS))

    def programs(self) -> dict[str, Path]:
        """By the PATH, and where Debian has them, which is not on every user's PATH."""
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
        found = {name: shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db", "innochecksum")}
        missing = [name for name, where in found.items() if where is None]
        if missing:
            raise RunError(f"{', '.join(missing)} not found: apt-get install {_PACKAGE}")
        return {name: Path(where) for name, where in found.items() if where is not None}

    def recipe(self) -> Recipe:
        """The server, its plugins, its messages in English and its character sets: where it says that they are."""
        program, limit = self.programs()["mariadbd"], 60.0
        said = self.place.host.run(
            [str(program), "--no-defaults", "--verbose", "--help"], limit=limit, log=self.place.logs / "mariadbd-help"
        )
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

    def make_empty(self, folder: Path, limit: float) -> None:
        """The system tables, then the database and its account; nobody else has a password to come in by."""
        host, programs = self.place.host, self.programs()
        shape = ["--no-defaults", f"--datadir={folder}", *_arguments(self.data_key()), "--character-set-server=utf8mb4"]
        host.run(
            [
                str(programs["mariadb-install-db"]),
                *shape,
                "--skip-test-db",
                "--skip-name-resolve",
                "--auth-root-authentication-method=socket",
            ],
            limit=limit,
            log=self.place.logs / "mariadb-install-db",
            account=self._account(),
            folder=folder,
            telling=self.telling,
        )
        accounts = [f"CREATE USER {USER}@'{host}' IDENTIFIED BY '{PASSWORD}'" for host in ("localhost", "127.0.0.1")]
        rights = [f"GRANT ALL ON {DATABASE}.* TO {USER}@'{host}'" for host in ("localhost", "127.0.0.1")]
        host.run(
            [str(programs["mariadbd"]), *shape, "--bootstrap", "--innodb-buffer-pool-load-at-startup=0"],
            limit=limit,
            log=self.place.logs / "mariadbd-bootstrap",
            account=self._account(),
            telling=self.telling,
            # One statement a line; without the first the grant tables are not read.
            told=[f"{each};" for each in ("FLUSH PRIVILEGES", f"CREATE DATABASE {DATABASE}", *accounts, *rights)],
        )

    def command(self, folder: Path, port: int | None) -> list[str]:
        """Buffer pool dumps off, so that a cold start is cold."""
        listening = ["--skip-networking"] if port is None else ["--bind-address=127.0.0.1", f"--port={port}"]
        return [
            str(self.programs()["mariadbd"]),
            "--no-defaults",
            f"--datadir={self.place.data}",
            self.marker(folder),
            f"--pid-file={folder}/pid",
            *listening,
            "--skip-name-resolve",
            "--innodb-buffer-pool-dump-at-shutdown=0",
            "--innodb-buffer-pool-load-at-startup=0",
            "--character-set-server=utf8mb4",
            *_arguments(self.options.settings),
        ]

    def socket_file(self, folder: Path) -> Path:
        """Short, for the sake of the limit."""
        return folder / "s"

    def marker(self, folder: Path) -> str:
        """The folder is new with each start."""
        return f"--socket={self.socket_file(folder)}"

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """From information_schema, which has the type of each variable too."""
        rows = connection.rows(
            "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, VARIABLE_TYPE, ENUM_VALUE_LIST "
            "FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE IS NOT NULL"
        )
        known = {str(name): (str(value), str(kind), str(choices or "")) for name, value, kind, choices in rows}
        effective = {name: _typed(known[name][0], known[name][1]) for name in _TELLING if name in known}
        asked: dict[str, Any] = {}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            shown = name if name in known else _SHOWN_AS.get(name, name)
            if shown in known:
                value, kind, choices = known[shown]
                asked[name], effective[name] = canonical(wish, value, kind, choices)
        return asked, effective

    def read_counters(self, connection: sql.Connection) -> Counters:
        """SHOW GLOBAL STATUS: reads, writes, syncs, waits and what was done."""
        return _status(connection, _COUNTERS)

    def read_sizes(self, connection: sql.Connection) -> Counters:
        """What the buffer pool and the log hold."""
        return _status(connection, _SIZES)

    def check(self, limit: float) -> None:
        """The checksum of every page, by MariaDB's own tool."""
        if self.options.check == "none":
            return
        program = str(self.programs()["innochecksum"])
        for table in sorted((self.place.data / DATABASE).glob("*.ibd")):
            self.place.host.run([program, str(table)], limit=limit, log=self.place.logs / "innochecksum")


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


def _typed(value: str, kind: str) -> Any:
    return int(value) if "INT" in kind else value


def _arguments(settings: dict[str, Scalar]) -> list[str]:
    words = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if name == "log_bin" and truth(value) is not None:
            # Its value would be taken for the name of a file.
            words.append("--log-bin=binlog" if truth(value) else "--skip-log-bin")
        else:
            words.append(f"--{option}={_switch(value) if isinstance(value, bool) else value}")
    return words


def _status(connection: sql.Connection, names: tuple[str, ...]) -> Counters:
    rows = connection.rows("SHOW GLOBAL STATUS")
    values = {str(name): value for name, value in rows}
    return {name.lower(): float(values[name]) for name in names if name in values}
