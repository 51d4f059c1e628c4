"""Competing load on every CPU: whoever computes meanwhile takes longer for it, system, driver and kernel alike.

A process on each CPU takes a share of each millisecond or two of it, before all others (SCHED_FIFO). It slows work on a
CPU also where CPUs stand idle most of the time, which a quota does not: that holds back only who has used it up. What
the processes really took is measured by themselves.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Annotated

from pydantic import Field

from dyno.hosts.interventions.base import Bench, Effect, Intervention, Target
from dyno.hosts.process import Process
from dyno.model.base import RunError
from dyno.model.interventions import Shares
from dyno.model.units import Share

_PERIOD_S = 0.002
"""Much shorter than an operation's queue, much longer than a switch of context takes."""
_LOAD = """
import json, os, select, sys, time
cpu, busy, period = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
begun, used = time.monotonic(), time.process_time()
ended = False
while not ended:
    until = time.monotonic()
    while time.monotonic() - until < busy:
        pass
    ended = bool(select.select([0], [], [], max(until + period - time.monotonic(), 0))[0])
print(json.dumps({"share": (time.process_time() - used) / (time.monotonic() - begun)}), flush=True)
"""


class CpuLoadOptions(Shares):
    """How much is taken."""

    title = "a share of every CPU taken by a competing load"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of each CPU that is taken; 10%, 25% and 40% if left out"),
    ] = (0.1, 0.25, 0.4)


class CpuLoad(Intervention):
    """The control has the same processes, which wake up as often and do nothing."""

    kind = "cpu-load"
    Options = CpuLoadOptions
    control = "a load that wakes up as often and does nothing"

    def __init__(self, dose: float, bench: Bench) -> None:
        super().__init__(dose, bench)
        self._processes: list[Process] = []
        self._shares: list[float] = []

    @classmethod
    def missing(cls) -> str | None:
        """The right to go before others."""
        return None if os.geteuid() == 0 else "going before all others on a CPU needs root"

    def begin(self, target: Target) -> None:
        """One on each CPU; they are at it when this returns."""
        words = [sys.executable, "-I", "-S", "-c", _LOAD]
        for cpu in sorted(os.sched_getaffinity(0)):
            argv = [*words, str(cpu), str(self.dose * _PERIOD_S), str(_PERIOD_S)]
            log = self.bench.logs / f"{self.kind}-{cpu}"
            self._processes.append(self.bench.host.start(argv, log=log, lines=True))
        for process in self._processes:
            if "ready" not in self._said(process):
                raise RunError(f"the competing load did not begin: {process.complaint() or 'it said nothing'}")

    def end(self) -> None:
        """They end at the end of their input, and say what they took."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.hush()
        for process in processes:
            try:
                said = json.loads(next(iter(self._said(process)), "null"))
                if said is not None:
                    self._shares.append(float(said["share"]))
            finally:
                process.stop()

    def _said(self, process: Process) -> list[str]:
        """What it says next; nothing where it ended without a word."""
        deadline = time.monotonic() + self.bench.limit
        # Read before its end is asked for, which closes its output.
        while not (lines := process.lines(deadline - time.monotonic())) and process.wait(0) is None:
            if time.monotonic() > deadline:
                break
        return lines

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """By the mean of what they took of their CPUs, over all of the drive."""
        if not self._shares:
            raise RunError("the competing load did not say how much it took")
        share = sum(self._shares) / len(self._shares)
        return Effect(slowed=1 / (1 - share) - 1)
