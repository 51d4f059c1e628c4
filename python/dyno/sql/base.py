"""What every way of asking has in common: its error, its answers, and what a cursor can do."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from socket import AF_UNIX, SOCK_STREAM, create_connection
from socket import socket as Socket  # noqa: N812 - a variable here is called as its module is
from typing import Any, Protocol, TypeVar

from dyno.model.base import RunError

Row = tuple[Any, ...]
T = TypeVar("T")

_CLONE_NEWNET = 0x40000000  # linux/sched.h; for setns(2)
_libc = ctypes.CDLL(None, use_errno=True)


class SqlError(RunError):
    """A server could not be reached, or refused a statement; in its own words."""


class ConnectionLost(SqlError):
    """It let go of a client that waited for its answer."""


class StatementRefused(SqlError):
    """A store does not take a statement as it is written: asked again, it would not either."""


@dataclass(frozen=True)
class Answer:
    """What a statement gave, in the same terms whatever the store.

    Times are aware `datetime` in UTC, numbers `int` or `float`, no value is None. A statement that gives no rows has no
    columns either.
    """

    columns: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Timed:
    """How long an answer took until all of it had arrived, and what its client computed until then; in s.

    `decode` gives the answer, once and in its own time: what that costs hangs on the protocol and not on the store. It
    raises SqlError where what arrived is no answer.
    """

    decode: Callable[[], Answer]
    seconds: float
    cpu_s: float
    size: int
    """Bytes that the answer takes until it is decoded, about."""


@dataclass(frozen=True)
class Arrival:
    """When all of an answer was there, by time.perf_counter, and the thread's CPU time then."""

    at: float
    cpu_s: float

    @classmethod
    def now(cls) -> Arrival:
        """At this moment."""
        return cls(time.perf_counter(), time.thread_time())


class Cursor(Protocol):
    """One statement at a time; as Python's DB-API has it."""

    description: Any

    def execute(self, statement: Any, parameters: Any = None, /) -> Any:
        """Ask."""

    def fetchall(self) -> Sequence[Any]:
        """All rows of the answer."""

    def close(self) -> Any:
        """Let go of the answer."""


