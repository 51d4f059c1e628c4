"""Runs a driver and watches over it: its limit, the disk, the user's wish to end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from dyno.hosts import LocalHost, Process
from dyno.hosts.confinement import Confinement
from dyno.lab.disk import DiskGuard
from dyno.lab.interrupt import Interrupt
from dyno.lab.listener import Listener
from dyno.model.base import RunError
from dyno.model.units import format_duration
from dyno.workloads.base import Measured

_LOOK_EVERY_S = 0.25
_JOINS_WITHIN_S, _LOOK_AGAIN_S = 1.0, 0.002


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
        on_ended: Callable[[], None] = lambda: None,
        cpus: str | None = None,
        confinement: Confinement | None = None,
    ) -> None:
        """`on_started` is told each process, `on_ended` that all are over; `cpus` are the only ones they may use.

        `confinement` holds them too where the system works inside them.
        """
        self.core = core
        self.folder = folder
        self.commands: list[tuple[str, ...]] = []
        self.seconds = 0.0
        self.complaint = ""
        self.measured: Measured | None = None
        self.host = host
        self.logs = logs
        self.limit = limit
        self._guard = guard
        self._interrupt = interrupt
        self._listener = listener
        self._on_started = on_started
        self._on_ended = on_ended
        self._confinement = confinement or Confinement()
        self.under: tuple[str, ...] = ()
        """The words that drivers are started under from now on, where the system works inside them."""
        self.on_measuring: Callable[[float], None] = lambda _since: None
        """Told, now and then, since when the measured part goes on, by the monotonic clock."""
        self.namespace: str | None = None
        """The file of the network namespace that drivers are started in from now on; dyno's own where it is None."""
        self._pinned = () if cpus is None else ("taskset", "--cpu-list", cpus)

    @property
    def interrupted(self) -> bool:
        """Whether the user wants it all to end."""
        return self._interrupt.requested

    def execute(self, argv: Sequence[str], *, kept_as: str | None = None) -> int:
        """The driver's exit status. Raises RunError past the limit and DiskFull; it is then ended."""
        return self._execute([argv], kept_as)[0]

    def execute_all(self, argvs: Sequence[Sequence[str]]) -> list[int]:
        """The same for several drivers at once."""
        return self._execute(argvs, None)

    def _execute(self, argvs: Sequence[Sequence[str]], kept_as: str | None) -> list[int]:
        begun = time.monotonic()
        processes: list[Process] = []
        try:
            for number, words in enumerate(argvs):
                words = (*_within(self.namespace), *self._pinned, *words)
                argv, _ = replace(self._confinement, under=self.under).around(words, None)
                self.commands.append(tuple(argv))
                log = self.logs / (kept_as or ("driver" if len(argvs) == 1 else f"driver-{number}"))
                processes.append(self.host.start(argv, log=log, lines=kept_as is None))
                self._see_it_join(processes[-1])
                self._on_started(processes[-1].pid)
            self._watch(processes, begun, tells=kept_as is None)
            # Of several that were told to end, each still writes what it measured; the run is then partial.
            statuses = [process.stop() for process in processes]
            self._on_ended()
            return statuses
        finally:
            for process in processes:
                process.stop()
            self.complaint = next(filter(None, (process.complaint() for process in processes)), "")
            self.seconds += time.monotonic() - begun

    def _see_it_join(self, process: Process) -> None:
        """It joins its groups by itself as it begins; whoever is told of it before would look at dyno's own."""
        deadline = time.monotonic() + _JOINS_WITHIN_S
        while not self._confinement.holds(process.pid) and time.monotonic() < deadline:
            if process.wait(_LOOK_AGAIN_S) is not None:
                return

    def _watch(self, processes: Sequence[Process], begun: float, *, tells: bool) -> None:
        """Return when all have ended, or the user wants them to. Raises RunError past the limit."""
        told = [0.0] * len(processes)
        while running := [number for number, process in enumerate(processes) if process.wait(0) is None]:
            for number in running:
                wait = _LOOK_EVERY_S / len(running)
                if not tells:
                    processes[number].wait(wait)
                    continue
                for line in processes[number].lines(wait):
                    self._tell(line, told, number)
            if self._interrupt.requested:
                return
            if time.monotonic() - begun > self.limit:
                raise RunError(f"the driver did not end within {format_duration(self.limit)}, its limit")
            self._guard.watch()

    def _tell(self, line: str, told: list[float], number: int) -> None:
        try:
            progress = json.loads(line)
            told[number] = float(progress["throughput_per_s"])
            self._listener.driving(sum(told), str(progress["phase"]))
            if progress["phase"] == "measured":
                self.on_measuring(time.monotonic() - float(progress["elapsed_s"]))
        except (ValueError, KeyError, TypeError):
            return  # a driver may say other things too; they are not progress


def _within(namespace: str | None) -> tuple[str, ...]:
    """The words that a program of util-linux is started with, which becomes the command after them."""
    return () if namespace is None else ("nsenter", f"--net={namespace}")
