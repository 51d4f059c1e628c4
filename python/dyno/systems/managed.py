"""Clusters whose members dyno's own manager looks after, with haproxy where clients come."""

from __future__ import annotations

import re
from typing import TypeVar

from dyno.systems import balancer
from dyno.systems.balancer import Balancer
from dyno.systems.base import Place
from dyno.systems.manager import Line, Manager, Patience
from dyno.systems.members import ClusterOptions, ServerCluster

M = TypeVar("M", bound=ClusterOptions)


class ManagedCluster(ServerCluster[M]):
    """What is alike in them: haproxy, the manager, its lines to the nodes, and the end of all three."""

    _balancer: Balancer | None = None
    _manager: Manager | None = None

    def __init__(self, options: M, place: Place, silent_for: float) -> None:
        """A node that has not answered for so many seconds counts as dead."""
        super().__init__(options, place)
        self._lines: dict[str, Line] = {}
        self._patience = Patience(silent_for)

    def provision(self, limit: float) -> dict[str, str]:
        """Haproxy too."""
        words = [str(balancer.program()), "-v"]
        said = self.place.host.run(words, limit=limit, log=self.place.logs / "haproxy-version")
        found = re.search(r"\d+\.\d+(\.\d+)*", said)
        return {**super().provision(limit), "haproxy": found[0] if found else said.strip()}

    def helpers(self) -> dict[str, int]:
        """The balancer."""
        pid = None if self._balancer is None else self._balancer.pid
        return {} if pid is None else {"haproxy": pid}

    def let_go(self) -> None:
        """End the manager and haproxy."""
        try:
            if self._manager is not None:
                self._manager.stop()
                for line in self._lines.values():
                    line.close()
        finally:
            if self._balancer is not None:
                self._balancer.stop()

    def events(self) -> tuple[tuple[int, str], ...]:
        """What the manager did."""
        return () if self._manager is None else tuple(self._manager.events)
