"""The process that holds a DuckDB file, by itself."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("time", range(5))
def test_clients_that_leave_just_as_it_is_told_to_end_do_not_fail_it(time: int, tmp_path: Path) -> None:
    """Of forty such ends seventeen had failed: a cursor was interrupted that was closed already."""
    path = tmp_path / "s"
    told = json.dumps({"database": str(tmp_path / f"{time}.duckdb"), "socket": str(path), "config": {}})
    words = [sys.executable, "-I", duckdb_server.__file__, told]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        until(lambda: (first := reaches(path)) is not None and first.close() is None)
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
