"""The loop: ask the design, carry out the run, commit it, tell the design."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dyno.design import Design, Stop
from dyno.hosts import LocalHost
from dyno.hosts.cgroups import cpu_numbers
from dyno.hosts.confinement import Confinement
from dyno.hosts.interventions.base import Bench, Intervention
from dyno.hosts.joint import Joint
from dyno.lab.datasets import DataSets
from dyno.lab.execution import Execution, NewRunner
from dyno.lab.interrupt import Interrupt
from dyno.lab.listener import Listener
from dyno.lab.rooms import Rooms
from dyno.lab.runner import WatchedRunner
from dyno.lab.sites import Site, Sites, Wanting, kernel_settings, refuse_unknown, refused
from dyno.model.base import RunError, UserError
from dyno.model.run import Slot
from dyno.model.study import Cell, Study
from dyno.model.units import format_size
from dyno.observers.base import Observer
from dyno.store import Results, StoreError, StoreFull
from dyno.systems.base import Place, System
from dyno.workloads.base import Workload


@dataclass(frozen=True)
class Ending:
    """How a study ended this time."""

    reason: str
    interrupted: bool = False
    completed: bool = False


class Lab:
    """Runs one study into one results folder, beginning after the runs that are there already."""

    def __init__(
        self,
        results: Results,
        host: LocalHost,
        rooms: Rooms,
        *,
        core: str,
        workspace: Path,
        interrupt: Interrupt,
        listener: Listener,
        watches: Callable[[Cell], bool] = lambda _: True,
    ) -> None:
        """`workspace` is a folder to be made for the data under test; it goes again at the end.

        `watches` says of which cells the study's observers watch the runs: what they cost shows beside the others.
        """
        self._results = results
        self._study: Study = results.study
        self._host = host
        self._rooms = rooms
        self._core = core
        self._interrupt = interrupt
        self._listener = listener
        self._watches = watches
        self._workspace = host.temporary_folder(workspace)
        # Beside the runs, so that a commit is a rename within one file system wherever the data are.
        self._staging = host.temporary_folder(results.folder / f"{workspace.name}-staging")
        for name in ("sets", "shared"):
            (self._workspace / name).mkdir()
        self._data_sets = DataSets(host, self._workspace / "sets", limits=self._study.limits, seed=self._study.seed)
        self._sites = Sites(
            self._study,
            host,
            rooms.deployments,
            workspace=self._workspace,
            results=self._staging,
            keep=_kept_free(self._study),
        )
        self._drivers: dict[str, dict[str, str]] = {}  # by kind of workload
        self._known: dict[str, float] = {}  # of the instruments of interventions
        self._joint: Joint | None = None
        self._provisioned: list[System[Any]] = []

    def run(self, on_ready: Callable[[], None] = lambda: None) -> Ending:
        """Run until the design says that it is done, the user interrupts, or the disk is full.

        `on_ready` is told when all is there that runs need, and nothing but runs is still to come.

        Raises UserError where the study cannot begin, StoreError where results cannot be written.
        """
        refuse_full_disk(self._study, self._host, self._workspace)
        self._rooms.refuse_mismatches(self._study)
        self._rooms.refuse_missing(self._study)
        design = Design(self._study)
        number = self._take_up(design)
        try:
            self._provision()
            on_ready()
            return self._loop(design, number)
        finally:
            self._destroy()

    def _loop(self, design: Design, number: int) -> Ending:
        block = None
        while True:
            slot = design.decide()
            if isinstance(slot, Stop):
                return self._end(slot)
            if self._interrupt.requested:
                return self._interrupted()
            if slot.block != block and self._study.prepare == "per-block":
                self._data_sets.forget_all()
            block = slot.block
            number += 1
            disk_full = self._one(number, slot, design)
            if disk_full:
                reason = f"the disk is too full (see the failed run); free some, and {self._further()}"
                self._results.event("stopped", reason=reason)
                self._listener.ended(reason)
                return Ending(reason)

    def _take_up(self, design: Design) -> int:
        number = 0
        for record in self._results.runs:
            try:
                design.record(record)
            except ValueError as error:
                raise StoreError(f"{self._results.folder}: cannot go on from these runs: {error}") from error
            number = max(number, record.run)
        self._results.event("resumed" if number else "started", runs=number)
        return number

    def _provision(self) -> None:
        """Have ready all that runs need. Raises UserError, with all that this machine cannot give."""
        logs, limit = self._workspace / "logs", self._study.limits.provision
        self._try_host()
        wanting = Wanting()
        for observer in self._observers(self._staging / "provision"):
            with wanting.told(f"observer {observer.kind} cannot be provided"):
                observer.provision(limit)
        for cell in self._study.cells:
            workload = self._workload(cell)
            if workload.program() not in self._drivers:
                with wanting.told(f"workload {cell.workload.kind} cannot be provided"):
                    self._drivers[workload.program()] = workload.provision(self._host, logs, limit)
        self._joint = self._joint_group()
        for cell, site in self._sites.make():
            with wanting.told(f"system {cell.system.kind} cannot be provided"):
                system = self._system(cell, logs)
                refuse_unknown(cell, system.device() or site.device)
                self._provisioned.append(system)
                site.versions |= system.provision(limit)
            if wanting:
                continue  # an image takes minutes to make, and nothing will be run
            with refused(f"deployment {cell.deployment} of system {cell.system.kind} cannot be provided"):
                site.versions |= site.deployment.provision(system.recipe(), limit)
        wanting.refuse()
        self._provision_embedded(limit)
        self._measure_instruments()

    def _provision_embedded(self, limit: float) -> None:
        """What is in the driver hangs on how each cell has it, and is not installed: it is asked of each. UserError."""
        asked = set()
        for cell in self._study.cells:
            system = self._system(cell, self._workspace / "logs")
            said = cell.system.model_dump_json()
            if system.reached_by(system.options) is None and said not in asked:
                asked.add(said)
                with refused(f"system {cell.system.kind} cannot be provided"):
                    refuse_unknown(cell, system.device() or self._sites.of(cell).device)
                    system.provision(limit)

    def _joint_group(self) -> Joint | None:
        """The control group for systems and drivers, where an intervention needs one. Raises UserError."""
        kinds = dict.fromkeys(cell.intervention.kind for cell in self._study.cells if cell.intervention)
        used = [self._rooms.interventions[kind].joint for kind in kinds]
        controllers = [controller for controller in used if controller is not None]
        if not controllers:
            return None
        with refused("intervene: system and driver cannot be limited together"):
            return self._host.joint_group(controllers)

    def _measure_instruments(self) -> None:
        """What each dose adds, before it is given. Raises UserError."""
        for cell in self._study.cells:
            if (made := self._intervention(cell, self._workspace / "instruments")) is not None:
                with refused(f"intervene: {made.kind} cannot be measured here"):
                    made.measure(self._sites.of(cell).deployment.site.folder)

    def _intervention(self, cell: Cell, scratch: Path) -> Intervention | None:
        if cell.intervention is None:
            return None
        bench = Bench(
            host=self._host,
            folder=scratch / "intervention",
            logs=scratch / "logs",
            known=self._known,
            joint=self._joint,
            limit=self._study.limits.start,
        )
        return self._rooms.interventions[cell.intervention.kind](cell.intervention.dose, bench)

    def _try_host(self) -> None:
        """Make each state of the host that some cell asks for, so that one which cannot be made is told at once."""
        for cell in self._study.cells:
            with refused(f"the host cannot be as the study asks ({cell.name})"):
                self._host.set_kernel(kernel_settings(cell))
                if cell.host.pin.driver is not None:
                    cpu_numbers(cell.host.pin.driver)

    def _destroy(self) -> None:
        # The undo journal has the last word on what cannot be put away here.
        for system in self._provisioned:
            with contextlib.suppress(RunError):
                system.destroy()
        self._sites.destroy()
        with contextlib.suppress(RunError):
            self._host.set_kernel({})

    def _one(self, number: int, slot: Slot, design: Design) -> bool:
        """Carry out and commit one run; whether the disk was too full for it."""
        cell = self._study.cells[slot.cell]
        self._listener.run_started(number, slot, cell)
        scratch = self._staging / "run"
        execution = self._execution(number, slot, cell, scratch)
        staged = execution.carry_out()
        begun = time.monotonic()
        try:
            self._results.commit(staged, self._staging)
        except StoreFull:
            # The data under test may be what fills the disk; the record matters more, and they are restored anyway.
            self._sites.make_room()
            self._results.commit(staged, self._staging)
        self._host.remove_tree(scratch)
        record = staged.record
        self._results.event(
            "run",
            run=number,
            cell=slot.cell,
            block=slot.block,
            outcome=record.outcome.value,
            commit_s=round(time.monotonic() - begun, 6),
        )
        design.record(record)
        self._listener.run_ended(record, design.state(), design.seconds_left())
        return execution.disk_full

    def _execution(self, number: int, slot: Slot, cell: Cell, scratch: Path) -> Execution:
        logs, site = scratch / "logs", self._sites.of(cell)
        workload, intervention = self._workload(cell), self._intervention(cell, scratch)
        return Execution(
            study=self._study,
            cell=cell,
            slot=slot,
            run=number,
            system=self._system(cell, logs),
            workload=workload,
            observers=self._observers(scratch) if self._watches(cell) else [],
            data_sets=self._data_sets,
            site=site,
            interrupt=self._interrupt,
            logs=logs,
            new_runner=self._runners(scratch, cell, site, () if intervention is None else intervention.procs),
            versions={**site.versions, **self._drivers[workload.program()]},
            intervention=intervention,
        )

    def _runners(self, scratch: Path, cell: Cell, site: Site, joined: tuple[Path, ...]) -> NewRunner:
        """`joined` are the groups that a driver shares with its system in this run."""
        confinement = site.deployment.site.confinement if self._rooms.lives(cell).embedded else Confinement()
        if joined:
            confinement = replace(confinement, procs=joined)

        def new(
            limit: float,
            on_started: Callable[[int], None] = lambda _pid: None,
            on_ended: Callable[[], None] = lambda: None,
        ) -> WatchedRunner:
            folder = scratch / f"drive-{sum(1 for _ in scratch.glob('drive-*')) + 1}"
            return WatchedRunner(
                self._host,
                self._core,
                folder=folder,
                logs=scratch / "logs",
                limit=limit,
                guard=site.guard,
                interrupt=self._interrupt,
                listener=self._listener,
                on_started=on_started,
                on_ended=on_ended,
                cpus=cell.host.pin.driver,
                confinement=confinement,
            )

        return new

    def _system(self, cell: Cell, logs: Path) -> System[Any]:
        kind = self._rooms.systems[cell.system.kind]
        deployment = self._sites.of(cell).deployment
        place = Place(
            host=self._host,
            data=deployment.data,
            logs=logs,
            core=self._core,
            shared=self._workspace / "shared",
            deployment=deployment,
        )
        return kind(kind.Options.model_validate(cell.system.options), place)

    def _workload(self, cell: Cell) -> Workload[Any]:
        kind = self._rooms.workloads[cell.workload.kind]
        return kind(kind.Options.model_validate(cell.workload.options))

    def _observers(self, scratch: Path) -> list[Observer[Any]]:
        made = []
        for spec in self._study.observe:
            kind = self._rooms.observers[spec.kind]
            options = kind.Options.model_validate(spec.options)
            made.append(kind(options, self._host, self._core, scratch / f"observe-{spec.kind}", scratch / "logs"))
        return made

    def _end(self, stop: Stop) -> Ending:
        self._results.event("ended", reason=stop.reason, converged=stop.converged)
        self._listener.ended(stop.reason)
        return Ending(stop.reason, completed=True)

    def _further(self) -> str:
        return "begin the pilot anew" if self._study.pilot else "go on with `--resume`"

    def _interrupted(self) -> Ending:
        reason = f"interrupted; {self._further()}"
        self._results.event("interrupted")
        self._listener.ended(reason)
        return Ending(reason, interrupted=True)


def refuse_full_disk(study: Study, host: LocalHost, folder: Path) -> None:
    """Raise UserError where the file system of `folder`, which exists, has less room than the study keeps free."""
    free, keep = host.free_disk(folder), _kept_free(study)
    if free < keep:
        raise UserError(
            f"host.require.free_disk: {format_size(keep)} are to stay free, "
            f"and the file system of {folder} has {format_size(free)}"
        )


def _kept_free(study: Study) -> int:
    return max(cell.host.require.free_disk for cell in study.cells)
