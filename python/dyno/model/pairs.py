"""Which cells a study sets against each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from dyno.model.study import Cell, Study


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in the compared factor alone."""

    factor: str
    a: Cell
    b: Cell

    @property
    def within(self) -> dict[str, str]:
        """The levels that both cells share."""
        return {name: level for name, level in self.a.levels.items() if level == self.b.levels[name]}

    @property
    def level_a(self) -> str:
        """The level that is 1."""
        return self.a.levels[self.factor]

    @property
    def level_b(self) -> str:
        """The level that is measured against it."""
        return self.b.levels[self.factor]


def pairs(study: Study) -> list[Pair]:
    """Every two levels of the compared factor, the one declared first as `a`, within each combination of the others.

    Of a staged study, every two cells that may come to be compared: which will be is known once they are picked.
    """
    factor = study.compare
    if factor is None:
        return []
    apart = (factor, study.stages.best) if study.stages else (factor,)
    place = {level.name: i for i, level in enumerate(study.factor(factor).levels)}
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in study.cells:
        others = tuple(item for item in cell.levels.items() if item[0] not in apart)
        groups.setdefault(others, []).append(cell)
    return [
        Pair(factor, a, b)
        for group in groups.values()
        for a, b in combinations(sorted(group, key=lambda cell: place[cell.levels[factor]]), 2)
        if a.levels[factor] != b.levels[factor]
    ]
