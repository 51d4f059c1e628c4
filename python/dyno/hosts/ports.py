"""A port for a server to listen on."""

from __future__ import annotations

import contextlib
import secrets
import socket
from pathlib import Path

from dyno.model.base import RunError

_CLIENTS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000  # below are those of well-known servers
_TRIES = 1000


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now.

    From below those that the kernel gives to clients where there are such: any client of the machine could otherwise be
    given it between this look and the server's own, which is seconds later. Raises RunError where none is found.
    """
    lowest_of_clients = int(_CLIENTS_OWN.read_text().split()[0])
    ours = range(_FIRST, lowest_of_clients) or range(lowest_of_clients, 2**16)
    for _ in range(_TRIES):
        port = secrets.choice(ours)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a port just left is free
            probe.bind(("127.0.0.1", port))
            return port
    raise RunError(f"no free port was found from {ours.start} to {ours.stop - 1}, in {_TRIES} tries")
