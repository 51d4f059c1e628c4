"""What the workloads that dyno's own driver carries out have in common: how long, by how many, in which loop."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, PositiveDuration, Share, counted
from dyno.workloads import core
from dyno.workloads.base import Measured, Runner, Workload

SERVERS = frozenset({"mysql", "postgresql"})
"""The backends that are reached by a connection, on which there is something to wait for."""

_LEAD_S, _LEAD_PER_CLIENT_S = 2.0, 0.005  # what several drivers are given to connect before they start together


class TimeLimits(Frozen):
    """What is not answered by then has failed, and its connection is made anew."""

    connect: Annotated[PositiveDuration, Field(le=3600, description="until a connection stands")] = 5.0
    read: Annotated[PositiveDuration, Field(le=3600, description="until an answer comes")] = 30.0
    write: Annotated[PositiveDuration, Field(le=3600, description="until a request is taken")] = 30.0


class Pauses(Frozen):
    """Between attempts of a client to connect anew; each is twice the one before."""

    first: Annotated[PositiveDuration, Field(ge=0.001, le=60, description="before the first attempt")] = 0.01
    most: Annotated[PositiveDuration, Field(ge=0.001, le=600, description="the longest")] = 0.5

    @model_validator(mode="after")
    def _they_grow(self) -> Pauses:
        if self.most < self.first:
            raise ValueError("most: is below first")
        return self


class DrivingOptions(Frozen):
    """A closed loop unless a rate is given."""

    operations: Annotated[int | None, Field(ge=1, le=10**12, description="measured operations, over all threads")] = (
        None
    )
    duration: Annotated[
        PositiveDuration | None, Field(description="of the measured part; the first to come ends it")
    ] = None
    warmup: Annotated[Duration, Field(description="before the measured part")] = 0.0
    warmup_operations: Annotated[
        int, Field(ge=0, le=10**12, description="before the measured part, over all threads")
    ] = 0
    warmup_detect: Annotated[
        bool,
        Field(
            description="with caches: warm, what comes before throughput is steady is left out too, where that is "
            "found; false: the measured part is what was asked for"
        ),
    ] = True
    interval: Annotated[
        Duration, Field(ge=0.01, le=60, description="of the time series that are kept beside a run's figures")
    ] = 1.0
    threads: Annotated[int, Field(ge=1, le=4096, description="clients, each with a connection of its own")] = 1
    drivers: Annotated[
        int, Field(ge=1, le=64, description="driver processes that start together and share threads and rate")
    ] = 1
    rate: Annotated[
        float | None,
        Field(
            gt=0,
            le=1e9,
            description="requests a second, over all threads, that arrive whether or not others were answered (an open "
            "loop); without it each thread waits for its answer before it asks again (a closed loop)",
        ),
    ] = None
    arrivals: Annotated[
        Literal["constant", "poisson"] | None, Field(description="with rate: evenly (the default) or at random")
    ] = None
    min_rate_reached: Annotated[
        Share | None, Field(le=1, description="with rate: share of the requests due that must be sent; 99% if left out")
    ] = None
    limits: Annotated[TimeLimits | None, Field(description="of servers: how long a client waits")] = None
    reconnect: Annotated[
        Pauses | None, Field(description="of servers: pauses of a client whose connection was lost")
    ] = None
    max_errors: Annotated[
        Share, Field(le=1, description="share of operations that may fail before the run is invalid")
    ] = 0.0

    @model_validator(mode="after")
    def _can_be_driven(self) -> DrivingOptions:
        if self.operations is None and self.duration is None:
            raise ValueError(
                "give operations, or duration, or both (the first to come ends the run); where faults are struck, "
                "a duration"
            )
        for name in ("arrivals", "min_rate_reached"):
            if self.rate is None and getattr(self, name) is not None:
                raise ValueError(f"{name} is of an open loop alone: give a rate, or leave it out")
        if self.drivers > self.threads:
            raise ValueError(f"{self.drivers} drivers share {counted(self.threads, 'thread')}, and each needs one")
        if self.operations is not None and self.operations < self.drivers:
            raise ValueError(
                f"{self.drivers} drivers share {counted(self.operations, 'operation')}, and each needs one"
            )
        return self

    def seconds(self) -> float | None:
        """How long driving takes where a duration ends it."""
        return None if self.duration is None else self.warmup + self.duration

    def refuses(self, backend: str) -> str | None:
        """Why these options make no sense on a backend."""
        if backend in SERVERS:
            return None
        for name, given in (("limits are", self.limits), ("pauses (reconnect) are", self.reconnect)):
            if given is not None:
                return (
                    f"{name} of servers, and a store of backend {backend} is reached by no connection: leave them out"
                )
        return None


D = TypeVar("D", bound=DrivingOptions)


class DrivenWorkload(Workload[D]):
    """Load and run phases by `dyno-core drive`; what is asked, and what is to be known of it, each kind says itself."""

    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """The workload as a job names it."""

    def notes(self) -> Iterable[str]:
        """What a reader must know of the figures."""
        return ()

    def readers(self, endpoint: Endpoint) -> dict[str, Any] | None:
        """Who looks for what was written on another way in, as a job has it. Raises RunError where there is none."""
        return None

    def think_time(self) -> float:
        """How long a client of a closed loop waits between an answer and its next request, in seconds."""
        return 0.0

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """As its limits do."""
        return self.options.refuses(backend)

    def rate(self) -> float | None:
        """As asked for."""
        return self.options.rate

    def clients(self) -> int:
        """One a thread."""
        return self.options.threads

    def warms_up(self) -> bool:
        """By time or by operations."""
        return self.options.warmup > 0 or self.options.warmup_operations > 0

    def expected_seconds(self) -> float | None:
        """Known where a duration ends it."""
        return self.options.seconds()

    def measured_seconds(self) -> float | None:
        """As asked for."""
        return self.options.duration if self.options.operations is None else None

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Nothing of it may fail. A volatile store is loaded by each run."""
        if endpoint.volatile:
            return
        core.load(runner, self.job(endpoint, "load", seed))

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """With one driver or several."""
        measured = drive(
            runner,
            endpoint,
            self.asked(),
            self.options,
            seed,
            think_time=self.think_time(),
            through_fault=self.through_fault,
            readers=self.readers(endpoint),
        )
        return replace(measured, notes=(*self.notes(), *measured.notes))

    def job(self, endpoint: Endpoint, phase: str, seed: int, **more: Any) -> dict[str, Any]:
        """A job of one client, for the phases that are not measured; `more` goes to the workload."""
        target = with_limits(endpoint, self.options.limits)
        return core.job(target, {**self.asked(), **more}, phase=phase, clients=1, seed=seed)

    def cuts(self) -> bool:
        """Unless it is asked not to: it keeps a histogram of each interval."""
        return self.options.warmup_detect

    def cut(self, runner: Runner, measured: Measured, first: int) -> Measured:
        """From the record of the driver, or of all of them."""
        part = core.cut(runner, measured, self.options.drivers, first)
        return replace(part, notes=(*self.notes(), *part.notes))


