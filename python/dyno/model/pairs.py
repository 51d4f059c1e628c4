"""Which cells a study sets against each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from dyno.model.interventions import FACTOR
from dyno.model.study import Cell, Study

DECIDING_SHARE = 0.5
"""Of the error that a whole report may make, what the comparisons of the deciding response share among themselves."""


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in the compared factor alone."""

    factor: str
    a: Cell
    b: Cell

    @property
    def within(self) -> dict[str, str]:
        """The levels that both cells share."""
        return {name: level for name, level in self.a.levels.items() if name != self.factor}

    @property
    def level_a(self) -> str:
        """The level that is 1."""
        return self.a.levels[self.factor]

    @property
    def level_b(self) -> str:
        """The level that is measured against it."""
        return self.b.levels[self.factor]


@dataclass(frozen=True)
class Gap:
    """A combination of the other factors' levels at which the compared factor has not all of its levels."""

    within: dict[str, str]
    there: tuple[str, ...]
    missing: tuple[str, ...]


def pairs(study: Study) -> list[Pair]:
    """Every two levels of the compared factor, the one declared first as `a`, within each combination of the others.

    Where a design leaves cells out, those pairs of which both are there: nothing is compared across other levels. Of a
    staged study, every two cells that may come to be compared: which will be is known once they are picked.
    """
    if study.compare is None:
        return []
    return [
        Pair(study.compare, a, b)
        for group in _alike_but_for(study, study.compare).values()
        for a, b in combinations(group, 2)
        if a.levels[study.compare] != b.levels[study.compare]
    ]


def gaps(study: Study) -> list[Gap]:
    """Where pairs are missing, since the design has not all cells."""
    if study.compare is None:
        return []
    found = []
    for others, group in _alike_but_for(study, study.compare).items():
        there = tuple(dict.fromkeys(cell.levels[study.compare] for cell in group))
        missing = tuple(level.name for level in study.factor(study.compare).levels if level.name not in there)
        if missing:
            found.append(Gap(dict(others), there, missing))
    return found


def _alike_but_for(study: Study, factor: str) -> dict[tuple[tuple[str, str], ...], list[Cell]]:
    """The cells by their levels of all other factors, each group in the order in which its levels are declared.

    What is picked first is none of these factors. Cells in which a resource is slowed are there for what that does, and
    would only make the comparisons many.
    """
    apart = (factor, study.stages.best) if study.stages else (factor,)
    place = {level.name: i for i, level in enumerate(study.factor(factor).levels)}
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in study.cells:
        if cell.intervention is not None and factor != FACTOR:
            continue
        others = tuple(item for item in cell.levels.items() if item[0] not in apart)
        groups.setdefault(others, []).append(cell)
    return {others: sorted(group, key=lambda cell: place[cell.levels[factor]]) for others, group in groups.items()}
