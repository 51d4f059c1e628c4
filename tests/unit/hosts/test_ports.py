from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dyno.hosts import ports
from dyno.model.base import RunError


@pytest.fixture
def clients_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(ports, "_CLIENTS_OWN", path)
    return path


def test_a_port_is_none_that_a_client_could_be_given(clients_own: Path) -> None:
    clients_own.write_text("10016\t60999\n")
    assert {ports.free_port() for _ in range(200)} <= set(range(10_000, 10_016))


def test_a_port_that_somebody_listens_on_is_not_given(clients_own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        clients_own.write_text(f"{port + 1} 65535\n")
        monkeypatch.setattr(ports, "_FIRST", port)
        with pytest.raises(RunError, match=rf"^no free port was found from {port} to {port}, in 1000 tries$"):
            ports.free_port()
    assert ports.free_port() == port


def test_where_clients_may_have_all_one_of_theirs_is_given(clients_own: Path) -> None:
    clients_own.write_text("1024 65535\n")
    assert ports.free_port() >= 1024
