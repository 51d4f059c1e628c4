"""haproxy between clients and nodes: carries connections, while who looks after the cluster says to which nodes."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dyno.hosts import LocalHost
from dyno.hosts.programs import find
from dyno.model.base import RunError
from dyno.systems.front import Front
from dyno.systems.members import PORT

_ASK_LIMIT_S = 2.0
_LOOK_EVERY_S = 0.02
_MOST_CONNECTIONS = 4096


def program() -> Path:
    """Haproxy. Raises RunError where it is missing."""
    found = find("haproxy")
    if found is None:
        raise RunError("haproxy not found: apt-get install haproxy")
    return found


def configuration(control: Path, host: str, pools: Mapping[str, int], nodes: Mapping[str, str]) -> str:
    """The file that it is started with: `pools` are ports by name, `nodes` addresses by name, none of them in use."""
    lines = [
        "global",
        f"  stats socket {control} mode 600 level admin",
        f"  maxconn {2 * _MOST_CONNECTIONS}",
        "defaults",
        "  mode tcp",
        f"  maxconn {_MOST_CONNECTIONS}",
        "  balance roundrobin",
        "  retries 1",
        "  timeout connect 1s",
        "  timeout client 1h",
        "  timeout server 1h",
    ]
    for pool, port in pools.items():
        lines += [f"listen {pool}", f"  bind {host}:{port}"]
        lines += [f"  server {name} {address}:{PORT} disabled" for name, address in nodes.items()]
    return "\n".join(lines) + "\n"


class Balancer(Front):
    """One that runs, in the network namespace of the client."""

    program = "haproxy"

    def __init__(self, host: LocalHost, logs: Path) -> None:
        super().__init__(host, logs)
        self._used: dict[str, frozenset[str]] = {}

    def start(self, under: Sequence[str], host: str, pools: Mapping[str, int], nodes: Mapping[str, str]) -> None:
        """`under` are the words that put it into the namespace. Raises RunError."""
        file = self.make_folder() / "haproxy.cfg"
        file.write_text(configuration(self._control, host, pools, nodes))
        process = self.begin([*under, str(program()), "-db", "-f", str(file)], marker=str(file))
        while not self._control.exists():
            if process.wait(_LOOK_EVERY_S) is not None:
                raise RunError(f"haproxy ended as it started: {process.complaint(3)}")
        self._used = dict.fromkeys(pools, frozenset())

    @property
    def _control(self) -> Path:
        assert self._folder is not None
        return self._folder / "s"

    def use(self, pool: str, nodes: Iterable[str]) -> bool:
        """Have connections of a pool go to these nodes and no others; whether that is new. Raises RunError.

        Those that there are to others end, so that clients notice.
        """
        wanted = frozenset(nodes)
        used = self._used[pool]
        for name in sorted(wanted - used):
            self._tell(f"set server {pool}/{name} state ready")
        for name in sorted(used - wanted):
            self._tell(f"set server {pool}/{name} state maint")
            self._tell(f"shutdown sessions server {pool}/{name}")
        self._used[pool] = wanted
        return wanted != used

    def _tell(self, command: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
                control.settimeout(_ASK_LIMIT_S)
                control.connect(str(self._control))
                control.sendall(f"{command}\n".encode())
                answer = b"".join(iter(lambda: control.recv(4096), b"")).decode(errors="replace").strip()
        except OSError as error:
            raise RunError(f"haproxy could not be told `{command}`: {error}") from error
        if answer:
            raise RunError(f"haproxy refused `{command}`: {answer}")
