"""Less of a resource for system and driver together: what the kinds that set a limit share.

A limit is a share of what the machine has, measured or counted: a limit below what is used would make any resource the
bottleneck, so that only how throughput goes with the limit, from the whole capacity on, says whether it is one.
"""

from __future__ import annotations

import os
from abc import abstractmethod

from dyno.hosts.cgroups import controller
from dyno.hosts.interventions.base import Effect, Intervention, Lives, Target
from dyno.hosts.joint import Joint
from dyno.model.base import RunError
from dyno.model.study import Machine


class Cap(Intervention):
    """A limit on the joint group. The control has the limit at the whole capacity."""

    control = "a limit at the whole capacity"

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:
        """One group cannot be in two places."""
        if lives.in_container:
            return "a container's processes are in a group of the engine's, and cannot be in one with the driver"
        if lives.machine != Machine():
            return "the system has limits of its own (host.machine), and cannot be in a group with the driver"
        return None

    @classmethod
    def missing(cls) -> str | None:
        """The controller, and the right to use it."""
        assert cls.joint is not None
        if os.geteuid() != 0:
            return "a control group of system and driver together needs root"
        return None if controller(cls.joint) else f"this kernel offers no control groups for {cls.joint}"

    @property
    def group(self) -> Joint:
        """The joint group of this study."""
        if self.bench.joint is None:
            raise RunError(f"{self.kind}: the study has no group of system and driver together")
        return self.bench.joint

    def begin(self, target: Target) -> None:
        """Set the limit."""
        self.refuse(target)
        self.limit(1 - self.dose, target)

    def end(self) -> None:
        """Have the whole capacity again; the group itself goes with the study."""
        self.free()

    def refuse(self, target: Target) -> None:
        """Raise InvalidRun where this system would not be slowed by the limit."""

    @abstractmethod
    def limit(self, share: float, target: Target) -> None:
        """Leave this share of the capacity."""

    @abstractmethod
    def free(self) -> None:
        """Leave all of it. May be called where there is no limit."""

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """A unit of the resource takes as many times longer to be had."""
        return Effect(slowed=1 / (1 - self.dose) - 1)
