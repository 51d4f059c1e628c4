"""QuestDB and CrateDB by HTTP: a statement a request, the answer as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from http.client import HTTPConnection, HTTPException, RemoteDisconnected
from socket import socket as Socket  # noqa: N812 - a variable here is called as its module is
from typing import Any
from urllib.parse import urlencode

from dyno.sql.base import Arrival, Connection, SqlError

Description = list[tuple[str, ...]] | None
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_TIME = (11, 15)  # CrateDB's types timestamp with and without time zone, which come in milliseconds
_REFUSED = -2  # what CrateDB counts of a row that it did not take


class _Dialled(HTTPConnection):
    """Over sockets that are made where the server can be reached, which may be another network namespace."""

    def __init__(self, dialled: Callable[[], Socket]) -> None:
        super().__init__("localhost")
        self._dialled = dialled

    def connect(self) -> None:
        """By a socket that was dialled there."""
        self.sock = self._dialled()


class _Client:
    """One connection that stays open between statements; opened anew where the server has closed it meanwhile."""

    def __init__(self, dialled: Callable[[], Socket]) -> None:
        self._http = _Dialled(dialled)
        self._http.connect()  # so that whoever is not there is noticed now
        self._used = False
        self.arrived: Arrival | None = None

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Status and JSON of an answer. Raises SqlError."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            try:
                self._http.request(method, path, body, headers)
                answer = self._http.getresponse()
            except (RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # Nothing was answered on a connection that had been idle: it was closed before it was asked.
                self._http.close()
                if not self._used:
                    raise
                self._used = False
                self._http.request(method, path, body, headers)
                answer = self._http.getresponse()
            text = answer.read()
            self.arrived = Arrival.now()
        except (HTTPException, OSError) as error:
            self._http.close()
            raise SqlError(f"no answer: {error or type(error).__name__}") from error
        self._used = True
        try:
            return answer.status, json.loads(text)
        except ValueError as error:
            told = " ".join(text.decode(errors="replace").split())[:200]
            raise SqlError(f"HTTP status {answer.status}: {told or 'an empty answer'}") from error

    def close(self) -> None:
        """Let go of it."""
        self._http.close()


class _Cursor:
    """What an answer gave, until the next one."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self.description: Description = None
        self._rows: Sequence[Any] = ()

    @property
    def arrived(self) -> Arrival | None:
        """When the last answer had come whole; it is decoded after that."""
        return self._client.arrived

    def fetchall(self) -> Sequence[Any]:
        """All that it gave."""
        return self._rows

    def close(self) -> None:
        """The connection stays."""


class _Questdb(_Cursor):
    """A cursor on /exec, where statement and parameters are in the URL."""

    def execute(self, statement: str, parameters: Sequence[Any] | None = None, /) -> None:
        """QuestDB takes no parameters here, so they are put in as literals."""
        asked = statement % tuple(map(literal, parameters)) if parameters else statement
        status, said = self._client.request("GET", f"/exec?{urlencode({'query': asked})}")
        if not isinstance(said, dict) or "error" in said or status != 200:
            told = said.get("error", said) if isinstance(said, dict) else said
            at = f" (at character {said['position']})" if isinstance(said, dict) and said.get("position") else ""
            raise SqlError(f"{told}{at}")
        columns = said.get("columns")
        self.description = None if columns is None else [(column["name"], column["type"]) for column in columns]
        readers = [_QUESTDB_READS.get(column["type"], _as_it_is) for column in columns or ()]
        self._rows = [
            [read(value) for read, value in zip(readers, row, strict=True)] for row in said.get("dataset", ())
        ]

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """One request a row."""
        for row in rows:
            self.execute(statement, row)


class _Cratedb(_Cursor):
    """A cursor on /_sql."""

    def execute(self, statement: str, parameters: Sequence[Any] | None = None, /) -> None:
        """With its parameters beside it."""
        asked: dict[str, Any] = {"stmt": statement}
        if parameters:
            asked = {"stmt": statement.replace("%s", "?"), "args": [_for_cratedb(each) for each in parameters]}
        said = self._asked(asked)
        columns = said.get("cols") or ()
        self.description = [(str(name),) for name in columns] or None
        readers = [_milliseconds if kind in _OF_TIME else _as_it_is for kind in said.get("col_types") or ()]
        self._rows = [[read(value) for read, value in zip(readers, row, strict=True)] for row in said.get("rows", ())]

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """By one request, `bulk_args`. One value that cannot be cast fails all of them."""
        sent = [[_for_cratedb(value) for value in row] for row in rows]
        said = self._asked({"stmt": statement.replace("%s", "?"), "bulk_args": sent})
        refused = [each for each in said.get("results", ()) if each.get("rowcount", 0) == _REFUSED]
        if refused:
            why = next((each["error"]["message"] for each in refused if "error" in each), "it does not say why")
            raise SqlError(f"{len(refused)} of {len(rows)} rows were refused: {why}")

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        status, said = self._client.request("POST", "/_sql?types", json.dumps(body).encode())
        if not isinstance(said, dict) or "error" in said or status != 200:
            told = said.get("error", said) if isinstance(said, dict) else said
            raise SqlError(str(told.get("message", told) if isinstance(told, dict) else told))
        return said


def questdb(dialled: Callable[[], Socket]) -> Connection:
    """A connection to QuestDB. Raises SqlError."""
    client = _Client(dialled)
    return Connection(client.close, lambda: _Questdb(client), SqlError)


def cratedb(dialled: Callable[[], Socket]) -> Connection:
    """A connection to a node of CrateDB. Raises SqlError."""
    client = _Client(dialled)
    return Connection(client.close, lambda: _Cratedb(client), SqlError)


def literal(value: Any) -> str:
    """A value as QuestDB's SQL has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return "'{}'".format(_as_text(value).replace("'", "''"))


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value.isoformat() if isinstance(value, date) else str(value)


def _for_cratedb(value: Any) -> Any:
    return _as_text(value) if isinstance(value, date) else value


def _as_it_is(value: Any) -> Any:
    return value


def _milliseconds(value: Any) -> Any:
    return None if value is None else _EPOCH + timedelta(milliseconds=value)


def _moment(value: Any) -> Any:
    return None if value is None else datetime.fromisoformat(value)


_QUESTDB_READS: dict[str, Callable[[Any], Any]] = {"TIMESTAMP": _moment, "DATE": _moment}
