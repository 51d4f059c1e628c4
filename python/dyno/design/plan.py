"""The design of a study: randomised complete blocks, looked at only at their ends.

A block is one replicate of every cell in random order, so that a drift of the machine hits all cells alike. Every cell
stays in until the whole study is done: dropping those that are precise early would leave the others to be measured at
other times, and comparisons between them would no longer be within blocks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dyno.design.rule import Rule
from dyno.model.looks import looks
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import Study
from dyno.model.units import format_duration, format_percent

GIVE_UP_AFTER = 2
"""Blocks in a row in which every attempt at a cell went wrong, after which the cell is not tried any more."""


@dataclass(frozen=True)
class Stop:
    """The study is done. `reason` is for people; `converged` says whether the precision asked for was reached."""

    reason: str
    converged: bool


@dataclass(frozen=True)
class State:
    """Where a study stands: the widest of the intervals that decide, relative, or None while one is missing."""

    block: int
    left_in_block: int
    runs: int
    reached: float | None


@dataclass
class _Cell:
    values: dict[int, float] = field(default_factory=dict)  # block -> the response that decides
    times: dict[int, int] = field(default_factory=dict)  # block -> its place in the order of execution
    lost_in_a_row: int = 0


def block_order(study: Study, block: int) -> tuple[int, ...]:
    """The cells of a block in the order in which they are run; the same for the same seed, whenever it is asked."""
    order = [cell.index for cell in study.cells]
    if study.order == "randomised":
        random.Random(f"dyno {study.seed} {block}").shuffle(order)
    return tuple(order)


class Design:
    """What has been run so far, and from it what comes next. Fed in the order of execution."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._rule = Rule.of(study)
        self._cells = {cell.index: _Cell() for cell in study.cells}
        self._block = 0
        self._left = list(block_order(study, 0))
        self._attempt = 0
        self._runs = 0
        self._seconds = 0.0

    def record(self, run: RunRecord) -> None:
        """Take in a finished run. A partial one, or one at which the study was halted, does not fill its slot.

        Raises ValueError for a run that is not the one that was to come: it belongs to another study or seed.
        """
        if self.decide() != run.slot:
            raise ValueError(f"run {run.run} ({run.slot}) is not what the design asks for there ({self.decide()})")
        self._runs += 1
        self._seconds += run.seconds
        if run.outcome is Outcome.PARTIAL or run.halted:
            return
        cell = self._cells[run.slot.cell]
        value = run.responses.get(self._study.replicates.of)
        if run.outcome is Outcome.OK and value is not None:
            cell.values[run.slot.block] = value
            cell.times[run.slot.block] = run.run
            cell.lost_in_a_row = 0
        elif self._attempt < self._study.replicates.retries:
            self._attempt += 1
            return
        else:
            cell.lost_in_a_row += 1
        self._attempt = 0
        self._left.pop(0)

    def decide(self) -> Slot | Stop:
        """The next run, or that the study is done. Asking changes nothing that a second asking would show."""
        if not self._left:
            if (stop := self._look()) is not None:
                return stop
            self._block += 1
            self._left = [index for index in block_order(self._study, self._block) if not self._given_up(index)]
        return Slot(cell=self._left[0], block=self._block, attempt=self._attempt)

    def state(self) -> State:
        """Where the study stands now."""
        return State(block=self._block, left_in_block=len(self._left), runs=self._runs, reached=self._reached())

    def seconds_left(self) -> float | None:
        """About how long the rest takes at the most, from the runs so far; None before the first."""
        if not self._runs:
            return None
        per_block = self._seconds / self._runs * len(self._cells)
        rule = self._study.replicates
        rest = (rule.max - self._block - 1) * per_block + len(self._left) * self._seconds / self._runs
        return rest if rule.budget is None else max(min(rest, rule.budget - self._seconds), 0.0)

    def _given_up(self, index: int) -> bool:
        return self._cells[index].lost_in_a_row >= GIVE_UP_AFTER

    def _look(self) -> Stop | None:
        rule = self._study.replicates
        blocks = self._block + 1
        if all(self._given_up(index) for index in self._cells):
            return Stop(f"every cell failed {GIVE_UP_AFTER} blocks in a row", converged=False)
        reached = self._reached()
        narrow = reached is not None and reached <= rule.precision and self._fewest() >= self._rule.looks.first
        lost = sum(self._given_up(index) for index in self._cells)
        precise = narrow and not lost
        if narrow:
            without = f", save {lost} cells that failed" if lost else ""
            return Stop(
                f"every interval is within {format_percent(rule.precision)} after {blocks} blocks{without}",
                converged=precise,
            )
        if blocks >= rule.max:
            return Stop(f"the maximum of {rule.max} blocks was reached", converged=precise)
        if rule.budget is not None and self._seconds * (1 + 1 / blocks) > rule.budget:
            limit = format_duration(rule.budget)
            return Stop(
                f"another block would have passed the budget of {limit}; {blocks} blocks were run", converged=precise
            )
        return None

    def _fewest(self) -> int:
        """How many values the interval with the fewest has; of those that decide.

        As analysis counts: a run that failed is not one of the fewest that are asked for.
        """
        values, _, tried = self._so_far()
        return int(self._rule.fewest(values, tried).min())

    def _reached(self) -> float | None:
        """The widest interval that decides, relative to its centre; None where one is missing."""
        width = float(self._rule.reached(*self._so_far()))
        return width if math.isfinite(width) else None

    def _so_far(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Values and places in time, (blocks, cells), NaN where there is none, and which cells are still tried."""
        values, times = np.full((2, self._block + 1, len(self._cells)), np.nan)
        for place, cell in enumerate(self._cells.values()):
            for block, value in cell.values.items():
                values[block, place], times[block, place] = value, cell.times[block]
        return values, times, np.array([not self._given_up(index) for index in self._cells])


@dataclass(frozen=True)
class Forecast:
    """About how long a study takes, in seconds; None where it depends on the system."""

    least: float | None
    most: float | None


def forecast(study: Study, seconds_of_run: Mapping[int, float | None]) -> Forecast:
    """From the fewest blocks to the most, or to the budget. `seconds_of_run` is of each cell, with all around it."""
    known = [seconds for seconds in seconds_of_run.values() if seconds is not None]
    rule = study.replicates
    block = sum(known) if len(known) == len(study.cells) else None
    least = None if block is None else block * looks(study).first
    most = None if block is None else block * rule.max
    if rule.budget is not None:
        most = rule.budget if most is None else min(most, rule.budget)
        least = None if least is None else min(least, most)
    return Forecast(least, most)
