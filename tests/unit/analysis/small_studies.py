"""Small studies and runs for the tests of analysis."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from dyno.model.run import Outcome, RunRecord, Slot, Step
from dyno.model.study import Cell, Factor, HostSpec, KindSpec, Level, Limits, Replicates, Study


def study(
    factors: Mapping[str, list[Any]],
    *,
    compare: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    caches: str = "warm",
    **rule: Any,
) -> Study:
    """A study over all combinations. `options` maps a level's name to the system options that it brings."""
    declared = tuple(
        Factor(name=name, levels=tuple(Level(value=value) for value in values)) for name, values in factors.items()
    )
    cells = []
    for index, chosen in enumerate(product(*(factor.levels for factor in declared))):
        levels = {factor.name: level.name for factor, level in zip(declared, chosen, strict=True)}
        brought = {k: v for level in levels.values() for k, v in (options or {}).get(level, {}).items()}
        cells.append(
            Cell(
                index=index,
                levels=levels,
                host=HostSpec(caches=caches),
                system=KindSpec(kind="sqlite", options=brought),
                workload=KindSpec(kind="drive"),
            )
        )
    return Study(
        study="journal",
        question="Is wal faster?",
        scale="default",
        factors=declared,
        compare=compare,
        cells=tuple(cells),
        replicates=Replicates(**rule),
        observe=(),
        limits=Limits(),
        order="randomised",
        prepare="once",
        restore="copy",
        seed=1,
        source_sha256="0" * 64,
    )


class Runs(list[RunRecord]):
    """Runs in order of execution."""

    def __init__(self, of: Study) -> None:
        super().__init__()
        self._study = of

    def add(self, cell: int, block: int, value: float | None = None, **fields: Any) -> Runs:
        """An ok run with that throughput."""
        responses = fields.pop("responses", {} if value is None else {"throughput": value})
        self.append(
            RunRecord(
                run=len(self) + 1,
                slot=Slot(cell=cell, block=block, attempt=fields.pop("attempt", 0)),
                levels=self._study.cells[cell].levels,
                outcome=fields.pop("outcome", Outcome.OK),
                started_ns=0,
                ended_ns=1,
                responses=responses,
                **fields,
            )
        )
        return self

    def add_cells(self, values: Mapping[int, list[float]], response: str = "throughput", **fields: Any) -> Runs:
        """One ok run a block and cell."""
        for block in range(max(map(len, values.values()))):
            for cell, of_cell in values.items():
                if block < len(of_cell):
                    self.add(cell, block, responses={response: of_cell[block]}, **fields)
        return self

    def fail(self, cell: int, block: int, outcome: Outcome = Outcome.FAILED, cause: str = "no answer in 60 s") -> Runs:
        """A run that is not ok."""
        return self.add(cell, block, outcome=outcome, step=Step.READY, cause=cause)
