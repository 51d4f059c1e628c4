"""What the instrument found out about itself on a machine: `selfcheck.json`, and a block in every report made there.

Each part is judged when it is measured, and its sentence written then: a report says the same years later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from dyno.model.base import Frozen

SELFCHECK_FORMAT = 1
STALE_AFTER_DAYS = 90
_SAME_MEMORY = 0.02  # what a kernel keeps for itself varies a little from one start to the next

Verdict = Literal["ok", "warn", "cannot tell"]
Scale = Literal["smoke", "quick", "full"]
Interval = tuple[float, float]


class Machine(Frozen):
    """By what a machine is known again. What is not known is None."""

    cpu: str | None
    cpus: Annotated[int | None, Field(description="CPUs that dyno may use")]
    memory_bytes: int | None
    kernel: str | None
    dyno: str | None

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Machine:
        """The machine of an `environment.json`."""

        def find(*keys: str) -> Any:
            found: Any = environment
            for key in keys:
                found = found.get(key) if isinstance(found, Mapping) else None
            return found

        return cls(
            cpu=find("cpu", "model"),
            cpus=find("cpu", "usable"),
            memory_bytes=find("memory", "total_bytes"),
            kernel=find("kernel", "release"),
            dyno=find("versions", "dyno"),
        )

    def differences(self, now: Machine) -> Iterator[str]:
        """What is not as it was then."""
        pairs = (("CPU", self.cpu, now.cpu), ("CPUs", self.cpus, now.cpus), ("kernel", self.kernel, now.kernel))
        for what, then, since in (*pairs, ("dyno", self.dyno, now.dyno)):
            if then != since:
                yield f"{what} {then} then, {since} in these results"
        before, after = self.memory_bytes or 0, now.memory_bytes or 0
        if abs(before - after) > _SAME_MEMORY * before:
            yield f"{before / 2**30:.1f} GiB of memory then, {after / 2**30:.1f} GiB in these results"


class Judged(Frozen):
    """A part of the self-check: what it says, in a line."""

    verdict: Verdict
    sentence: str


class FalseAlarms(Judged):
    """Studies that compare a cell with itself, and how many of them called a difference."""

    studies: int
    alarms: int
    claimed: Annotated[float, Field(description="the share that dyno claims at most")]
    ci: Annotated[Interval | None, Field(description="of the share: Wilson's, at 95 %")]


class Variation(Judged):
    """How much a run differs from the next one of the same cell."""

    runs: Annotated[int, Field(description="ok runs")]
    not_ok: int
    throughput_cov: float | None
    cpu_cov: Annotated[float | None, Field(description="of CPU time an operation")]
    ratio_sd: Annotated[float | None, Field(description="of logs of ratios within blocks")]
    correlation: Annotated[float | None, Field(description="between runs next to each other in time")]
    correlation_error: float | None
    seconds_of_run: Annotated[float | None, Field(description="with all that is around it")]


class Ceiling(Judged):
    """What the driver reaches where nothing is stored, YCSB C."""

    one_client: Annotated[float | None, Field(description="operations a second")]
    clients: Annotated[int, Field(description="as many as CPUs")]
    all_clients: float | None
    share_of_store: Annotated[
        float | None, Field(description="the driver's part of an operation of the A/A study's store")
    ]


class Quantile(Frozen):
    """One latency of the freeze test, in ms."""

    name: str
    truth: Annotated[float, Field(description="by arithmetic")]
    open: Annotated[tuple[float, ...], Field(description="of each run of the open loop")]
    closed: Annotated[tuple[float, ...], Field(description="of each run of the closed loop")]


class Freeze(Judged):
    """A stall of known length, as both loops tell it."""

    rate_per_s: float
    run_s: float
    stall_s: float
    quantiles: tuple[Quantile, ...]
    worst: Annotated[float | None, Field(description="the open loop's largest relative error")]
    closed_is_blind: bool | None


class ObserverCost(Judged):
    """The same runs with the observer `machine` and without, as ratios with / without."""

    pairs: int
    throughput: float | None
    throughput_ci: Interval | None
    cpu: Annotated[float | None, Field(description="of CPU time an operation")]
    cpu_ci: Interval | None


class Detectable(Frozen):
    """What a comparison of two cells finds in so much time."""

    minutes: float
    pairs: int
    slowdown: Annotated[float | None, Field(description="the smallest, as a share; None where none can be told")]


class Sensitivity(Judged):
    """The smallest slow-down that this machine can show."""

    power: float
    confidence: float
    within: tuple[Detectable, ...]


class Selfcheck(Frozen):
    """All of it, as it is kept."""

    format: int = SELFCHECK_FORMAT
    made_ns: int
    seconds: float
    scale: Scale
    machine: Machine
    file_system: Annotated[str, Field(description="of the data of the short runs")]
    disturbances: Annotated[tuple[str, ...], Field(description="what else went on on the machine at the start")] = ()
    false_alarms: FalseAlarms
    variation: Variation
    ceiling: Ceiling
    freeze: Freeze
    observer: ObserverCost
    sensitivity: Sensitivity

    def parts(self) -> tuple[tuple[str, Judged], ...]:
        """Each with its name, in the order in which they are read."""
        return (
            ("false alarms", self.false_alarms),
            ("run to run", self.variation),
            ("driver ceiling", self.ceiling),
            ("freeze test", self.freeze),
            ("observer cost", self.observer),
            ("smallest slow-down", self.sensitivity),
        )
