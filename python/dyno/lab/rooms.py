"""The kinds that the lab may be asked to operate, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dyno.model.base import UserError
from dyno.model.pairs import pairs
from dyno.model.registry import find
from dyno.model.study import Cell, Kinds, Study
from dyno.observers.base import Observer
from dyno.systems.base import System
from dyno.workloads.base import Workload


@dataclass(frozen=True)
class Rooms:
    """Every system, workload and observer there is, built in or from another package."""

    systems: dict[str, type[System[Any]]]
    workloads: dict[str, type[Workload[Any]]]
    observers: dict[str, type[Observer[Any]]]

    @classmethod
    def open(cls) -> Rooms:
        """Find them all. Raises UserError where another package's kind cannot be loaded."""
        return cls(
            # mypy: a base to look for need not be concrete, https://github.com/python/mypy/issues/4717
            systems=find("dyno.systems", System),  # type: ignore[type-abstract]
            workloads=find("dyno.workloads", Workload),  # type: ignore[type-abstract]
            observers=find("dyno.observers", Observer),  # type: ignore[type-abstract]
        )

    def refuse_mismatches(self, study: Study) -> None:
        """Raise UserError where a cell could only fail: its system cannot give what its workload needs."""
        for cell in study.cells:
            system = self.systems[cell.system.kind]
            kind = self.workloads[cell.workload.kind]
            if system.backend not in kind.backends:
                can = [name for name, other in self.systems.items() if other.backend in kind.backends]
                raise UserError(
                    f"{study.study}: workload.kind: {cell.workload.kind} cannot drive system {cell.system.kind} "
                    f"({cell.name}); it can drive {', '.join(sorted(can))}"
                )
            workload = self._workload(cell)
            options = system.Options.model_validate(cell.system.options)
            if why := workload.refuses(system.backend, system.reached_by(options)):
                raise UserError(f"{study.study}: workload: {why} ({cell.name})")
            most = system.most_clients(options)
            if most is not None and workload.clients() > most:
                raise UserError(
                    f"{study.study}: system.config: with these settings {cell.system.kind} lets {most} client in, "
                    f"and the workload has {workload.clients()} ({cell.name})"
                )
            if cell.host.caches == "cold" and workload.warms_up():
                raise UserError(
                    f"{study.study}: workload: a warm-up would fill the caches that are to be cold ({cell.name}); "
                    "leave it out, or ask for host.caches: warm"
                )

        self._refuse_unlike_loops(study)

    def _refuse_unlike_loops(self, study: Study) -> None:
        """A study that goes by what cannot be compared could not end but by its budget."""
        _, _, response = study.replicates.of.rpartition(".")
        if study.replicates.precision_of != "ratio" or not response.startswith("latency_"):
            return
        for pair in pairs(study):
            rates = [self._workload(cell).rate() for cell in (pair.a, pair.b)]
            if (rates[0] is None) != (rates[1] is None):
                raise UserError(
                    f"{study.study}: replicates.of: {study.replicates.of} of {pair.a.name} and {pair.b.name} do not "
                    "compare: one is of a closed loop and one of an open loop (workload.rate)"
                )

    def _workload(self, cell: Cell) -> Workload[Any]:
        kind = self.workloads[cell.workload.kind]
        return kind(kind.Options.model_validate(cell.workload.options))

    def kinds(self) -> Kinds:
        """Their names and options, for the room that reads study files."""
        return Kinds(
            systems={name: kind.Options for name, kind in self.systems.items()},
            workloads={name: kind.Options for name, kind in self.workloads.items()},
            observers={name: kind.Options for name, kind in self.observers.items()},
        )
