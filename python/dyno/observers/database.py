"""The database observer: a server's own counters before, during and after it is driven, by a connection of its own.

A thread of dyno's asks, since it waits for the server nearly all of the time. What it costs the server is in
docs/database.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""Looks in a row without an answer, after which it cannot be asked: one is lost where a node of a cluster goes."""


class Reading(NamedTuple):
    """`time_ns` is in the middle of asking and being answered."""

    time_ns: int
    counters: Counters


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
        self._source: CounterSource | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._readings: list[Reading] = []
        self._traces: Mapping[str, float] = {}
        self._failure: RunError | None = None

    def looks_at(self, counters: Callable[[float], CounterSource | None]) -> None:
        """Remember whom to ask."""
        self._open = counters

    def start(self, limit: float) -> None:
        """Connect, look before the drive, and go on looking."""
        if self._open is None or (source := self._open(limit)) is None:
            return
        self._source = source
        self._readings = [self._look(source) for _ in range(_TRIALS)]
        self._traces = traces([reading.counters for reading in self._readings])
        del self._readings[:-1]
        # A daemon: dyno ends whatever the server does.
        self._thread = threading.Thread(target=self._go_on, args=(source,), name="database observer", daemon=True)
        self._thread.start()

    def watch(self, pid: int, subject: str) -> None:
        """It looks at what the server says, whatever its processes are."""

    def stop(self, limit: float) -> pl.DataFrame:
        """Look once more, after the drive. Of a server that is gone there is what it said before."""
        if self._source is None or self._thread is None:
            self._leave()
            return pl.DataFrame(schema=SAMPLE_COLUMNS)
        self._over.set()
        self._thread.join(limit)
        if self._thread.is_alive():
            self._failure = RunError(f"it did not answer within {limit:g} s")
        # Where the server ended, that is what the run fails for, and others tell it.
        failed = self._failure is not None and not self._source.ended()
        self._leave()
        if failed:
            raise RunError(f"the server could not be asked for its counters: {self._failure}") from self._failure
        rows = list(samples(self._readings, self._traces, self.host.name))
        return pl.DataFrame(rows, schema=SAMPLE_COLUMNS, orient="row")

    def _go_on(self, source: CounterSource) -> None:
        period, due, missed = 1 / self.options.hz, time.monotonic(), 0
        while self._failure is None:
            due = max(due + period, time.monotonic())  # after a late answer it asks no more often than before
            last = self._over.wait(due - time.monotonic())
            try:
                self._readings.append(self._look(source))
                missed = 0
            except RunError as error:
                missed += 1
                if last or missed == _MISSES:
                    self._failure = error
            except Exception as error:  # noqa: BLE001 - a thread's error is told by whoever stops it
                self._failure = RunError(f"{type(error).__name__}: {error}")
            if last:
                return

    def _look(self, source: CounterSource) -> Reading:
        asked = time.time_ns()
        counters = source.read()
        return Reading((asked + time.time_ns()) // 2, counters)

    def _leave(self) -> None:
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

    What did not move in all of the time is left out, but for resources and waits, of which 0 is a figure, and so is
    what was said to grow only and fell. The first reading has no rates: `LOOKS` tells that it was there.
    """
    if len(readings) < 2:
        return
    yield (readings[0].time_ns, host, SOURCE, SUBJECT, LOOKS, 0.0)
    grown = {name: growth for name, growth in _growths(readings, left).items() if any(growth) or _is_told(name)}
    now = {name: values for name, values in _values(readings).items() if len(set(values)) > 1 or _is_told(name)}
    for place, (before, after) in enumerate(pairwise(readings)):
        seconds = (after.time_ns - before.time_ns) / 1e9
        found = {LOOKS: 1 / seconds}
        found |= {name: growth[place] / seconds for name, growth in grown.items()}
        found |= {name if _is_told(name) else sampled_as(name): values[place + 1] for name, values in now.items()}
        yield from ((after.time_ns, host, SOURCE, SUBJECT, name, value) for name, value in found.items())


def _is_told(name: str) -> bool:
    """Whether it is told of though it is 0."""
    return is_wait(name) or name in resources()


def _growths(readings: Sequence[Reading], left: Mapping[str, float]) -> dict[str, list[float]]:
    names = sorted({name for reading in readings for name in reading.counters.grown})
    found = {}
    for name in names:
        values = [reading.counters.grown.get(name, 0.0) for reading in readings]
        growth = [after - before for before, after in pairwise(values)]
        if min(growth) >= 0:
            found[name] = [max(more - left.get(name, 0.0), 0.0) for more in growth]
    return found


def _values(readings: Sequence[Reading]) -> dict[str, list[float]]:
    names = sorted({name for reading in readings for name in reading.counters.now})
    return {name: [reading.counters.now.get(name, 0.0) for reading in readings] for name in names}
