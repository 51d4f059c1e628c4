"""MySQL, from its own package or from a folder that brings its libraries: InnoDB tables, and MySQL's own protocol."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dyno import sql
from dyno.deployments.base import Recipe
from dyno.hosts import mysql_root
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.systems.base import files_below
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
from dyno.systems.server import DATABASE, PASSWORD, USER

_MISSING = (
    "not found: install MySQL's server so that mysqld is on the PATH, or have `dyno get mysql` make a folder with it "
    "(in DYNO_MYSQL_ROOT, or in your cache)"
)

_LEAVES_DATA_ALONE = LEAVES_DATA_ALONE | {
    "innodb_buffer_pool_instances", "innodb_change_buffering", "innodb_doublewrite_batch_size",
    "innodb_doublewrite_files", "innodb_doublewrite_pages", "innodb_idle_flush_pct", "innodb_log_writer_threads",
    "innodb_page_cleaners", "innodb_use_fdatasync",
}  # fmt: skip

_TELLING = (
    *TELLING, "innodb_buffer_pool_instances", "innodb_redo_log_capacity", "innodb_use_fdatasync",
    "transaction_isolation",
)  # fmt: skip

_FLAGS, _MEMBERS = ("optimizer_switch", "optimizer_trace"), ("sql_mode",)


class MysqlOptions(InnodbOptions):
    """Besides the server's own variables."""

    ours = OURS | {
        "character_sets_dir", "initialize", "initialize_insecure", "lc_messages_dir", "log_error_verbosity", "mysqlx",
        "plugin_dir", "secure_file_priv",
    }  # fmt: skip


