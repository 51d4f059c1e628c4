"""Asking a SQL server through its endpoint, in its own protocol: whether it is up, what is set, what is stored.

For what is asked now and then from outside a run's measured part, and for queries whose cost is far above that of
asking. What else is measured asks through the driver.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from dyno.model.endpoint import Endpoint
from dyno.sql import over_http, over_lines
from dyno.sql import visible as barriers
from dyno.sql.base import (
    Answer,
    Connection,
    ConnectionLost,
    Row,
    SqlError,
    StatementRefused,
    Timed,
    dial,
    in_words,
    within,
)

__all__ = [
    "Answer",
    "Connection",
    "ConnectionLost",
    "Row",
    "SqlError",
    "StatementRefused",
    "Timed",
    "ask",
    "backends",
    "connect",
    "visible",
]


def connect(endpoint: Endpoint, *, limit: float) -> Connection:
    """A connection to the server behind an endpoint; no answer takes longer than `limit` seconds. Raises SqlError."""
    if endpoint.backend not in backends():
        raise SqlError(f"{endpoint.backend} is no SQL server; there are {', '.join(backends())}")
    limit = max(limit, 0.01)
    if (by_http := _BY_HTTP.get(endpoint.backend)) is not None:
        # Such a connection may be closed by the server when it was idle, and is then dialled again.
        return by_http(partial(within, endpoint.namespace, partial(dial, endpoint.settings, limit)))
    return within(endpoint.namespace, partial(_PROTOCOLS[endpoint.backend], endpoint.settings, limit))


def ask(endpoint: Endpoint, statement: str, *parameters: Any, limit: float = 60.0) -> Answer:
    """What one statement gives, by a connection of its own; parameters stand as `%s`. Raises SqlError."""
    with connect(endpoint, limit=limit) as connection:
        return connection.ask(statement, *parameters)


def visible(endpoint: Endpoint, table: str, rows: int, *, limit: float) -> int:
    """Wait until that many rows of a table can be read; how many there are then. Raises SqlError past `limit` seconds.

    `table` is a name as it stands in a statement.
    """
    with connect(endpoint, limit=limit) as connection:
        return barriers.wait(endpoint.backend, connection, table, rows, limit)


def backends() -> tuple[str, ...]:
    """The protocols that can be asked in."""
    return (*_PROTOCOLS, *_BY_HTTP)


def _mysql(settings: dict[str, Any], limit: float) -> Connection:
    import pymysql  # here, since most commands ask no server and need not wait for it to be loaded

    # A socket of our own, since PyMySQL leaves its own open where it cannot connect it.
    socket = dial(settings, limit)
    try:
        opened = pymysql.connect(
            user=settings["user"],
            password=settings.get("password", ""),
            database=settings["database"],
            read_timeout=limit,
            write_timeout=limit,
            autocommit=True,
            charset="utf8mb4",
            defer_connect=True,
        )
        # PyMySQL would know it of a socket of its own: what is sent there nobody else reads, a password included.
        opened._secure = "socket" in settings  # type: ignore[attr-defined]
        opened.connect(socket)
    except (pymysql.MySQLError, OSError) as error:
        socket.close()
        raise SqlError(in_words(error)) from error
    return Connection(opened.close, opened.cursor, pymysql.MySQLError, buffered=True)


def _postgresql(settings: dict[str, Any], limit: float) -> Connection:
    from dyno.sql import over_libpq  # here, for the same reason

    return over_libpq.connect(settings, limit)


def _sqlite(settings: dict[str, Any], limit: float) -> Connection:
    """An embedded one: the file is the server."""
    deadline = time.monotonic() + limit
    try:
        opened = sqlite3.connect(settings["path"], timeout=limit, isolation_level=None)
    except sqlite3.Error as error:
        raise SqlError(in_words(error)) from error
    opened.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    return Connection(opened.close, opened.cursor, sqlite3.Error)


def _duckdb(settings: dict[str, Any], limit: float) -> Connection:
    return over_lines.duckdb(dial(settings, limit))


_PROTOCOLS: dict[str, Callable[[dict[str, Any], float], Connection]] = {
    "mysql": _mysql,
    "postgresql": _postgresql,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
}
_BY_HTTP = {"questdb": over_http.questdb, "cratedb": over_http.cratedb}
