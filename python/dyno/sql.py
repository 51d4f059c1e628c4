"""Asking a SQL server through its endpoint, in its own protocol: whether it is up, what is set, what is stored.

For what is asked now and then from outside a run's measured part. What is measured asks through the driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from socket import AF_UNIX, SOCK_STREAM, create_connection
from socket import socket as Socket  # noqa: N812 - a variable here is called as its module is
from types import TracebackType
from typing import Any, Protocol

from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint

Row = tuple[Any, ...]

_CLONE_NEWNET = 0x40000000  # linux/sched.h; for setns(2)
_libc = ctypes.CDLL(None, use_errno=True)


class SqlError(RunError):
    """A server could not be reached, or refused a statement; in its own words."""


class _Cursor(Protocol):
    description: Any

    def execute(self, statement: Any, parameters: Any = None, /) -> Any: ...

    def fetchall(self) -> Sequence[Any]: ...


class Connection:
    """One connection; every statement is its own transaction. A context manager."""

    def __init__(self, close: Callable[[], Any], cursor: Callable[[], Any], errors: type[Exception]) -> None:
        self._close = close
        self._cursor = cursor
        self._errors = errors

    def rows(self, statement: str, *parameters: str | int) -> list[Row]:
        """The rows of a statement, none where it gives none; parameters stand as `%s`. Raises SqlError."""
        try:
            with contextlib.closing(self._cursor()) as opened:
                cursor: _Cursor = opened
                cursor.execute(statement, *([parameters] if parameters else []))
                return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        except (self._errors, OSError) as error:
            raise SqlError(f"{_in_words(error)} (asked: {statement})") from error

    def value(self, statement: str, *parameters: str | int) -> Any:
        """The one value of a statement that gives one. Raises SqlError."""
        rows = self.rows(statement, *parameters)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise SqlError(f"{statement} gave {len(rows)} rows, not one value")
        return rows[0][0]

    def close(self) -> None:
        """Leave the server; nothing happens where it is gone."""
        with contextlib.suppress(self._errors, OSError):
            self._close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()


def connect(endpoint: Endpoint, *, limit: float) -> Connection:
    """A connection to the server behind an endpoint; no answer takes longer than `limit` seconds. Raises SqlError."""
    if endpoint.backend not in _PROTOCOLS:
        raise SqlError(f"{endpoint.backend} is no SQL server; there are {', '.join(_PROTOCOLS)}")
    opening = partial(_PROTOCOLS[endpoint.backend], endpoint.settings, max(limit, 0.01))
    return opening() if endpoint.namespace is None else _within(endpoint.namespace, opening)


def _within(namespace: str, opening: Callable[[], Connection]) -> Connection:
    """What opens a connection, called in a network namespace: a socket stays in the one that it was made in."""
    opened: list[Connection] = []
    wrong: list[SqlError] = []

    def enter() -> None:
        try:
            _enter(namespace)
            opened.append(opening())
        except SqlError as error:
            wrong.append(error)

    # Namespaces are a thread's own: only this one is ever in another, and it ends at once.
    thread = threading.Thread(target=enter, name="sql connection")
    thread.start()
    thread.join()
    if wrong:
        raise wrong[0]
    return opened[0]


def _enter(namespace: str) -> None:
    try:
        handle = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SqlError(f"cannot connect: {error}") from error
    try:
        if _libc.setns(handle, _CLONE_NEWNET) != 0:
            raise SqlError(f"cannot enter the network namespace {namespace}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(handle)


def backends() -> tuple[str, ...]:
    """The protocols that can be asked in."""
    return tuple(_PROTOCOLS)


def _mysql(settings: dict[str, Any], limit: float) -> Connection:
    import pymysql  # here, since most commands ask no server and need not wait for it to be loaded

    # A socket of our own, since PyMySQL leaves its own open where it cannot connect it.
    socket = _socket(settings, limit)
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
        raise SqlError(_in_words(error)) from error
    return Connection(opened.close, opened.cursor, pymysql.MySQLError)


def _socket(settings: dict[str, Any], limit: float) -> Socket:
    try:
        if "socket" not in settings:
            return create_connection((settings["host"], settings["port"]), timeout=limit)
        opened = Socket(AF_UNIX, SOCK_STREAM)
        try:
            opened.settimeout(limit)
            opened.connect(settings["socket"])
        except OSError:
            opened.close()
            raise
    except OSError as error:
        raise SqlError(f"cannot connect: {error}") from error
    return opened


def _postgresql(settings: dict[str, Any], limit: float) -> Connection:
    import psycopg  # here, for the same reason

    if "socket" in settings:
        # libpq makes the file's name of the folder and the port.
        folder, _, name = str(settings["socket"]).rpartition("/")
        host, port = folder, int(name.rpartition(".")[2])
    else:
        host, port = settings["host"], settings["port"]
    try:
        opened = psycopg.connect(
            host=host,
            port=port,
            user=settings["user"],
            password=settings.get("password", ""),
            dbname=settings["database"],
            connect_timeout=max(2, round(limit)),  # libpq takes no fractions, and reads 1 as 2
            options=f"-c statement_timeout={round(limit * 1000)}",
            autocommit=True,
        )
    except (psycopg.Error, OSError) as error:
        raise SqlError(_in_words(error)) from error
    return Connection(opened.close, opened.cursor, psycopg.Error)


def _sqlite(settings: dict[str, Any], limit: float) -> Connection:
    """An embedded one: the file is the server."""
    deadline = time.monotonic() + limit
    try:
        opened = sqlite3.connect(settings["path"], timeout=limit, isolation_level=None)
    except sqlite3.Error as error:
        raise SqlError(_in_words(error)) from error
    opened.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    return Connection(opened.close, opened.cursor, sqlite3.Error)


def _in_words(error: BaseException) -> str:
    # PyMySQL's errors are a number and a text.
    said = error.args[1] if len(error.args) == 2 and isinstance(error.args[0], int) else error
    return " ".join(str(said).split()) or type(error).__name__


_PROTOCOLS: dict[str, Callable[[dict[str, Any], float], Connection]] = {
    "mysql": _mysql,
    "postgresql": _postgresql,
    "sqlite": _sqlite,
}
