"""What is told of a server that was asked and did not answer as it should."""

from __future__ import annotations

import gc
import socket
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pymysql
import pytest

from dyno import sql
from dyno.model.endpoint import Endpoint
from dyno.sql import over_http, over_libpq, over_lines
from dyno.sql.visible import wait


class Cursor:
    description: Any = None

    def __init__(self, error: Exception) -> None:
        self.error = error

    def execute(self, _statement: str, _parameters: Any = None) -> None:
        raise self.error

    def fetchall(self) -> list[Any]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (pymysql.OperationalError(2013, "Lost connection to MySQL server during query"), True),
        (pymysql.OperationalError(2006, "MySQL server has gone away (BrokenPipeError(32, 'Broken pipe'))"), True),
        (pymysql.OperationalError(2013, "Lost connection to MySQL server during query (timed out)"), False),
        (pymysql.ProgrammingError(1146, "Table 'dyno.none' doesn't exist"), False),
    ],
)
def test_a_client_that_was_let_go_of_is_told_from_one_that_was_refused(error: Exception, lost: bool) -> None:
    connection = sql.Connection(lambda: None, lambda: Cursor(error), pymysql.MySQLError)
    with pytest.raises(sql.SqlError, match=r"\(asked: SELECT 1\)$") as told:
        connection.value("SELECT 1")
    assert isinstance(told.value, sql.ConnectionLost) == lost


class Making:
    """A connection to a QuestDB that makes a table of the first rows of it that come."""

    def __init__(self, *refusals: str) -> None:
        self.left = list(refusals)

    def rows(self, statement: str, *_parameters: Any) -> list[tuple[Any, ...]]:
        if "wait_wal_table" in statement and self.left:
            raise sql.SqlError(self.left.pop())
        return [(True, False)]

    def value(self, _statement: str) -> int:
        return 7


def test_a_table_that_is_being_made_is_waited_for() -> None:
    connection: Any = Making("table does not exist [table=cpu]", "table name is reserved [table=cpu]")
    assert wait("questdb", connection, "cpu", 7, 5.0) == 7
    assert not connection.left
    connection.left.append("the disk is full")
    with pytest.raises(sql.SqlError, match="the disk is full"):
        wait("questdb", connection, "cpu", 7, 5.0)


def test_what_sqlite_refuses_is_told_from_what_it_cannot_do_now(tmp_path: Path) -> None:
    endpoint = Endpoint("sqlite", {"path": str(tmp_path / "data.db")})
    with sql.connect(endpoint, limit=0.1) as connection, sqlite3.connect(tmp_path / "data.db") as other:
        with pytest.raises(sql.StatementRefused, match="syntax error"):
            connection.timed("SELEKT 1")
        other.execute("CREATE TABLE a (b)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sql.SqlError, match="locked") as told:
            connection.timed("SELECT * FROM a")
    assert not isinstance(told.value, sql.StatementRefused)


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (psycopg.errors.SyntaxError("at or near SELEKT"), True),
        (psycopg.errors.UndefinedColumn("no such column"), True),
        (psycopg.errors.QueryCanceled("statement timeout"), False),
        (psycopg.OperationalError("server closed the connection"), False),
    ],
)
def test_what_postgresql_refuses_is_told_from_what_it_cannot_do_now(error: Exception, refused: bool) -> None:
    connection = sql.Connection(lambda: None, lambda: Cursor(error), psycopg.Error)
    with pytest.raises(sql.SqlError) as told:
        connection.timed("SELECT 1")
    assert isinstance(told.value, sql.StatementRefused) == refused


@pytest.mark.parametrize(
    ("cursor", "status", "said", "refused"),
    [
        (over_http._Questdb, 400, {"error": "unexpected token [SELEKT]", "position": 0}, True),
        (over_http._Questdb, 400, {"error": "timeout, query aborted [fd=5]", "position": 0}, False),
        (over_http._Questdb, 500, {"error": "out of room"}, False),
        (over_http._Cratedb, 400, {"error": {"message": "line 1:1: mismatched input 'SELEKT'", "code": 4000}}, True),
        (over_http._Cratedb, 404, {"error": {"message": "Relation 'a' unknown", "code": 4041}}, True),
        (over_http._Cratedb, 409, {"error": {"message": "conflict", "code": 4092}}, False),
        (over_http._Cratedb, 503, {"error": {"message": "killed", "code": 5030}}, False),
    ],
)
def test_what_is_refused_by_http_is_told_from_what_cannot_be_done_now(
    cursor: Any, status: int, said: dict[str, Any], refused: bool
) -> None:
    with pytest.raises(sql.SqlError) as told:
        cursor(cast("Any", None)).read(status, said)
    assert isinstance(told.value, sql.StatementRefused) == refused


@pytest.mark.parametrize(
    ("said", "refused"),
    [('Parser Error: syntax error at or near \\"SELEKT\\"', True), ("INTERRUPT Error: Interrupted!", False)],
)
def test_what_duckdb_refuses_is_told_from_what_it_cannot_do_now(said: str, refused: bool) -> None:
    stream = SimpleNamespace(
        write=lambda _: None, flush=lambda: None, readline=lambda: f'{{"error": "{said}"}}\n'.encode()
    )
    with pytest.raises(sql.SqlError) as told:
        over_lines._Duckdb(stream).execute("SELEKT 1")
    assert isinstance(told.value, sql.StatementRefused) == refused


def test_a_connection_that_nobody_answered_is_closed_with_its_error() -> None:
    """Held in a circle until the collector comes by, it keeps a PostgreSQL from shutting down for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {"host": "127.0.0.1", "port": silent.getsockname()[1], "user": "u", "database": "d"}
        gc.disable()
        try:
            with pytest.raises(sql.SqlError, match="timeout"):
                over_libpq.connect(settings, 1.0)
            accepted, _ = silent.accept()
            with accepted:
                accepted.settimeout(5.0)
                while accepted.recv(1024):
                    pass
        finally:
            gc.enable()
