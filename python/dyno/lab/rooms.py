"""The kinds that the lab may be asked to operate, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dyno.deployments.base import Deployment
from dyno.deployments.native import Native
from dyno.hosts.doctor import Check, lacking
from dyno.hosts.interventions.base import Intervention, Lives
from dyno.model import responses
from dyno.model.base import UserError
from dyno.model.pairs import pairs
from dyno.model.registry import find
from dyno.model.study import Cell, Kernel, Kinds, KindSpec, Mismatch, Pin, Study
from dyno.model.table_options import TableOptions
from dyno.observers.base import Observer
from dyno.systems.base import System
from dyno.systems.cluster import Cluster
from dyno.systems.server import ServerOptions
from dyno.workloads.base import Workload


@dataclass(frozen=True)
class Rooms:
    """Every system, workload, observer and deployment there is, built in or from another package."""

    systems: dict[str, type[System[Any]]]
    workloads: dict[str, type[Workload[Any]]]
    observers: dict[str, type[Observer[Any]]]
    deployments: dict[str, type[Deployment]]
    interventions: dict[str, type[Intervention]] = field(default_factory=dict)

    @classmethod
    def open(cls) -> Rooms:
        """Find them all. Raises UserError where another package's kind cannot be loaded."""
        return cls(
            # mypy: a base to look for need not be concrete, https://github.com/python/mypy/issues/4717
            systems=find("dyno.systems", System),  # type: ignore[type-abstract]
            workloads=find("dyno.workloads", Workload),  # type: ignore[type-abstract]
            observers=find("dyno.observers", Observer),  # type: ignore[type-abstract]
            deployments=find("dyno.deployments", Deployment),  # type: ignore[type-abstract]
            interventions=find("dyno.hosts.interventions", Intervention),  # type: ignore[type-abstract]
        )

    def refuse_mismatches(self, study: Study) -> None:
        """Raise UserError where a study could only fail. Of one that was read from a file its reader has said so."""
        for found in self.mismatches(study):
            raise UserError(f"{study.study}: {found.key}: {found.text}")

    def mismatches(self, study: Study) -> Iterator[Mismatch]:
        """Where a cell's system cannot give what its workload needs, the first of each, and what cannot be compared."""
        for cell in study.cells:
            found = self._mismatch(cell, study.observe)
            if found is not None:
                yield found
        yield from self._unlike_loops(study)
        yield from self._nothing_to_ask(study)
        yield from self._never_told(study)

    def _mismatch(self, cell: Cell, observe: Sequence[KindSpec]) -> Mismatch | None:
        system = self.systems[cell.system.kind]
        kind = self.workloads[cell.workload.kind]
        if system.backend not in kind.backends:
            can = [name for name, other in self.systems.items() if other.backend in kind.backends]
            text = (
                f"{cell.workload.kind} cannot drive system {cell.system.kind} ({cell.name}); it can drive "
                f"{', '.join(sorted(can))}"
            )
            return Mismatch("workload.kind", text, cell)
        if (misplaced := self._option_of_others(cell)) is not None:
            return misplaced
        if self.deployments[cell.deployment].in_container and not system.brings_recipe:
            able = [name for name, other in self.systems.items() if other.brings_recipe]
            text = (
                f"{cell.system.kind} cannot live in {cell.deployment}: it brings no recipe of an image ({cell.name}); "
                f"{', '.join(sorted(able))} do"
            )
            return Mismatch("system.deployment", text, cell)
        workload = self._workload(cell)
        options = system.Options.model_validate(cell.system.options)
        for key, text in workload.misfits():
            return Mismatch(f"workload.{key}", f"{text} ({cell.name})", cell)
        if why := workload.refuses(system.backend, system.reached_by(options)):
            return Mismatch("workload", f"{why} ({cell.name})", cell)
        tables = getattr(options, "tables", None)
        if isinstance(tables, TableOptions) and (why := workload.refuses_tables(system.backend, tables.design())):
            return Mismatch("workload", f"{why} ({cell.name})", cell)
        if why := system.refuses(options, workload.kind, rolls_back=workload.rolls_back()):
            return Mismatch("system.config", f"{why} ({cell.name})", cell)
        most = system.most_clients(options)
        watching = sum(self.observers[spec.kind].connections for spec in observe) if system.has_counters else 0
        if most is not None and workload.clients() + watching > most:
            besides = f", {watching} of the observers besides" if watching else ""
            text = (
                f"with these settings {cell.system.kind} lets {most} client in, and the workload has "
                f"{workload.clients()}{besides} ({cell.name})"
            )
            return Mismatch("system.config", text, cell)
        if counting := next((spec.kind for spec in observe if self.observers[spec.kind].counts), None):
            if not workload.counts:
                counted = ", ".join(sorted(name for name, other in self.workloads.items() if other.counts))
                return Mismatch(
                    "observe", f"{counting} counts transactions of {counted}, not of {cell.workload.kind}", cell
                )
            if system.reached_by(options) is not None:
                text = f"{counting} counts what is done in the driver's process, and {cell.system.kind} is a server"
                return Mismatch("observe", f"{text} ({cell.name})", cell)
        if cell.host.caches == "cold" and workload.warms_up():
            text = (
                f"a warm-up would fill the caches that are to be cold ({cell.name}); leave it out of the workload, or "
                "write warm"
            )
            return Mismatch("host.caches", text, cell)
        if cell.fault is not None and (found := self._unstruck(cell, system, options, workload)) is not None:
            key, why = found
            return Mismatch(key, f"{why} ({cell.name})", cell)
        if cell.intervention is not None and (why := self.unfit(cell, cell.intervention.kind)):
            return Mismatch("intervene", f"{cell.intervention.kind}: {why} ({cell.name})", cell)
        return None

    def _option_of_others(self, cell: Cell) -> Mismatch | None:
        """A key that is dyno's own option of other kinds: the server of this one would be given it as a setting."""
        given = self.systems[cell.system.kind].Options.model_validate(cell.system.options).model_extra or {}
        for key in sorted(given):
            having = [
                name
                for name, kind in sorted(self.systems.items())
                if key in kind.Options.model_fields and issubclass(kind.Options, ServerOptions)
            ]
            if having:
                others = f"{', '.join(having)} {'have' if having[1:] else 'has'} it"
                text = f"{cell.system.kind} has no such option: leave it out; {others} ({cell.name})"
                return Mismatch(f"system.config.{key}", text, cell)
        return None

    def _unstruck(
        self, cell: Cell, system: type[System[Any]], options: Any, workload: Workload[Any]
    ) -> tuple[str, str] | None:
        """Why a fault would say nothing of a cell, and at which key; None where it would."""
        if (plan := cell.fault) is None:
            return None
        key = f"faults.{plan.fault.kind}"
        if not issubclass(system, Cluster):
            able = [name for name, kind in self.systems.items() if issubclass(kind, Cluster)]
            return (
                key,
                f"{cell.system.kind} has no nodes that could be struck; {', '.join(sorted(able)) or 'none'} have",
            )
        if why := system.why_not_struck(options, plan.fault.kind):
            return key, why
        if not workload.outlives_failure:
            able = [name for name, kind in self.workloads.items() if kind.outlives_failure]
            return "workload.kind", f"{cell.workload.kind} cannot go on through a fault; {', '.join(sorted(able))} can"
        if workload.rate() is None:
            return (
                "workload",
                "a fault is struck under requests that arrive whether or not others were answered: give a rate",
            )
        seconds = workload.measured_seconds()
        if seconds is None:
            return (
                "workload.duration",
                "a fault is struck within a time that is known: give a duration, and no operations (duration: 60 s)",
            )
        if plan.to_s >= seconds:
            return (
                f"{key}.at",
                f"raise workload.{workload.lasts_by}, or strike sooner: the measured part ends after {seconds:g} s, "
                f"and the fault may be struck at {plan.to_s:g} s",
            )
        if (lasts := plan.fault.lasts) is not None and plan.to_s + lasts > seconds:
            # It would be mended as the driver ends, sooner than was asked and without anybody who sees it.
            return (
                f"{key}.lasts",
                f"raise workload.{workload.lasts_by}: the fault may last until {plan.to_s + lasts:g} s, and the "
                f"measured part ends after {seconds:g} s; or leave lasts out, to have it mended when the driver ended",
            )
        return None

    def unfit(self, cell: Cell, kind: str) -> str | None:
        """Why an intervention of that kind could say nothing of a cell, whatever the machine; None where it could."""
        workload = self._workload(cell)
        if workload.rate() is not None:
            return "requests come at a rate that was given (workload.rate), however slow the system is"
        return self.interventions[kind].unfit(self.lives(cell))

    def refuse_missing(self, study: Study) -> None:
        """Raise UserError where this machine cannot make an intervention of a study, or not in such a dose."""
        for cell in study.cells:
            if (dose := cell.intervention) is None:
                continue
            kind = self.interventions[dose.kind]
            if lacks := kind.missing():
                raise UserError(f"intervene: {dose.kind} cannot be made here: {lacks}")
            if why := kind.refuses(dose.dose, self.lives(cell)):
                raise UserError(f"intervene: {dose.level} cannot be had here: {why}")

    def lacking(self, study: Study, folder: Path) -> list[Check]:
        """What is not on this machine of what the kinds of a study need; `folder` is where results would go."""
        names: dict[str, None] = {}
        for cell in study.cells:
            system = self.systems[cell.system.kind]
            names |= dict.fromkeys(system.needs(system.Options.model_validate(cell.system.options)))
            names |= dict.fromkeys(self._workload(cell).needs())
            names |= dict.fromkeys(self._of_place(cell, folder))
        for spec in study.observe:
            names |= dict.fromkeys(self.observers[spec.kind].needs)
        return lacking(list(names), folder)

    def _of_place(self, cell: Cell, folder: Path) -> Iterator[str]:
        """The checks that what a cell asks of its host and deployment hangs on."""
        host, machine = cell.host, cell.host.machine
        if self.deployments[cell.deployment].in_container:
            yield "root"
            yield _engine(host.containers, folder)
        if host.file_system is not None:
            yield from ("root", "loop devices", host.file_system.kind)
        if machine.cpus is not None or machine.memory is not None or host.pin != Pin():
            yield from ("root", "CPU and memory limits")
        if machine.disk.limits:
            yield from ("root", "disk limits")
        if host.sysctl or host.kernel != Kernel():
            yield "root"

    def lives(self, cell: Cell) -> Lives:
        """How the system of a cell lives."""
        kind = self.systems[cell.system.kind]
        options = kind.Options.model_validate(cell.system.options)
        return Lives(
            embedded=kind.reached_by(options) is None,
            in_container=self.deployments[cell.deployment].in_container,
            machine=cell.host.machine,
            buffers_writes=kind.buffers_writes,
            opens_directly=kind.opens_directly(options),
        )

    def _unlike_loops(self, study: Study) -> Iterator[Mismatch]:
        """A study that goes by what cannot be compared could not end but by its budget."""
        _, _, response = study.replicates.of.rpartition(".")
        if study.replicates.precision_of != "ratio" or not response.startswith("latency_"):
            return
        for pair in pairs(study):
            rates = [self._workload(cell).rate() for cell in (pair.a, pair.b)]
            if (rates[0] is None) != (rates[1] is None):
                text = (
                    f"{study.replicates.of} of {pair.a.name} and {pair.b.name} do not compare: one is of a closed loop "
                    "and one of an open loop (workload.rate)"
                )
                yield Mismatch("replicates.of", text)

    def _nothing_to_ask(self, study: Study) -> Iterator[Mismatch]:
        """An observer that asks systems would see nothing of a study without one that can be asked."""
        if any(self.systems[cell.system.kind].has_counters for cell in study.cells):
            return
        for spec in study.observe:
            if self.observers[spec.kind].connections:
                able = ", ".join(sorted(name for name, kind in self.systems.items() if kind.has_counters))
                none = ", ".join(sorted({cell.system.kind for cell in study.cells}))
                yield Mismatch(
                    "observe", f"{spec.kind} asks a server for its counters: {able}; {none} is none: leave it out"
                )

    def _never_told(self, study: Study) -> Iterator[Mismatch]:
        """What decides when a study ends has to be told by some cell."""
        if not responses.of_operation(study.replicates.of):
            return
        operation, _, _ = study.replicates.of.rpartition(".")
        known = [self._workload(cell).operations() for cell in study.cells]
        if any(names is None or operation in names for names in known):
            return
        there = sorted(set().union(*(names for names in known if names is not None)))
        yield Mismatch("replicates.of", f"no cell has {operation}: there are {', '.join(there) or 'no operations'}")

    def refuse_given(self, study: Study) -> None:
        """Raise UserError where what decides is a rate that was asked for, however slow the system is."""
        rated = any(self._workload(cell).rate() is not None for cell in study.cells)
        if rated and responses.lookup(study.replicates.of).of_pace:
            raise UserError(
                f"replicates.of: {study.replicates.of} comes at a given rate (workload.rate), however slow the system "
                "is; gate on `--set replicates.of=latency_p99`"
            )

    def _workload(self, cell: Cell) -> Workload[Any]:
        kind = self.workloads[cell.workload.kind]
        return kind(kind.Options.model_validate(cell.workload.options))

    def kinds(self) -> Kinds:
        """Their names, their options and what goes together, for the room that reads study files."""
        return Kinds(
            systems={name: kind.Options for name, kind in self.systems.items()},
            workloads={name: kind.Options for name, kind in self.workloads.items()},
            observers={name: kind.Options for name, kind in self.observers.items()},
            # The first is what a study has that names none.
            deployments=tuple(sorted(self.deployments, key=lambda name: (name != Native.kind, name))),
            interventions={name: kind.Options for name, kind in self.interventions.items()},
            mismatches=self.mismatches,
        )


def _engine(asked: str | None, folder: Path) -> str:
    """The check of the engine of containers that a study gets: Docker where it is installed, unless it names one."""
    if asked is None:
        asked = "podman" if lacking(["Docker"], folder) and not lacking(["Podman"], folder) else "docker"
    return {"docker": "Docker", "podman": "Podman"}[asked]
