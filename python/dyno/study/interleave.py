"""Two versions of one study as a single study, so that their runs go in the same blocks."""

from __future__ import annotations

from typing import Any

from dyno.model.base import UserError
from dyno.model.study import DesignSpec, Factor, Level, Study

SIDE = "side"
BASE, NEW = "base", "new"


def interleave(base: Study, new: Study, *, precision: str, **rule: Any) -> Study:
    """Every cell twice, once of each study; what is compared is the side, and the ratio has to be that precise.

    `precision` is a share such as `2%`; `rule` overrides further keys of `replicates`. Raises UserError where the two
    have not the same cells.
    """
    if [cell.levels for cell in base.cells] != [cell.levels for cell in new.cells]:
        raise UserError("--base and --new do not have the same cells: a setting changes a factor or its levels")
    if base.stages is not None or new.stages is not None:
        raise UserError("stages: a gate sets two versions side by side cell by cell; leave out what picks among them")
    if any(factor.name == SIDE for factor in base.factors):
        raise UserError(f"a factor is called {SIDE}, which is what the two versions are called; rename it")
    sides = ((BASE, base), (NEW, new))
    cells = [
        side.cells[place].model_copy(
            update={"index": 2 * place + number, "levels": {SIDE: name, **side.cells[place].levels}}
        )
        for place in range(len(base.cells))
        for number, (name, side) in enumerate(sides)
    ]
    replicates = {**base.replicates.model_dump(mode="json"), "precision_of": "ratio", "precision": precision, **rule}
    return Study.model_validate(
        {
            **base.model_dump(mode="json"),
            "study": f"{base.study}-gate",
            "factors": [Factor(name=SIDE, levels=(Level(value=BASE), Level(value=NEW))), *base.factors],
            "compare": SIDE,
            # What a screening tells apart, and what others have published, is of the base's own factors.
            "design": DesignSpec(kind="cells"),
            "published": None,
            "cells": cells,
            "replicates": replicates,
            "overrides": [f"{name}: {text}" for name, side in sides for text in side.overrides],
        }
    )
