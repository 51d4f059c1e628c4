"""The observer perf-stat: what CPUs and the kernel count of processes, by `perf stat`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import polars as pl
from pydantic import Field

from dyno.hosts import LocalHost, perf
from dyno.model.base import Frozen, RunError
from dyno.observers.base import POPULATE, SAMPLE_COLUMNS, Observer

HARDWARE: Final = (
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "dTLB-load-misses",
    "iTLB-load-misses",
)
SOFTWARE: Final = ("task-clock", "context-switches", "cpu-migrations", "page-faults", "major-faults")

Event = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.:/=-]*$")]

_OF_THE_KERNEL: Final = ("context-switches", "cs", "cpu-migrations", "migrations")
"""Events that happen in the kernel: asked for user time alone, as without rights, they are counted as 0."""


class PerfStatOptions(Frozen):
    """What it counts, and how often it tells."""

    hz: Annotated[float, Field(ge=0.1, le=10, description="samples a second")] = 1.0
    events: Annotated[
        tuple[Event, ...] | None,
        Field(
            min_length=1,
            description="as `perf list` has them; cycles, instructions, branches, caches, TLBs, CPU time, switches, "
            "migrations and faults if left out",
        ),
    ] = None


@dataclass(frozen=True)
class Count:
    """A line of `perf stat -I`: an event until `at_s` after the beginning. `value` is None where nothing was counted.

    `unit` is what values are in, empty for 1; `running` the share of the time that the event was really counted in,
    in per cent; `supported` is False where this machine does not count it at all.
    """

    at_s: float
    event: str
    value: float | None
    unit: str
    running: float
    supported: bool = True


class PerfStatObserver(Observer[PerfStatOptions]):
    """One perf a process: each tells at times of its own."""

    kind = "perf-stat"
    needs = ("perf",)
    Options = PerfStatOptions

    def __init__(self, options: PerfStatOptions, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        super().__init__(options, host, core, folder, logs)
        self._perf: str | None = None
        self._limit = 0.0
        self._attached: list[tuple[str, perf.Attached]] = []  # by subject
        self._notes: tuple[str, ...] = ()

    def provision(self, limit: float) -> None:
        """Whether perf is there, may count, and knows the events."""
        if why := perf.refused(perf.program(), self._events()):
            raise RunError(f"perf does not take these events: {why}")

    def start(self, limit: float) -> None:
        """There is nothing to count yet."""
        self._perf, self._limit = perf.program(), limit

    def watch(self, pid: int, subject: str) -> None:
        """Attach a perf to it; to a system's process before it is driven."""
        if self._perf is None or subject == POPULATE:
            return
        every = str(max(round(1000 / self.options.hz), 1))
        argv = [self._perf, "stat", "-I", every, "-x;", "-e", ",".join(self._events())]
        attached = perf.Attached(self.host, argv, pid, self.folder / f"stat-{len(self._attached)}")
        self._attached.append((subject, attached))
        if subject != "driver":  # which is at work already: the first sample is of what is left of it
            attached.await_attached(self._limit)

    def stop(self, limit: float) -> pl.DataFrame:
        """End them all, and read what they told."""
        attached, self._attached = self._attached, []
        self._perf = None
        rows: list[tuple[int, str, str, str, str, float]] = []
        told: list[Count] = []
        wrong: list[RunError] = []
        for number, (subject, each) in enumerate(attached):
            try:
                each.end(limit)
                counts = list(parse(each.log.read_text(errors="replace")))
            except RunError as error:  # the others have to be ended too
                wrong.append(error)
                continue
            told += counts
            source = "perf" if number == 0 else f"perf.{number}"
            began_ns = each.log.stat().st_mtime_ns - round(max((count.at_s for count in counts), default=0.0) * 1e9)
            rows += (
                (began_ns + round(at_s * 1e9), self.host.name, source, subject, metric, value)
                for at_s, metric, value in rates(counts)
            )
        if wrong:
            raise wrong[0]
        self._notes = tuple(notes(told))
        return pl.DataFrame(rows, schema=SAMPLE_COLUMNS, orient="row")

    def notes(self) -> tuple[str, ...]:
        """What is not counted on this machine, and what is scaled."""
        return self._notes

    def _events(self) -> tuple[str, ...]:
        return self.options.events or (*HARDWARE, *SOFTWARE)


