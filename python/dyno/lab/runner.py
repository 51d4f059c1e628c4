"""Runs a driver and watches over it: its limit, the disk, the user's wish to end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dyno.hosts import LocalHost
from dyno.lab.disk import DiskGuard
from dyno.lab.interrupt import Interrupt
from dyno.lab.listener import Listener
from dyno.model.base import RunError
from dyno.model.units import format_duration

_LOOK_EVERY_S = 0.25


class WatchedRunner:
    """The `Runner` that workloads are given. Remembers what it started and how long that took."""

    def __init__(
        self,
        host: LocalHost,
        core: str,
        *,
        folder: Path,
        logs: Path,
        limit: float,
        guard: DiskGuard,
        interrupt: Interrupt,
        listener: Listener,
        on_started: Callable[[int], None],
    ) -> None:
        self.core = core
        self.folder = folder
        self.commands: list[tuple[str, ...]] = []
        self.seconds = 0.0
        self.complaint = ""
        self._host = host
        self.logs = logs
        self._limit = limit
        self._guard = guard
        self._interrupt = interrupt
        self._listener = listener
        self._on_started = on_started

    def execute(self, argv: Sequence[str]) -> int:
        """The driver's exit status. Raises RunError past the limit and DiskFull; it is then ended."""
        self.commands.append(tuple(argv))
        begun = time.monotonic()
        process = self._host.start(argv, log=self.logs / "driver", lines=True)
        try:
            self._on_started(process.pid)
            while (status := process.wait(0)) is None:
                for line in process.lines(_LOOK_EVERY_S):
                    self._tell(line)
                if self._interrupt.requested:
                    # Asked to end, it still writes what it measured; the run is then partial.
                    return process.stop()
                if time.monotonic() - begun > self._limit:
                    raise RunError(f"the driver did not end within {format_duration(self._limit)}, its limit")
                self._guard.watch()
            return status
        finally:
            process.stop()
            self.complaint = process.complaint()
            self.seconds += time.monotonic() - begun

    def _tell(self, line: str) -> None:
        try:
            progress = json.loads(line)
            self._listener.driving(float(progress["throughput_per_s"]), str(progress["phase"]))
        except (ValueError, KeyError, TypeError):
            return  # a driver may say other things too; they are not progress
