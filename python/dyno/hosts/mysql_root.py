"""A folder with MySQL, its plugins, its clients and its router, made of Debian's packages: `dyno get mysql`.

Debian has MySQL in sid alone, whose libraries are newer than those of a machine with another release, so the folder
brings them, and the loader of programs that fits. At its top stands a script for each program of `PROGRAMS`, which
starts it so; `data` is an empty data folder to copy, in which root has no password.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dyno.hosts import debian
from dyno.hosts.local import LocalHost
from dyno.hosts.undo import UndoJournal
from dyno.model.base import UserError

PROGRAMS = {
    "mysqld": "usr/sbin/mysqld",
    "mysql": "usr/bin/mysql",
    "mysqladmin": "usr/bin/mysqladmin",
    "mysqlrouter": "usr/bin/mysqlrouter",
    "mysqlrouter_keyring": "usr/bin/mysqlrouter_keyring",
}
"""By name, where they are in the folder."""

_PLUGINS = ("group_replication.so", "mysql_clone.so")
_PACKAGES = ("mysql-server-core", "mysql-client-core", "mysql-router")
_SUITE = "sid"
_LIMIT_S = 300.0

# The program with the libraries of its own folder, wherever that lies. It stays the process that was started.
_WRAPPER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
for loader in "$here"/usr/lib/*/ld-linux*.so.* "$here"/lib/*/ld-linux*.so.*; do
    [ -f "$loader" ] && break
done
libraries=$(dirname "$loader"){before}
exec "$loader" --library-path "$libraries:$here/lib/${{libraries##*/}}:$here/usr/lib" "$here/{program}" {words}"$@"
"""
_OF_MYSQLD = (
    '\ncase "$1" in --no-defaults) shift ;; esac',
    '--no-defaults \\\n    --basedir="$here/usr" --lc-messages-dir="$here/usr/share/mysql" '
    '--character-sets-dir="$here/usr/share/mysql/charsets" \\\n    --plugin-dir="$here/usr/lib/mysql/plugin" '
    "--secure-file-priv= ",
)


class MysqlRoot:
    """As a tool that `dyno get` gets."""

    name = "mysql"
    version = f"of Debian's {_SUITE}"
    what = "MySQL with Group Replication and Router, where the machine's own Debian has none"

    def path(self) -> Path:
        """The folder: `DYNO_MYSQL_ROOT`, or the one in the user's cache."""
        if given := os.environ.get("DYNO_MYSQL_ROOT"):
            return Path(given)
        return cache_folder()

    def installed(self) -> str | None:
        """The server's version; None where the folder is not there, or is an older one that has not all of it."""
        folder = self.path()
        if missing_in(folder):
            return None
        with contextlib.suppress(OSError):
            return (folder / "version").read_text().strip()
        return None

    def get(self) -> Path:
        """Make the folder, or an older one anew. Raises UserError or RunError; nothing is changed then."""
        folder = self.path()
        if self.installed() is not None:
            return folder
        if folder.exists() and not (folder / "mysqld").exists():
            raise UserError(f"{folder} is not a folder with MySQL, and will not be replaced by one")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with UndoJournal() as journal:
            host = LocalHost(journal)
            scratch = host.temporary_folder(folder.with_name(f".{folder.name}-{journal.token}"))
            made = _make(host, scratch)
            # Programs that run keep what they have open. Whoever comes second finds it there.
            if missing_in(folder):
                with contextlib.suppress(FileNotFoundError):
                    folder.rename(scratch / "older")
                made.rename(folder)
        return folder


def cache_folder() -> Path:
    """Where it is in the user's cache, where no other folder is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dyno" / "mysql-root"


def missing_in(folder: Path) -> list[str]:
    """What a folder has not, of what it should have."""
    wanted = [*PROGRAMS, *PROGRAMS.values(), *(f"usr/lib/mysql/plugin/{name}" for name in _PLUGINS), "data/mysql.ibd"]
    return [name for name in wanted if not (folder / name).is_file()]


def _make(host: LocalHost, scratch: Path) -> Path:
    root = scratch / "root"
    versions = debian.unpack(_PACKAGES, _SUITE, root, host, scratch)
    for name, program in PROGRAMS.items():
        before, words = _OF_MYSQLD if name == "mysqld" else ("", "")
        (root / name).write_text(_WRAPPER.format(program=program, before=before, words=words))
        (root / name).chmod(0o755)
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    error = scratch / "initialize"
    host.run(
        [
            str(root / "mysqld"),
            *as_root,
            "--initialize-insecure",
            f"--datadir={root / 'data'}",
            "--innodb-redo-log-capacity=8M",
        ],
        limit=_LIMIT_S,
        log=error,
        telling=r"\[ERROR\]",
    )
    (root / "version").write_text(f"{versions[_PACKAGES[0]]}\n")
    if missing := missing_in(root):
        raise UserError(f"Debian's {', '.join(_PACKAGES)} lack {', '.join(missing)}")
    return root
