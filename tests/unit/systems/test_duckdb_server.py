"""The process that holds a DuckDB file, by itself."""

from __future__ import annotations

import json
import math
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
        # A STRUCT that looks like a marked value stays one, and what is in a list is marked.
        assert row[5:] == ({"f": "nan"}, [{"f": "nan"}])
        found, again = in_one_form([row[:5]] * 2, ["number"] * 5)
        assert found == [{"f": "nan"}, {"f": "inf"}, {"f": "-inf"}, None, 0.5]
        assert all(same(one, other, 0, 0) for one, other in zip(found, again, strict=True))
        assert not same(found[0], found[3], 1, 1)
        ((parameter,),) = connection.rows("SELECT %s::DOUBLE", math.inf)
        assert parameter == math.inf


@pytest.mark.parametrize("time", range(5))
def test_clients_that_leave_just_as_it_is_told_to_end_do_not_fail_it(time: int, tmp_path: Path) -> None:
    """Of forty such ends seventeen had failed: a cursor was interrupted that was closed already."""
    with serving(tmp_path, str(time)) as (process, path):
        clients = [client for client in (reaches(path) for _ in range(CLIENTS)) if client is not None]
        assert len(clients) == CLIENTS
        for client in clients:
            client.sendall(b'{"sql": "SELECT 1"}\n')
            assert json.loads(client.recv(1000))["rows"] == [[1]]
        for client in clients:
            client.close()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, b"")
