"""What stores said of themselves: their counters for each operation, and what their clients waited for.

These figures explain. They are no verdicts, and cost the comparisons none of their power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dyno import stats
from dyno.analysis.table import Table
from dyno.model.counters import EMBEDDED, is_silent
from dyno.model.findings import CounterFigure, DatabaseCell, GaugeFigure, Interval, WaitFigure
from dyno.model.looks import looks
from dyno.model.pairs import Pair, pairs
from dyno.model.run import RunRecord
from dyno.model.study import Cell, Study

LEAST_PER_OP = 1e-5
"""Of a counter in some cell: what moves less often than once in 100,000 operations is the store's own housekeeping."""


@dataclass(frozen=True)
class _OfRun:
    """What the store of one run said, per second."""

    seconds: float
    operations: float
    per_s: Mapping[str, float]
    waiting: Mapping[str, float]
    means: Mapping[str, float]


def database(study: Study, table: Table) -> list[DatabaseCell]:
    """The cells in whose ok runs a store was asked, or is the driver's own; with all that moved in some of them."""
    said = _said(table)
    cells = [cell for cell in study.cells if cell.index in said]
    if not cells:
        return []
    figures = _counters(study, table, cells, said)
    waits = _waits(study, table, cells, said)
    gauges = _gauges(study, table, cells, said)
    return [
        DatabaseCell(
            cell=cell.index,
            levels=cell.levels,
            n=len(said[cell.index]),
            counters=tuple(figures[cell.index]),
            waits=tuple(waits[cell.index]),
            gauges=tuple(gauges[cell.index]),
            remark=_remark(table, cell),
        )
        for cell in cells
    ]


def _said(table: Table) -> dict[int, dict[int, _OfRun]]:
    """Cell -> block -> what was said."""
    found: dict[int, dict[int, _OfRun]] = {}
    for run in table.ok_runs:
        cell, block = run.slot.cell, run.slot.block
        used = table.used[cell].get(block) if cell in table.used else None
        told = used.told if used is not None else None
        of_run = _OfRun(told.seconds, told.operations, told.per_s, told.waiting, told.means) if told else _embedded(run)
        if of_run is not None:
            found.setdefault(cell, {})[block] = of_run
    return found


def _counters(
    study: Study, table: Table, cells: Sequence[Cell], said: Mapping[int, Mapping[int, _OfRun]]
) -> dict[int, list[CounterFigure]]:
    """Of each cell those that its store has, at 0 where one did not move; another store may have others."""
    found: dict[int, list[CounterFigure]] = {cell.index: [] for cell in cells}
    compared = pairs(study)
    known = _known(cells, said, lambda run: run.per_s)
    for name in _names(run.per_s for blocks in said.values() for run in blocks.values()):
        having = [cell for cell in cells if name in known[cell.system.kind]]
        per_op = {
            cell.index: {
                block: run.per_s.get(name, 0.0) * run.seconds / run.operations
                for block, run in said[cell.index].items()
            }
            for cell in having
        }
        means = _means(study, table, having, per_op)
        if max(mean for mean, _ in means.values()) < LEAST_PER_OP:
            continue
        apart = _apart(compared, means)
        for cell, (mean, interval) in means.items():
            per_s = float(np.mean([run.per_s.get(name, 0.0) for run in said[cell].values()]))
            found[cell].append(CounterFigure(name=name, per_op=mean, ci=interval, per_s=per_s, apart=apart.get(cell)))
    return found


def _known(
    cells: Sequence[Cell], said: Mapping[int, Mapping[int, _OfRun]], told: Callable[[_OfRun], Mapping[str, float]]
) -> dict[str, frozenset[str]]:
    """Kind of system -> what of that its store has: what moved in some run of it.

    An observer leaves out what did not move in a run. So kinds of which some counter has the same name are taken to
    have the same store, such as MariaDB and Galera: what moved in the one alone did not in the other.
    """
    counters: dict[str, set[str]] = {}
    moved: dict[str, set[str]] = {}
    for cell in cells:
        runs = said[cell.index].values()
        counters.setdefault(cell.system.kind, set()).update(_names(run.per_s for run in runs))
        moved.setdefault(cell.system.kind, set()).update(_names(told(run) for run in runs))
    return {
        kind: frozenset().union(*(moved[other] for other in counters if other == kind or counters[other] & own))
        for kind, own in counters.items()
    }


def _waits(
    study: Study, table: Table, cells: Sequence[Cell], said: Mapping[int, Mapping[int, _OfRun]]
) -> dict[int, list[WaitFigure]]:
    found: dict[int, list[WaitFigure]] = {cell.index: [] for cell in cells}
    known = _known(cells, said, lambda run: run.waiting)
    for name in _names(run.waiting for blocks in said.values() for run in blocks.values()):
        having = [cell for cell in cells if name in known[cell.system.kind]]
        waiting = {
            cell.index: {block: run.waiting.get(name, 0.0) for block, run in said[cell.index].items()}
            for cell in having
        }
        means = _means(study, table, having, waiting)
        if not any(mean for mean, _ in means.values()):
            continue
        for cell, (mean, interval) in means.items():
            runs = said[cell].values()
            per_op = float(np.mean([run.waiting.get(name, 0.0) * run.seconds / run.operations for run in runs]))
            found[cell].append(WaitFigure(name=name, clients=mean, ci=interval, us_per_op=per_op * 1e6))
    return {cell: sorted(waits, key=lambda wait: -wait.clients) for cell, waits in found.items()}


