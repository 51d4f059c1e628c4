"""The database observer: a server's own counters before, during and after it is driven, by a connection of its own.

A thread of dyno's asks, since it waits for the server nearly all of the time. What it costs the server is in
docs/database.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from dyno.hosts import LocalHost
from dyno.model.base import Frozen, RunError
from dyno.model.counters import LOOKS, SOURCE, SUBJECT, Counters, CounterSource, is_wait, sampled_as
from dyno.model.usage import resources
from dyno.observers.base import SAMPLE_COLUMNS, Observer

_TRIALS = 4
"""Looks in a row before the drive, of which the smallest difference is what a look leaves behind: what the server does
by itself may fall between two of them, and does not fall between all."""
_MISSES = 3
"""Looks in a row without an answer of a server that lives, after which it cannot be asked: one is lost where a node of
a cluster goes, and one where the next that is asked has gone too."""


class Reading(NamedTuple):
    """`time_ns` is in the middle of asking and being answered; `connection` counts them, from 0."""

    time_ns: int
    counters: Counters
    connection: int = 0

    def counts_on(self, before: Reading) -> bool:
        """Whether what grew since `before` is the difference: a server that came back may count from 0."""
        return (self.connection, self.counters.by) == (before.connection, before.counters.by)

    def growth(self, name: str, before: Reading) -> float:
        """The difference; 0 where it is not known."""
        if not self.counts_on(before):
            return 0.0
        return self.counters.grown.get(name, 0.0) - before.counters.grown.get(name, 0.0)


class DatabaseOptions(Frozen):
    """How often it asks."""

    hz: Annotated[float, Field(ge=0.1, le=10, description="looks at the server's counters a second")] = 1.0


class DatabaseObserver(Observer[DatabaseOptions]):
    """Where the system has no counters to be asked for, it sees nothing."""

    kind = "database"
    Options = DatabaseOptions
    connections: ClassVar[int] = 1

    def __init__(self, options: DatabaseOptions, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        super().__init__(options, host, core, folder, logs)
        self._open: Callable[[float], CounterSource | None] | None = None
        self._is_struck: Callable[[], bool] = lambda: False
        self._source: CounterSource | None = None
        self._limit = 0.0  # of a connection that is made anew, in seconds
        self._connections = 0
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._readings: list[Reading] = []
        self._traces: Mapping[str, float] = {}
        self._failure: RunError | None = None

    def looks_at(self, counters: Callable[[float], CounterSource | None], struck: Callable[[], bool]) -> None:
        """Remember whom to ask, and why there may be no answer."""
        self._open, self._is_struck = counters, struck

    def start(self, limit: float) -> None:
        """Connect, look before the drive, and go on looking."""
        if self._open is None or (source := self._open(limit)) is None:
            return
        self._source, self._limit = source, limit
        self._readings = [self._look(source) for _ in range(_TRIALS)]
        self._traces = traces([reading.counters for reading in self._readings])
        del self._readings[:-1]
        # A daemon: dyno ends whatever the server does.
        self._thread = threading.Thread(target=self._go_on, name="database observer", daemon=True)
        self._thread.start()

    def watch(self, pid: int, subject: str) -> None:
        """It looks at what the server says, whatever its processes are."""

    def stop(self, limit: float) -> pl.DataFrame:
        """Look once more, after the drive. Of a server that is gone there is what it said before."""
        if self._thread is None:
            self._leave()
            return pl.DataFrame(schema=SAMPLE_COLUMNS)
        self._over.set()
        self._thread.join(limit)
        # Without a source it waits for a new connection: too long by now.
        if self._thread.is_alive() and not self._is_struck() and not ((source := self._source) and source.ended()):
            self._failure = RunError(f"it did not answer within {limit:g} s")
        self._leave()
        if self._failure is not None:
            raise RunError(f"the server could not be asked for its counters: {self._failure}") from self._failure
        # A thread that still waits for an answer may have one yet.
        rows = list(samples(tuple(self._readings), self._traces, self.host.name))
        return pl.DataFrame(rows, schema=SAMPLE_COLUMNS, orient="row")

    def _go_on(self) -> None:
        period, due, missed = 1 / self.options.hz, time.monotonic(), 0
        while self._failure is None:
            due = max(due + period, time.monotonic())  # after a late answer it asks no more often than before
            last = self._over.wait(due - time.monotonic())
            try:
                self._look_where_it_is_there()
                missed = 0
            except RunError as error:
                missed = 0 if self._is_struck() else missed + 1
                if missed and (last or missed == _MISSES):
                    self._failure = error
            except Exception as error:  # noqa: BLE001 - a thread's error is told by whoever stops it
                self._failure = RunError(f"{type(error).__name__}: {error}")
            if last:
                return

    def _look_where_it_is_there(self) -> None:
        """By a new connection where the last one did not answer. Raises RunError where the server lives.

        Where it has ended, that is what the run fails for, and others tell it; or it was struck and comes back.
        """
        connect = self._open
        if self._source is None and connect is not None:
            self._connections += 1
            self._source = connect(self._limit)
            if self._open is None:
                self._leave()  # nobody waited for it any more
        source = self._source
        if source is None:
            return
        try:
            self._readings.append(self._look(source))
        except RunError:
            self._source = None
            with closing(source):
                if not source.ended():
                    raise

    def _look(self, source: CounterSource) -> Reading:
        asked = time.time_ns()
        counters = source.read()
        return Reading((asked + time.time_ns()) // 2, counters, self._connections)

    def _leave(self) -> None:
        self._open = None  # a thread that waits for an answer still connects no more
        source, self._source = self._source, None
        if source is not None:
            source.close()


def traces(trials: Sequence[Counters]) -> dict[str, float]:
    """What a look itself adds to the counters, of several in a row; those that it leaves alone are not there."""
    names = {name for trial in trials for name in trial.grown}
    least = {
        name: min(after.grown.get(name, 0.0) - before.grown.get(name, 0.0) for before, after in pairwise(trials))
        for name in names
    }
    return {name: value for name, value in least.items() if value > 0}


Sample = tuple[int, str, str, str, str, float]


def samples(readings: Sequence[Reading], left: Mapping[str, float], host: str) -> Iterator[Sample]:
    """Rates in 1/s of what grew, without what each look `left` behind, and what goes up and down as it was.

    Across a change of who counts there are no rates, and `LOOKS` is 0: what was done between the last look at the one
    and the first at the other is not known. What did not move in all of the time is left out, but for resources and
    waits, of which 0 is a figure, and so is what was said to grow only and fell. The first reading has no rates:
    `LOOKS` tells that it was there.
    """
    if len(readings) < 2:
        return
    yield (readings[0].time_ns, host, SOURCE, SUBJECT, LOOKS, 0.0)
    grown = {name: growth for name, growth in _growths(readings, left).items() if any(growth) or _is_told(name)}
    now = {name: values for name, values in _values(readings).items() if len(set(values)) > 1 or _is_told(name)}
    for place, (before, after) in enumerate(pairwise(readings)):
        seconds = (after.time_ns - before.time_ns) / 1e9
        found = {LOOKS: 0.0}
        if after.counts_on(before):
            found = {LOOKS: 1 / seconds, **{name: growth[place] / seconds for name, growth in grown.items()}}
        found |= {name if _is_told(name) else sampled_as(name): values[place + 1] for name, values in now.items()}
        yield from ((after.time_ns, host, SOURCE, SUBJECT, name, value) for name, value in found.items())


def _is_told(name: str) -> bool:
    """Whether it is told of though it is 0."""
    return is_wait(name) or name in resources()


def _growths(readings: Sequence[Reading], left: Mapping[str, float]) -> dict[str, list[float]]:
    """By name, of each pair of readings in a row; 0 across a change of who counts."""
    names = sorted({name for reading in readings for name in reading.counters.grown})
    found = {}
    for name in names:
        growth = [after.growth(name, before) for before, after in pairwise(readings)]
        if min(growth) >= 0:
            found[name] = [max(more - left.get(name, 0.0), 0.0) for more in growth]
    return found


def _values(readings: Sequence[Reading]) -> dict[str, list[float]]:
    names = sorted({name for reading in readings for name in reading.counters.now})
    return {name: [reading.counters.now.get(name, 0.0) for reading in readings] for name in names}
