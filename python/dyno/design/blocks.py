"""Randomised complete blocks: a block is one replicate of every cell in random order.

A drift of the machine then hits all cells alike. Every cell stays in until the whole stage is done: dropping those that
are precise early would leave the others to be measured at other times, and comparisons between them would no longer be
within blocks.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dyno.model.looks import GIVE_UP_AFTER
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import Study


def block_order(study: Study, block: int) -> tuple[int, ...]:
    """The cells of a block in the order in which they are run; the same for the same seed, whenever it is asked."""
    order = [cell.index for cell in study.cells]
    if study.order == "randomised":
        random.Random(f"dyno {study.seed} {block}").shuffle(order)
    return tuple(order)


@dataclass
class _Cell:
    values: dict[int, float] = field(default_factory=dict)  # block -> the response that decides
    times: dict[int, int] = field(default_factory=dict)  # block -> its place in the order of execution
    lost_in_a_row: int = 0


class Blocks:
    """The blocks of one stage of a study, or of all of it: what has been run, and what is left of the present one."""

    def __init__(self, study: Study, *, stage: int | None = None, first: int = 0, never: Collection[int] = ()) -> None:
        """`first` is the number of its first block. The cells of `never` are given up from the start."""
        self._study = study
        self._stage = stage
        self._first = first
        self._cells = {cell.index: _Cell(lost_in_a_row=GIVE_UP_AFTER * (cell.index in never)) for cell in study.cells}
        self._attempt = 0
        self.refused = False
        """Whether a cell was given up at once, since what it asks for was refused."""
        self.block = first - 1
        self.left: list[int] = []
        self.begin_next()

    @property
    def begun(self) -> int:
        """How many blocks there are, the present one included."""
        return self.block - self._first + 1

    @property
    def lost(self) -> int:
        """How many cells are given up."""
        return sum(self._given_up(index) for index in self._cells)

    @property
    def all_lost(self) -> bool:
        """Whether no cell is tried any more."""
        return self.lost == len(self._cells)

    def slot(self) -> Slot | None:
        """The next run of the present block; None at its end."""
        if not self.left:
            return None
        return Slot(cell=self.left[0], block=self.block, attempt=self._attempt, stage=self._stage)

    def begin_next(self) -> None:
        """Go on to another block."""
        self.block += 1
        self.left = [index for index in block_order(self._study, self.block) if not self._given_up(index)]

    def record(self, run: RunRecord) -> None:
        """Take in the run that was to come. A partial one, or one at which the study was halted, does not fill it."""
        if run.outcome is Outcome.PARTIAL or run.halted:
            return
        cell = self._cells[run.slot.cell]
        value = run.responses.get(self._study.replicates.of)
        if run.outcome is Outcome.OK and value is not None:
            cell.values[run.slot.block] = value
            cell.times[run.slot.block] = run.run
            cell.lost_in_a_row = 0
        elif run.permanent:
            cell.lost_in_a_row, self.refused = GIVE_UP_AFTER, True
        elif self._attempt < self._study.replicates.retries:
            self._attempt += 1
            return
        else:
            cell.lost_in_a_row += 1
        self._attempt = 0
        self.left.pop(0)

    def so_far(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Values and places in time, (blocks, cells), NaN where there is none, and which cells are still tried."""
        values, times = np.full((2, self.begun, len(self._cells)), np.nan)
        for place, cell in enumerate(self._cells.values()):
            for block, value in cell.values.items():
                values[block - self._first, place], times[block - self._first, place] = value, cell.times[block]
        return values, times, np.array([not self._given_up(index) for index in self._cells])

    def _given_up(self, index: int) -> bool:
        return self._cells[index].lost_in_a_row >= GIVE_UP_AFTER
