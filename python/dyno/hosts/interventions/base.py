"""What every intervention can do: slow a resource for all who use it, or relieve it, and put it back.

The lab makes one for each run of a cell that has a dose, dose 0 included: the control has the same instrument, so that
what the instrument itself costs is in no difference between doses. A run of a cell without one has nothing of it, and
is in no control group of its either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from dyno.hosts.joint import Joint
from dyno.hosts.local import LocalHost
from dyno.model.interventions import DoseOptions
from dyno.model.study import Machine

Controller = Literal["cpu", "memory", "io"]


@dataclass(frozen=True)
class Lives:
    """How the system of a cell lives, as the study says.

    `buffers_writes` and `opens_directly` are what its kind says of its data files, see `dyno.systems.base.System`.
    """

    embedded: bool
    in_container: bool = False
    machine: Machine = field(default_factory=Machine)
    buffers_writes: bool = False
    opens_directly: str | None = None


@dataclass
class Bench:
    """Where an intervention works. `folder` is scratch of one run, `limit` is in seconds.

    `known` is kept for the whole study: what was measured of an instrument before the first run.
    """

    host: LocalHost
    folder: Path
    logs: Path
    known: dict[str, float]
    joint: Joint | None = None
    limit: float = 60.0


@dataclass(frozen=True)
class Target:
    """What is intervened upon. `processes` are the system's own, none where it lives in the driver.

    `group` is the control group that has its machine's limits, and `machine` those.
    """

    data: Path
    processes: Mapping[str, int]
    group: str | None = None
    machine: Machine = field(default_factory=Machine)


@dataclass(frozen=True)
class Effect:
    """What it did in the measured part of a run; see `dyno.model.run.Intervened`."""

    calls: float | None = None
    added_s: float | None = None
    slowed: float | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Intervention(ABC):
    """One dose in one run.

    Life: `measure` before the first run of a study; then for each run `under` before the system starts, `begin` just
    before it is driven, `end` as soon as it was (twice is once), `effect` when the measured part is known. Each raises
    RunError; `begin` raises InvalidRun where this system would not be slowed as the dose says.
    """

    kind: ClassVar[str]
    Options: ClassVar[type[DoseOptions]]
    joint: ClassVar[Controller | None] = None
    """The controller by which it holds system and driver together, where it needs them in a group of their own."""
    control: ClassVar[str] = "the same instrument, which does nothing"
    """What dose 0 is."""
    refused: ClassVar[str] = ""
    """Where it would prove nothing, as goes on after "refused"; what `unfit` and `begin` refuse is told there."""

    def __init__(self, dose: float, bench: Bench) -> None:
        self.dose = dose
        self.bench = bench

    @classmethod
    def about(cls) -> str:
        """What it does, what dose 0 is and where it is refused, in a line for `dyno probe --help`."""
        refused = f"; refused {cls.refused}" if cls.refused else ""
        return f"{cls.Options.title}; dose 0: {cls.control}{refused}"

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:  # noqa: ARG003 - most look at it
        """Why it cannot act on a system that lives like that, whatever the machine; None where it can."""
        return None

    @classmethod
    def doubtful(cls, lives: Lives) -> str | None:  # noqa: ARG003 - most have no doubt
        """Why it may be refused as soon as the system runs: it is then made only where it is asked for by name."""
        return None

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """What it lacks on this machine; None where nothing."""

    @classmethod
    def refuses(cls, dose: float, lives: Lives) -> str | None:  # noqa: ARG003 - most give any dose that is a valid one
        """Why this machine cannot give such a dose to a system that lives like that; None where it can."""
        return None

    @property
    def procs(self) -> tuple[Path, ...]:
        """The `cgroup.procs` files that system and driver join for this run; none where it holds them by no group."""
        return () if self.joint is None or self.bench.joint is None else self.bench.joint.procs

    def measure(self, data: Path) -> None:  # noqa: B027 - most have nothing to measure
        """Have in `bench.known` what of the instrument has to be known. `data` is where the data will be."""

    def under(self, files: Sequence[Path]) -> tuple[str, ...]:
        """The words that the system's own command is started under. `files` are those of its data."""
        return ()

    @abstractmethod
    def begin(self, target: Target) -> None:
        """Have the dose in force."""

    @abstractmethod
    def end(self) -> None:
        """Have it no longer."""

    @abstractmethod
    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """What it did between two times, in ns since the epoch."""