def with_limits(endpoint: Endpoint, limits: TimeLimits | None) -> Endpoint:
    """The endpoint with the time limits that a driver is to keep; the driver's own where none are given."""
    if limits is None:
        return endpoint
    kept = {"connect_s": limits.connect, "read_s": limits.read, "write_s": limits.write}
    return replace(endpoint, settings={**endpoint.settings, "limits": kept})


def drive(
    runner: Runner,
    endpoint: Endpoint,
    workload: dict[str, Any],
    given: DrivingOptions,
    seed: int,
    *,
    think_time: float = 0.0,
    through_fault: bool = False,
    readers: dict[str, Any] | None = None,
) -> Measured:
    """Carry out the run phase with one driver or several.

    With a fault every attempt is kept, and neither what fails nor what is late makes the run invalid.
    """
    start = None
    if given.drivers > 1:
        start = time.time_ns() + round((_LEAD_S + _LEAD_PER_CLIENT_S * given.threads) * 1e9)
    jobs = [
        core.job(
            with_limits(endpoint, given.limits),
            workload,
            phase="run",
            clients=clients,
            seed=seed,
            loop=_loop(given, clients, think_time, through_fault=through_fault),
            reconnect=_pauses(given.reconnect),
            faults=through_fault or None,
            readers=readers,
            driver={"number": number, "of": given.drivers} if given.drivers > 1 else None,
            start_at_ns=start,
            operations=None if given.operations is None else shared_out(given.operations, given.drivers)[number],
            duration_s=given.duration,
            warmup_operations=shared_out(given.warmup_operations, given.drivers)[number],
            warmup_s=given.warmup,
            interval_ms=round(given.interval * 1000),
        )
        for number, clients in enumerate(shared_out(given.threads, given.drivers))
    ]
    return core.drive_together(runner, jobs, max_errors=1.0 if through_fault else given.max_errors)


def shared_out(amount: int, parts: int) -> Sequence[int]:
    """As even as whole numbers can be; they add up to the amount."""
    return [amount // parts + (number < amount % parts) for number in range(parts)]


def _pauses(given: Pauses | None) -> dict[str, Any] | None:
    if given is None:
        return None
    return {"first_ms": round(given.first * 1000), "most_ms": round(given.most * 1000)}


def _loop(
    given: DrivingOptions, clients: int, think_time: float, *, through_fault: bool = False
) -> dict[str, Any] | None:
    if given.rate is None:
        return {"kind": "closed", "think_time_s": think_time} if think_time else None
    loop = {
        "kind": "open",
        "rate_per_s": given.rate * clients / given.threads,
        "arrivals": given.arrivals,
        "min_share_sent": 0.0 if through_fault else given.min_rate_reached,
    }
    return {key: value for key, value in loop.items() if value is not None}
