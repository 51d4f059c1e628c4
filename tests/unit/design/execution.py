"""A small language for the order of execution: what is written is what is run.

Cells are A, B, C ...; blocks stand between bars. A run is its cell's letter and how it ended: nothing for ok, `x` for
failed, `?` for invalid, `~` for partial. So `A Bx B | A B` is a block in which B failed once and was tried again, and a
block in which nothing went wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain as after
from itertools import count, repeat

from dyno.design import Design, Stop
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import Study
from tests.making import make_record

MARKS = {"": Outcome.OK, "x": Outcome.FAILED, "?": Outcome.INVALID, "~": Outcome.PARTIAL}
LETTERS = {".": "", "x": "x", "?": "?", "~": "~"}

Values = Callable[[Slot], float]


def steady(_slot: Slot) -> float:
    """Never precise and never alike: the fewest and the most runs decide."""
    return 100.0


def wide(slot: Slot) -> float:
    """So noisy that no precision is ever reached."""
    return 1000.0 if slot.block % 2 else 1.0


def carry_out(
    study: Study,
    endings: Mapping[str, str] | None = None,
    *,
    values: Values = steady,
    seconds: float = 1.0,
    most: int = 10_000,
) -> tuple[list[RunRecord], Stop | None]:
    """Run a study on nothing. `endings` is how each run of a cell ends, in order, `.` for ok; afterwards all are ok."""
    design = Design(study)
    ends = {cell.index: after((endings or {}).get(letter(cell.index), ""), repeat(".")) for cell in study.cells}
    records: list[RunRecord] = []
    for number in count(1):
        slot = design.decide()
        if isinstance(slot, Stop):
            return records, slot
        if number > most:
            return records, None
        outcome = MARKS[LETTERS[next(ends[slot.cell])]]
        value = values(slot) if outcome is Outcome.OK else None
        record = make_record(number, slot, outcome, value, seconds=seconds)
        design.record(record)
        records.append(record)
    raise AssertionError


def letter(cell: int) -> str:
    """A for 0."""
    return chr(ord("A") + cell)


def written(records: list[RunRecord]) -> str:
    """The order of execution in the language above."""
    mark = {outcome: sign for sign, outcome in MARKS.items()}
    blocks: dict[int, list[str]] = {}
    for record in records:
        blocks.setdefault(record.slot.block, []).append(letter(record.slot.cell) + mark[record.outcome])
    assert list(blocks) == sorted(blocks), "a block is never gone back to"
    return " | ".join(" ".join(runs) for runs in blocks.values())


def order_of(study: Study, endings: Mapping[str, str] | None = None, **how: object) -> str:
    """What is run, and why it ended."""
    records, stop = carry_out(study, endings, **how)  # type: ignore[arg-type]  # passed on
    return written(records) + (f" => {stop.reason}" if stop else "")
