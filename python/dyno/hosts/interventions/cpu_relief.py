"""More CPU time for the system than its machine has: a limit of the study's own, raised."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dyno.hosts.cgroups import hierarchies
from dyno.hosts.interventions.base import Effect, Intervention, Lives, Target
from dyno.model.base import InvalidRun, RunError
from dyno.model.interventions import Shares
from dyno.model.units import Share

_PERIOD_US = 100_000  # as the machine's own limit has it


class CpuReliefOptions(Shares):
    """How much is added."""

    title = "a share of the CPUs of the system's machine given to it besides"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of host.machine.cpus that is added; 20%, 40% and 60% if left out"),
    ] = (0.2, 0.4, 0.6)


class CpuRelief(Intervention):
    """A relief: what throughput gains says that CPU time was what it lacked."""

    kind = "cpu-relief"
    Options = CpuReliefOptions
    control = "the machine's own limit, set anew"
    refused = "beyond the CPUs that there are, and without host.machine.cpus: only a limit can be raised"
    _before: tuple[Path, str] | None = None

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:
        """Only a limit can be raised."""
        return None if lives.machine.cpus is not None else "the system has all CPUs already (no host.machine.cpus)"

    @classmethod
    def missing(cls) -> str | None:
        """The controller."""
        return None if "cpu" in hierarchies() else "this kernel offers no control groups for cpu"

    @classmethod
    def refuses(cls, dose: float, lives: Lives) -> str | None:
        """More than there is."""
        wanted, there = (lives.machine.cpus or 0) * (1 + dose), len(os.sched_getaffinity(0))
        if wanted > there:
            return f"{wanted:g} CPUs cannot be had: {there} may be used here; lower host.machine.cpus or the doses"
        return None

    def begin(self, target: Target) -> None:
        """Raise the quota of the group that has the machine's limits."""
        if target.group is None or target.machine.cpus is None:
            raise InvalidRun("cpu-relief: the system's CPUs are not limited")
        hierarchy = hierarchies()["cpu"]
        folder = hierarchy.top / target.group.strip("/")
        file = folder / ("cpu.max" if hierarchy.version == 2 else "cpu.cfs_quota_us")
        quota = round(target.machine.cpus * (1 + self.dose) * _PERIOD_US)
        try:
            self._before = file, file.read_text().strip()
            file.write_text(f"{quota} {_PERIOD_US}" if hierarchy.version == 2 else str(quota))
        except OSError as error:
            raise RunError(f"cannot raise the CPU limit of {target.group}: {error.strerror}") from error

    def end(self) -> None:
        """As before; the group itself goes with the session."""
        if self._before is not None:
            file, value = self._before
            self._before = None
            try:
                file.write_text(value)
            except OSError as error:
                raise RunError(f"cannot put the CPU limit back: {error.strerror}") from error

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """A second of CPU time takes less long to be had."""
        return Effect(slowed=1 / (1 + self.dose) - 1)
