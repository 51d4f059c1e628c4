"""MariaDB, from Debian's mariadb-server: InnoDB tables, reached by the MySQL protocol."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from dyno import sql
from dyno.deployments.base import Recipe
from dyno.model.base import RunError
from dyno.systems.innodb import (
    LEAVES_DATA_ALONE,
    OURS,
    TELLING,
    InnodbOptions,
    InnodbSystem,
    arguments,
    canonical,
    instruments,
    typed,
)
from dyno.systems.server import DATABASE, PASSWORD, USER, binary_number, truth

_PACKAGE = "mariadb-server"

_DEFAULT_POOL = 128 << 20

_LEAVES_DATA_ALONE = LEAVES_DATA_ALONE | {
    "histogram_size", "innodb_data_file_buffering", "innodb_data_file_write_through", "innodb_linux_aio",
    "innodb_log_file_buffering", "innodb_log_file_mmap", "innodb_log_file_write_through",
    "metadata_locks_hash_instances", "query_cache_size", "query_cache_type", "thread_pool_size",
}  # fmt: skip

_TELLING = (
    *TELLING, "innodb_data_file_buffering", "innodb_data_file_write_through", "innodb_linux_aio",
    "innodb_log_file_buffering", "innodb_log_file_mmap", "innodb_log_file_size", "innodb_log_file_write_through",
    "tx_isolation",
)  # fmt: skip

# Options whose variable has another name; MariaDB 11.1 gave the second its option's.
_SHOWN_AS = {"transaction_isolation": "tx_isolation", "transaction_read_only": "tx_read_only"}


class MariadbOptions(InnodbOptions):
    """Besides the server's own variables."""

    ours = OURS | {"bootstrap"}


class MariadbSystem(InnodbSystem[MariadbOptions]):
    """One mariadbd."""

    kind = "mariadb"
    Options = MariadbOptions
    program = "mariadbd"
    leaves_data_alone = _LEAVES_DATA_ALONE
    dictionary = "INNODB_SYS_TABLES"
    let_in: ClassVar[tuple[str, ...]] = ("localhost", "127.0.0.1")
    """From where the account of workloads may come."""

    @classmethod
    def opens_directly(cls, options: MariadbOptions) -> str | None:
        """Also by default, since 10.6; 11.0 has another setting for the same."""
        buffering = options.settings.get("innodb_data_file_buffering")
        if "innodb_flush_method" in options.settings or (buffering is not None and truth(buffering)):
            return super().opens_directly(options)
        return "MariaDB's default; with innodb_flush_method: fsync it has not"

    @classmethod
    def for_valgrind(cls, options: MariadbOptions) -> tuple[str, ...]:
        """Neither io_uring nor room for a buffer pool of 8 TB.

        valgrind 3.19 does not know that io_uring_enter waits, and keeps every other thread from running meanwhile: the
        server never comes up. It has 128 GB of addresses to give, and MariaDB reserves 8 TB since 10.11.12 and 11.4.6;
        those before know no such setting.
        """
        settings = options.settings
        pool = settings.get("innodb_buffer_pool_size_max", settings.get("innodb_buffer_pool_size", _DEFAULT_POOL))
        size = binary_number(pool)
        return ("--innodb-use-native-aio=0", f"--loose-innodb-buffer-pool-size-max={pool if size is None else size}")

    @classmethod
    def why_not_valgrind(cls, options: MariadbOptions) -> str | None:
        """See `for_valgrind`."""
        if truth(options.settings.get("innodb_use_native_aio", False)):
            return "innodb_use_native_aio has to be off: while one thread waits for io_uring, valgrind lets none run"
        return super().why_not_valgrind(options)

    @classmethod
    def needs(cls, options: MariadbOptions) -> Sequence[str]:  # noqa: ARG003 - whatever they are
        """The server."""
        return ("MariaDB",)

    def programs(self) -> dict[str, Path]:
        """By the PATH, and where Debian has them, which is not on every user's PATH."""
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
        found = {name: shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db", "innochecksum")}
        missing = [name for name, where in found.items() if where is None]
        if missing:
            raise RunError(f"{', '.join(missing)} not found: apt-get install {_PACKAGE}")
        return {name: Path(where) for name, where in found.items() if where is not None}

    def recipe(self) -> Recipe:
        """The server, its plugins, its messages in English and its character sets."""
        return self.recipe_of(self.programs()["mariadbd"])

    def statements(self) -> list[str]:
        """What an empty store has: the database and its account; nobody else has a password to come in by."""
        accounts = [f"CREATE USER {USER}@'{host}' IDENTIFIED BY '{PASSWORD}'" for host in self.let_in]
        rights = [
            f"GRANT {right} TO {USER}@'{host}'"
            for host in self.let_in
            for right in (f"ALL ON {DATABASE}.*", "PROCESS ON *.*", "SELECT ON performance_schema.*")
        ]
        return [f"CREATE DATABASE {DATABASE}", *accounts, *rights]

    def make_empty(self, folder: Path, limit: float) -> None:
        """The system tables, then what else is in it from the beginning."""
        host, programs = self.place.host, self.programs()
        # Temporary tables in a folder of its own: whatever server starts meanwhile removes those in a shared one.
        own = [f"--datadir={folder}", f"--tmpdir={folder}"]
        shape = ["--no-defaults", *own, *arguments(self.data_key()), "--character-set-server=utf8mb4"]
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
        host.run(
            [str(programs["mariadbd"]), *shape, "--bootstrap", "--innodb-buffer-pool-load-at-startup=0"],
            limit=limit,
            log=self.place.logs / "mariadbd-bootstrap",
            account=self._account(),
            telling=self.telling,
            # One statement a line; without the first the grant tables are not read.
            told=[f"{each};" for each in ("FLUSH PRIVILEGES", *self.statements())],
        )

    def own_words(self) -> list[str]:
        """Nothing."""
        return []

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """From information_schema, which has the type of each variable too."""
        rows = connection.rows(
            "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, VARIABLE_TYPE, ENUM_VALUE_LIST "
            "FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE IS NOT NULL"
        )
        known = {str(name): (str(value), str(kind), str(choices or "")) for name, value, kind, choices in rows}
        effective = {name: typed(known[name][0], known[name][1]) for name in _TELLING if name in known}
        asked: dict[str, Any] = {}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            shown = name if name in known else _SHOWN_AS.get(name, name)
            if shown in known:
                value, kind, choices = known[shown]
                asked[name], effective[name] = canonical(wish, value, kind, choices)
        return asked, {**effective, **instruments(connection, self.options.settings)}
