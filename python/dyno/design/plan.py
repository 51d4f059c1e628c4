"""The design of a study: blocks, looked at only at their ends; of a staged study, those of two stages.

Stage one ends when every pick is shown to be the best, or with its share of the budget or its most blocks; it has its
fewest blocks wherever half of the budget holds them. Stage two has blocks of its own, of the picked
cells alone, and stops as any other study does. It begins with nothing: the runs that picked a cell have no part in
comparing it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dyno.design.blocks import Blocks
from dyno.design.picks import Picks
from dyno.design.rule import Rule
from dyno.model.looks import GIVE_UP_AFTER, looks
from dyno.model.run import RunRecord, Slot
from dyno.model.stages import COMPARING, PICKING, choices, comparing, looks_at_picks, picking
from dyno.model.study import Study
from dyno.model.units import counted, format_duration, format_percent

_MOST_OF_PICKING = 0.5
"""Of the budget, what stage one may take for its fewest blocks where its share is smaller."""


@dataclass(frozen=True)
class Stop:
    """The study is done. `reason` is for people; `converged` says whether the precision asked for was reached."""

    reason: str
    converged: bool


@dataclass(frozen=True)
class State:
    """Where a study stands: the widest of the intervals that decide, relative, or None while one is missing.

    `block` counts over both stages; `stage` is None where the study has none, and in stage one no interval decides.
    """

    block: int
    left_in_block: int
    runs: int
    reached: float | None
    stage: int | None = None


class Design:
    """What has been run so far, and from it what comes next. Fed in the order of execution."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._runs = 0
        self._seconds = 0.0
        self._before = 0.0  # the seconds of stage one, once it is over
        self._picks: Picks | None = None  # while stage one lasts
        self._stage: int | None = None
        if study.stages is None:
            self._rule, self._blocks = Rule.of(study), Blocks(study)
        else:
            self._stage, self._picks = PICKING, Picks(study)
            self._blocks = Blocks(picking(study), stage=PICKING)

    def record(self, run: RunRecord) -> None:
        """Take in a finished run. A partial one, or one at which the study was halted, does not fill its slot.

        Raises ValueError for a run that is not the one that was to come: it belongs to another study or seed.
        """
        if self.decide() != run.slot:
            raise ValueError(f"run {run.run} ({run.slot}) is not what the design asks for there ({self.decide()})")
        self._runs += 1
        self._seconds += run.seconds
        self._blocks.record(run)

    def decide(self) -> Slot | Stop:
        """The next run, or that the study is done. Asking changes nothing that a second asking would show."""
        while (slot := self._blocks.slot()) is None:
            if self._picks is not None and self._has_picked(self._picks):
                self._compare(self._picks)
            elif self._picks is None and (stop := self._look()) is not None:
                return stop
            else:
                self._blocks.begin_next()
        return slot

    def state(self) -> State:
        """Where the study stands now."""
        return State(
            block=self._blocks.block,
            left_in_block=len(self._blocks.left),
            runs=self._runs,
            reached=self._reached() if self._picks is None else None,
            stage=self._stage,
        )

    def seconds_left(self) -> float | None:
        """About how long the rest takes at the most, from the runs so far; None before the first."""
        if not self._runs:
            return None
        study, rule = self._study, self._study.replicates
        per_run = self._seconds / self._runs
        if study.stages is None:
            left = (rule.max - self._blocks.begun) * len(study.cells)
        elif self._picks is None:
            left = (rule.max - self._blocks.begun) * len(choices(study))
        else:
            left = (looks_at_picks(study)[-1] - self._blocks.begun) * len(picking(study).cells)
            left += rule.max * len(choices(study))
        rest = (left + len(self._blocks.left)) * per_run
        return rest if rule.budget is None else max(min(rest, rule.budget - self._seconds), 0.0)

    def _has_picked(self, picks: Picks) -> bool:
        """Whether stage one is over."""
        assert self._study.stages is not None
        budget, blocks = self._study.replicates.budget, self._blocks.begun
        if self._blocks.all_lost or blocks >= picks.looks[-1]:
            return True
        if budget is not None:
            share = self._study.stages.share
            # Its fewest blocks are kept beyond its share, but not where they would leave less to comparing.
            if blocks < picks.looks[0]:
                share = max(share, _MOST_OF_PICKING)
            if self._seconds * (1 + 1 / blocks) > share * budget:
                return True
        return blocks in picks.looks and picks.all_shown(self._blocks)

    def _compare(self, picks: Picks) -> None:
        """Begin stage two, with the cells that stage one picked; where it could pick none, nothing is tried."""
        picked = picks.picked(self._blocks)
        second = comparing(self._study, picked)
        never = [cell.index for cell, index in zip(second.cells, picked, strict=True) if index is None]
        self._blocks = Blocks(second, stage=COMPARING, first=self._blocks.block + 1, never=never)
        self._rule = Rule.of(second)
        self._before, self._picks, self._stage = self._seconds, None, COMPARING

    def _look(self) -> Stop | None:
        rule = self._study.replicates
        blocks, lost = self._blocks.begun, self._blocks.lost
        if self._blocks.all_lost:
            why = ", or asks for what is refused" if self._blocks.refused else ""
            return Stop(f"every cell failed {GIVE_UP_AFTER} blocks in a row{why}", converged=False)
        reached = self._reached()
        narrow = reached is not None and reached <= rule.precision and self._fewest() >= self._rule.looks.first
        precise = narrow and not lost
        if narrow:
            without = f", save {counted(lost, 'cell')} that failed" if lost else ""
            return Stop(
                f"every interval is within {format_percent(rule.precision)} after {counted(blocks, 'block')}{without}",
                converged=precise,
            )
        if blocks >= rule.max:
            return Stop(f"the maximum of {counted(rule.max, 'block')} was reached", converged=precise)
        if rule.budget is not None and self._with_another_block() > rule.budget:
            limit = format_duration(rule.budget)
            short = f"; min {rule.min} not reached: raise replicates.budget" if blocks < rule.min else ""
            return Stop(
                f"another block would have passed the budget of {limit}; {counted(blocks, 'block')} "
                f"{'was' if blocks == 1 else 'were'} run{short}",
                converged=precise,
            )
        return None

    def _with_another_block(self) -> float:
        """The seconds that the study will have taken after one more block like those so far."""
        here = self._seconds - self._before
        return self._before + here * (1 + 1 / self._blocks.begun)

    def _fewest(self) -> int:
        """How many values the interval with the fewest has; of those that decide.

        As analysis counts: a run that failed is not one of the fewest that are asked for.
        """
        values, _, tried = self._blocks.so_far()
        return int(self._rule.fewest(values, tried).min())

    def _reached(self) -> float | None:
        """The widest interval that decides, relative to its centre; None where one is missing."""
        width = float(self._rule.reached(*self._blocks.so_far()))
        return width if math.isfinite(width) else None


