"""A server alone that can be struck as a node of a cluster is: nobody goes on for it, and it comes back on its data."""

from __future__ import annotations

import signal
import time
from typing import TypeVar

from dyno import sql
from dyno.deployments.native import NativeServer
from dyno.hosts.process import Family
from dyno.model.base import RunError
from dyno.model.faults import FaultKind, Struck
from dyno.systems.cluster import Cluster, NodeState
from dyno.systems.server import ServerOptions, ServerSystem

S = TypeVar("S", bound=ServerOptions)

_ASK_LIMIT_S = 10.0


class LoneServer(Cluster[S], ServerSystem[S]):
    """Its only node is called as its program is, and is `primary`."""

    lone = True
    rejoins_in_s = 10.0
    _family: Family | None = None
    """The children of the process that was struck."""

    @classmethod
    def why_not_struck(cls, options: S, kind: FaultKind) -> str | None:  # noqa: ARG003 - whatever they are
        """Its process can be; it has no network and no disk of a node's own."""
        if kind in ("kill", "freeze", "shutdown"):
            return None
        return f"{kind} is of a node's own network or disk, which {cls.kind} has not: strike kill, freeze or shutdown"

    def processes(self) -> dict[str, int]:
        """Its own; one that has ended until it is started again."""
        return {} if self.running is None else {self.program: self.running.pid}

    def nodes(self) -> tuple[NodeState, ...]:
        """The one."""
        running = self.running
        lives = running is not None and running.wait(0) is None
        pid = running.pid if running is not None and lives else None
        return (
            NodeState(self.program, "127.0.0.1", pid, "primary" if lives else "none", "runs" if lives else "ended"),
        )

    def carry_out(self, kind: FaultKind, node: str) -> None:
        """By a signal."""
        numbers: dict[FaultKind, signal.Signals] = {
            "kill": signal.SIGKILL,
            "freeze": signal.SIGSTOP,
            "shutdown": self.farewell,
        }
        running = self.running
        if not isinstance(running, NativeServer):
            raise RunError(f"{kind}: {node} lives in {self.deployment.kind}, and can be struck where it lives natively")
        if kind != "freeze":
            self._family = Family(running.pid)
        running.process.send(numbers[kind])

    def carry_back(self, struck: Struck, limit: float) -> None:
        """Let it go on; one that has ended is started again on its data, where it was."""
        deadline = time.monotonic() + limit
        self.taken_back(struck)
        running = self.running
        assert running is not None, "it is stopped only when nothing is mended any more"
        if struck.kind == "freeze" and isinstance(running, NativeServer):
            running.process.send(signal.SIGCONT)
            return
        if running.wait(max(deadline - time.monotonic(), 0.0)) is None:
            raise RunError(f"{self.program} did not end within {limit:g} s")
        self.end_process(0.0)
        assert self._family is not None, "it was struck before it ended"
        left = max(deadline - time.monotonic(), 0.1)
        self.come_back(self._family, left, left)
        self._before = {}  # it counts from 0 again

    def whole(self) -> bool:
        """Whether it answers."""
        if self._endpoint is None:
            return False
        try:
            with sql.connect(self._endpoint, limit=_ASK_LIMIT_S) as connection:
                return bool(connection.rows("SELECT 1"))
        except sql.SqlError:
            return False

    def stop(self, limit: float) -> None:
        """Ask it to end cleanly. One that was struck and not mended is let go on, or has ended already."""
        ended = False
        for each in list(self._struck):
            self.taken_back(each)
            running = self.running
            if each.kind == "freeze" and isinstance(running, NativeServer):
                running.process.send(signal.SIGCONT)
            else:
                ended = True
        if ended and self.running is not None:
            self._end(self.running, limit)
            return
        super().stop(limit)
