"""What each step of an engine's own switches takes of a transaction, against the step before it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dyno.analysis.table import Table
from dyno.model.findings import Switches, SwitchStep
from dyno.model.study import Cell, Study

_SUFFIX = ".instructions"


def switches(study: Study, table: Table) -> Iterator[Switches]:
    """Of each kind of transaction that was counted, in each run of compared levels that one system has.

    Nothing of glass: its steps are of components (`removal`). Nothing where no factor is compared.
    """
    if study.compare is None:
        return
    kinds = sorted(name.removesuffix(_SUFFIX) for name in table.values if name.endswith(_SUFFIX))
    for within, cells in _chains(study, study.compare):
        for kind in kinds:
            steps = tuple(_steps(cells, study.compare, kind, table))
            if len(steps) > 1:
                system = cells[0].system.kind
                yield Switches(
                    transaction=kind, system=system, within=within, steps=steps, sentence=_sentence(kind, system, steps)
                )


def _chains(study: Study, compare: str) -> Iterator[tuple[dict[str, str], list[Cell]]]:
    """Cells in the order of the compared levels, by the levels of other factors and by system."""
    levels = next([level.name for level in factor.levels] for factor in study.factors if factor.name == compare)
    found: dict[tuple[tuple[tuple[str, str], ...], str], list[Cell]] = {}
    for cell in sorted(study.cells, key=lambda cell: levels.index(cell.levels[compare])):
        if cell.system.kind != "glass":
            within = tuple(item for item in cell.levels.items() if item[0] != compare)
            found.setdefault((within, cell.system.kind), []).append(cell)
    for (within, _), cells in found.items():
        yield dict(within), cells


def _steps(cells: Sequence[Cell], compare: str, kind: str, table: Table) -> Iterator[SwitchStep]:
    """Cells that were counted. A step after one that was not is against the last that was, and names all between."""
    response = f"{kind}{_SUFFIX}"
    first = 0.0
    before: Cell | None = None
    for cell in cells:
        values = table.of(response, cell.index)
        if not values:
            continue
        mean = statistics.fmean(values)
        throughput = table.of("throughput", cell.index)
        step = SwitchStep(
            level=cell.levels[compare],
            switched=_switched(before, cell) if before else "",
            cell=cell.index,
            instructions=mean,
            throughput=statistics.fmean(throughput) if throughput else None,
        )
        saved = _saved(table.by_block[response], before, cell) if before else []
        if saved:
            several = len(saved) > 1
            step = step.model_copy(
                update={
                    "saved": statistics.fmean(saved),
                    "least": min(saved) if several else None,
                    "most": max(saved) if several else None,
                    "share": statistics.fmean(saved) / first if first else None,
                }
            )
        yield step
        first, before = first or mean, cell


def _saved(by_block: Mapping[int, Mapping[int, float]], before: Cell, after: Cell) -> list[float]:
    """Of each block that has both: the same transactions are carried out in all runs of a block."""
    old, new = by_block[before.index], by_block[after.index]
    return [old[block] - new[block] for block in sorted(old.keys() & new.keys())]


def _switched(before: Cell, after: Cell) -> str:
    """`synchronous: full → off`, of everything in which the systems' options differ."""
    old, new = before.system.options, after.system.options
    keys = [*old, *(key for key in new if key not in old)]
    return ", ".join(
        f"{key}: {_shown(old.get(key))} → {_shown(new.get(key))}" for key in keys if old.get(key) != new.get(key)
    )


def _shown(value: Any) -> str:
    """As in a study file; what is not given is the system's own choice."""
    if value is None:
        return "not given"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sentence(kind: str, system: str, steps: Sequence[SwitchStep]) -> str:
    first, last = steps[0], steps[-1]
    largest = max(steps[1:], key=lambda step: step.saved or 0.0)
    said = (
        f"{kind} on {system}: {first.instructions:,.0f} instructions with {first.level}, {last.instructions:,.0f} "
        f"({last.instructions / first.instructions:.1%}) with {last.level}"
    )
    if largest.share is None or largest.share <= 0:
        return f"{said}. No step saves any."
    return f"{said}. The largest single step is {largest.level}: {largest.share:.1%}."
