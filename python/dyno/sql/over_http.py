"""QuestDB and CrateDB by HTTP: a statement a request, the answer as JSON."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, RemoteDisconnected
from socket import socket as Socket  # noqa: N812 - a variable here is called as its module is
from typing import Any
from urllib.parse import urlencode

from dyno.sql.base import Arrival, Connection, SqlError, StatementRefused

Description = list[tuple[str, ...]] | None
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_TIME = (11, 15)  # CrateDB's types timestamp with and without time zone, which come in milliseconds
_OF_STATEMENT = range(4000, 4050)
"""CrateDB's codes of what it cannot parse, does not have or does not know; those above are conflicts with others."""
_FOR_NOW = re.compile(r"timeout|timed out|cancel|busy|memory|circuit|limit", re.IGNORECASE)
"""What QuestDB refuses a statement for at one time and takes it at another, by the same status as its syntax."""
_REFUSED = -2  # what CrateDB counts of a row that it did not take


class _Dialled(HTTPConnection):
    """Over sockets that are made where the server can be reached, which may be another network namespace."""

    def __init__(self, dialled: Callable[[], Socket]) -> None:
        super().__init__("localhost")
        self._dialled = dialled

    def connect(self) -> None:
        """By a socket that was dialled there."""
        self.sock = self._dialled()


@dataclass(frozen=True)
class _Arrived:
    """An answer as it came, and when it had come whole."""

    status: int
    text: bytes
    at: Arrival

    def json(self) -> Any:
        """What is in it. Raises SqlError where that is no JSON."""
        try:
            return json.loads(self.text)
        except ValueError as error:
            told = " ".join(self.text.decode(errors="replace").split())[:200]
            raise SqlError(f"HTTP status {self.status}: {told or 'an empty answer'}") from error


class _Client:
    """One connection that stays open between statements; opened anew where the server has closed it meanwhile."""

    def __init__(self, dialled: Callable[[], Socket]) -> None:
        self._http = _Dialled(dialled)
        self._http.connect()  # so that whoever is not there is noticed now
        self._used = False

    def request(self, method: str, path: str, body: bytes | None = None) -> _Arrived:
        """An answer as it came. Raises SqlError."""
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
            arrived = Arrival.now()
        except (HTTPException, OSError) as error:
            self._http.close()
            raise SqlError(f"no answer: {error or type(error).__name__}") from error
        self._used = True
        return _Arrived(answer.status, text, arrived)

    def close(self) -> None:
        """Let go of it."""
        self._http.close()


class _Cursor(ABC):
    """What an answer gave. A refusal is told at once, and else an answer is decoded when it is looked at."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._came: _Arrived | None = None
        self._read: tuple[Description, Sequence[Any]] | None = None

    @property
    def arrived(self) -> Arrival | None:
        """When the last answer had come whole."""
        return None if self._came is None else self._came.at

    @property
    def size(self) -> int:
        """Bytes of the last answer as it came."""
        return 0 if self._came is None else len(self._came.text)

    @property
    def description(self) -> Description:
        """Its columns. Raises SqlError."""
        return self._decoded()[0]

    def fetchall(self) -> Sequence[Any]:
        """All that it gave. Raises SqlError."""
        return self._decoded()[1]

    def close(self) -> None:
        """Let go of the answer; the connection stays."""
        self._came = self._read = None

    def _take(self, came: _Arrived) -> None:
        self._came, self._read = came, None
        if came.status != HTTPStatus.OK:
            self._decoded()

    def _decoded(self) -> tuple[Description, Sequence[Any]]:
        if self._came is None:
            return None, ()
        if self._read is None:
            self._read = self.read(self._came.status, self._came.json())
        return self._read

    @abstractmethod
    def read(self, status: int, said: Any) -> tuple[Description, Sequence[Any]]:
        """Its columns and rows. Raises SqlError."""


class _Questdb(_Cursor):
    """A cursor on /exec, where statement and parameters are in the URL."""

    def execute(self, statement: str, parameters: Sequence[Any] | None = None, /) -> None:
        """QuestDB takes no parameters here, so they are put in as literals."""
        asked = statement % tuple(map(literal, parameters)) if parameters else statement
        self._take(self._client.request("GET", f"/exec?{urlencode({'query': asked})}"))

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """One request a row."""
        for row in rows:
            self.execute(statement, row)
            self._decoded()

    def read(self, status: int, said: Any) -> tuple[Description, Sequence[Any]]:
        """Times are text there."""
        if not isinstance(said, dict) or "error" in said or status != HTTPStatus.OK:
            told = said.get("error", said) if isinstance(said, dict) else said
            at = f" (at character {said['position']})" if isinstance(said, dict) and said.get("position") else ""
            refused = status == HTTPStatus.BAD_REQUEST and not _FOR_NOW.search(str(told))
            raise (StatementRefused if refused else SqlError)(f"{told}{at}")
        columns = said.get("columns")
        readers = [_QUESTDB_READS.get(column["type"], _as_it_is) for column in columns or ()]
        rows = [[read(value) for read, value in zip(readers, row, strict=True)] for row in said.get("dataset", ())]
        return None if columns is None else [(column["name"], column["type"]) for column in columns], rows


class _Cratedb(_Cursor):
    """A cursor on /_sql."""

    def execute(self, statement: str, parameters: Sequence[Any] | None = None, /) -> None:
        """With its parameters beside it."""
        asked: dict[str, Any] = {"stmt": statement}
        if parameters:
            asked = {"stmt": statement.replace("%s", "?"), "args": [_for_cratedb(each) for each in parameters]}
        self._ask(asked)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """By one request, `bulk_args`. One value that cannot be cast fails all of them."""
        sent = [[_for_cratedb(value) for value in row] for row in rows]
        came = self._ask({"stmt": statement.replace("%s", "?"), "bulk_args": sent})
        said = _accepted(came.status, came.json())
        refused = [each for each in said.get("results", ()) if each.get("rowcount", 0) == _REFUSED]
        if refused:
            why = next((each["error"]["message"] for each in refused if "error" in each), "it does not say why")
            raise SqlError(f"{len(refused)} of {len(rows)} rows were refused: {why}")

    def _ask(self, body: dict[str, Any]) -> _Arrived:
        came = self._client.request("POST", "/_sql?types", json.dumps(body).encode())
        self._take(came)
        return came

    def read(self, status: int, said: Any) -> tuple[Description, Sequence[Any]]:
        """Times are numbers there."""
        told = _accepted(status, said)
        readers = [_milliseconds if kind in _OF_TIME else _as_it_is for kind in told.get("col_types") or ()]
        rows = [[read(value) for read, value in zip(readers, row, strict=True)] for row in told.get("rows", ())]
        return [(str(name),) for name in told.get("cols") or ()] or None, rows


def _accepted(status: int, said: Any) -> dict[str, Any]:
    """What CrateDB said where it refused nothing. Raises SqlError."""
    if not isinstance(said, dict) or "error" in said or status != HTTPStatus.OK:
        told = said.get("error", said) if isinstance(said, dict) else said
        refused = isinstance(told, dict) and told.get("code") in _OF_STATEMENT
        words = str(told.get("message", told) if isinstance(told, dict) else told)
        raise (StatementRefused if refused else SqlError)(words)
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