class MysqlSystem(InnodbSystem[MysqlOptions]):
    """One mysqld."""

    kind = "mysql"
    Options = MysqlOptions
    program = "mysqld"
    leaves_data_alone = _LEAVES_DATA_ALONE
    dictionary = "INNODB_TABLES"

    @cached_property
    def _root(self) -> Path | None:
        """The folder that it runs from, where that is not the machine's own. As its account can read it."""
        folder = given_root()
        account = self._account()
        if folder is None or account is None or account.barrier(folder / "usr") is None:
            return folder
        # Such as the cache of a user whose home is closed.
        copy = self._templates() / "mysql-root"
        if not copy.exists():
            making = copy.with_name(f"{copy.name}-{secrets.token_hex(4)}")
            for file in _needed(folder):
                target = making / file.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
            making.rename(copy)
        return copy

    @classmethod
    def needs(cls, options: MysqlOptions) -> Sequence[str]:  # noqa: ARG003 - whatever they are
        """The folder that it runs from, where the machine has no server of its own."""
        return ("MySQL",) if given_root() is not None or _on_path("mysqld") is None else ()

    def programs(self) -> dict[str, Path]:
        """From the folder that is given, else those on the PATH, else from the folder in the user's cache."""
        names = ("mysqld", "innochecksum")
        if (root := self._root) is not None:
            found = {name: _within(root, name) for name in names}
        else:
            found = {name: _on_path(name) for name in names}
        if missing := [name for name, where in found.items() if where is None]:
            raise RunError(f"{', '.join(missing)} {_MISSING}")
        return {name: where for name, where in found.items() if where is not None}

    def words(self, program: str) -> list[str]:
        """One that brings its libraries is started by the loader that it brings too."""
        path = str(self.programs()[program])
        return [path] if self._root is None else [*loading(self._root), path]

    def own_words(self) -> list[str]:
        """Its log has notes too, since one of them names the I/O engine."""
        words = ["--mysqlx=OFF", "--log-error-verbosity=3", "--secure-file-priv="]
        if (root := self._root) is not None:
            share = root / "usr" / "share" / "mysql"
            words += [
                f"--basedir={root / 'usr'}",
                f"--lc-messages-dir={share}",
                f"--character-sets-dir={share}/charsets",
            ]
            words += [f"--plugin-dir={root / 'usr' / 'lib' / 'mysql' / 'plugin'}"]
        return words

    def recipe(self) -> Recipe:
        """The server, its plugins, its messages in English and its character sets."""
        if (root := self._root) is not None:
            loader = _loader(root)
            files = [path for path in _needed(root) if path != loader]
            return Recipe(self.kind, (loader,), tuple(files), self.account)
        return self.recipe_of(self.programs()["mysqld"])

    def statements(self) -> list[str]:
        """What an empty store has: the database and its account; nobody else may come in."""
        # One account for the socket and for TCP: the server remembers who was let in by account, and once it let one
        # in by the socket, where a password may be sent as it is, it needs no key to let it in by TCP. The server
        # listens to this machine alone.
        return [
            f"CREATE DATABASE {DATABASE}",
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON {DATABASE}.* TO {USER}@'%'",
            f"GRANT PROCESS ON *.* TO {USER}@'%'",
            f"GRANT SELECT ON performance_schema.* TO {USER}@'%'",
            "ALTER USER root@localhost ACCOUNT LOCK",
        ]

    def make_empty(self, folder: Path, limit: float) -> None:
        """The system tables, then what else is in it from the beginning."""
        told = folder.with_name(f"{folder.name}.sql")
        told.write_text("".join(f"{each};\n" for each in self.statements()))
        try:
            self.place.host.run(
                [
                    *self.words("mysqld"),
                    "--no-defaults",
                    *self.own_words(),
                    *arguments(self.data_key()),
                    "--character-set-server=utf8mb4",
                    f"--datadir={folder}",
                    f"--init-file={told}",
                    "--initialize-insecure",
                ],
                limit=limit,
                log=self.place.logs / "mysqld-initialize",
                account=self._account(),
                folder=folder,
                telling=self.telling,
            )
        finally:
            told.unlink()

    def own_endpoint(self, folder: Path, endpoint: Endpoint) -> Endpoint:
        """By the socket: see `make_empty`."""
        at = {name: value for name, value in endpoint.settings.items() if name not in ("host", "port")}
        return replace(endpoint, settings={**at, "socket": str(self.socket_file(folder))})

    def read_settings(self, connection: sql.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        """SHOW GLOBAL VARIABLES; it does not say of what type each one is, so that its value has to."""
        known = {str(name).lower(): str(value) for name, value in connection.rows("SHOW GLOBAL VARIABLES")}
        effective = {name: typed(known[name], kind_of(name, known[name])) for name in _TELLING if name in known}
        asked: dict[str, Any] = {}
        for name, wish in self.options.settings.items():
            asked[name] = wish
            if name in known:
                asked[name], effective[name] = canonical(wish, known[name], kind_of(name, known[name]), "")
        return asked, {**effective, **instruments(connection, self.options.settings)}


def kind_of(name: str, value: str) -> str:
    """The type of a variable, in MariaDB's words for it, as its value shows it."""
    if name in _FLAGS:
        return "FLAGSET"
    if name in _MEMBERS:
        return "SET"
    if re.fullmatch(r"-?\d+", value):
        return "BIGINT"
    if re.fullmatch(r"-?\d+\.\d+", value):
        return "DOUBLE"
    return "BOOLEAN" if value in ("ON", "OFF") else "ENUM"


def given_root() -> Path | None:
    """The folder that MySQL runs from, where that is not the machine's own: the one named, or the one in the cache."""
    if given := os.environ.get("DYNO_MYSQL_ROOT"):
        return Path(given)
    if _on_path("mysqld") is not None:
        return None
    cache = mysql_root.cache_folder()
    return cache if cache.is_dir() else None


def _on_path(name: str) -> Path | None:
    """MariaDB has programs of these names too, which are links to its own."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if found is None or "maria" in Path(found).resolve().name:
        return None
    return Path(found)


def _within(root: Path, name: str) -> Path | None:
    return next((path for path in (root / "usr/sbin" / name, root / "usr/bin" / name) if path.is_file()), None)


def _loader(root: Path) -> Path:
    found = sorted(root.glob("usr/lib/*/ld-linux*.so.*")) + sorted(root.glob("lib/*/ld-linux*.so.*"))
    if not found:
        raise RunError(
            f"there is no loader of programs in {root}: remove the folder and have `dyno get mysql` make it anew"
        )
    return found[0]


def loading(root: Path, *more: Path) -> list[str]:
    """The words that a program of such a folder is started by; `more` are folders with libraries of its own."""
    loader = _loader(root)
    libraries = [loader.parent, root / "lib" / loader.parent.name, root / "usr" / "lib", *more]
    return [str(loader), "--library-path", ":".join(map(str, libraries))]


def _needed(root: Path) -> list[Path]:
    """Of a folder with MySQL what its server and its tool need; the rest came along with packages."""
    share, libraries = root / "usr" / "share" / "mysql", _loader(root).parent
    return [
        *filter(None, (_within(root, "mysqld"), _within(root, "innochecksum"))),
        *(path for path in sorted(libraries.iterdir()) if path.is_file() and ".so" in path.name),
        *files_below(root / "usr" / "lib" / "mysql"),
        *files_below(share / "charsets"),
        *files_below(share / "english"),
    ]
