"""What stage one of a study picks, from its blocks so far."""

from __future__ import annotations

from dyno import stats
from dyno.design.blocks import Blocks
from dyno.model.stages import choices, looks_at_picks, picking, terms
from dyno.model.study import Study


class Picks:
    """Asks `stats` just as analysis does, so that a report tells of the cells that were compared."""

    def __init__(self, study: Study) -> None:
        self.looks = looks_at_picks(study)
        """The numbers of blocks after which stage one may end because every pick is shown."""
        self._terms = terms(study)
        self._choices = [[cell.index for cell in choice.cells] for choice in choices(study)]
        self._places = {cell.index: place for place, cell in enumerate(picking(study).cells)}

    def all_shown(self, blocks: Blocks) -> bool:
        """Whether no pick has another beside it that could be the best."""
        return all(pick.could_be <= 1 for pick in self._of(blocks))

    def picked(self, blocks: Blocks) -> list[int | None]:
        """The cell picked of each choice, by its index; None where every one of them failed."""
        found = iter(self._of(blocks))
        return [cells[0] if len(cells) == 1 else _cell(cells, next(found)) for cells in self._choices]

    def _of(self, blocks: Blocks) -> list[stats.Pick]:
        values, _, _ = blocks.so_far()
        groups = [values[:, [self._places[index] for index in cells]] for cells in self._choices if len(cells) > 1]
        return stats.pick_best(groups, **self._terms)


def _cell(cells: list[int], pick: stats.Pick) -> int | None:
    return None if pick.best is None else cells[pick.best]
