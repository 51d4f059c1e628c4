"""Instructions per operation, of runs that were counted at two lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dyno.model.run import Outcome, RunRecord


@dataclass(frozen=True)
class Instructions:
    """Of one cell: each block's figure. What starting and stopping took is in neither."""

    levels: dict[str, str]
    per_operation: tuple[float, ...]
    lengths: tuple[int, int]

    @property
    def mean(self) -> float | None:
        """Over the blocks; None where no block has both lengths."""
        return sum(self.per_operation) / len(self.per_operation) if self.per_operation else None


def instructions(runs: Sequence[RunRecord], factor: str, count: str) -> Iterator[Instructions]:
    """Of each combination of the other levels. Levels of `factor` are the lengths; a run's `status` has its `count`.

    Of two lengths, what the longer run took more is that of the operations that it has more.
    """
    of_cells: dict[tuple[tuple[str, str], ...], dict[int, dict[int, float]]] = {}
    for run in runs:
        others = tuple((name, level) for name, level in run.levels.items() if name != factor)
        blocks = of_cells.setdefault(others, {})
        if run.outcome is Outcome.OK and count in run.status:
            blocks.setdefault(run.slot.block, {})[int(run.levels[factor])] = run.status[count]
    lengths = sorted({int(run.levels[factor]) for run in runs})
    if len(lengths) != 2:
        return
    short, long = lengths
    for others, blocks in of_cells.items():
        yield Instructions(
            levels=dict(others),
            per_operation=tuple(
                (counted[long] - counted[short]) / (long - short)
                for _, counted in sorted(blocks.items())
                if short in counted and long in counted
            ),
            lengths=(short, long),
        )
