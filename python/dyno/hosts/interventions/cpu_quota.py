"""Less CPU time a second than the machine has, for system and driver together."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar

from pydantic import Field

from dyno.hosts.interventions.base import Controller, Target
from dyno.hosts.interventions.caps import Cap
from dyno.model.interventions import Shares
from dyno.model.units import Share

_PERIOD_US = 10_000
"""Shorter than the kernel's own 100 ms: what is used up early in a period is waited for until its end."""


class CpuQuotaOptions(Shares):
    """How much is taken."""

    title = "a share of the CPUs' time taken from system and driver together"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of the CPUs that is taken away; 10%, 25% and 40% if left out"),
    ] = (0.1, 0.25, 0.4)


class CpuQuota(Cap):
    """A quota of the CPUs that this process may use: those that the machine gives."""

    kind = "cpu-quota"
    Options = CpuQuotaOptions
    joint: ClassVar[Controller | None] = "cpu"

    def limit(self, share: float, target: Target) -> None:
        """So many microseconds in each period."""
        self._write(str(round(share * len(os.sched_getaffinity(0)) * _PERIOD_US)))

    def free(self) -> None:
        """No quota."""
        self._write("-1" if self.group.version("cpu") == 1 else "max")

    def _write(self, quota: str) -> None:
        if self.group.version("cpu") == 2:
            self.group.write("cpu", "cpu.max", f"{quota} {_PERIOD_US}")
        else:
            self.group.write("cpu", "cpu.cfs_period_us", str(_PERIOD_US))
            self.group.write("cpu", "cpu.cfs_quota_us", quota)
