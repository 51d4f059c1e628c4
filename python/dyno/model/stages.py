"""A staged study: the best level of a tuned factor is picked in stage one, and the picked are compared in stage two.

The best of several is picked partly for its luck, so it is compared on runs that had no part in picking it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from dyno.model import responses
from dyno.model.looks import GIVE_UP_AFTER
from dyno.model.study import FIRST_LOOK, Cell, Study

PICKING, COMPARING = 1, 2

_LATER = 1.5  # each look at stage one is so many times as late as the one before: few looks cost little


@dataclass(frozen=True)
class Choice:
    """Cells that differ in the tuned factor alone: one of them is picked."""

    factor: str
    cells: tuple[Cell, ...]

    @property
    def within(self) -> dict[str, str]:
        """The levels that all of them share."""
        return {name: level for name, level in self.cells[0].levels.items() if name != self.factor}

    @property
    def name(self) -> str:
        """`solution=drbd threads=4`; never empty, since a level of the compared factor is in it."""
        return " ".join(f"{factor}={level}" for factor, level in self.within.items())


def choices(study: Study) -> list[Choice]:
    """What is to be picked in a staged study, in the order of its cells; among them those of a single cell."""
    assert study.stages is not None, "only a staged study has something to pick"
    factor = study.stages.best
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in study.cells:
        groups.setdefault(tuple(item for item in cell.levels.items() if item[0] != factor), []).append(cell)
    return [Choice(factor, tuple(cells)) for cells in groups.values()]


def picking(study: Study) -> Study:
    """The study of stage one: the cells among which there is something to pick."""
    cells = tuple(cell for choice in choices(study) if len(choice.cells) > 1 for cell in choice.cells)
    return study.model_copy(update={"cells": cells, "stages": None})


def comparing(study: Study, picked: Sequence[int | None]) -> Study:
    """The study of stage two, without the tuned factor: of each choice the cell that was picked, by its index.

    Where nothing could be picked (None) the first cell stands in, so that the study still has all its combinations.
    """
    assert study.stages is not None, "only a staged study has two stages"
    tuned = study.stages.best
    by_index = {cell.index: cell for cell in study.cells}
    chosen = [
        choice.cells[0] if index is None else by_index[index]
        for choice, index in zip(choices(study), picked, strict=True)
    ]
    cells = [
        cell.model_copy(update={"levels": {name: level for name, level in cell.levels.items() if name != tuned}})
        for cell in chosen
    ]
    return study.model_copy(
        update={
            "factors": tuple(factor for factor in study.factors if factor.name != tuned),
            "cells": tuple(cells),
            "stages": None,
        }
    )


class Terms(TypedDict):
    """What picking goes by: the same for the design that picks and for the report that tells of it."""

    higher: bool
    confidence: float
    looks: int
    out_after: int


def terms(study: Study) -> Terms:
    """As the study says."""
    return Terms(
        higher=responses.lookup(study.replicates.of).better == "higher",
        confidence=study.replicates.confidence,
        looks=len(looks_at_picks(study)),
        out_after=GIVE_UP_AFTER,
    )


def looks_at_picks(study: Study) -> tuple[int, ...]:
    """The numbers of blocks after which stage one may end because every pick is shown; the last is its most blocks."""
    assert study.stages is not None, "only a staged study picks"
    rule = study.replicates
    last = min(rule.max, study.stages.max or rule.max)
    found = [min(max(study.stages.min or rule.min, FIRST_LOOK["ratio"]), last)]
    while found[-1] < last:
        found.append(min(max(found[-1] + 1, round(found[-1] * _LATER)), last))
    return tuple(found)
