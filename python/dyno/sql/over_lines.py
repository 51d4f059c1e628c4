"""DuckDB by the process of dyno's that holds its file: a line of JSON a statement, a line and an answer back.

That process is `dyno.systems.duckdb_server`, which says what is in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from socket import socket as Socket  # noqa: N812 - a variable here is called as its module is
from typing import Any

import polars as pl

from dyno.sql.base import Arrival, Connection, SqlError, StatementRefused, alike

_OF_STATEMENT = ("Parser Error", "Binder Error", "Catalog Error", "Conversion Error")
"""How its errors begin that are about a statement as it is written."""
_OF_TIME = ("TIMESTAMP", "DATE")
"""How the names of its types begin that are told as ISO 8601."""
_OF_FLOATS = ("FLOAT", "DOUBLE")
"""Its types that have NaN and infinities; what else may be marked as they are is a STRUCT, and stays one."""


class _Duckdb:
    """A cursor on the one connection; an answer is decoded when it is looked at."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.description: list[tuple[str, str]] | None = None
        self.arrived: Arrival | None = None
        """When the last answer had come whole."""
        self._body, self._form = b"[]", "json"

    def execute(self, statement: str, parameters: Sequence[Any] | None = None, /) -> None:
        """With its parameters beside it."""
        asked: dict[str, Any] = {"sql": statement}
        if parameters:
            asked = {"sql": statement.replace("%s", "?"), "parameters": [_sent(each) for each in parameters]}
        self._ask(asked)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """By one line."""
        self._ask({"sql": statement.replace("%s", "?"), "many": [[_sent(value) for value in row] for row in rows]})

    def _ask(self, body: dict[str, Any]) -> None:
        self._stream.write(json.dumps(body).encode() + b"\n")
        self._stream.flush()
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise SqlError("it ended before it answered")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            told = str(said["error"])
            raise (StatementRefused if told.startswith(_OF_STATEMENT) else SqlError)(told)
        self._form, self._body = said["form"], self._stream.read(said["bytes"])
        if len(self._body) < said["bytes"]:
            raise SqlError("it ended before all of its answer had come")
        self.arrived = Arrival.now()
        self.description = [(name, kind) for name, kind in said["columns"]] or None

    @property
    def size(self) -> int:
        """Bytes of the last answer as it came."""
        return len(self._body)

    def fetchall(self) -> Sequence[Any]:
        """All that it gave."""
        if self._form == "arrow":
            return [[alike(value) for value in row] for row in pl.read_ipc(self._body).iter_rows()]
        read = [_reading(kind) for _, kind in self.description or ()]
        return [
            [value if how is None else how(value) for how, value in zip(read, row, strict=True)]
            for row in json.loads(self._body)
        ]

    def close(self) -> None:
        """The connection stays."""


def duckdb(socket: Socket) -> Connection:
    """A connection to the process that holds the file."""
    stream = socket.makefile("rwb")

    def close() -> None:
        stream.close()
        socket.close()

    return Connection(close, lambda: _Duckdb(stream), SqlError)


def _sent(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _reading(kind: str) -> Callable[[Any], Any] | None:
    """What makes a value of a column of its type out of what stands in a line; None where that is the value."""
    if kind in _OF_FLOATS:
        return _float
    return _moment if kind.startswith(_OF_TIME) else None


def _float(value: Any) -> Any:
    return float(value["f"]) if isinstance(value, dict) else value


def _moment(value: Any) -> Any:
    if value is None:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
