"""The process that holds a DuckDB file, by itself."""

from __future__ import annotations

import json
import math
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dyno import sql
from dyno.model.endpoint import Endpoint
from dyno.model.rows import in_one_form, same
from dyno.systems import duckdb_server
from tests.making import until

CLIENTS = 8


def reaches(path: Path) -> socket.socket | None:
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(str(path))
    except OSError:
        client.close()
        return None
    return client


@contextmanager
def serving(folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    path = folder / "s"
    told = json.dumps({"database": str(folder / f"{name}.duckdb"), "socket": str(path), "config": {}})
    words = [sys.executable, "-I", duckdb_server.__file__, told]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        try:
            until(lambda: (first := reaches(path)) is not None and first.close() is None)
            yield process, path
        finally:
            process.send_signal(signal.SIGTERM)


def test_nan_and_the_infinities_arrive_as_what_they_are_and_not_as_null(tmp_path: Path) -> None:
    """They had arrived as NULL, so that a store that keeps NaN answered as one that keeps nothing."""
    asked = (
        "SELECT 'nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::FLOAT, NULL::DOUBLE, 0.5::DOUBLE, {'f': 'nan'}, ['nan'::DOUBLE]"
    )
    with (
        serving(tmp_path, "floats") as (_, path),
        sql.connect(Endpoint("duckdb", {"socket": str(path)}), limit=30.0) as connection,
    ):
        (row,) = connection.ask(asked).rows
        assert row[5] == {"f": "nan"}
        assert math.isnan(row[6][0])
        found, again = in_one_form([row[:5]] * 2, ["number"] * 5)
        assert found == [{"f": "nan"}, {"f": "inf"}, {"f": "-inf"}, None, 0.5]
        assert all(same(one, other, 0, 0) for one, other in zip(found, again, strict=True))
        assert not same(found[0], found[3], 1, 1)
        ((parameter,),) = connection.rows("SELECT %s::DOUBLE", math.inf)
        assert parameter == math.inf


OF_ALL_KINDS = (
    "true, 1::TINYINT, -2::SMALLINT, 3::INTEGER, 1::UBIGINT, 9007199254740993::BIGINT, 0.1::FLOAT, 0.1::DOUBLE, "
    "'nan'::DOUBLE, 'ä', DATE '2016-02-29', NULL::BIGINT, NULL::VARCHAR, NULL::DOUBLE, NULL::BOOLEAN, "
    "TIMESTAMP '2016-01-01 00:00:00.000001', TIMESTAMPTZ '2016-01-01 00:00:00+02', NULL::TIMESTAMP"
)
ROUNDED = "12345678901234567890::HUGEINT, 1.25::DECIMAL(9, 2), 2::DECIMAL(9, 2), 1::HUGEINT"


def test_what_comes_by_columns_is_what_comes_by_rows(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "forms") as (_, path),
        sql.connect(Endpoint("duckdb", {"socket": str(path)}), limit=30.0) as connection,
    ):
        many = "range, range / 3 AS third, 'host_' || range % 20 AS host, nullif(range, 7) AS seven FROM range(70000)"
        for asked in (OF_ALL_KINDS, many):
            by_columns = connection.timed(f"SELECT {asked}").decode()
            by_rows = connection.timed(f"SELECT INTERVAL 1 DAY, {asked}").decode()  # for which NumPy has no type
            assert by_columns.columns == by_rows.columns[1:]
            # By which 1 is not 1.0, and NaN is NaN.
            assert repr(by_columns.rows) == repr([row[1:] for row in by_rows.rows])
        assert connection.ask(f"SELECT {ROUNDED}").rows == [(12345678901234567890, 1.25, 2, 1)]


def test_what_has_no_such_form_comes_all_the_same(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "rest") as (_, path),
        sql.connect(Endpoint("duckdb", {"socket": str(path)}), limit=30.0) as connection,
    ):
        assert connection.rows("SELECT INTERVAL 1 DAY, [1], 1 AS a, 2 AS a")[0][1:] == (([1]), 1, 2)
        assert connection.rows("CREATE TABLE t (i INTEGER)") == []
        connection.many("INSERT INTO t VALUES (%s)", [[1], [2]])
        assert connection.timed("SELECT i FROM t WHERE i > 2").decode() == sql.Answer(("i",), [])
        assert connection.ask("EXPLAIN SELECT i FROM t").rows
        with pytest.raises(sql.SqlError, match="nope"):
            connection.timed("SELECT nope FROM t")
        with pytest.raises(sql.SqlError, match="torn"):
            connection.timed("SELECT error('torn') FROM t")
        assert connection.value("SELECT count(*) FROM t") == 2, "it goes on"


@pytest.mark.parametrize("time", range(5))
def test_clients_that_leave_just_as_it_is_told_to_end_do_not_fail_it(time: int, tmp_path: Path) -> None:
    """Of forty such ends seventeen had failed: a cursor was interrupted that was closed already."""
    with serving(tmp_path, str(time)) as (process, path):
        clients = [client for client in (reaches(path) for _ in range(CLIENTS)) if client is not None]
        assert len(clients) == CLIENTS
        for client in clients:
            client.sendall(b'{"sql": "SELECT ?", "parameters": [1]}\n')
            with client.makefile("rb") as answer:
                said = json.loads(answer.readline())
                (column,) = pickle.loads(answer.read(said["bytes"]))
                assert (said["form"], column.tolist()) == ("columns", [1])
        for client in clients:
            client.close()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, b"")
