"""The observer perf-record: where the system's processes spend CPU time, by call stacks that `perf record` takes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from dyno.hosts import LocalHost, perf
from dyno.model.base import Frozen, RunError
from dyno.model.hot_spots import Rule
from dyno.observers.base import POPULATE, SAMPLE_COLUMNS, STACK_COLUMNS, Observer

TIMER = "cpu-clock"
"""What samples where cycles cannot be counted: a timer that runs while the process does."""


class PerfRecordOptions(Frozen):
    """How often it looks, and how it finds the callers."""

    frequency: Annotated[int, Field(ge=1, le=10000, description="samples a second of each CPU that is at work")] = 99
    call_graph: Annotated[
        Literal["fp", "dwarf"],
        Field(
            description="how callers are found: fp by frame pointers, at little cost; dwarf by copies of the stack, "
            "through programs without them, at some megabytes a second"
        ),
    ] = "fp"
    event: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][\w.:/=-]*$",
            description="what is sampled by; cycles if left out, or cpu-clock where the machine does not count them",
        ),
    ] = None
    rules: Annotated[
        tuple[Rule, ...],
        Field(description="more rules of hot spots, before dyno's own: {group, symbol, module, caller}"),
    ] = ()


class PerfRecordObserver(Observer[PerfRecordOptions]):
    """One perf a process of the system; where the system lives in the driver's process, of that."""

    kind = "perf-record"
    needs = ("perf",)
    Options = PerfRecordOptions
    takes_stacks = True

    def __init__(self, options: PerfRecordOptions, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        super().__init__(options, host, core, folder, logs)
        self._perf: str | None = None
        self._event = ""
        self._limit = 0.0
        self._attached: list[perf.Attached] = []
        self._recorded: list[tuple[str, Path]] = []  # subject, what was recorded of it
        self._clock_offset_ns = 0

    def provision(self, limit: float) -> None:
        """Whether perf is there, may sample, and knows the event."""
        program = perf.program()
        if (most := perf.fastest()) is not None and self.options.frequency > most:
            raise RunError(
                f"frequency: {self.options.frequency} samples a second are more than the kernel takes "
                f"(kernel.perf_event_max_sample_rate is {most})"
            )
        if self.options.event and not perf.counts(program, self.options.event):
            raise RunError(f"event: this machine does not count {self.options.event}, or perf does not know it")

    def start(self, limit: float) -> None:
        """There is nothing to look at yet."""
        self._perf, self._limit = perf.program(), limit
        self._event = self.options.event or ("cycles" if perf.counts(self._perf, "cycles") else TIMER)

    def watch(self, pid: int, subject: str) -> None:
        """Attach a perf to it, if it is the system's."""
        of_driver = subject == "driver"
        if self._perf is None or subject == POPULATE or (of_driver and self._recorded):
            return
        folder = self.folder / f"record-{len(self._recorded)}"
        data = folder / "perf.data"
        argv = [self._perf, "record", "-F", str(self.options.frequency), "-e", self._event]
        argv += ["--call-graph", self.options.call_graph]
        # The caches of build-ids are in the user's home, and programs are found by their paths anyway.
        argv += ["--clockid", "mono", "--no-buildid", "--no-buildid-cache", "-o", str(data)]
        attached = perf.Attached(self.host, argv, pid, folder)
        self._attached.append(attached)
        self._recorded.append((subject, data))
        if not of_driver:
            attached.await_attached(self._limit)

    def stop(self, limit: float) -> pl.DataFrame:
        """End them all. What they recorded is read later, when it is known which part of the run counts."""
        self._clock_offset_ns = time.time_ns() - time.monotonic_ns()
        attached, self._attached = self._attached, []
        self._perf = None
        wrong = []
        for each in attached:
            try:
                each.end(limit)
            except RunError as error:  # the others have to be ended too
                wrong.append(error)
        if wrong:
            raise wrong[0]
        return pl.DataFrame(schema=SAMPLE_COLUMNS)

    def stacks(self, from_ns: int, to_ns: int, limit: float) -> pl.DataFrame:
        """Fold what was recorded of that part. What was recorded goes."""
        deadline = time.monotonic() + limit
        recorded, self._recorded = self._recorded, []
        folded = [
            self._folded(subject, data, from_ns, to_ns, deadline)
            for subject, data in recorded
            if data.exists() and data.stat().st_size
        ]
        return pl.concat([pl.DataFrame(schema=STACK_COLUMNS), *folded])

    def notes(self) -> tuple[str, ...]:
        """By what was sampled, where it is not what was wished for."""
        if self._event != TIMER or self.options.event is not None:
            return ()
        return (
            "Hot spots are of samples by a timer (cpu-clock), since this machine has no hardware counters that perf "
            "can use: work of the kernel that cannot be interrupted is told where it ends.",
        )

    def _folded(self, subject: str, data: Path, from_ns: int, to_ns: int, deadline: float) -> pl.DataFrame:
        within = ",".join(_in_seconds(ns - self._clock_offset_ns) for ns in (from_ns, to_ns))
        script = data.with_name("script")
        # Inlined functions are left out: to find them takes minutes of a program as large as a server.
        argv = ["perf", "script", "-i", str(data), "--no-inline", "--time", within]
        argv += ["-F", "comm,pid,tid,time,event,ip,sym,dso"]
        self.host.run(argv, limit=deadline - time.monotonic(), log=script)
        out = data.with_name("stacks.folded")
        printed = script.with_name(f"{script.name}.stdout")
        argv = [self.core, "fold", "--out", str(out), str(printed)]
        self.host.run(argv, limit=deadline - time.monotonic(), log=data.with_name("fold"))
        rows = [
            (subject, self._event, stack, int(samples))
            for stack, _, samples in (line.rpartition(" ") for line in out.read_text(errors="replace").splitlines())
        ]
        for path in (data, printed):
            path.unlink()  # some megabytes a run, of which the folded stacks say all that is kept
        return pl.DataFrame(rows, schema=STACK_COLUMNS, orient="row")


def _in_seconds(ns: int) -> str:
    seconds, rest = divmod(max(ns, 0), 10**9)
    return f"{seconds}.{rest:09d}"
