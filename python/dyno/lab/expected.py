"""How long runs take as far as that is known before them: what is driven, and what is around it.

Of a study that was run before, its results say what was around; else what such systems are known to take. Only
for estimates and hints: nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from dyno.lab.rooms import Rooms
from dyno.model.run import Outcome, RunRecord, Step
from dyno.model.study import Cell, Study
from dyno.model.units import format_duration
from dyno.store import Results
from dyno.systems.cluster import Cluster
from dyno.workloads.base import Workload

AROUND_S: Final = {"embedded": 0.2, "server": 2.0, "container": 4.0, "cluster": 8.0}
"""What is around a run on top of driving it, by what it is of; of a cluster without its forming and mending."""
_USUALLY: Final = (
    "drives, and what is usually around a run of such systems (start, ready, mending, stop): once the study was run, "
    "its results say how long that takes here"
)


@dataclass(frozen=True)
class Expected:
    """Seconds of a run of each cell with all around it, None where the drive depends on the system; and whence."""

    seconds: dict[int, float | None]
    basis: str


def expected(rooms: Rooms, study: Study, earlier: Sequence[Results] = ()) -> Expected:
    """From the latest of the `earlier` results, the oldest first, that has ok runs of all cells of the study."""
    around, basis = _usually_around(rooms, study), _USUALLY
    for results in reversed(earlier):
        seen = _around(results.runs)
        if all(_key(cell.levels) in seen for cell in study.cells):
            around = {cell.index: seen[_key(cell.levels)] for cell in study.cells}
            basis = f"drives, and what was around each run in {results.folder}"
            break
    driven = {cell.index: _workload(rooms, cell).expected_seconds() for cell in study.cells}
    return Expected(
        {cell: None if seconds is None else seconds + around[cell] for cell, seconds in driven.items()}, basis
    )


def too_late_to_be_seen(rooms: Rooms, study: Study) -> Iterator[str]:
    """Which faults leave clients no time to see the cluster whole again, each once; of what is judged alone."""
    told: set[tuple[str, str]] = set()
    for cell in study.cells if study.judged else ():
        plan, kind = cell.fault, rooms.systems[cell.system.kind]
        if plan is None or plan.fault.lasts is None or not issubclass(kind, Cluster):
            continue
        workload = _workload(rooms, cell)
        measured = workload.measured_seconds()
        least = plan.to_s + plan.fault.lasts + kind.rejoins_in_s
        if measured is None or least < measured or (plan.fault.kind, kind.kind) in told:
            continue
        told.add((plan.fault.kind, kind.kind))
        yield (
            f"faults.{plan.fault.kind}: {kind.kind} may be mended {format_duration(plan.to_s + plan.fault.lasts)} into "
            f"the measured part and takes about {format_duration(kind.rejoins_in_s)} to be whole again, and the driver "
            f"ends after {format_duration(measured)}: what a node's return costs is then not known; raise "
            f"workload.{workload.lasts_by} until that is above {format_duration(least)}"
        )


def _usually_around(rooms: Rooms, study: Study) -> dict[int, float]:
    return {cell.index: _usual(rooms, cell) for cell in study.cells}


def _usual(rooms: Rooms, cell: Cell) -> float:
    kind, lives = rooms.systems[cell.system.kind], rooms.lives(cell)
    around = AROUND_S["container" if lives.in_container else "embedded" if lives.embedded else "server"]
    if not issubclass(kind, Cluster):
        return around
    if not kind.lone:
        around = AROUND_S["cluster"] + kind.forms_in_s
    return around + _after_the_driver(rooms, cell, kind.rejoins_in_s)


def _after_the_driver(rooms: Rooms, cell: Cell, rejoins_in_s: float) -> float:
    """What mending goes on for when the driver has ended."""
    if (plan := cell.fault) is None:
        return 0.0
    measured = _workload(rooms, cell).measured_seconds()
    if plan.fault.lasts is None or measured is None:
        return rejoins_in_s
    mended = (plan.from_s + plan.to_s) / 2 + plan.fault.lasts
    return max(rejoins_in_s - (measured - mended), 0.0)


def _around(runs: Iterable[RunRecord]) -> dict[tuple[tuple[str, str], ...], float]:
    """The median of what was around the drive of ok runs, by their levels; without what is prepared once for many."""
    found: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for run in runs:
        if run.outcome is Outcome.OK:
            within = sum(each.seconds for each in run.steps if each.step in (Step.DRIVE, Step.PREPARE))
            found.setdefault(_key(run.levels), []).append(max(run.seconds - within, 0.0))
    return {levels: median(values) for levels, values in found.items()}


def _key(levels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(levels.items()))


def _workload(rooms: Rooms, cell: Cell) -> Workload[Any]:
    kind = rooms.workloads[cell.workload.kind]
    return kind(kind.Options.model_validate(cell.workload.options))