@dataclass(frozen=True)
class Forecast:
    """About how long a study takes, in seconds; None where it depends on the system.

    `fewest` is of the fewest blocks, whether or not the budget holds them.
    """

    least: float | None
    most: float | None
    fewest: float | None = None


def forecast(study: Study, seconds_of_run: Mapping[int, float | None]) -> Forecast:
    """From the fewest blocks to the most, or to the budget. `seconds_of_run` is of each cell, with all around it."""
    known = {index: seconds for index, seconds in seconds_of_run.items() if seconds is not None}
    rule = study.replicates
    least = most = None
    if len(known) == len(study.cells):
        least, most = looks(study).first * sum(known.values()), rule.max * sum(known.values())
        if study.stages is not None:
            least, most = _of_stages(study, known)
    fewest = least
    if rule.budget is not None:
        most = rule.budget if most is None else min(most, rule.budget)
        least = None if least is None else min(least, most)
    return Forecast(least, most, fewest)


def _of_stages(study: Study, seconds: Mapping[int, float]) -> tuple[float, float]:
    """Whatever is picked: from the quickest of each choice to the slowest."""
    picks, open_choices = looks_at_picks(study), choices(study)
    first = sum(seconds[cell.index] for cell in picking(study).cells)
    of_choices = [[seconds[cell.index] for cell in choice.cells] for choice in open_choices]
    second = looks(comparing(study, [None] * len(open_choices)))
    least, most = sum(map(min, of_choices)), sum(map(max, of_choices))
    return picks[0] * first + second.first * least, picks[-1] * first + second.last * most
