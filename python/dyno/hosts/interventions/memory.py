"""Less memory, page cache included, for system and driver together: the kernel has to reclaim pages earlier."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar

from pydantic import Field

from dyno.hosts.interventions.base import Controller, Effect, Lives, Target
from dyno.hosts.interventions.calls import open_files
from dyno.hosts.interventions.caps import Cap
from dyno.model.base import InvalidRun
from dyno.model.interventions import Shares
from dyno.model.units import Share

_KILLED = (
    "the server has its data open with O_DIRECT, so that its memory is its own and not page cache: a limit would have "
    "it killed, not slowed"
)
_PAGE = os.sysconf("SC_PAGE_SIZE")


class MemoryOptions(Shares):
    """How much is taken."""

    title = "a share of the machine's memory taken from system and driver together"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of the memory that is taken away; 25%, 50% and 75% if left out"),
    ] = (0.25, 0.5, 0.75)


class Memory(Cap):
    """A limit of the memory that the machine has."""

    kind = "memory"
    Options = MemoryOptions
    joint: ClassVar[Controller | None] = "memory"
    refused = "where data are open with O_DIRECT: without swap the kernel can only kill"

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:
        """Where it is known that data are read past the page cache."""
        if lives.opens_directly is not None:
            return f"{_KILLED} ({lives.opens_directly})"
        return super().unfit(lives)

    @classmethod
    def doubtful(cls, lives: Lives) -> str | None:
        """A server may read past the page cache."""
        return None if lives.embedded else "refused where the server has its data open with O_DIRECT"

    def refuse(self, target: Target) -> None:
        """What reads past the page cache has its memory in processes, which without swap cannot be reclaimed."""
        direct = [file for file in open_files(target.processes.values()) if file.below(target.data)]
        if any(file.flags & os.O_DIRECT for file in direct):
            raise InvalidRun(f"memory: {_KILLED}")

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """Nothing takes longer by a known part: memory is shared in space, and not in time as CPUs and devices are."""
        return Effect()

    def limit(self, share: float, target: Target) -> None:
        """Whole pages."""
        self._write(str(int(share * os.sysconf("SC_PHYS_PAGES")) * _PAGE))

    def free(self) -> None:
        """No limit."""
        self._write("-1" if self.group.version("memory") == 1 else "max")

    def _write(self, size: str) -> None:
        v1 = self.group.version("memory") == 1
        self.group.write("memory", "memory.limit_in_bytes" if v1 else "memory.max", size)
