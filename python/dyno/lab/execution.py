"""One run, step by step. Whatever happens it ends in a record: ok, or else with the step and the cause."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from dyno.design import measured_part
from dyno.hosts.devices import Device
from dyno.hosts.interventions.base import Effect, Intervention, Target
from dyno.lab.call_costs import OPTIMISED, SLOWER, count, per_transaction
from dyno.lab.datasets import DataSets
from dyno.lab.disk import DiskFull
from dyno.lab.faults import Striker, audited, give_up_of, outage_of, responses_of, stale_reads
from dyno.lab.follower import Follower
from dyno.lab.interrupt import Interrupt
from dyno.lab.meter import MachineMeter, Meter, Metered, operations
from dyno.lab.runner import WatchedRunner
from dyno.lab.saturation import driver_use
from dyno.lab.sites import Site, kernel_settings
from dyno.model.base import InvalidRun, Killed, NeverValid, Refused, RunError, Scalar
from dyno.model.endpoint import Endpoint
from dyno.model.outage import Outage
from dyno.model.run import (
    CLIENTS,
    Audited,
    Event,
    Faulted,
    Intervened,
    MeasuredPart,
    Outcome,
    RunRecord,
    Slot,
    Step,
    StepTime,
)
from dyno.model.saturation import why_driver_is_the_limit
from dyno.model.study import Cell, Study
from dyno.observers.base import DRIVER, POPULATE, Counting, Observer
from dyno.store import Staged
from dyno.systems.base import System
from dyno.systems.cluster import Cluster
from dyno.workloads.base import Checked, Measured, Workload, rates

_RESIDENT_AT_MOST = 0.01
"""Share of the data files that may be in page cache after they were dropped: read-ahead of a neighbour's open may
bring back a page, a cache that was not dropped brings back most."""
_NOTHING_MISSING = "nothing that was acknowledged is missing"


class _Interrupted(Exception):
    """The user asked to end while the run was going on."""


class NewRunner(Protocol):
    """Makes a runner of drivers that may live `limit` seconds; see `WatchedRunner` for what it tells."""

    def __call__(
        self, limit: float, on_started: Callable[[int], None] = ..., on_ended: Callable[[], None] = ...
    ) -> WatchedRunner:
        """A new one."""
        ...


def _refuse_warm(resident: int, total: int) -> None:
    """Raise InvalidRun where more of the data is in page cache than a cold start may find there. In bytes."""
    if resident > _RESIDENT_AT_MOST * total:
        raise InvalidRun(f"caches are not cold: {resident} of {total} bytes of data are in page cache")


@dataclass
class Execution:
    """All that one run needs, and what it has found out so far."""

    study: Study
    cell: Cell
    slot: Slot
    run: int
    system: System[Any]
    workload: Workload[Any]
    observers: list[Observer[Any]]
    data_sets: DataSets
    site: Site
    interrupt: Interrupt
    logs: Path
    new_runner: NewRunner
    versions: dict[str, str]
    intervention: Intervention | None = None
    disk_full: bool = False
    permanent: bool = False
    _steps: list[StepTime] = field(default_factory=list)
    _wrong: Step | None = None
    _begun: float = 0.0
    _measured: Measured | None = None
    _part: MeasuredPart | None = None
    _seen: list[tuple[Observer[Any], pl.DataFrame]] = field(default_factory=list)
    _samples: pl.DataFrame | None = None
    _stacks: pl.DataFrame | None = None
    _functions: pl.DataFrame | None = None
    _builds: tuple[str, ...] = ()
    _counts: pl.DataFrame | None = None
    _observed: dict[str, float] = field(default_factory=dict)
    _settings: dict[str, Any] = field(default_factory=dict)
    _status: dict[str, float] = field(default_factory=dict)
    _caches: dict[str, Any] = field(default_factory=dict)
    _resident_when_stopped: int | None = None
    _deployed: dict[str, Scalar] = field(default_factory=dict)
    _meter: Meter | None = None
    _metered: Metered | None = None
    _machine_meter: MachineMeter | None = None
    _machine: dict[str, float] = field(default_factory=dict)
    _used: dict[str, float] = field(default_factory=dict)
    _runner: WatchedRunner | None = None
    _populator: WatchedRunner | None = None
    _populated: tuple[int, int] | tuple[None, None] = (None, None)
    _device: Device | None = None
    _intervened: Intervened | None = None
    _striker: Striker | None = None
    _follower: Follower | None = None
    _outage: Outage | None = None
    _audits: dict[str, Audited] = field(default_factory=dict)
    _withheld: dict[str, str] = field(default_factory=dict)
    _at_least: dict[str, float] = field(default_factory=dict)
    _fault_not_taken: str | None = None
    _looked_at: tuple[str, ...] = ()
    _driven: bool = False
    _ended_badly: bool = False

    def carry_out(self) -> Staged:
        """Do it. Raises nothing but what ends dyno itself."""
        started_ns = time.time_ns()
        self._begun = time.monotonic()
        outcome, cause = Outcome.OK, None
        self._machine_meter = self.site.machine_meter()
        try:
            with self.interrupt.telling(self.site.deployment.interrupted):
                self._measure()
        except _Interrupted:
            outcome, cause = Outcome.PARTIAL, "interrupted by a signal to dyno"
        except InvalidRun as error:
            # Of a system that died it was asked in vain; what went wrong is the system's end.
            outcome, cause = Outcome.FAILED if self._ended_badly else Outcome.INVALID, self._told(error)
            self.permanent = isinstance(error, NeverValid) and not self._ended_badly
        except RunError as error:
            outcome, cause = Outcome.FAILED, self._told(error)
            self.disk_full = isinstance(error, DiskFull)
            self.permanent = isinstance(error, Refused)
        except Exception as error:  # noqa: BLE001 - a defect in one kind must not lose the others' runs
            outcome, cause = Outcome.FAILED, self._defect(error)
        finally:
            if self._machine_meter is not None:
                self._machine_meter.close()
        if outcome in (Outcome.FAILED, Outcome.INVALID) and self.interrupt.requested:
            outcome, cause = Outcome.PARTIAL, f"interrupted by a signal to dyno ({cause})"
        if self._measured is None and self._runner is not None:
            self._measured = self._runner.measured
        # What was found of a fault is kept of a run that failed too; what a kind gave must not end the study here.
        try:
            self._take_fault()
        except Exception as error:  # noqa: BLE001 - see above
            self._fault_not_taken = f"What the fault cost is not known: {self._defect(error)}."
        record = self._record_that_can_be_kept(outcome, _one_line(cause), started_ns)
        measured = self._measured
        return Staged(
            record=record,
            logs=self.logs,
            intervals=measured.intervals if measured else None,
            samples=self._samples,
            stacks=self._stacks,
            functions=self._functions,
            counts=self._counts,
            histogram_log=measured.histogram_log if measured else None,
            attempts=measured.attempts if measured else None,
            reads=measured.reads if measured else None,
            answers=measured.answers if measured else None,
        )

    def _measure(self) -> None:
        limits, host = self.study.limits, self.system.place.host
        with self._timed(Step.HOST):
            # Before loading, so that a setting which shapes the data does so too.
            host.set_kernel(kernel_settings(self.cell))
        with self._timed(Step.PREPARE), self._telling_why_killed():
            snapshot = self._data_set()
        with self._timed(Step.RESTORE):
            # The live data, with what they grew by in the run before, go before the snapshot takes their place.
            self.site.guard.forecast(self.system.restored_bytes(snapshot) - self.system.live_bytes())
            self.system.restore(snapshot, limits.restore, reflink=self.study.restore == "reflink")
        if self.cell.host.caches == "cold":
            with self._timed(Step.CACHES):
                self._drop_caches()
                self._look_while_stopped()
        elif self.cell.host.machine.memory is not None:
            with self._timed(Step.CACHES):
                # Page cache is charged to whoever reads a page first: dyno, which copied the data, is under no limit.
                host.evict(self.system.data_files())
        try:
            self._operate()
        except (RunError, InvalidRun) as error:
            self._audit(error)
            raise
        with self._timed(Step.CHECK):
            self.system.check(limits.stop)
            self._status |= self.system.at_rest()
            self._take_what_came_late()
            self.site.guard.grew(self.system.live_bytes() - self.system.restored_bytes(snapshot))
            self._take_part()
            self._refuse_saturated_driver()
            self._take_effect()
        if any(observer.takes_stacks for observer, _ in self._seen):
            with self._timed(Step.OBSERVE):
                self._stacks = self._stacks_of_part()
        if countings := [each for each in (observer.counting() for observer in self.observers) if each]:
            with self._timed(Step.OBSERVE):
                self._count(snapshot, countings)

    def _operate(self) -> None:
        with self._whatever_happens(self._let_be), self._whatever_happens(self._stop):
            if self.intervention is not None and self.system.reached_by(self.system.options) is not None:
                self.site.deployment.under = self.intervention.under(self.system.data_files())
                self.site.deployment.joined = self.intervention.procs
            endpoint = self._start()
            self._builds = tuple(self.system.builds(endpoint))
            self._settings = self.system.settings()
            with self._timed(Step.CACHES):
                if endpoint.processes:
                    # What starting wrote, and be it a library that Java unpacks, would be written back while driven.
                    self.system.place.host.write_back(self.site.deployment.data_while_running())
                self._caches = self._attest_caches()
            with self._timed(Step.OBSERVE), self._whatever_happens(self._stop_observers, only_after_error=True):
                self._start_observers(endpoint.processes)
            with self._auditing(endpoint):
                self._drive(endpoint)

    def _drive(self, endpoint: Endpoint) -> None:
        """Drive what runs and is observed, and look at it then."""
        limits = self.study.limits
        with self._whatever_happens(self._stop_observers):
            if self.workload.populates:
                self._populate(endpoint)
            with self._whatever_happens(self._mend), self._timed(Step.DRIVE), self._disk_limited():
                self._runner = self.new_runner(limits.drive, self._on_driver, self._on_drivers_end)
                self._runner.namespace = endpoint.namespace
                self._intervene(endpoint)
                self._meter = Meter(self._on_device(), endpoint.processes.values(), self.system.sent_bytes)
                if self._machine_meter is not None:
                    self._machine_meter.begin()
                self._begin_fault(self._runner, endpoint)
                self._measured = self.workload.drive(self._runner, endpoint, self._seed())
                if self.workload.goes_on:
                    self._end_meters()
                self._let_be()
                self._take_figures(self._measured)
        self._take_fault()
        with self._timed(Step.STATUS), self._telling_why_killed():
            # Not before: the sum of the server's program would have it all in page cache, measured or not.
            self._deployed = self._how_deployed()
            self._status = self.system.status()
        with self._timed(Step.CHECK):
            if self.cell.fault is not None:
                # What is missing then is what was to be found, and may be what decides.
                self._audit_each_way(self._runner, endpoint)
            self._check(self._measured)
            self._attest_device()
            if self.workload.reads_back():
                self._drop_caches()
            if self.cell.fault is None:
                checked = self._checked(self._runner, endpoint)
                self._status |= checked.status
                if checked.wrong:
                    raise RunError(checked.wrong)

    def _begin_fault(self, runner: WatchedRunner, endpoint: Endpoint) -> None:
        """Have the fault struck at its time, where the cell has one."""
        plan = self.cell.fault
        if plan is None:
            return
        if not isinstance(self.system, Cluster):
            raise RunError(f"{self.system.kind} has no nodes that a fault could strike")
        self.workload.through_fault = True
        self._striker = Striker(self.system, plan, self._seed(), self.study.limits.start)
        runner.on_measuring = self._striker.measuring
        self._follower = Follower(self.system.processes, self._watch_system)
        self._follower.begin(endpoint.processes)
        self._striker.begin()

    def _mend(self) -> None:
        if self._striker is not None:
            with self._timed(Step.MEND), self._whatever_happens(self._follow_no_more):
                self._striker.end(lambda: self.interrupt.requested)

    def _follow_no_more(self) -> None:
        if self._follower is not None:
            self._follower.end()

    def _take_fault(self) -> None:
        """What the fault cost those who asked, and what was read elsewhere; once."""
        striker, measured, plan = self._striker, self._measured, self.cell.fault
        if measured is None or self._outage is not None:
            return
        struck = None if striker is None else striker.struck
        found = stale_reads(measured, None if struck is None else struck.at_ns, give_up_of(measured))
        if striker is not None and struck is not None and plan is not None:
            self._outage = outage_of(measured, struck, striker.mended_ns, plan.late_s)
            found.update(responses_of(striker, struck, self._outage, attempted=measured.attempts is not None))
        self._used |= found.known
        self._withheld, self._at_least = found.unknown, found.at_least

    def _audit_each_way(self, runner: WatchedRunner, endpoint: Endpoint) -> None:
        """What became of the rows: as clients find them, and on each node."""
        ways = {CLIENTS: endpoint}
        if isinstance(self.system, Cluster):
            names = [node.name for node in self.system.nodes()]
            ways |= {name: endpoint.by(name) for name in names if name in endpoint.others}
        for name, way in ways.items():
            checked = self._checked(runner, way)
            if name == CLIENTS:
                self._status |= checked.status
            if (found := audited(checked.status)) is None:
                raise RunError(
                    f"the rows of {name} could not be counted: {checked.wrong or 'nothing was said of them'}"
                )
            self._audits[name] = found
            if name == CLIENTS:
                # At once: that a node cannot be asked takes back nothing of what clients did not find.
                self._used |= found.responses

    def _populate(self, endpoint: Endpoint) -> None:
        """Have the workload make what this run finds, and the caches as they are to be: no part of what is measured."""
        begun = time.time_ns()
        with self._timed(Step.POPULATE), self._telling_why_killed():
            meter = Meter(self._on_device(), ())
            self._populator = self.new_runner(self.study.limits.prepare, self._on_populator)
            self._populator.namespace = endpoint.namespace
            try:
                # Without the disk's limits, as where data are loaded.
                with self.site.loading():
                    self.workload.populate(self._populator, endpoint, self._seed())
                # Else the figures of the device would be of this too.
                self.system.place.host.sync()
                if (made := meter.end().device) is not None:
                    self._used["device_written_for_files"] = made.written_bytes / 2**20
            finally:
                self._populated = begun, time.time_ns()
        if self.cell.host.caches == "cold":
            with self._timed(Step.CACHES):
                self._drop_caches()
                self._caches = self._attest_caches(dropped=True)
                # To look at files brings their inodes and folders into the caches again.
                self._drop_caches()

    def _on_device(self) -> Device:
        """The device that the data are on."""
        return self._device or self.site.device

    @contextmanager
    def _disk_limited(self) -> Iterator[None]:
        """Within, a device of the system's own is held to what the one of its site is held to."""
        given, data = self.site.deployment.site, self.system.place.data
        if given.disk is None or self._device is None:
            yield
            return
        given.host.limit_disk(given.confinement, given.disk.limits, data)
        try:
            yield
        finally:
            given.host.release_disk(given.confinement, given.disk.limits, data)

    def _count(self, snapshot: Path, countings: Sequence[Counting]) -> None:
        """Drive each build of an embedded system again where that is to be counted: no part of what was measured."""
        found = []
        for counting in countings:
            for build in self._builds:
                means = [("callgrind", False), *([("hardware", False)] if counting.hardware else [])]
                if build == OPTIMISED and self.slot.block == 1:
                    means.append(("callgrind", True))
                for by, again in means:
                    found.append(self._counted(snapshot, counting, build, by, again=again))
                    if self.interrupt.requested:
                        raise _Interrupted
        self._counts = pl.concat(found)
        self._observed |= per_transaction(self._counts)

    def _counted(self, snapshot: Path, counting: Counting, build: str, by: str, *, again: bool) -> pl.DataFrame:
        """On the data as they were loaded, and by the block's seed.

        So each block counts other transactions, by which counts have an interval; how far those of the same ones differ
        is told by the first block, which counts them twice.
        """
        limits = self.study.limits
        self.system.restore(snapshot, limits.restore, reflink=self.study.restore == "reflink")
        self.system.start(self.run, limits.start)
        try:
            endpoint = self.system.builds(self.system.ready(limits.ready))[build]
            return count(
                self.new_runner(SLOWER * limits.drive),
                self.workload,
                endpoint,
                self._seed(),
                build=build,
                by=by,
                counting=counting,
                parts=self.system.parts(),
                again=again,
            )
        finally:
            self.system.stop(limits.stop)

    def _intervene(self, endpoint: Endpoint) -> None:
        """Have the dose in force from now on, for a system that lives in the driver too."""
        if self.intervention is None or self._runner is None:
            return
        site = self.site
        if not endpoint.processes:
            self._runner.under = self.intervention.under(self.system.data_files())
        target = Target(
            data=site.deployment.data_while_running(),
            processes=endpoint.processes,
            group=site.deployment.site.confinement.group,
            machine=site.machine,
        )
        self.intervention.begin(target)

    def _let_be(self) -> None:
        """What looks at the store afterwards is not slowed, as far as that can be had of a server that runs."""
        if self.intervention is None:
            return
        self.site.deployment.under, self.site.deployment.joined = (), ()
        if self._runner is not None:
            self._runner.under = ()
        self.intervention.end()

    def _take_effect(self) -> None:
        measured, cell = self._measured, self.cell.intervention
        if self.intervention is None or cell is None or measured is None:
            return
        since, until = measured.measured_from_ns, measured.measured_to_ns
        if since is None or until is None:
            raise RunError(f"{cell.kind}: the driver does not tell when its measured part was")
        effect = self.intervention.effect(since, until)
        self._intervened = Intervened(
            kind=cell.kind,
            dose=cell.dose,
            clients=self.workload.at_once(),
            calls=effect.calls,
            calls_per_op=_per_operation(effect, measured, (until - since) / 1e9),
            added_s=effect.added_s,
            slowed=effect.slowed,
            measured=dict(effect.measured),
            notes=effect.notes,
        )

    def _start(self) -> Endpoint:
        with self._timed(Step.START):
            self.system.start(self.run, self.study.limits.start)
            self._device = self.system.device()
        with self._timed(Step.READY), self._telling_why_killed():
            return self.system.ready(self.study.limits.ready)

    def _is_to_be_audited(self) -> bool:
        """Whether driving failed, and what the store has of what it took can be told."""
        lives_on = self.workload.outlives_failure and self._wrong in (Step.DRIVE, Step.MEND, Step.STATUS)
        return lives_on and self._runner is not None and not self.interrupt.requested

    def _others_go_on(self) -> bool:
        """Whether there are nodes that can be asked though one has gone."""
        return isinstance(self.system, Cluster) and not self.system.lone

    @contextmanager
    def _auditing(self, endpoint: Endpoint) -> Iterator[None]:
        """Within, where driving a cluster fails, its rows are looked for while it still runs, as clients find them.

        Not after it was started again: which node was written to last is known as long as it runs, and on the data of
        another what was acknowledged since would be missing, and what nobody was told of would be there.
        """
        try:
            yield
        except (RunError, InvalidRun) as error:
            if self._others_go_on() and self._is_to_be_audited():
                error.add_note(self._what_became(endpoint))
            raise

    def _what_became(self, endpoint: Endpoint) -> str:
        assert self._runner is not None
        try:
            with self._timed(Step.CHECK):
                checked = self._checked(self._runner, endpoint)
        except (RunError, InvalidRun) as second:
            return f"what became of the rows is not known, since they could not be looked for: {second}"
        if not self._take_audit(checked.status):
            return f"what became of the rows is not known: {checked.wrong or 'nothing was said of them'}"
        return f"checked as it ran on: {checked.wrong or _NOTHING_MISSING}"

    def _checked(self, runner: WatchedRunner, endpoint: Endpoint) -> Checked:
        """What the workload finds in the store; what it then tells of that is true of no run that was interrupted."""
        checked = self.workload.check(runner, endpoint, self._seed())
        if not self.interrupt.requested:
            self._looked_at = checked.notes
        return checked

    def _take_audit(self, status: dict[str, float]) -> bool:
        """Keep what was found of the rows, and whether that was all."""
        self._status |= status
        found = audited(status)
        if found is not None and self._striker is not None:
            self._audits[CLIENTS] = found
            self._used |= found.responses
        return found is not None

    def _audit(self, error: Exception) -> None:
        """Where driving failed, what the store still has of what it took: it is started again on the same data."""
        if self._others_go_on() or not self._is_to_be_audited():
            return
        assert self._runner is not None
        try:
            with self._whatever_happens(self._stop):
                endpoint = self._start()
                self._runner.namespace = endpoint.namespace
                with self._timed(Step.CHECK):
                    checked = self._checked(self._runner, endpoint)
        except (RunError, InvalidRun) as second:
            error.add_note(f"started again to be checked, it failed too: {second}")
            return
        self._take_audit(checked.status)
        error.add_note(f"started again and checked: {checked.wrong or _NOTHING_MISSING}")

    def _data_set(self) -> Path:
        block = self.slot.block if self.study.prepare == "per-block" else None
        key = self.data_sets.key(self.system, self.workload, block)
        known = self.data_sets.known(key)
        if known is not None:
            return known
        # Loading counts as prepare time of this run, and not against the time that driving may take.
        with self.site.loading():
            return self.data_sets.make(
                key, self.system, self.workload, lambda: self.new_runner(self.study.limits.prepare), self.site.guard
            )

    def _drop_caches(self) -> None:
        """While the system is stopped: all of the machine's page cache, which takes root, or else its data alone."""
        host = self.system.place.host
        if os.geteuid() == 0:
            host.drop_caches()
        else:
            host.evict(self.system.data_files())

    def _attest_caches(self, *, dropped: bool = False) -> dict[str, Any]:
        """Bring the data files' pages to the declared state, and show by evidence that they are in it.

        Where they were `dropped` just now and nothing has started since, that is not done again: each file would be
        synced, which takes ten thousand of them 20 s.
        """
        host, files = self.system.place.host, self.system.data_files()
        total = host.bytes_of(files)
        if self.cell.host.caches == "cold" and not dropped:
            host.evict(files)
        resident = host.resident_bytes(files)
        evidence = {"asked": self.cell.host.caches, "data_bytes": total, "resident_bytes": resident}
        if self._resident_when_stopped is not None:
            # What it has mapped since is part of its cold start.
            return {
                **evidence,
                "resident_when_stopped_bytes": self._resident_when_stopped,
                **self.system.cached(cold=True),
            }
        if self.cell.host.caches == "cold":
            _refuse_warm(resident, total)
        return {**evidence, **self.system.cached(self.cell.host.caches == "cold")}

    def _look_while_stopped(self) -> None:
        """Of a system that maps its files as it starts, show by evidence that none of them was in page cache before."""
        if not self.system.maps_files:
            return
        host, files = self.system.place.host, self.system.data_files()
        self._resident_when_stopped = host.resident_bytes(files)
        _refuse_warm(self._resident_when_stopped, host.bytes_of(files))
        # To look at files brings their inodes and folders into the caches again.
        self._drop_caches()

    def _start_observers(self, processes: dict[str, int]) -> None:
        for observer in self.observers:
            observer.looks_at(self.system.counters, lambda: self.system.is_struck)
            observer.start(self.study.limits.start)
            for subject, pid in processes.items():
                observer.watch(pid, subject)

    def _watch_system(self, pid: int, subject: str) -> None:
        for observer in self.observers:
            observer.watch(pid, subject)

    def _stop_observers(self) -> None:
        self._driven = True
        with self._timed(Step.OBSERVE):
            errors = []
            for observer in self.observers:
                try:
                    self._seen.append((observer, observer.stop(self.study.limits.stop)))
                except Exception as error:  # noqa: BLE001 - the others must be stopped too; it is raised below
                    errors.append(error)
            if errors:
                raise errors[0]
            self._samples = pl.concat([samples for _, samples in self._seen]) if self._seen else None
            self._observed = self._as_responses(self._measured)

    def _as_responses(self, measured: Measured | None) -> dict[str, float]:
        """What the observers say of the part that was measured."""
        if measured is None or measured.measured_from_ns is None or measured.measured_to_ns is None:
            return {}
        found: dict[str, float] = {}
        for observer, samples in self._seen:
            found |= observer.responses(samples, measured.measured_from_ns, measured.measured_to_ns)
        return found

    def _stop(self) -> None:
        with self._timed(Step.STOP), self._telling_why_killed():
            try:
                self.system.stop(self.study.limits.stop)
                self._status |= self.site.deployment.counted()
                self._functions = self.site.deployment.functions()
            except RunError:
                self._ended_badly = True
                raise

    def _on_driver(self, pid: int) -> None:
        if not self._driven:  # what looks at the store afterwards is no part of the run
            for observer in self.observers:
                self._watch(observer, pid, DRIVER)

    def _on_populator(self, pid: int) -> None:
        for observer in self.observers:
            self._watch(observer, pid, POPULATE)

    def _watch(self, observer: Observer[Any], pid: int, subject: str) -> None:
        if self.workload.forks:
            observer.watch_tree(pid, subject)
        else:
            observer.watch(pid, subject)

    def _on_drivers_end(self) -> None:
        # At once: what a workload then asks of the store by itself is no part of the drive, unless it says so.
        if not self._driven and not self.workload.goes_on:
            self._end_meters()

    def _end_meters(self) -> None:
        if self._meter is not None:
            self._metered = self._meter.end()
            if self._machine_meter is not None:
                self._machine = self._machine_meter.end()

    def _take_figures(self, measured: Measured) -> None:
        if self._metered is not None:
            counted = operations(measured, warmed_up=self.workload.warms_up())
            self._used |= self._metered.responses(counted)

    def _take_what_came_late(self) -> None:
        """What a system with a device of its own wrote once it was driven: it has let go of all that was in caches."""
        if self._device is None or self._meter is None or self._metered is None:
            return
        written = self._meter.end().device
        if written is None:
            return
        self._used["device_written_in_all"] = written.written_bytes / 2**20
        if self._measured and (counted := operations(self._measured, warmed_up=self.workload.warms_up())):
            self._used["device_written_in_all_per_op"] = written.written_bytes / counted

    def _attest_device(self) -> None:
        """Whether what was read can have come from the device, where the study depends on it."""
        host = self.cell.host
        if not (host.caches == "cold" and host.require.truly_cold):
            return
        why = self._metered.why_not_cold(self._on_device()) if self._metered else "no driver ran"
        if why:
            raise InvalidRun(f"not known to be truly cold (host.require.truly_cold): {why}")

    def _how_deployed(self) -> dict[str, Scalar]:
        running = self.system.running
        found = {} if running is None else self.site.deployment.facts(running)
        return {**self.site.facts(), **found, **self.system.facts()}

    def _check(self, measured: Measured) -> None:
        """Whether what ran is what was asked."""
        if not measured.complete:
            if self.interrupt.requested:
                raise _Interrupted
            raise RunError("the driver was cut short by a signal that dyno did not send")
        reported = {**measured.settings, **self._settings}
        for name, asked in self.system.asked().items():
            effective = reported.get(name, "not reported")
            if effective != asked:
                raise NeverValid(f"{name} is {effective}, the study asks for {asked}: the setting was not effective")
        if why := self.system.refutes(measured.status):
            raise InvalidRun(why)
        for name, value in measured.responses.items():
            if not math.isfinite(value):
                raise InvalidRun(f"the driver reported {value} as {name}")
        wanted = self.study.replicates.of
        given = {**self._used, **self._observed, **measured.responses}
        if wanted not in given:
            if why := {**measured.withheld, **self._withheld}.get(wanted):
                raise InvalidRun(f"{wanted} (replicates.of) of this run is not known: {why}")
            there = ", ".join(sorted(given))
            raise InvalidRun(f"the driver gave no {wanted!r} (replicates.of); it gave {there}")

    def _notes(self) -> Iterator[str]:
        for observer, _ in self._seen:
            yield from observer.notes()
        yield from self.site.notes()
        yield from self.system.notes()
        if self._fault_not_taken is not None:
            yield self._fault_not_taken

    def _take_part(self) -> None:
        """Find out what the run went through, and keep what counts of it. The system has stopped by then."""
        runner, measured = self._runner, self._measured
        if runner is None or measured is None or measured.intervals is None:
            return
        if self.cell.fault is not None:
            return  # what it went through was done to it
        series, interval_s, seconds = rates(measured)
        self._part = measured_part(
            series,
            interval_s,
            seconds,
            # From a cold start on everything was asked for, what becomes warm on the way included.
            may_cut=self.cell.host.caches == "warm" and self.workload.cuts(),
            confidence=self.study.replicates.confidence,
        )
        if self._part.from_s > 0:
            self._measured = self.workload.cut(runner, measured, len(series) - self._part.intervals)
            self._observed = self._as_responses(self._measured)
            self._check(self._measured)

    def _refuse_saturated_driver(self) -> None:
        """Where the driver itself was the limit, what was measured is the driver. At scale smoke nothing is judged."""
        if self._samples is None or self._measured is None or not self.study.judged:
            return
        if self.cell.fault is not None:
            return  # of a run that stood still the mean says nothing, and clients that come back are its own cost
        use = driver_use(self._samples, self._measured, self.workload.at_once(), self.cell.host.pin.driver)
        if use is not None and (why := why_driver_is_the_limit(use)):
            raise InvalidRun(why)

    def _stacks_of_part(self) -> pl.DataFrame | None:
        measured = self._measured
        if measured is None or measured.measured_from_ns is None or measured.measured_to_ns is None:
            return None
        part = measured.measured_from_ns, measured.measured_to_ns
        found = [observer.stacks(*part, self.study.limits.stop) for observer, _ in self._seen]
        taken = [each for each in found if each is not None]
        return pl.concat(taken) if taken else None

    def _seed(self) -> int:
        # One seed a block: the cells of a block are asked the same questions, which takes that noise out of ratios.
        return _seed(self.study, self.slot.block)

    @contextmanager
    def _timed(self, step: Step) -> Iterator[None]:
        begun = time.monotonic()
        try:
            if self.interrupt.requested and step not in (Step.STOP, Step.OBSERVE, Step.MEND):
                raise _Interrupted
            yield
        except BaseException:
            # The first step that went wrong is the one to blame; those that clean up after it come later.
            self._wrong = self._wrong or step
            raise
        finally:
            self._steps.append(StepTime(step=step, seconds=time.monotonic() - begun))

    @contextmanager
    def _telling_why_killed(self) -> Iterator[None]:
        try:
            yield
        except Killed as error:
            if self._machine_meter is not None and (why := self._machine_meter.why_killed()):
                error.args = (f"{error}: {why}",)  # its notes stay
            raise

    @contextmanager
    def _whatever_happens(self, undo: Callable[[], None], *, only_after_error: bool = False) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            try:
                undo()
            except Exception as second:  # noqa: BLE001 - the first error is the one to tell
                error.add_note(f"and then: {second}")
            raise
        if not only_after_error:
            undo()

    def _told(self, error: Exception) -> str:
        """What went wrong, and that memory ran out: a system that outlives one of its processes says nothing of it."""
        cause = _in_words(error)
        why = self._machine_meter.why_killed() if self._machine_meter is not None else None
        return cause if why is None or why in cause else f"{cause}; the kernel killed a process of the system: {why}"

    def _defect(self, error: Exception) -> str:
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / "defect.txt").open("a") as file:
            file.write("".join(traceback.format_exception(error)))
        return f"defect in dyno or in a kind: {_in_words_of_defect(error)} (logs/defect.txt)"

    def _record_that_can_be_kept(self, outcome: Outcome, cause: str | None, started_ns: int) -> RunRecord:
        """The record; where a kind gave what cannot be written and read again, that of a failed run without it."""
        try:
            record = self._record(outcome, cause, started_ns)
            RunRecord.model_validate_json(record.model_dump_json())
        except Exception as error:  # noqa: BLE001 - whatever a kind gave, one run's figures must not end the study
            self._measured, self._observed, self._status, self._caches, self._deployed = None, {}, {}, {}, {}
            self._wrong = self._wrong or Step.COMMIT
            return self._record(Outcome.FAILED, _one_line(self._defect(error)), started_ns)
        return record

    def _faulted(self) -> Faulted | None:
        striker, plan, outage = self._striker, self.cell.fault, self._outage
        if striker is None or striker.struck is None or plan is None:
            return None
        return Faulted(
            kind=striker.struck.kind,
            role=plan.fault.node,
            nodes=striker.struck.nodes,
            at_ns=striker.struck.at_ns,
            mended_ns=striker.mended_ns,
            whole_ns=striker.whole_ns,
            watched_s=outage.watched_s if outage else None,
            former_per_s=outage.former_per_s if outage else None,
            usual_gap_s=outage.usual_gap_s if outage else None,
            interrupted=outage.interrupted if outage else None,
            interruptions=outage.interruptions if outage else (),
            outage_s=outage.outage_s if outage else None,
            first_success_s=outage.first_success_s if outage else None,
            resolution_s=outage.resolution_s if outage else None,
            former_throughput_s=outage.former_throughput_s if outage else None,
            rejoin_outage_s=outage.rejoin_outage_s if outage else None,
            at_least=_finite(self._at_least),
            audits=self._audits,
        )

    def _record(self, outcome: Outcome, cause: str | None, started_ns: int) -> RunRecord:
        measured = self._measured
        return RunRecord(
            run=self.run,
            slot=self.slot,
            pilot=self.study.pilot,
            levels=self.cell.levels,
            outcome=outcome,
            step=None if outcome is Outcome.OK else self._wrong,
            cause=cause,
            started_ns=started_ns,
            ended_ns=time.time_ns(),
            seconds=time.monotonic() - self._begun,
            populated_from_ns=self._populated[0],
            populated_to_ns=self._populated[1],
            measured_from_ns=measured.measured_from_ns if measured else None,
            measured_to_ns=measured.measured_to_ns if measured else None,
            measured=self._part if measured else None,
            steps=tuple(self._steps),
            driver_s=self._runner.seconds if self._runner else 0.0,
            responses=_finite({**self._used, **self._observed, **measured.responses}) if measured else {},
            errors=measured.errors if measured else {},
            settings={**(measured.settings if measured else {}), **self._settings},
            status=_finite({**(measured.status if measured else {}), **self._machine, **self._status}),
            caches=self._caches,
            deployed=self._deployed,
            disk=self._on_device().disk(),
            written=(measured.written if measured else {}) or self.workload.written(),
            read=measured.read if measured else {},
            commands=tuple(words for runner in (self._populator, self._runner) if runner for words in runner.commands),
            versions={**self.versions, **(measured.versions if measured else {})},
            driver=measured.job if measured else {},
            loop=measured.loop if measured else None,
            rate_per_s=measured.rate_per_s if measured else None,
            notes=(*(measured.notes if measured else ()), *self._looked_at, *self._notes()),
            events=tuple(Event(at_ns=at_ns, text=text) for at_ns, text in self.system.events()),
            ended_by=measured.ended_by if measured else None,
            intervened=self._intervened,
            faulted=self._faulted(),
            halted=self.disk_full and outcome is Outcome.FAILED,
            permanent=self.permanent and outcome in (Outcome.FAILED, Outcome.INVALID),
        )


def _seed(study: Study, block: int) -> int:
    return (study.seed * 1_000_003 + block) % 2**64


def _per_operation(effect: Effect, measured: Measured, seconds: float) -> float | None:
    operations = measured.responses.get("throughput", 0.0) * measured.responses.get("elapsed", seconds)
    return effect.calls / operations if effect.calls is not None and operations > 0 else None


def _finite(figures: dict[str, float]) -> dict[str, float]:
    """Without what JSON cannot hold; a response that is not finite has already made the run invalid."""
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _in_words(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


def _in_words_of_defect(error: Exception) -> str:
    return "; ".join([repr(error), *getattr(error, "__notes__", ())])


def _one_line(cause: str | None) -> str | None:
    return None if cause is None else " ".join(cause.split())
