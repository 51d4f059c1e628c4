"""DuckDB by the process of dyno's that holds its file: a line of JSON a statement, a line and an answer back.

That process is `dyno.systems.duckdb_server`, which says what is in them.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from datetime import datetime
from socket import socket as Socket  # noqa: N812 - a variable here is called as its module is
from typing import Any

from dyno.sql.base import Arrival, Connection, SqlError, StatementRefused, alike

_OF_STATEMENT = ("Parser Error", "Binder Error", "Catalog Error", "Conversion Error")
"""How its errors begin that are about a statement as it is written."""
_OF_TIME = ("TIMESTAMP", "DATE")
"""How the names of its types begin that are times."""


class _Duckdb:
    """A cursor on the one connection; an answer is decoded when it is looked at."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.description: list[tuple[str, str]] | None = None
        self.arrived: Arrival | None = None
        """When the last answer had come whole."""
        self._body, self._form = pickle.dumps([]), "rows"

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
        # From a process of dyno's own.
        found = pickle.loads(self._body)
        if self._form == "rows":
            return [tuple(map(alike, row)) for row in found]
        columns = zip(found, self.description or (), strict=True)
        return list(zip(*(_values(array, kind) for array, (_, kind) in columns), strict=True))

    def close(self) -> None:
        """The connection stays."""


def duckdb(socket: Socket) -> Connection:
    """A connection to the process that holds the file."""
    stream = socket.makefile("rwb")

    def close() -> None:
        stream.close()
        socket.close()

    return Connection(close, lambda: _Duckdb(stream), SqlError)


def _values(array: Any, kind: str) -> list[Any]:
    """Those of a column: NumPy's times have no zone, and are in UTC."""
    values: list[Any] = array.tolist()
    return [alike(value) for value in values] if kind.startswith(_OF_TIME) else values


def _sent(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
