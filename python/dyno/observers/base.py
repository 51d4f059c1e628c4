"""What every observer can do: watch a host, or processes on it, while a run goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

import polars as pl

from dyno.hosts import LocalHost
from dyno.model.base import Frozen
from dyno.model.counters import CounterSource

O = TypeVar("O", bound=Frozen)  # noqa: E741 - the options of one kind

SAMPLE_COLUMNS = {
    "time_ns": pl.Int64,
    "host": pl.String,
    "source": pl.String,
    "subject": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
}
"""The columns of `samples.parquet`; names and units of the metrics stand in `schema/metrics.json`."""

STACK_COLUMNS = {"subject": pl.String, "event": pl.String, "stack": pl.String, "samples": pl.Int64}
"""The columns of `stacks.parquet`: call stacks of a run's measured part, each as `thread;outermost;...;innermost`.

A frame is `symbol_[k]` in the kernel, `symbol_[j]` in code made at run time, `symbol@file` elsewhere, `[file]` where
the symbol is not known.
"""


@dataclass(frozen=True)
class Counting:
    """What is to be counted of an embedded system once it was measured: so many transactions of each kind.

    Before them `settling` others are carried out. `hardware` says whether the machine has counters to read, beside
    valgrind's.
    """

    transactions: int
    settling: int
    hardware: bool


COUNT_COLUMNS = {
    "build": pl.String,
    "by": pl.String,
    "transaction": pl.String,
    "call": pl.String,
    "component": pl.String,
    "event": pl.String,
    "value": pl.Float64,
    "again": pl.Boolean,
}
"""The columns of `counts.parquet`, of which each value is a mean per transaction of that kind.

`build` is `optimised`, or one that keeps components apart; `by` is `callgrind` or `hardware`; `event` is
`instructions`, `cycles`, or `calls`: how often the call was made. What is in no call, and of no component that is
known, has empty names there. Instructions of one build, by one means, of one transaction add up to all of it.
`again` are the same transactions on the same store a second time, which tells how far counts repeat.
"""


DRIVER: Final = "driver"
"""The subject of the driver's processes."""

POPULATE: Final = "populate"
"""The subject of processes that make what a run needs before it is measured: neither the system's nor the driver's."""


class Observer(ABC, Generic[O]):
    """One observer on one host for one run. Raises RunError: a run that was to be observed and was not has failed."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    connections: ClassVar[int] = 0
    """How many connections to the system it takes for itself."""
    counts: ClassVar[bool] = False
    """Whether `counting` gives something, of an embedded system alone."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What has to be there where it watches: the names of `dyno doctor`'s checks."""
    takes_stacks: ClassVar[bool] = False
    """Whether `stacks` gives some, which takes time after the run."""

    def __init__(self, options: O, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        self.options = options
        self.host = host
        self.core = core
        self.folder = folder
        self.logs = logs

    def looks_at(self, counters: Callable[[float], CounterSource | None], struck: Callable[[], bool]) -> None:
        """Told before it is started, by whom the system can be asked for its counters; see `System.counters`.

        `struck` says whether a fault is in force now, so that no answer is no fault of the system's.
        """

    def provision(self, limit: float) -> None:
        """Once a study, before its first run: raise RunError where this machine cannot give what it needs."""

    @abstractmethod
    def start(self, limit: float) -> None:
        """Begin, and return when the first reading has been taken. `limit` is in seconds."""

    @abstractmethod
    def watch(self, pid: int, subject: str) -> None:
        """Watch a process too, from now on, under this subject."""

    def watch_tree(self, pid: int, subject: str) -> None:
        """The same of a process and those that it starts, for an observer that does not see them anyway."""
        self.watch(pid, subject)

    @abstractmethod
    def stop(self, limit: float) -> pl.DataFrame:
        """End, and give the samples in `SAMPLE_COLUMNS`. May be called once."""

    def responses(self, samples: pl.DataFrame, from_ns: int, to_ns: int) -> dict[str, float]:
        """What it says of the measured part of a run as a whole, as responses. `samples` are those that it gave."""
        return {}

    def stacks(self, from_ns: int, to_ns: int, limit: float) -> pl.DataFrame | None:
        """Call stacks of the measured part of a run, in `STACK_COLUMNS`; None where it takes none. After `stop`."""
        return None

    def counting(self) -> Counting | None:
        """What is to be driven again, after the run, to be counted; None where there is nothing."""
        return None

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of what it saw, and did not see. After `stop`."""
        return ()
