"""A lab on the simulated kinds, in which each part can be told to go wrong and tells what was done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from dyno.deployments.native import Native
from dyno.hosts import LocalHost, UndoJournal
from dyno.lab import Ending, Interrupt, Lab, Listener, Rooms
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.run import RunRecord
from dyno.model.study import Cell, Study
from dyno.observers.base import SAMPLE_COLUMNS
from dyno.observers.null import NullObserver
from dyno.store import Results, new_results
from dyno.systems.simulated import SimulatedSystem
from dyno.workloads.base import Checked, Measured, Runner
from dyno.workloads.simulated import SimulatedWorkload
from tests.making import scratch_in

PLENTY = 2**40
LASTING = {"study.yaml", "plan.json", "environment.json", "events.jsonl", "runs"}


class FakeHost(LocalHost):
    """The present machine with a disk and a page cache as the test says."""

    free: Callable[[], int] = staticmethod(lambda: PLENTY)
    resident: Callable[[], int] | None = None
    dropped: Callable[[], None] = staticmethod(lambda: None)
    synced: Callable[[], None] = staticmethod(lambda: None)
    written_back: Callable[[], None] = staticmethod(lambda: None)

    def drop_caches(self) -> None:
        # Those of the machine: the tests beside this one may be about them.
        self.dropped()

    def sync(self) -> None:
        self.synced()

    def write_back(self, folder: Path) -> None:
        super().write_back(folder)
        self.written_back()

    def free_disk(self, path: Path) -> int:
        return self.free()

    def resident_bytes(self, paths: Any) -> int:
        return super().resident_bytes(paths) if self.resident is None else self.resident()


@dataclass
class Fault:
    """What happens in a part, from its call number `after` (counted from 0) on, for `times` calls."""

    does: Callable[..., Any]
    after: int = 0
    times: int = 10**9
    seen: int = 0

    def __call__(self, *args: Any) -> Any:
        self.seen += 1
        return self.does(*args) if self.after < self.seen <= self.after + self.times else None


def raising(error: BaseException, **when: int) -> Fault:
    """A part that raises."""

    def fail(*_args: Any) -> None:
        raise error

    return Fault(fail, **when)


def giving(value: Any, **when: int) -> Fault:
    """A part that gives something else than it should."""
    return Fault(lambda *_args: value, **when)


def measured(throughput: float = 100.0, *, complete: bool = True, **rest: Any) -> Measured:
    """What a driver says."""
    return Measured(**{"complete": complete, "responses": {"throughput": throughput}, **rest})


@dataclass
class Laboratory:
    """Everything that a lab needs, and what was heard from its parts: `system.start`, `one.stop` ..."""

    root: Path
    faults: dict[str, Callable[..., Any]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    interrupt: Interrupt = field(default_factory=Interrupt)
    told: list[str] = field(default_factory=list)
    host: type[FakeHost] = FakeHost
    system_class: type[SimulatedSystem] = SimulatedSystem
    workload_class: type[SimulatedWorkload] = SimulatedWorkload
    core: str = "/nonexistent/dyno-core"
    sessions: int = 0
    watches: Callable[[Cell], bool] = lambda _: True
    on_ready: Callable[[], None] = lambda: None

    def run(self, study: Study, *, resume: Results | None = None) -> tuple[Ending, Results]:
        """Run or resume a study in a session of its own, and end the session."""
        results = resume or new_results(
            self.root / "results", study, b"", {"format": 1}, scratch_in(self.root / "results")
        )
        results = Results(results.folder)
        self.sessions += 1
        with UndoJournal() as journal:
            results.lock()
            try:
                lab = Lab(
                    results,
                    self.host(journal),
                    self.rooms(),
                    core=self.core,
                    workspace=results.folder / f".dyno-{journal.token}",
                    interrupt=self.interrupt,
                    listener=Heard(self.told),
                    watches=self.watches,
                )
                ending = lab.run(self.on_ready)
            finally:
                results.unlock()
        return ending, Results(results.folder)

    def records(self, study: Study) -> list[RunRecord]:
        """The runs of a study that is run to its end."""
        return list(self.run(study)[1].runs)

    def rooms(self) -> Rooms:
        """The simulated kinds under the name `tried`, with the faults in them, and two observers."""
        rooms = Rooms.open()
        observers = {name: _observer(name, self._heard) for name in ("one", "two")}
        return Rooms(
            systems={**rooms.systems, "tried": _system(self.system_class, self._heard)},
            workloads={**rooms.workloads, "tried": _workload(self.workload_class, self._heard)},
            observers={**rooms.observers, **observers},
            deployments={**rooms.deployments, "elsewhere": Elsewhere},
        )

    def _heard(self, part: str, *args: Any) -> Any:
        self.calls.append(part)
        fault = self.faults.get(part)
        return None if fault is None else fault(*args)


class Elsewhere(Native):
    """Another deployment of the same, so that a study can have two."""

    kind = "elsewhere"


class Heard(Listener):
    """Keeps what the lab tells."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def driving(self, throughput: float, phase: str) -> None:
        self.told.append(f"{phase} at {throughput:g}")

    def ended(self, reason: str) -> None:
        self.told.append(reason)