def _gauges(
    study: Study, table: Table, cells: Sequence[Cell], said: Mapping[int, Mapping[int, _OfRun]]
) -> dict[int, list[GaugeFigure]]:
    """Of each cell those that moved in some run of it: another store has others, and is not at 0 with these.

    An observer leaves out what stood still in a run, at whatever value: of such runs nothing is known. What was below 0
    in no run cannot be, as most of what stores tell: then no interval goes below it.
    """
    found: dict[int, list[GaugeFigure]] = {cell.index: [] for cell in cells}
    for name in _names(run.means for blocks in said.values() for run in blocks.values()):
        if is_silent(name):
            continue
        values = {
            cell: {block: run.means[name] for block, run in blocks.items() if name in run.means}
            for cell, blocks in said.items()
        }
        having = [cell for cell in cells if values[cell.index]]
        least = -math.inf if any(value < 0 for blocks in values.values() for value in blocks.values()) else 0.0
        for cell, (mean, interval) in _means(study, table, having, values, least=least).items():
            found[cell].append(GaugeFigure(name=name, mean=mean, ci=interval, n=len(values[cell])))
    return found


def _names(found: Iterable[Mapping[str, float]]) -> list[str]:
    return sorted({name for each in found for name in each})


def _embedded(run: RunRecord) -> _OfRun | None:
    """What the driver read of the store within itself, of all of the measured part; None where that was cut later."""
    counted = {name: run.status[name] for name in EMBEDDED if name in run.status}
    rate = run.responses.get("throughput")
    if not counted or not rate or run.measured_from_ns is None or run.measured_to_ns is None:
        return None
    if run.measured is not None and run.measured.from_s > 0:
        return None
    seconds = (run.measured_to_ns - run.measured_from_ns) / 1e9
    if seconds <= 0:
        return None
    return _OfRun(seconds, rate * seconds, {name: value / seconds for name, value in counted.items()}, {}, {})


def _means(
    study: Study,
    table: Table,
    cells: Sequence[Cell],
    values: Mapping[int, Mapping[int, float]],
    *,
    least: float = 0.0,
) -> dict[int, tuple[float, Interval | None]]:
    """Cell -> mean over its runs with an interval, made as those of responses are. `values`: cell -> block -> value.

    No interval goes below the `least` that there can be.
    """
    shape = (max(table.blocks, 1), len(cells))
    found, times = np.full(shape, np.nan), np.full(shape, np.nan)
    for place, cell in enumerate(cells):
        for block, value in values[cell.index].items():
            found[block, place], times[block, place] = value, table.times[block, cell.index]
    when = looks(study)
    means = stats.cell_means(
        found,
        times,
        study.replicates.confidence,
        randomised=study.order == "randomised",
        widening=stats.widening_of_means(when.first, when.last),
    )
    return {
        cell.index: (float(mean), _interval(mean, half, least))
        for cell, mean, half in zip(cells, _plain(means.mean), _plain(means.half), strict=True)
    }


def _plain(array: NDArray[np.float64]) -> list[float]:
    return [float(each) for each in array]


def _interval(mean: float, half: float, least: float) -> Interval | None:
    return (max(mean - half, least), mean + half) if math.isfinite(half) else None


def _apart(compared: Sequence[Pair], means: Mapping[int, tuple[float, Interval | None]]) -> dict[int, float]:
    """Cell -> how many times more one has than the other, of the compared cells whose intervals are apart: the most."""
    found: dict[int, float] = {}
    for pair in compared:
        if pair.a.index not in means or pair.b.index not in means:
            continue
        (low, of_low), (high, of_high) = sorted((means[pair.a.index], means[pair.b.index]), key=lambda each: each[0])
        if of_low is None or of_high is None or of_low[1] >= of_high[0]:
            continue
        # Of what one of them hardly ever did, the most that it may have done is what the other is held against.
        ratio = high / max(low, of_low[1], LEAST_PER_OP)
        for cell in (pair.a, pair.b):
            found[cell.index] = max(found.get(cell.index, 1.0), ratio)
    return found


_OFF = "performance_schema was off, so that the server kept account of waits for row locks alone"


def _remark(table: Table, cell: Cell) -> str:
    """What is not there, and why."""
    said = {str(run.settings.get("performance_schema")).upper() for run in table.ok_runs if run.slot.cell == cell.index}
    return _OFF if said and said <= {"OFF", "0"} else ""
