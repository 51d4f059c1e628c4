"""Instructions per operation, as they were counted, and what they were spent on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_FUNCTIONS: Final = 12  # of a cell that are shown


@dataclass(frozen=True)
class PerOperation:
    """Instructions per operation: each block's figure."""

    per_operation: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """Over the blocks; None where there is none."""
        return sum(self.per_operation) / len(self.per_operation) if self.per_operation else None


@dataclass(frozen=True)
class OfFunction(PerOperation):
    """A function's own, without what it called. `symbol` is None for all of a module that have no name."""

    symbol: str | None
    module: str
    group: str


@dataclass(frozen=True)
class OfGroup(PerOperation):
    """Those of all functions of a group."""

    group: str


@dataclass(frozen=True)
class Instructions(PerOperation):
    """Of one cell. What starting and stopping took is in neither length, as far as that is alike.

    `groups` and `functions`, the largest first, each sum up to `per_operation` in every block. Both are empty where it
    was not kept what the instructions of each block were spent on.
    """

    levels: dict[str, str]
    lengths: tuple[int, int]
    groups: tuple[OfGroup, ...] = ()
    functions: tuple[OfFunction, ...] = ()

    @property
    def name(self) -> str:
        """`mix=c threads=4`."""
        return " ".join(f"{name}={level}" for name, level in self.levels.items()) or "the only cell"

    def share(self, part: PerOperation) -> float | None:
        """Of a group's or a function's mean in the mean of all; below 0 where the longer run took fewer of it."""
        return part.mean / self.mean if self.mean and part.mean is not None else None