def alike(value: Any) -> Any:
    """A value in the terms of an `Answer`."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def in_words(error: BaseException) -> str:
    """One line of what an error says."""
    # PyMySQL's errors are a number and a text.
    said = error.args[1] if len(error.args) == 2 and isinstance(error.args[0], int) else error
    return " ".join(str(said).split()) or type(error).__name__


def dial(settings: dict[str, Any], limit: float) -> Socket:
    """A connection to the socket file or the port of an endpoint. Raises SqlError."""
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


def within(namespace: str | None, opening: Callable[[], T]) -> T:
    """What opens a connection, called in a network namespace: a socket stays in the one that it was made in."""
    if namespace is None:
        return opening()
    opened: list[T] = []
    wrong: list[SqlError] = []

    def carry_out() -> None:
        try:
            _enter(namespace)
            opened.append(opening())
        except SqlError as error:
            wrong.append(error)

    # Namespaces are a thread's own: only this one is ever in another, and it ends at once.
    thread = threading.Thread(target=carry_out, name="sql connection")
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


class Connection:
    """One connection; every statement is its own transaction. A context manager."""

    def __init__(
        self, close: Callable[[], Any], cursor: Callable[[], Any], errors: type[Exception], *, buffered: bool = False
    ) -> None:
        """`buffered` says that an answer has arrived whole once its statement was executed."""
        self._close = close
        self._cursor = cursor
        self._errors = errors
        self._buffered = buffered

    def ask(self, statement: str, *parameters: Any) -> Answer:
        """What a statement gives, with the names of its columns; parameters stand as `%s`. Raises SqlError."""
        columns, rows = self._asked(statement, parameters)
        return Answer(columns, [tuple(map(alike, row)) for row in rows])

    def rows(self, statement: str, *parameters: Any) -> list[Row]:
        """The rows of a statement as its client gives them, none where it gives none. Raises SqlError."""
        return self._asked(statement, parameters)[1]

    def _asked(self, statement: str, parameters: tuple[Any, ...]) -> tuple[tuple[str, ...], list[Row]]:
        try:
            with contextlib.closing(self._cursor()) as opened:
                cursor: Cursor = opened
                cursor.execute(statement, *([parameters] if parameters else []))
                if not cursor.description:
                    return (), []
                columns = tuple(str(column[0]) for column in cursor.description)
                return columns, [tuple(row) for row in cursor.fetchall()]
        except (self._errors, OSError) as error:
            raise _error(error, statement) from error

    def timed(self, statement: str) -> Timed:
        """How long a statement took, and what gives its answer. Raises SqlError.

        What a client does to decode it is in that time only where it cannot be told apart.
        """
        cursor: Cursor = self._cursor()
        rows: Sequence[Any] | None = None
        try:
            begun = Arrival.now()
            cursor.execute(statement)
            arrived = getattr(cursor, "arrived", None) or (Arrival.now() if self._buffered else None)
            if arrived is None:
                rows = cursor.fetchall() if cursor.description else []
                arrived = Arrival.now()
        except (self._errors, OSError) as error:
            cursor.close()
            raise _error(error, statement) from error

        def decode() -> Answer:
            try:
                with contextlib.closing(cursor):
                    columns = tuple(str(column[0]) for column in cursor.description or ())
                    found = rows if rows is not None else cursor.fetchall() if columns else []
            except (self._errors, OSError) as error:
                raise _error(error, statement) from error
            return Answer(columns, [tuple(map(alike, row)) for row in found])

        return Timed(decode, arrived.at - begun.at, arrived.cpu_s - begun.cpu_s, _size(cursor, rows))

    def copy(self, statement: str, text: str) -> None:
        """Send text to a statement that reads it, as PostgreSQL's COPY FROM STDIN does. Raises SqlError."""
        try:
            with contextlib.closing(self._cursor()) as cursor, cursor.copy(statement) as copying:
                copying.write(text)
        except (self._errors, OSError) as error:
            raise _error(error, statement) from error

    def value(self, statement: str, *parameters: Any) -> Any:
        """The one value of a statement that gives one. Raises SqlError."""
        rows = self.rows(statement, *parameters)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise SqlError(f"{_shortened(statement)} gave {len(rows)} rows, not one value")
        return rows[0][0]

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Carry out a statement for each row of parameters, by one request where the protocol has that.

        Raises SqlError, also where one row was refused; others may have been taken then.
        """
        try:
            with contextlib.closing(self._cursor()) as cursor:
                cursor.executemany(statement, rows)
        except (self._errors, OSError) as error:
            raise _error(error, statement) from error

    def close(self) -> None:
        """Leave the server; nothing happens where it is gone."""
        with contextlib.suppress(self._errors, OSError):
            self._close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_how: object) -> None:
        self.close()


def _size(cursor: Cursor, rows: Sequence[Any] | None) -> int:
    """What came, where a cursor of ours knows it; else by the number of its values."""
    if (known := getattr(cursor, "size", None)) is not None:
        return int(known)
    count = len(rows) if rows is not None else max(getattr(cursor, "rowcount", 0), 0)
    return count * len(cursor.description or ()) * _BYTES_OF_VALUE


_BYTES_OF_VALUE = 32
_LOST = (2006, 2013)  # MySQL's CR_SERVER_GONE_ERROR and CR_SERVER_LOST; the second is PyMySQL's time-out too


def _error(error: BaseException, statement: str) -> SqlError:
    told = in_words(error)
    lost = bool(error.args) and error.args[0] in _LOST and "timed out" not in told
    kind = ConnectionLost if lost else StatementRefused if _is_of_statement(error) else SqlError
    return kind(f"{told} (asked: {_shortened(statement)})")


_OF_STATEMENT = ("0A", "22", "42")
"""Classes of SQLSTATE: a feature that is not there, values that cannot be, syntax and names."""


def _is_of_statement(error: BaseException) -> bool:
    """Whether it is the statement that a store refuses, and not what the store just cannot do."""
    if isinstance(error, StatementRefused):
        return True
    # psycopg and sqlite3 tell it by these.
    state, code = getattr(error, "sqlstate", None), getattr(error, "sqlite_errorcode", None)
    return (state is not None and state.startswith(_OF_STATEMENT)) or code == sqlite3.SQLITE_ERROR


_LONGEST_TOLD = 1000  # an INSERT of thousands of rows would be all of a message


def _shortened(statement: str) -> str:
    return statement if len(statement) <= _LONGEST_TOLD else f"{statement[:_LONGEST_TOLD]} ..."
