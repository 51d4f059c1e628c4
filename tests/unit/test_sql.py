"""What is told of a server that was asked and did not answer as it should."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from dyno import sql
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
