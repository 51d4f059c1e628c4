"""A cluster of one: a MariaDB server that can be killed or stopped, and comes back. It has no other node to go to."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

from dyno import sql
from dyno.model.endpoint import READ_ONLY, Endpoint
from dyno.model.faults import FaultKind, Struck
from dyno.systems.cluster import Cluster, NodeState
from dyno.systems.mariadb import MariadbOptions, MariadbSystem


class OneNode(MariadbSystem, Cluster[MariadbOptions]):
    """Its node is `n1`, and is reached in one way only, whatever the way is called."""

    kind = "one-node"

    @classmethod
    def why_not_struck(cls, options: MariadbOptions, kind: FaultKind) -> str | None:
        """A fault that is refused by an option."""
        return "it can be struck only over its socket" if options.connect == "tcp" else None

    def ready(self, limit: float) -> Endpoint:
        """With the ways in that clusters have."""
        endpoint = super().ready(limit)
        return replace(endpoint, others={READ_ONLY: endpoint.settings, "n1": endpoint.settings})

    def nodes(self) -> tuple[NodeState, ...]:
        """As its process is."""
        pid = None if self._running is None else self._running.pid
        role: Any = "none" if pid is None else "primary"
        return (NodeState("n1", "localhost", pid, role, "running" if pid else "ended"),)

    def carry_out(self, kind: FaultKind, node: str) -> None:
        """Kill it or stop it."""
        assert self._running is not None
        if kind == "freeze":
            os.kill(self._running.pid, signal.SIGSTOP)
        else:
            self.end_process(10.0)

    def carry_back(self, struck: Struck, limit: float) -> None:
        """Start it again, or let it go on."""
        self.taken_back(struck)
        if self._running is not None:
            os.kill(self._running.pid, signal.SIGCONT)
            return
        running = self.start_again(limit)
        assert self._endpoint is not None
        self._answering(running, self._endpoint, limit).close()

    def forget(self, statement: str) -> None:
        """Have it lose something, as the account of workloads."""
        assert self._endpoint is not None
        with sql.connect(self._endpoint, limit=10.0) as connection:
            connection.rows(statement)

    def whole(self) -> bool:
        """Whether its process is there."""
        return self._running is not None
