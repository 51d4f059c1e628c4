"""What every workload can do: load a data set, drive a system once, and say what was measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import polars as pl

from dyno.hosts import LocalHost
from dyno.model.base import Frozen
from dyno.model.endpoint import Endpoint

O = TypeVar("O", bound=Frozen)  # noqa: E741 - the options of one kind

INTERVAL_COLUMNS = {
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "warmup": pl.Boolean,
    "operation": pl.String,
    "count": pl.Int64,
    "errors": pl.Int64,
    "mean_us": pl.Float64,
    "p50_us": pl.Float64,
    "p95_us": pl.Float64,
    "p99_us": pl.Float64,
    "max_us": pl.Float64,
    "service_mean_us": pl.Float64,
    "service_p50_us": pl.Float64,
    "service_p95_us": pl.Float64,
    "service_p99_us": pl.Float64,
    "service_max_us": pl.Float64,
    "error_kinds": pl.String,
}
"""The columns of `intervals.parquet`: one row an operation and interval, times in ns since the epoch.

Service times are null in a closed loop; `error_kinds` is a JSON object of counts, null where there was no error.
Folders of an earlier dyno lack the columns from `service_mean_us` on.
"""


class Runner(Protocol):
    """What the lab gives a workload to start its driver with: it watches over it, and stops it when it must."""

    core: str
    folder: Path
    """Scratch, which goes after the run."""
    logs: Path
    """What is kept of the run beside its figures."""
    complaint: str
    """The last line that the last driver wrote to its standard error; empty where there was none."""
    host: LocalHost
    """For what is done to the store besides driving it."""
    limit: float
    """The longest that it may all take, in s: of each driver, and of what a workload does besides."""
    measured: Measured | None
    """For a workload to leave what was measured before it raises: a run that is not ok is looked into by it too."""

    @property
    def interrupted(self) -> bool:
        """Whether the user wants it all to end."""
        ...

    def execute(self, argv: Sequence[str], *, kept_as: str | None = None) -> int:
        """Run a driver to its end; its exit status. Raises RunError past the limit.

        With `kept_as`, its standard output goes to that name with `.stdout` among the logs, and its standard error to
        the same with `.stderr`.
        """
        ...

    def execute_all(self, argvs: Sequence[Sequence[str]]) -> list[int]:
        """The same for several drivers at once; their exit statuses in that order."""
        ...


@dataclass(frozen=True)
class Measured:
    """What a driver measured. `complete` is False where it was cut short before it had done what was asked.

    `withheld` are responses that it would give but for a reason, each with that in words. `written` and `read` are the
    bytes that one operation of each kind wrote and read, where that is known only by having done it. `attempts` are
    those of a run with a fault, and `reads` what was looked for elsewhere (columns as in `schema/job.schema.json`).
    """

    complete: bool
    responses: dict[str, float]
    withheld: dict[str, str] = field(default_factory=dict)
    errors: dict[str, dict[str, int]] = field(default_factory=dict)
    measured_from_ns: int | None = None
    measured_to_ns: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    status: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    loop: str | None = None
    rate_per_s: float | None = None
    notes: tuple[str, ...] = ()
    ended_by: str | None = None
    job: dict[str, Any] = field(default_factory=dict)
    written: dict[str, float] = field(default_factory=dict)
    read: dict[str, float] = field(default_factory=dict)
    intervals: pl.DataFrame | None = None
    histogram_log: Path | None = None
    attempts: pl.DataFrame | None = None
    reads: pl.DataFrame | None = None
    answers: pl.DataFrame | None = None
    """What the store answered to each question, with the columns of `dyno.model.answers`; None where it is not kept."""


def rates(measured: Measured) -> tuple[list[float], float, float]:
    """Operations a second in each whole interval of the measured part, an interval's length, and the part's, in s.

    What comes after the part's time was over is left out: the last clients' last operations, in no rate.
    """
    empty: tuple[list[float], float, float] = [], 1.0, 0.0
    if measured.intervals is None or measured.measured_from_ns is None or measured.measured_to_ns is None:
        return empty
    seconds = measured.responses.get("elapsed", (measured.measured_to_ns - measured.measured_from_ns) / 1e9)
    table = (
        measured.intervals.filter(~pl.col("warmup"))
        .group_by("start_ns", "end_ns")
        .agg(pl.col("count").sum())
        .sort("start_ns")
        .with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length"))
    )
    if not table.height:
        return empty
    length = float(str(table["length"].median()))
    until = measured.measured_from_ns + round(seconds * 1e9) + _ROUNDING_NS
    whole = table.filter(pl.col("length") >= _WHOLE * length, pl.col("end_ns") <= until)
    return [count / (length / 1e9) for count in whole["count"]], length / 1e9, seconds


_WHOLE = 0.999  # of an interval's length: only the last one of a part is shorter
_ROUNDING_NS = 1_000_000


@dataclass(frozen=True)
class Checked:
    """What a look at the store after a run found. `wrong` says in a line what is not as it must be.

    `notes` tell the reader that it was looked at, which is true of no run that ended before.
    """

    status: dict[str, float] = field(default_factory=dict)
    wrong: str | None = None
    notes: tuple[str, ...] = ()


class Workload(ABC, Generic[O]):
    """One workload with its parameters.

    `backends` are the protocols it speaks. Raises RunError where the driver failed, InvalidRun where it ended without
    having done what was asked.
    """

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    backends: ClassVar[frozenset[str]]
    counts: ClassVar[bool] = False
    """Whether `count` can have transactions counted one by one."""
    populates: ClassVar[bool] = False
    """Whether `populate` makes something in the store that each run needs anew: the files of a file system, say."""
    forks: ClassVar[bool] = False
    """Whether its driver works in processes of its own besides: they are watched with it."""
    goes_on: ClassVar[bool] = False
    """Whether what is measured goes on when its driver has ended, until `drive` returns."""
    lasts_by: ClassVar[str] = "duration"
    """Which of its options the length of the measured part hangs on, where that is known (`measured_seconds`)."""
    outlives_failure: ClassVar[bool] = False
    """Whether `check` is to be asked also where driving failed, of a system that was started again on its data."""

    def __init__(self, options: O) -> None:
        self.options = options
        self.through_fault = False
        """Whether a fault is struck while it drives: what fails then is what is measured, and fails no run."""

    def program(self) -> str:
        """What carries it out: workloads of the same one are provided for once a study."""
        return self.kind

    def needs(self) -> Sequence[str]:
        """What has to be there where it is driven: the names of `dyno doctor`'s checks."""
        return ()

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """Have the driver ready where it is a program of others; versions by name. Raises RunError."""
        return {}

    def refuses(self, backend: str, reached_by: str | None) -> str | None:
        """Why it could not drive one of its backends with these options; None where it can.

        `reached_by` is `socket` or `tcp`, None for an embedded system.
        """
        return None

    def refuses_tables(self, backend: str, tables: Mapping[str, Any]) -> str | None:
        """Why what it sends could not be had in tables as they are to be laid out (`TableOptions`); None if it can."""
        return None

    def misfits(self) -> Iterator[tuple[str, str]]:
        """What of its options only its driver can tell to be wrong: each option's key, and why. Where there is one."""
        yield from ()

    def operations(self) -> frozenset[str] | None:
        """Those of which it has responses by name, as `read` of `read.latency_p99`; None where only a run tells."""
        return None

    def rolls_back(self) -> bool:
        """Whether some of its transactions are to be undone by the store."""
        return False

    def rate(self) -> float | None:
        """How many requests a second arrive in an open loop; None where its clients wait for their answers."""
        return None

    def clients(self) -> int:
        """How many connections it opens."""
        return 1

    def at_once(self) -> int:
        """How many requests it has under way at the most, however many connections it has for them."""
        return self.clients()

    def warms_up(self) -> bool:
        """Whether a part of the driving is left out of the figures."""
        return False

    def cuts(self) -> bool:
        """Whether what it measured can be had of a part of a run, and a warm-up that is found is to be left out."""
        return False

    def cut(self, runner: Runner, measured: Measured, first: int) -> Measured:
        """What was measured from that interval on, where it `cuts`. Raises RunError."""
        raise NotImplementedError

    def data_key(self) -> dict[str, Any]:
        """Those of the options that shape the loaded data."""
        return {}

    def data_bytes(self) -> int:
        """About how much room the loaded data take, for the forecast before the first run; 0 where there are none."""
        return 0

    def written(self) -> dict[str, float]:
        """Bytes of values that one operation of each kind writes, 0 included; empty where that is not known."""
        return {}

    def expected_seconds(self) -> float | None:
        """How long driving takes where the options say so; None where it depends on the system."""
        return None

    def measured_seconds(self) -> float | None:
        """How long the measured part lasts where nothing but its duration ends it; None elsewhere."""
        return None

    def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Fill an empty system; nothing happens where the workload needs no data."""

    def populate(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Make what each run finds, in a store that was made anew for it, where the workload `populates`.

        It is observed, by samples of its own, and is in no figure: with warm caches what it wrote is synced before
        anything is measured, with cold ones it is dropped from them too. Raises RunError.
        """

    def count(
        self, runner: Runner, endpoint: Endpoint, seed: int, *, transactions: int, settling: int
    ) -> dict[str, float]:
        """Carry out so many transactions of each kind, one kind after the other, once others have settled the store.

        Gives what the driver says of it: `counted.<kind>`, how many there were, and where the machine's own counters
        were read `instructions.<kind>` and `cycles.<kind>` of all of them together. Raises RunError.
        """
        raise NotImplementedError

    def reads_back(self) -> bool:
        """Whether `check` reads all that was written: caches are dropped before, so that the device answers."""
        return False

    def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
        """See whether the store is right after it was driven with that runner. Raises RunError where that failed."""
        return Checked()

    @abstractmethod
    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Carry the workload out once."""
