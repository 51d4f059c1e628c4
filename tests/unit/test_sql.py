"""What is told of a server that was asked and did not answer as it should."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from dyno import sql


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
