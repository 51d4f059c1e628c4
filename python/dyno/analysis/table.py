"""The runs of a study, grouped once so that every later question is a look-up."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dyno.analysis.answers import Answers, gather, read
from dyno.analysis.promises import Promises, promised
from dyno.model import measures, responses
from dyno.model.findings import Pace
from dyno.model.run import CLIENTS, Course, Outcome, RunRecord
from dyno.model.stages import COMPARING
from dyno.model.study import Study
from dyno.model.usage import Usage

EMULATED: Final = "emulated"
"""The key of `deployed` that says whether the system's CPUs were emulated by software."""
UNSTEADY: tuple[Course, ...] = ("slowing down", "none")


class Observation(NamedTuple):
    """A value of a response, and where it stands in the design and in time."""

    run: int
    cell: int
    block: int
    value: float


@dataclass
class Table:
    """Ok values by response and cell, and what became of the other runs."""

    values: dict[str, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    by_block: dict[str, dict[int, dict[int, float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    times: dict[tuple[int, int], int] = field(default_factory=dict)  # (block, cell) -> run, which is its place in time
    blocks: int = 0
    outcomes: dict[int, Counter[Outcome]] = field(default_factory=lambda: defaultdict(Counter))
    ok_runs: list[RunRecord] = field(default_factory=list)
    other_runs: list[RunRecord] = field(default_factory=list)
    struck: dict[int, list[RunRecord]] = field(default_factory=lambda: defaultdict(list))
    """Cell -> runs in which something was struck, those that went wrong afterwards too; not what the user cut off."""
    unknown: set[str] = field(default_factory=set)  # responses that this version has no unit for
    not_finite: int = 0
    unsteady: Counter[int] = field(default_factory=Counter)  # ok runs of a cell that reached no steady state
    loops: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))  # that a cell's ok runs were driven in
    emulated: dict[int, set[bool]] = field(default_factory=lambda: defaultdict(set))  # whether its CPUs were software
    promises: dict[int, set[Promises]] = field(default_factory=lambda: defaultdict(set))  # by the settings read back
    paces: dict[int, Pace] = field(default_factory=dict)  # of the cells whose throughput was not the system's alone
    widening: float | None = None  # of intervals between cells, once it is known: it is asked for thousands of times
    answers: Answers = field(default_factory=Answers)  # of its ok runs; of none where no queries were asked
    used: dict[int, dict[int, Usage]] = field(default_factory=lambda: defaultdict(dict))  # cell -> block, of ok runs

    def of(self, response: str, cell: int) -> list[float]:
        """The values of a response in the cell's ok runs, in order of execution."""
        return self.values[response][cell] if response in self.values else []

    def arrays(self, response: str, cells: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of a response and their places in time, (blocks, cells), NaN where there is none."""
        values, times = np.full((2, max(self.blocks, 1), len(cells)), np.nan)
        for place, cell in enumerate(cells):
            for block, value in self.in_blocks(response, cell).items():
                values[block, place], times[block, place] = value, self.times[block, cell]
        return values, times

    def observed(self, response: str) -> list[Observation]:
        """All values of a response, in order of execution."""
        return sorted(
            Observation(self.times[block, cell], cell, block, value)
            for cell, blocks in self.by_block.get(response, {}).items()
            for block, value in blocks.items()
        )

    def beyond(self, response: str, cell: int) -> list[float]:
        """Of the faults of a cell in which a response was not over yet, however the run ended: what was seen of it."""
        found = (run.faulted.at_least.get(response) for run in self.struck.get(cell, ()) if run.faulted is not None)
        return [each for each in found if each is not None]

    def in_blocks(self, response: str, cell: int) -> dict[int, float]:
        """Block -> value. A block holds one ok run of a cell, since only a run that went wrong is tried again."""
        return self.by_block[response][cell] if response in self.by_block else {}


class Seen(NamedTuple):
    """Between what a response of one fault lies: both are its value, but where it was not over yet."""

    low: float
    high: float


def of_fault(run: RunRecord, response: str) -> Seen | None:
    """What a run in which something was struck says of a response, whatever came of it; None where that is nothing.

    Of rows it is the audit as clients find them, which there is of runs too that never came to have responses.
    """
    faulted = run.faulted
    if faulted is not None and response.startswith("rows_"):
        return None if CLIENTS not in faulted.audits else _exactly(faulted.audits[CLIENTS].responses[response])
    if response in run.responses:
        return _exactly(run.responses[response])
    if faulted is not None and response in faulted.at_least:
        return Seen(faulted.at_least[response], math.inf)
    return None


def _exactly(value: float) -> Seen:
    return Seen(value, value)


def given(table: Table, response: str) -> str | None:
    """Why a response says nothing of what the system can do."""
    known = measures.lookup(response)
    if known.of_pace and "rate" in table.paces.values():
        return f"{known.title} at a rate that was given is not measured"
    return None


def compared(study: Study, runs: Sequence[RunRecord]) -> Sequence[RunRecord]:
    """The runs that figures are of; of a staged study those of stage two, since what was picked had been lucky."""
    return runs if study.stages is None else [run for run in runs if run.slot.stage == COMPARING]


def tabulate(
    study: Study,
    runs: Sequence[RunRecord],
    used: Mapping[int, Usage] = MappingProxyType({}),
    answers: pl.DataFrame | None = None,
) -> Table:
    """Group the runs, with what they `used` by run, and the `answers` of all with the run's number in `run`.

    Raises ValueError for a run of a cell that the study has not.
    """
    cells = {cell.index for cell in study.cells}
    table = Table()
    for run in sorted(runs, key=lambda record: record.run):
        slot = run.slot
        if slot.cell not in cells:
            raise ValueError(f"run {run.run} is of cell {slot.cell}, but the plan has cells 0 to {max(cells)}")
        table.outcomes[slot.cell][run.outcome] += 1
        if run.faulted is not None and run.outcome is not Outcome.PARTIAL:
            table.struck[slot.cell].append(run)
        if run.outcome is not Outcome.OK:
            table.other_runs.append(run)
            continue
        table.ok_runs.append(run)
        table.times[slot.block, slot.cell] = run.run
        table.blocks = max(table.blocks, slot.block + 1)
        if run.measured and run.measured.course in UNSTEADY:
            table.unsteady[slot.cell] += 1
        if run.loop:
            table.loops[slot.cell].add(run.loop)
        table.emulated[slot.cell].add(bool(run.deployed.get(EMULATED)))
        table.promises[slot.cell].add(promised(run.settings))
        if run.run in used:
            table.used[slot.cell][slot.block] = used[run.run]
        if pace := pace_of(run):
            table.paces[slot.cell] = pace
        for name, value in run.responses.items():
            if not math.isfinite(value):
                table.not_finite += 1
                continue
            table.values[name][slot.cell].append(value)
            table.by_block[name][slot.cell][slot.block] = value
    table.answers = gather({run.run: run.slot.cell for run in table.ok_runs}, read(answers))
    for name in list(table.values):
        if not _is_known(name):
            table.unknown.add(name)
            del table.values[name], table.by_block[name]
    return table


def pace_of(run: RunRecord) -> Pace | None:
    """What set its throughput besides the system."""
    if run.loop == "open" or run.rate_per_s is not None:
        return "rate"
    # As the jobs of dyno's own driver have it; other drivers' jobs have what they like.
    loop, workload = (part if isinstance(part, Mapping) else {} for part in map(run.driver.get, ("loop", "workload")))
    waits = loop.get("think_time_s") or workload.get("keying_time") or workload.get("think_time")
    return "waits" if waits else None


def response_order(study: Study, table: Table) -> list[str]:
    """The deciding response, then those of whole runs, then those of single operations."""
    deciding = study.replicates.of
    whole = [name for name in responses.names() if name in table.values]
    rank = {name: place for place, name in enumerate(responses.names())}

    def operation_then_rank(name: str) -> tuple[str, int]:
        operation, _, base = name.rpartition(".")
        return operation, rank[base]

    parts = sorted((name for name in table.values if name not in rank), key=operation_then_rank)
    return [deciding, *(name for name in [*whole, *parts] if name != deciding)]


def _is_known(name: str) -> bool:
    try:
        responses.lookup(name)
    except KeyError:
        return False
    return True