Hear = Callable[..., Any]


def _system(base: type[SimulatedSystem], hear: Hear) -> type[SimulatedSystem]:
    class Tried(base):  # type: ignore[valid-type,misc]  # a class by any other name
        kind = "tried"

        def data_key(self) -> dict[str, Any]:
            return hear("system.data_key", self.options) or {}

        def after_load(self) -> tuple[str, ...]:
            return hear("system.after_load", self.options) or ()

        def finish_load(self, endpoint: Endpoint, limit: float) -> None:
            hear("system.finish_load", self.after_load())

        def prepare(self, limit: float) -> None:
            super().prepare(limit)
            (self.place.data / "data.db").write_bytes(b"x" * 8192)
            hear("system.prepare")

        def snapshot(self, target: Path, limit: float) -> None:
            hear("system.snapshot", target)
            super().snapshot(target, limit)

        def restore(self, source: Path, limit: float, *, reflink: bool) -> None:
            hear("system.restore", source)
            super().restore(source, limit, reflink=reflink)

        def start(self, run: int, limit: float) -> None:
            super().start(run, limit)
            hear("system.start", run)

        def ready(self, limit: float) -> Endpoint:
            instead: Endpoint | None = hear("system.ready")
            endpoint: Endpoint = instead or super().ready(limit)
            return endpoint

        def data_files(self) -> list[Path]:
            hear("system.data_files")
            files: list[Path] = super().data_files()
            return files

        def asked(self) -> dict[str, Any]:
            return hear("system.asked") or {}

        def cached(self, cold: bool) -> dict[str, Any]:
            return hear("system.cached", cold) or {}

        def facts(self) -> dict[str, Any]:
            return hear("system.facts") or {}

        def status(self) -> dict[str, float]:
            return hear("system.status") or {"size_bytes": 1.0}

        def check(self, limit: float) -> None:
            hear("system.check")

        def stop(self, limit: float) -> None:
            super().stop(limit)
            hear("system.stop")

        def destroy(self) -> None:
            hear("system.destroy")
            super().destroy()

    return Tried


def _workload(base: type[SimulatedWorkload], hear: Hear) -> type[SimulatedWorkload]:
    class Tried(base):  # type: ignore[valid-type,misc]  # a class by any other name
        kind = "tried"

        def load(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
            hear("workload.load", runner)

        def populate(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
            hear("workload.populate", runner, seed)

        def check(self, runner: Runner, endpoint: Endpoint, seed: int) -> Checked:
            hear("workload.check")
            checked: Checked = super().check(runner, endpoint, seed)
            return checked

        def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
            return hear("workload.drive", runner, seed) or super().drive(runner, endpoint, seed)

    return Tried


def _observer(name: str, hear: Hear) -> type[NullObserver]:
    class Tried(NullObserver):
        kind = name

        def start(self, limit: float) -> None:
            hear(f"{name}.start")

        def watch(self, pid: int, subject: str) -> None:
            hear(f"{name}.watch", pid, subject)

        def stop(self, limit: float) -> pl.DataFrame:
            sample = [1, "local", name, "it", "n", 1.0]
            given = hear(f"{name}.stop")
            return pl.DataFrame([sample], SAMPLE_COLUMNS, orient="row") if given is None else given

        def responses(self, samples: pl.DataFrame, from_ns: int, to_ns: int) -> dict[str, float]:
            return hear(f"{name}.responses", samples, from_ns, to_ns) or {}

    return Tried


STEP_FAILS = RunError("the planned fault")
