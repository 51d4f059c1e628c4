"""A process of this machine with a folder of its own."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace

from dyno.deployments.base import ENVIRONMENT, Deployment, Launch, Running
from dyno.hosts import Process
from dyno.hosts.confinement import Confinement


class NativeServer(Running):
    """A child of dyno's."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = process.pid

    def wait(self, timeout: float) -> int | None:
        """That of its process."""
        return self.process.wait(timeout)

    def complaint(self, lines: int = 1, telling: str = "") -> str:
        """That of its process."""
        return self.process.complaint(lines, telling)


class Native(Deployment):
    """Started as its account, within the study's limits."""

    kind = "native"
    in_container = False

    def start(self, launch: Launch, limit: float) -> NativeServer:
        """As a child of dyno's."""
        procs = self.joined or self.site.confinement.procs
        confinement = replace(self.site.confinement, under=self.under, procs=procs)
        argv, account = confinement.around(launch.argv, launch.account)
        process = self.site.host.start_server(
            argv,
            log=launch.log,
            marker=launch.marker,
            undo_by=launch.undo_by,
            account=account,
            environment=ENVIRONMENT,
        )
        return NativeServer(process)

    def end(self, running: Running, *, limit: float, farewell: signal.Signals = signal.SIGTERM) -> int:
        """Its undo entry goes with it."""
        assert isinstance(running, NativeServer)
        return self.site.host.end_server(running.process, limit=limit, farewell=farewell)


def for_node(given: Deployment, confinement: Confinement, within: Sequence[str] = ()) -> Native:
    """Where a node of a system lives: in a control group of its own, by the words of its network, if it has one."""
    made = Native(replace(given.site, confinement=confinement))
    made.under, made.joined = (*within, *given.under), given.joined
    return made
