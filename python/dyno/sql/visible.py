"""When rows that were written can be read: what each store needs before that, and how many there are then.

An acknowledged row is durable where the store says so, and is not always to be read yet: QuestDB applies its log later,
CrateDB shows a shard's rows once it was refreshed. A row counts as loaded when it can be read, in every store alike.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from dyno.sql.base import Connection, SqlError

_NO_TABLE_YET = ("table does not exist", "table name is reserved")
"""As QuestDB says it while it makes one of the first rows that come."""
_BETWEEN_LOOKS_S = 0.01  # rows by QuestDB's line protocol over TCP are not acknowledged: there is nothing to wait for


def wait(backend: str, connection: Connection, table: str, rows: int, limit: float) -> int:
    """See `dyno.sql.visible`."""
    deadline = time.monotonic() + limit
    pause = threading.Event()
    while True:
        made = _BARRIERS.get(backend, _nothing)(connection, table)
        there = int(connection.value(f"SELECT count(*) FROM {table}")) if made else 0
        if there >= rows:
            return there
        if time.monotonic() > deadline:
            raise SqlError(f"{there} of {rows} rows of {table} can be read after {limit:g} s")
        pause.wait(_BETWEEN_LOOKS_S)


def _nothing(_connection: Connection, _table: str) -> bool:
    """A row can be read as soon as it was acknowledged."""
    return True


def _applied(connection: Connection, table: str) -> bool:
    """The line protocol makes tables by itself: there may be none yet."""
    found = connection.rows("SELECT walEnabled, table_suspended FROM tables() WHERE table_name = %s", table)
    for has_log, suspended in found:
        if suspended:
            raise SqlError(f"the log of {table} is suspended: rows that were acknowledged are not applied")
        if has_log:
            try:
                connection.rows("SELECT wait_wal_table(%s)", table)
            except SqlError as error:
                if not any(told in str(error) for told in _NO_TABLE_YET):
                    raise
                return False
    return bool(found)


def _refreshed(connection: Connection, table: str) -> bool:
    connection.rows(f"REFRESH TABLE {table}")
    return True


_BARRIERS: Mapping[str, Callable[[Connection, str], bool]] = {"questdb": _applied, "cratedb": _refreshed}