def parse(text: str) -> Iterator[Count]:
    """The lines of `perf stat -I -x;` (perf-stat(1), CSV FORMAT); others, such as warnings, are none of them.

    Time, value, unit, event, nanoseconds that it was counted for, per cent of the time that it was counted in, and a
    metric with its unit. Where a group is told by CPU more fields come between; that is not asked for.
    """
    for line in text.splitlines():
        fields = line.split(";")
        if len(fields) < 6:
            continue
        at, value, unit, event, _, running = (field.strip() for field in fields[:6])
        try:
            counted = None if value.startswith("<") else float(value)
            yield Count(float(at), event, counted, unit, float(running), value != "<not supported>")
        except ValueError:
            continue


def rates(counts: Sequence[Count]) -> Iterator[tuple[float, str, float]]:
    """Seconds after the beginning, metric and value: each event a second, `task-clock` in seconds a second.

    What was counted for a part of the time, since there are fewer counters than events, is scaled by perf to all of
    it; then `EVENT.running` is that part in per cent. A process that no CPU ran since the last time has no counts at
    all: those are 0. What this machine does not count is left out.
    """
    by_time: dict[float, list[Count]] = {}
    for count in counts:
        by_time.setdefault(count.at_s, []).append(count)
    before = 0.0
    for at_s, together in sorted(by_time.items()):
        seconds, before = at_s - before, at_s
        known = [count for count in together if count.supported and not _is_blind(count.event)]
        rested = all(count.value is None for count in known)
        for count in known:
            if seconds <= 0 or (count.value is None and not rested):
                continue
            scale = 1e-3 if count.unit == "msec" else 1.0
            yield at_s, _name(count.event), (count.value or 0.0) * scale / seconds
            if count.value is not None and count.running < 100:
                yield at_s, f"{_name(count.event)}.running", count.running


def notes(counts: Sequence[Count]) -> Iterator[str]:
    """In sentences: what this machine does not count, and what was counted for parts of the time."""
    events = list(dict.fromkeys(count.event for count in counts))
    absent = {count.event for count in counts if not count.supported}
    # One of several processes may have been too short for an event; what one of them was counted for is counted here.
    absent -= {count.event for count in counts if count.value is not None}
    missing = [_name(event) for event in events if event in absent]
    if missing and {"cycles", "instructions"} & set(missing):
        yield (
            f"This machine has no hardware counters that perf can use: {', '.join(missing)} are not known; what the "
            "kernel counts (CPU time, switches, migrations, faults) is."
        )
    elif missing:
        yield f"This machine does not count {', '.join(missing)}: they are not known."
    if blind := [event for event in events if _is_blind(event)]:
        yield f"Without rights perf counts user time alone: {', '.join(map(_name, blind))} are not known."
    if any(_modifiers(event) == "u" and event not in absent for event in events):
        yield "perf counted user time alone: of the kernel's work the counts say nothing."
    partly = {count.event for count in counts if count.value is not None and count.running < 100}
    if scaled := [_name(event) for event in events if event in partly]:
        yield (
            f"Counts of {', '.join(scaled)} are scaled: there are fewer counters than events, and each was counted for "
            "a part of the time (`EVENT.running` of the samples, in per cent)."
        )


def _name(event: str) -> str:
    """Without the modifiers that perf adds where it may not count the kernel."""
    return event.removesuffix(f":{_modifiers(event)}") if _modifiers(event) == "u" else event


def _modifiers(event: str) -> str:
    return event.rpartition(":")[2] if ":" in event else ""


def _is_blind(event: str) -> bool:
    return _modifiers(event) == "u" and _name(event) in _OF_THE_KERNEL
